"""A real transformer with norms before its sub-layers and residuals: a bound with every factor, for the waterfall.

Statement
---------
Let X1 = X0 + sum_h VO_h N(X0) softmax(N(X0)^T QK_h N(X0)), X2 = X1 + W2 s(W1 N(X1)) for every layer l, then logits
W_out N(X). Behind every norm tokens have |x|_2 <= R, and N is Lipschitz with constant n token by token; s has
Lipschitz constant S, s(0) = 0. Fixed biases may be added: c_h . x_u to the score of key x_u (c_h = W_K^T b_Q with the
score scale; what other biases of queries and keys add is the same for all keys), b1 to W1 N(X1), and any vector to a
sub-layer or to the logits. With the softmax constant c_s = 1 (printed: 2), b the largest l2 norm of a row of W_out,
and for every layer

    att = sum_h |VO_h| (1 + c_s R (2 R |QK_h| + |c_h|)),   ff = S |W1| |W2|,
    after_l = n b prod_(j > l) (1 + n att_j)(1 + n ff_j),

the logits have, in the max norm, the cover that combines those of

    QK_h with after_l (1 + n ff_l) c_s R^2 |VO_h|,   VO_h with after_l (1 + n ff_l),     (inputs of norm R)
    W1 with after_l S |W2|   (inputs R),   W2 with after_l   (inputs S (|W1| R + |b1|)),   W_out with 1,

W_out row by row: C = R^2 log(2 d + 1) sum_v |w_v|_1^2, c = V log(2 d + 1). A loss that is clipped to [0, B] and
2-Lipschitz in the max norm (cross entropy) then has Rad <= chain(B, log N(eps / 2), m).

Source
------
Own derivation, in the manner of Edelman et al. 2022 (edelman2022) and Trauger and Tewari 2024 (trauger2024).

Differs from the source in
--------------------------
Residuals, several heads, feed-forward parts, norms with gain, a table of outputs.

Proof
-----
A change of size e of all tokens in the residual stream before layer j becomes at most (1 + n att_j)(1 + n ff_j) e
behind it: the norm passes n e, a head on the ball of radius R multiplies by |VO_h| (1 + 2 c_s R^2 |QK_h|)
(`bounds.attention_lipschitz` (b)) plus |VO_h| c_s R |c_h|, as c_h moves scores by |c_h| e, hidden units by S |W1|
|W2|, the residual adds 1. The last norm and W_out give n b. Layer by layer, the difference to the member of the
covers is taken at the member's input, and passed on by the maps themselves. Members may be taken within the spectral
norms given: projecting onto that convex set in the Frobenius norm, in which the covers of `bounds.chaining` hold,
brings none farther from a matrix of the set. Within its layer an error e of x -> QK_h x moves scores by R e, so the
sub-layer by |VO_h| c_s R^2 e; one of x -> VO_h x by e; both pass the feed-forward part. An error of x -> W1 x passes
S |W2|, one of W2 nothing. Add up and combine. Each row of W_out is a linear function with the cover of `linear_cover`
for one row; errors in the max norm do not add. QED.

Assumptions
-----------
- architecture: **trusted** as above; biases, gains and embeddings are those that are given before the data (their
  covers can be added).
- norm: **trusted** n bounds the norm's Lipschitz constant on all streams that may come. For eps alone it is max |g| /
  sqrt(eps).
- independent: **trusted** the sample consists of independent sequences.

Certified
---------
`cover`, `complexity` and the factors, in balls.

Not certified
-------------
That a number below the trivial one comes out: with n = 316 for each norm it does not.

Example
-------
>>> one = BlockNorms((HeadPair(0.4, 5.0, 0.5, 6.0),), 1.0, 20.0, 1.0, 20.0, hidden=16)
>>> model = PreNorm((one,), width=8, radius=8**0.5, norm=1.0, rows=0.6, rows_l1_squared=30.0, vocabulary=20)
>>> round(above(complexity(model, 5.0, 10**14)), 3)
0.013

Tests
-----
`tests/theorems/test_pre_norm_layers.py`
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from certiformer.bounds.chaining import Cover, chain, combine, linear_cover
from certiformer.bounds.numbers import above as above
from certiformer.bounds.numbers import ball, require_positive
from certiformer.bounds.trauger_one_layer import SHARP

THEOREM = {
    "id": "bounds.pre_norm_layers",
    "title": "A transformer with norms and residuals has an explicit bound, factor by factor",
    "kind": "upper bound",
    "sources": (
        "edelman2022",
        "trauger2024",
    ),
    "verb": "audit",
    "assumptions": (
        ("architecture", "Norms before sub-layers, residuals, given biases and embeddings.", "trusted"),
        ("norm", "The norm has the Lipschitz constant given on all streams that may come.", "trusted"),
        ("independent", "The sample consists of independent sequences.", "trusted"),
    ),
    "uses": (
        "bounds.chaining",
        "bounds.trauger_one_layer",
    ),
}

LOSS = 2  # cross entropy, from the max norm of the logits


@dataclass(frozen=True)
class HeadPair:
    """Spectral norms and sums of absolute entries of QK_h (scale folded in) and VO_h, and |c_h|."""

    scores: float
    scores_l11: float
    value: float
    value_l11: float
    key_shift: float = 0.0


@dataclass(frozen=True)
class BlockNorms:
    """One layer: its heads, then spectral norm and l11 of W1 and of W2, the number of hidden units, and |b1|."""

    heads: tuple[HeadPair, ...]
    up: float
    up_l11: float
    down: float
    down_l11: float
    hidden: int
    up_bias: float = 0.0


@dataclass(frozen=True)
class PreNorm:
    """The layers; d; R; n; the largest |w_v|_2 and sum |w_v|_1^2 of W_out; its number of rows; S."""

    blocks: tuple[BlockNorms, ...]
    width: int
    radius: float
    norm: float
    rows: float
    rows_l1_squared: float
    vocabulary: int
    lipschitz: float = 1.0


def growth(model: PreNorm, block: BlockNorms, softmax: int = SHARP) -> tuple[arb, arb]:
    """1 + n att and 1 + n ff of a layer: how much it may stretch a change of its input."""
    radius, n = ball(model.radius), ball(model.norm)
    slopes = [softmax * radius * (2 * radius * ball(h.scores) + ball(h.key_shift)) for h in block.heads]
    att = sum((ball(h.value) * (1 + slope) for h, slope in zip(block.heads, slopes, strict=True)), arb(0))
    return 1 + n * att, 1 + n * ball(model.lipschitz) * ball(block.up) * ball(block.down)


def cover(model: PreNorm, softmax: int = SHARP) -> Cover:
    """The cover of the logits in the max norm."""
    require_positive(
        width_of_a_token=model.width, radius_of_the_tokens=model.radius, size_of_the_vocabulary=model.vocabulary
    )
    d, radius, s = model.width, ball(model.radius), ball(model.lipschitz)
    logarithm = ball(2 * d + 1).log()
    table = Cover(radius**2 * ball(model.rows_l1_squared) * logarithm, model.vocabulary * logarithm)
    parts, after = [(table, arb(1))], ball(model.norm) * ball(model.rows)
    for block in reversed(model.blocks):
        attention, hidden = growth(model, block, softmax)
        for head in block.heads:
            through = after * hidden
            parts.append(
                (linear_cover(radius, head.scores_l11, d, d), through * softmax * radius**2 * ball(head.value))
            )
            parts.append((linear_cover(radius, head.value_l11, d, d), through))
        inner = s * (ball(block.up) * radius + ball(block.up_bias))
        parts.append((linear_cover(radius, block.up_l11, d, block.hidden), after * s * ball(block.down)))
        parts.append((linear_cover(inner, block.down_l11, d, block.hidden), after))
        after = after * attention * hidden
    return combine(parts)


def complexity(model: PreNorm, largest_loss: float, sequences: int, softmax: int = SHARP) -> arb:
    """The bound of the Rademacher complexity of the clipped cross entropy."""
    logits = cover(model, softmax)
    return chain(largest_loss, lambda eps: logits(eps / LOSS), sequences)
