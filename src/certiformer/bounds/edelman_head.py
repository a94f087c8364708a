"""One attention head by the (2,1) norm: the sample enters through its logarithm, and so does the length.

Statement
---------
As in `bounds.trauger_one_layer`, one head f(X) = w . s(W_v X softmax(X^T A x)), tokens |x_t|_2 <= B, s Lipschitz with
constant S and s(0) = 0, m sequences of T tokens. Let l(W) be the sum of the l2 norms of the rows of W (out, in). The
maps x -> W x have for N inputs covers

    log N(eps) <= (l B / eps)^2 (4 log(2 rows + 1) + 144 log(2 ceil(8 l B / eps + 2) N + 1)) + log(2 rows + 1)   (L)

in the l2 norm, and with softmax constant c_s = 1 (printed: 2) the head has, for every 0 < a < 1, the cover

    log N(eps) <= L(A; a eps / (c_s S |W_v| B^2)) + L(W_v; (1 - a) eps / S),   N = m T.

Source
------
Edelman et al. 2022 (edelman2022), Lemma 4.6, Theorem 4.2 and Corollary 4.5.

Differs from the source in
--------------------------
The source hides constants; those of (L) are restored from its proof: half of eps for replacing the directions of
rows, half for the rows themselves with Zhang's constant 36. A factor B was lost on the way to its Corollary 4.5: an
error e of x -> A x moves the scores by B e and, through the softmax, the mean of the tokens by c_s B^2 e. A whole
number of rows is taken (the last summand of L).

Proof
-----
(L): W = sum_i l_i (e_i u_i^T) with l_i the row norms, so W is l times a convex combination of e_i u_i^T; k = ceil((2
l B / eps)^2) of them come within eps / 2 at every |x| <= B (Maurey, with N inputs by the l2 norm over rows), and each
of the k rows is one of 2 rows + 1 places with a vector u, |u| <= l, that is covered at eps / 2 on the N inputs by
Zhang's theorem (Edelman et al., Lemma A.10). The head: the two errors add up, see `bounds.trauger_one_layer`; |W_v|
and S pass the first on. QED.

Assumptions
-----------
- lemma: **trusted** the reconstruction of (L) from the source's proof, as said above.
- architecture: **trusted** one head without residual, bias or norm.
- independent: **trusted** the sample consists of independent sequences.

Certified
---------
`log_cover` and `complexity` evaluate the right sides in balls, on a grid of a.

Not certified
-------------
(L) itself: its proof is reported, not re-proved here. A comparison, to show the growth with log T.

Example
-------
>>> head = HeadNorms(scores_rows=5.516211, value_rows=6.140728, value=1.171060, width=8)
>>> [round(above(log_cover(head, arb("0.1"), 10**4 * t, softmax=2)) / 1e8, 3) for t in (50, 200, 1000)]
[2.125, 2.264, 2.425]

Tests
-----
`tests/theorems/test_edelman_head.py`
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from certiformer.bounds.chaining import chain
from certiformer.bounds.numbers import Number, ball, require_positive
from certiformer.bounds.numbers import above as above
from certiformer.bounds.trauger_one_layer import SHARP

THEOREM = {
    "id": "bounds.edelman_head",
    "title": "One attention head by its (2,1) norm: the length of the input enters through a logarithm",
    "kind": "upper bound",
    "sources": ("edelman2022, Corollary 4.5",),
    "verb": "audit",
    "assumptions": (
        ("lemma", "The cover of linear maps is as reconstructed from the source.", "trusted"),
        ("architecture", "One head without residual, bias or norm.", "trusted"),
        ("independent", "The sample consists of independent sequences.", "trusted"),
    ),
    "uses": (
        "bounds.chaining",
        "bounds.trauger_one_layer",
    ),
}

SHARES = 99  # of eps between the two maps: 1/100, 2/100, ...


@dataclass(frozen=True)
class HeadNorms:
    """The sums of the l2 norms of the rows of A and of W_v, the spectral norm of W_v, d, B and S."""

    scores_rows: float
    value_rows: float
    value: float
    width: int
    inputs: float = 1.0
    lipschitz: float = 1.0


def linear(rows_norm: Number, inputs: Number, rows: int, eps: arb, points: int) -> arb:
    """(L) without its last summand where eps is at least the largest output, for which one map suffices."""
    size = ball(rows_norm) * ball(inputs)
    if eps >= size:
        return arb(0)
    places = ball(2 * rows + 1).log()
    steps = (2 * (8 * size / eps + 2).ceil() * points + 1).log()
    return (size / eps) ** 2 * (4 * places + 144 * steps)


def log_cover(head: HeadNorms, eps: arb, points: int, softmax: int = SHARP) -> arb:
    """The cover of the head on so many tokens in all, for the best share of eps."""
    require_positive(number_of_tokens=points, bound_of_the_tokens=head.inputs)
    s, radius = ball(head.lipschitz), ball(head.inputs)
    stretch = softmax * s * ball(head.value) * radius**2
    best = arb.pos_inf()
    for share in range(1, SHARES + 1):
        first = linear(head.scores_rows, radius, head.width, eps * share / (SHARES + 1) / stretch, points)
        second = linear(head.value_rows, radius, head.width, eps * (SHARES + 1 - share) / (SHARES + 1) / s, points)
        best = best.min(first + second)
    return best


def complexity(head: HeadNorms, readout: float, sequences: int, length: int, softmax: int = SHARP) -> arb:
    """The bound of the Rademacher complexity of w . f with |w|_2 = `readout`, never above its largest output."""
    largest = ball(readout) * ball(head.value) * ball(head.inputs) * ball(head.lipschitz)
    points = sequences * length
    return chain(largest, lambda eps: log_cover(head, eps / ball(readout), points, softmax), sequences)
