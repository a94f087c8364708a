"""Predicting a masked token or the next one among V: attention layers with a table of outputs and cross entropy.

Statement
---------
As in `bounds.trauger_layers`, but the last layer may be the sum of several heads, and instead of one number w . y the
model reads V logits W y at one token y (or each of several) with |y|_2 <= 1, and its loss is a cross entropy, clipped
to [0, B]. Heads h of layer i have the norms c, v, q and the factor S c_h v_h (1 + 2 c_s q_h); the factor of a layer
is the sum of those of its heads. Let b be the largest l2 norm of a row of W, and s1 the sum over rows of |w_s|_1^2.
Then the logits have, in the max norm, the cover that combines

    W with weight 1:  C = s1 log(2 d + 1),  c = V log(2 d + 1),

and the covers of W_c, W_v and A of every head, with the weights of `bounds.trauger_layers` and b for |w|_2. With 2 for
the Lipschitz constant of cross entropy from the max norm,

    Rad(loss) <= chain(B, log N(eps / 2), m).

The length of the sequences does not occur; V occurs through s1 and, in the summand that matters little, through V
log(2 d + 1).

Source
------
Trauger and Tewari 2024 (trauger2024), Theorem 5.1, for the setting; the cover of all logits at once is our own.

Differs from the source in
--------------------------
The source bounds the complexity of the loss by that of one logit times sqrt V and logarithms that it hides (a theorem on
vector contraction). `as_printed` is that product without what is hidden: a leading term whose constant is not known.
Here all logits are covered at once and every constant is written. Several heads: the source says that its bound for many
layers costs H^1.5 in the complexity for H equal heads. That is what the combination gives: each of the H heads has its
own covers, K is a sum over heads to the power 3, so sqrt K grows as H^1.5, on top of the sum in the layer's factor.

Proof
-----
Let y and y' be the last tokens of a model and of the member of the covers. The logits differ by at most max_s |w_s . (y -
y')| + max_s |(w_s - w'_s) . y'| <= b |y - y'|_2 + eps_out. |y - y'|_2 is bounded in `bounds.trauger_layers`, with
|w|_2 = 1; a sum of heads adds their errors and their factors. Every row of W is a linear function of |y'| <= 1 with
sum |w_si| <= |w_s|_1, so by `bounds.chaining.linear_cover` for one row it has a cover of |w_s|_1^2 log(2 d + 1) /
eps^2 + log(2 d + 1); errors in the max norm do not add, logarithms of covers do. Cross entropy is log sum_s exp(z_s)
- z_t, whose gradient softmax(z) - e_t has l1 norm at most 2; clipping does not expand. QED.

Assumptions
-----------
- architecture: **trusted** as in `bounds.trauger_layers`, with sums of heads; no residual, bias or true layer norm.
- independent: **trusted** the sample consists of independent sequences, with one loss each: that of one token, or the
  mean over several.
- bounded: **trusted** the loss is clipped to [0, B].

Certified
---------
`cover` and `complexity`, in balls.

Not certified
-------------
`as_printed`.

Example
-------
>>> head = HeadNorms(l11=15.96, output=1.03, value=1.17, scores=1.05)
>>> model = Masked(((head,),), width=8, hidden=8, rows=0.7, rows_l1_squared=60.0, vocabulary=20)
>>> [round(above(complexity(model, 5.0, m)), 3) for m in (10**8, 10**10, 10**12)]
[1.191, 0.193, 0.027]

Tests
-----
`tests/theorems/test_masked_token.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flint import arb

from certiformer.bounds.chaining import Cover, chain, combine, linear_cover
from certiformer.bounds.numbers import above as above
from certiformer.bounds.numbers import ball, require_positive
from certiformer.bounds.trauger_layers import LayerNorms as HeadNorms
from certiformer.bounds.trauger_one_layer import SHARP
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.masked_token",
    "title": "Attention layers that predict a token among many generalize independently of the length of their input",
    "kind": "upper bound",
    "sources": ("trauger2024, Theorem 5.1",),
    "verb": "audit",
    "assumptions": (
        ("architecture", "Layers of heads without residual, bias or true layer norm.", "trusted"),
        ("independent", "The sample consists of independent sequences.", "trusted"),
        ("bounded", "The loss is clipped to [0, B].", "trusted"),
    ),
    "uses": (
        "bounds.chaining",
        "bounds.trauger_layers",
        "bounds.trauger_one_layer",
    ),
}

LOSS = 2  # cross entropy, from the max norm of the logits


@dataclass(frozen=True)
class Masked:
    """The heads of every layer; d, k; the largest |w_s|_2 and sum |w_s|_1^2 of W; V; B_x and S."""

    layers: tuple[tuple[HeadNorms, ...], ...]
    width: int
    hidden: int
    rows: float
    rows_l1_squared: float
    vocabulary: int
    inputs: float = 1.0
    lipschitz: float = 1.0


def layer_factor(model: Masked, heads: tuple[HeadNorms, ...], softmax: int = SHARP) -> arb:
    """How much a layer may stretch a change of its tokens: the sum over its heads."""
    one = [ball(h.output) * ball(h.value) * (1 + 2 * softmax * ball(h.scores)) for h in heads]
    return ball(model.lipschitz) * sum(one, arb(0))


def cover(model: Masked, softmax: int = SHARP) -> Cover:
    """The cover of the logits in the max norm."""
    require_positive(
        width_of_a_token=model.width, size_of_the_vocabulary=model.vocabulary, bound_of_the_tokens=model.inputs
    )
    if not model.layers or not all(model.layers):
        raise BadInput("the bound speaks of at least one layer, and of layers with at least one head")
    logarithm = ball(2 * model.width + 1).log()
    parts = [(Cover(ball(model.rows_l1_squared) * logarithm, model.vocabulary * logarithm), arb(1))]
    s, after = ball(model.lipschitz), ball(model.rows)
    for place in reversed(range(len(model.layers))):
        radius = model.inputs if place == 0 else 1.0
        for head in model.layers[place]:
            inside = linear_cover(1, head.l11, model.width, model.hidden)
            first = linear_cover(radius, head.l11, model.width, model.hidden)
            c, v = ball(head.output), ball(head.value)
            scores = softmax * s * c * v * ball(radius) ** 2
            parts += [(inside, after), (first, after * s * c), (first, after * scores)]
        after = after * layer_factor(model, model.layers[place], softmax)
    return combine(parts)


def complexity(model: Masked, largest_loss: float, sequences: int, softmax: int = SHARP) -> arb:
    """The bound of the Rademacher complexity of the clipped cross entropy, never above its largest value."""
    logits = cover(model, softmax)
    return chain(largest_loss, lambda eps: logits(eps / LOSS), sequences)


def as_printed(one_logit: float, vocabulary: int) -> float:
    """sqrt V times the complexity of the worst logit, without the constants and logarithms that the source hides.

    >>> as_printed(0.02, 30_000)
    3.4641016151377544
    """
    require_positive(size_of_the_vocabulary=vocabulary)
    return math.sqrt(vocabulary) * one_logit
