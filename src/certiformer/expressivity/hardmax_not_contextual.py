r"""No layer of hard attention tells all contexts of four or more tokens apart: two of them look the same to every head.

A contextual mapping gives a token different outputs in different contexts. One layer of softmax attention can do it
(`expressivity.softmax_contextual`), one layer of hard attention cannot, whatever its weights.

Statement
---------
A layer of hard attention without masks, score biases and position codes: any number of heads of any size, any query,
key, value and output weights and biases, with or without residual, followed by any function of each token alone.
Let p, q be vectors, q not 0, and write t for the token p + t q.

(a) For every n >= 4 the sequences

        0, 1, 4, 5, 6, ..., n + 1     and     0, 2, 3, 5, 6, ..., n + 1

    are different sets of n different tokens, and token 0 (and each other common one) has the same output in both, for
    every layer of this kind. So no such layer is a contextual mapping for n >= 4.
(b) For n = 3 and a single head, the token 2 has the same output in two of the four sequences {0, 2, 5}, {1, 2, 5},
    {0, 2, 4}, {1, 2, 4}, for every layer of this kind with one head.
(c) The numbers in (a) and (b) are right: for n = 3 the three heads of `three_heads` map every token of every finite set
    of sequences without repeated tokens on a line to different outputs, and for n <= 2 one uniform head does.

Source
------
Kajitsuka and Sato 2024 (arXiv 2307.14023), Theorem 1: one layer of hard attention is not a contextual mapping.

Differs from the source in
--------------------------
Own counterexample and proof: one pair of sequences that defeats all weights at once, with the lengths for which it
exists. (c) says that some restriction of the length is needed when several heads are allowed.

Proof
-----
Fix the query token x. The score of token t in a head is an affine function alpha + beta t of t, since keys are affine
in the token. For beta > 0 the head sees the token with the largest t, for beta < 0 the one with the smallest, and for
beta = 0 all of them with equal weights, that is their mean (values are affine, too). So the output at x is a function
of x and of the largest, the smallest and the mean number.
(a) Both sequences have the smallest number 0, the largest n + 1, and equal sums as 1 + 4 = 2 + 3.
(b) A single head has one of the three cases. Largest: {0,2,5} and {1,2,5}. Smallest: {0,2,5} and {0,2,4}. Mean: {0,2,5}
and {1,2,4}, both 7/3.
(c) With distinct numbers, the largest, the smallest and the sum determine three of them; the heads of `three_heads`
have the constant query 1 and the keys t, -t and 0, and write what they see to coordinates of their own. For n = 2 the
mean and the own token determine the other one.

Assumptions
-----------
- hard-layer: **checked** one hard attention layer without masks, score biases and codes, applied once
(`indistinguishable`).

Certified
---------
`indistinguishable` evaluates the stored layer in exact rationals at both sequences of (a) and compares the outputs of
the common tokens for equality.

Not certified
-------------
Nothing about several layers, position codes, masks, or softmax. A floating-point run of hard attention may break ties
that exist in real arithmetic; the statement is about real arithmetic.

Example
-------
>>> twins(5)
((0, 1, 4, 5, 6), (0, 2, 3, 5, 6))
>>> indistinguishable(three_heads(4))
True

Tests
-----
`tests/theorems/test_hardmax_not_contextual.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, exact
from certiformer.expressivity.rational_run import rational_outputs
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "expressivity.hardmax_not_contextual",
    "title": "No layer of hard attention tells all contexts of four or more tokens apart",
    "kind": "impossibility",
    "sources": ("kajitsuka2024, Theorem 1",),
    "verb": "explore",
    "assumptions": (
        ("hard-layer", "One hard attention layer without masks, score biases and position codes.", "checked"),
    ),
    "uses": (),
}

# Part (b): every single head confuses two of these at the token 2.
TRIPLES = ((0, 2, 5), (1, 2, 5), (0, 2, 4), (1, 2, 4))


def twins(length: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The two sequences of (a), as numbers t."""
    if type(length) is not int or length < 4:
        raise BadInput(f"hard attention confuses sequences of at least 4 tokens this way, not of {length!r}")
    rest = tuple(range(5, length + 2))
    return (0, 1, 4, *rest), (0, 2, 3, *rest)


def on_line(numbers: Sequence[Real], base: Sequence[Real], direction: Sequence[Real]) -> list[list[Fraction]]:
    """The tokens p + t q for p = `base` and q = `direction`, exactly."""
    return [[exact(p) + exact(t) * exact(q) for p, q in zip(base, direction, strict=True)] for t in numbers]


def indistinguishable(
    model: Transformer, base: Sequence[Real] | None = None, direction: Sequence[Real] | None = None
) -> bool:
    """Whether the common tokens of the two sequences of (a) have exactly equal outputs; the theorem says they do.

    `base` and `direction` are p and q, by default 1 in every coordinate.
    """
    config = model.config
    width = config.input.width or 1
    if not _is_hard_layer(config):
        raise BadInput(
            "the theorem speaks of one layer of hard attention without masks, score biases, position codes, registers"
            " and loops, with an output at every token"
        )
    base, direction = base or [1] * width, direction or [1] * width
    if not any(direction):
        raise BadInput("the direction of a line is not 0")
    first, second = twins(config.tokens)
    outputs = [rational_outputs(model, on_line(numbers, base, direction)) for numbers in (first, second)]
    common = [(first.index(t), second.index(t)) for t in first if t in second]
    return all(outputs[0][i] == outputs[1][j] for i, j in common)


def three_heads(length: int) -> Transformer:
    """The heads of (c): every token, a number, reads itself, the largest, the smallest and the mean."""
    attention = Attention((Heads(3, 1, 1),), kind="hard", bias=True, scale="unit")
    config = Config(Input("continuous", length, width=1), 4, 4, Readout("all"), blocks=(Block(attention),))
    own = np.eye(4)[0]
    head = "blocks.0.attention.groups.0"
    return Transformer(
        config,
        {
            "embed.weight": own[None],
            "embed.bias": np.zeros(4),
            f"{head}.query": np.zeros((3, 4, 1)),
            f"{head}.query_bias": np.ones((3, 1)),
            f"{head}.key": np.outer([1.0, -1.0, 0.0], own)[:, :, None],
            f"{head}.key_bias": np.zeros((3, 1)),
            f"{head}.value": np.outer(np.ones(3), own)[:, :, None],
            f"{head}.value_bias": np.zeros((3, 1)),
            f"{head}.output": np.eye(4)[1:, None, :],
            "blocks.0.attention.output_bias": np.zeros(4),
            "readout.weight": np.eye(4),
            "readout.bias": np.zeros(4),
        },
    )


def confuses_contexts(config: Config) -> bool:
    """Whether (a) applies to the architecture: then no weights make it a contextual mapping."""
    return config.tokens >= 4 and _is_hard_layer(config)


def _is_hard_layer(config: Config) -> bool:
    attentions = [block.attention for block in config.blocks if block.attention is not None]
    return (
        len(attentions) == 1
        and config.loops == 1
        and config.code.kind == "none"
        and config.registers == 0
        and config.readout.kind == "all"
        and (attentions[0].kind, attentions[0].mask, attentions[0].score_bias) == ("hard", "none", "none")
    )
