r"""One softmax head and a feed-forward layer without position codes memorise labels in unordered contexts.

`construct.memorise` tells the positions of a sequence apart; this is the counterpart for sequences whose order does not
count, as for sets of objects: a label may depend on the token and on all the tokens around it, not on their order.

Statement
---------
Let X_1, ..., X_N be sequences of n tokens in R^d, no token 0, and let label(r, j) in R^c be equal for equal tokens of
sequences that are equal up to order. One softmax head with query, key and value weights of rank one and a feed-forward
layer of at most (number of different contexts) - 2 <= n N - 2 ReLU units give every token its label. In every other
order of the tokens the labels are permuted with them.

Source
------
Kajitsuka and Sato 2024 (arXiv 2307.14023), the corollary on memorisation: one layer and one head memorise N sequences
with about 2 n N units.

Differs from the source in
--------------------------
Half as many units, because units between neighbouring numbers interpolate (`construct.key_function`); tokens may repeat
inside a sequence; the numbers and the error are proved for the stored weights instead of by constants.

Proof
-----
By `expressivity.softmax_contextual` the head gives different contexts (token, multiset) different numbers. A piecewise
linear function through k values at k different numbers has at most k - 1 pieces, hence k - 2 units beside an affine
part, which is read off the stream. Without codes every layer is the same at all tokens, so the transformer commutes
with permutations. QED.

Assumptions
-----------
- unordered: **checked** equal tokens of sequences that are equal up to order have equal labels (`memorise_sets`).
- separated: **checked** the numbers are apart in balls, and the error at every sequence is enclosed (`memorise_sets`).

Certified
---------
`SetMemory.error` bounds the largest error over all sequences and all their n! orders: the rule finite's evaluation of
the stored weights in balls at one order, and equivariance for the others.

Not certified
-------------
Anything but the given sequences; the rounding of a run.

Example
-------
Three numbers, labelled 1 when no other one is larger; the order does not matter.

>>> sequences = [[[1.0], [2.0], [3.0]], [[1.0], [2.0], [4.0]], [[2.0], [3.0], [4.0]]]
>>> found = memorise_sets(sequences, [[[0], [0], [1]]] * 3, Fraction(1, 10**6))
>>> found.units, found.error < Fraction(1, 10**6)
(4, True)
>>> found.model.evaluate([[4.0, 2.0, 1.0]]).round(6) + 0.0
array([[1., 0., 0.]])

Tests
-----
`tests/theorems/test_memorise_sets.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import ArrayLike, Float

from certiformer.construct.key_function import Units, fit
from certiformer.errors import BadInput
from certiformer.expressivity.softmax_contextual import Context, context, contextual_head
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.problem import FiniteProblem, PointNetwork
from certiformer.kernel.rules import finite
from certiformer.kernel.weights import read_model
from certiformer.model import Block, Config, FeedForward, Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.target import Table

THEOREM = {
    "id": "construct.memorise_sets",
    "title": "One softmax head and a feed-forward layer without position codes memorise labels in unordered contexts",
    "kind": "exact",
    "sources": ("kajitsuka2024",),
    "verb": "explore",
    "assumptions": (
        ("unordered", "Equal tokens of sequences that are equal up to order have equal labels.", "checked"),
        ("separated", "The numbers of the contexts are apart; errors are enclosed at every sequence.", "checked"),
    ),
    "uses": ("expressivity.softmax_contextual",),
}


@dataclass(frozen=True)
class SetMemory:
    """A transformer that memorises labels of tokens in unordered contexts: its proved error, contexts and hidden units."""

    model: Transformer
    error: Fraction
    contexts: int
    units: int


def memorise_sets(
    sequences: Float[ArrayLike, "count tokens width"],
    labels: Sequence[Sequence[Sequence[int | float | Fraction]]],
    epsilon: Fraction,
    seed: int = 0,
) -> SetMemory:
    """The transformer within `epsilon` of every label; `Refused` when its float64 weights do not reach that."""
    working_precision()
    array = np.asarray(sequences, float)
    found = contextual_head(array, seed)
    wanted = _labels(array, labels)
    keys = [_fraction(found.numbers[name].mid()) for name in wanted]
    units, _ = fit(keys, list(wanted.values()), epsilon, exactly=True)
    model = _with_units(found.model, units)
    # Each set once, in the first order in which it came.
    rows = {tuple(sorted(map(tuple, s))): s for s in reversed(array.tolist())}
    table = Table(
        "unordered labels",
        "continuous",
        tuple(
            (
                tuple(Fraction(x) for token in s for x in token),
                tuple(y for j in range(len(s)) for y in wanted[context(s, j)]),
            )
            for s in rows.values()
        ),
    )
    network = PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
    error = _fraction(finite(FiniteProblem(network, table)).upper())
    if error > epsilon:
        raise Refused(f"float64 weights of this construction come within {float(error):.3g} of the labels, not epsilon")
    return SetMemory(model, error, len(wanted), len(units.thresholds))


def _labels(sequences: np.ndarray, labels: Sequence) -> dict[Context, tuple[Fraction, ...]]:
    """The label of every context; two labels for one context are refused."""
    count, tokens = sequences.shape[:2]
    if len(labels) != count or any(len(row) != tokens for row in labels):
        raise BadInput(f"there is a label for each of the {tokens} tokens of each of the {count} sequences")
    wanted: dict[Context, tuple[Fraction, ...]] = {}
    for number, (sequence, row) in enumerate(zip(sequences, labels, strict=True), 1):
        for j, label in enumerate(row):
            exact = tuple(Fraction(y) for y in label)
            if wanted.setdefault(context(sequence, j), exact) != exact:
                raise BadInput(
                    f"token {j + 1} of sequence {number} has another label than the same token of the same set before;"
                    " a label cannot depend on the order of the tokens"
                )
    return wanted


def _with_units(head: Transformer, units: Units) -> Transformer:
    """The head followed by the units, which read the number that the head's read-out reads."""
    number = np.asarray(head.tensors["readout.weight"])[:, 0]
    outputs, hidden, before = len(units.intercept), len(units.thresholds), len(number)
    width = before + outputs
    name = "blocks.0.attention.groups.0"
    tensors = {part: np.asarray(head.tensors[f"{name}.{part}"]) for part in ("query", "key", "value", "output")}
    fill = ((0, 0), (0, outputs), (0, 0))
    stored = {f"{name}.{part}": np.pad(tensors[part], fill) for part in ("query", "key", "value")}
    stored[f"{name}.output"] = np.pad(tensors["output"], ((0, 0), (0, 0), (0, outputs)))
    stored["embed.weight"] = np.pad(np.asarray(head.tensors["embed.weight"]), ((0, 0), (0, outputs)))
    stored["embed.bias"] = np.zeros(width)
    stored["readout.weight"] = np.concatenate([np.outer(number, units.slope), np.eye(outputs)])
    stored["readout.bias"] = units.intercept
    if hidden:
        up = np.zeros((width, hidden))
        up[:before] = number[:, None]
        down = np.zeros((hidden, width))
        down[:, before:] = units.weights
        stored |= {"blocks.0.ffn.up": up, "blocks.0.ffn.up_bias": -units.thresholds}
        stored |= {"blocks.0.ffn.down": down, "blocks.0.ffn.down_bias": np.zeros(width)}
    config = head.config
    block = Block(config.blocks[0].attention, FeedForward(hidden) if hidden else None)
    return Transformer(Config(config.input, width, outputs, config.readout, blocks=(block,)), stored)


def _fraction(value: arb) -> Fraction:
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa) * Fraction(2) ** exponent
