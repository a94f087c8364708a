"""Rademacher complexity from covering numbers, with every constant.

Statement
---------
Let F be a class of real functions on m points, |f| <= A, and let N(eps) be the least number of functions such that every
f in F is within eps of one of them at all m points. Then for every whole number M >= 0

    Rad(F) <= A 2^-M + (6 A / sqrt m) sum_(k=1..M) 2^-k sqrt(log N(A 2^-k)),

where Rad(F) = E sup_f (1/m) sum_i s_i f(x_i) over independent fair signs s_i. Covers of several parts combine: if
log N_i(eps) <= C_i / eps^2 + c_i and errors eps_i of the parts give an error sum_i b_i eps_i of f, then

    log N(eps) <= K / eps^2 + sum_i c_i,   K = (sum_i C_i^(1/3) b_i^(2/3))^3.

The maps x -> W x with |x|_2 <= B and sum |W_ij| <= l11 have, in the l2 norm, C = (B l11)^2 c, c = log(2 rows columns
+ 1).

Source
------
Shalev-Shwartz and Ben-David 2014 (shalev2014), Lemma 27.4, for the first part; Edelman et al. 2022 (edelman2022),
Lemma A.8 for the second; Trauger and Tewari 2024 (trauger2024), Lemma 3.6 for the third.

Differs from the source in
--------------------------
M = 0 is allowed (the first sum is empty), which gives the trivial bound A. Maurey's argument needs a whole number of
terms, so the cover of a linear map has the summand c besides C / eps^2, which the papers leave out. Results are
balls.

Proof
-----
First part: in the book, with B_k a cover at radius A 2^-k; sup_f |sum| <= m A for M = 0. Second part: choose eps_i =
(eps / g) (C_i / b_i)^(1/3) with g = sum C_j^(1/3) b_j^(2/3). Then sum b_i eps_i = (eps / g) g = eps, and sum C_i /
eps_i^2 = (g / eps)^2 sum C_i^(1/3) b_i^(2/3) = g^3 / eps^2. A part with b_i = 0 or C_i = 0 adds its c_i only. Third
part: W is in the convex hull of the matrices +-l11 e_i e_j^T and 0, at most 2 rows columns + 1 of them, so some
average of k of these is within l11 / sqrt k of W in the Frobenius norm (Maurey), hence within B l11 / sqrt k at every
x. For an error eps take k = ceil((B l11 / eps)^2) <= (B l11 / eps)^2 + 1; there are at most e^(k c) averages. QED.

Assumptions
-----------
- cover: **trusted** log N is what the function given says; each theorem that calls this proves its own.
- positive: **checked** A and m are positive, C_i and b_i are not negative.

Certified
---------
`chain` is an upper bound of the minimum over M of the right side, in balls; never above A.

Not certified
-------------
That the constant 6 is the best one.

Example
-------
log N(eps) = 25 / eps^2, A = 1, a million points:

>>> round(above(chain(1, Cover(25), 10**6)), 4)
0.1813

Tests
-----
`tests/theorems/test_chaining.py`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from flint import arb

from certiformer.bounds.numbers import Number, ball, require_positive
from certiformer.bounds.numbers import above as above
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.chaining",
    "title": "Covering numbers bound the Rademacher complexity, with explicit constants",
    "kind": "upper bound",
    "sources": (
        "shalev2014, Lemma 27.4",
        "edelman2022, Lemma A.8",
        "trauger2024, Lemma 3.6",
    ),
    "verb": "audit",
    "assumptions": (
        ("cover", "The covering numbers are those that are given.", "trusted"),
        ("positive", "The range and the number of points are positive, the constants not negative.", "checked"),
    ),
    "uses": (),
}

LEVELS = 60  # A 2^-60 is below any other term


@dataclass(frozen=True)
class Cover:
    """log N(eps) <= `inverse_square` / eps^2 + `constant`."""

    inverse_square: Number
    constant: Number = 0

    def __call__(self, eps: arb) -> arb:
        return ball(self.inverse_square) / eps**2 + ball(self.constant)


def chain(largest: Number, log_cover: Callable[[arb], arb], points: Number) -> arb:
    """The bound of the Rademacher complexity; a negative `log_cover(eps)` counts as zero."""
    return unsaturated(largest, log_cover, points).min(ball(largest))


def unsaturated(largest: Number, log_cover: Callable[[arb], arb], points: Number) -> arb:
    """The same over M >= 1 only: where it says nothing it tells by how much, in the place of the trivial bound A.

    >>> above(chain(1, Cover(10**20), 1)), above(unsaturated(1, Cover(10**20), 1)) > 10**10
    (1.0, True)
    """
    top = ball(largest)
    if not (top > 0 and ball(points) > 0):
        raise BadInput("chaining needs a positive range and a positive number of points")
    best, total, factor = arb.pos_inf(), arb(0), 6 * top / ball(points).sqrt()
    for level in range(1, LEVELS + 1):
        radius = top / 2**level
        total += log_cover(radius).max(arb(0)).sqrt() / 2**level
        candidate = radius + factor * total
        if candidate.is_finite():
            best = best.min(candidate)
    return best


def combine(parts: Iterable[tuple[Cover, Number]]) -> Cover:
    """The cover of the whole from those of its parts, each with its b_i.

    >>> whole = combine([(Cover(1, 2), 1), (Cover(1, 3), 1), (Cover(7, 5), 0)])
    >>> round(above(whole.inverse_square), 9), above(whole.constant)
    (8.0, 10.0)
    """
    third, total, constant = arb(1) / 3, arb(0), arb(0)
    for cover, weight in parts:
        size, slope = ball(cover.inverse_square), ball(weight)
        if not (size >= 0 and slope >= 0):
            raise BadInput("the constants of covers are not negative")
        if not (size == 0 or slope == 0):
            total += (size * slope**2) ** third
        constant += ball(cover.constant)
    return Cover(total**3, constant)


def linear_cover(inputs: Number, l11: Number, rows: int, columns: int) -> Cover:
    """The cover of the maps x -> W x, |x|_2 <= `inputs`, sum |W_ij| <= `l11`, in the l2 norm."""
    require_positive(rows=rows, columns=columns)
    logarithm = ball(2 * rows * columns + 1).log()
    return Cover((ball(inputs) * ball(l11)) ** 2 * logarithm, logarithm)
