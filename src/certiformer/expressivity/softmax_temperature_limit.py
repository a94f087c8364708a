r"""Softmax approaches hardmax exponentially fast in the gap between the best score and the next.

Attention that should select must do so with finite scores. How far it is from selecting depends on one number, the gap.

Statement
---------
Let s be n real scores, m their maximum, k >= 1 the number of scores equal to m, and gap > 0 the difference between m
and the largest score below m (no such score: k = n). hardmax(s) gives weight 1/k to each of the k best. Then

    || softmax(s) - hardmax(s) ||_1  =  2 r / (k + r),    r = sum over the other scores of e^(s_j - m),

and therefore

    || softmax(s) - hardmax(s) ||_1  <=  2 (n-k) e^-gap / (k + (n-k) e^-gap)  <=  2 (n-1) e^-gap  <=  2 n e^-gap,

with equality in the first bound exactly when all scores below m are equal. At temperature T the gap is gap/T.

Source
------
Classical. The last bound, 2 n e^-gap for k = 1, is the form usually quoted.

Differs from the source in
--------------------------
Ties of the maximum are allowed (k > 1), and the first bound is attained; for k = 1 it never exceeds 2.

Proof
-----
Divide every e^(s_j) by e^m: each best score has weight 1/(k+r) and the others together r/(k+r). Hence the distance is
k (1/k - 1/(k+r)) + r/(k+r) = 2 r/(k+r). Each of the n-k terms of r is at most e^-gap, and t -> 2t/(k+t) grows, which
is the first bound; it is an equality when and only when every term is e^-gap. The second drops the positive
(n-k) e^-gap from the denominator and uses (n-k)/k <= n-1.

Assumptions
-----------
- finite-scores: **checked** every score is a finite number; NaN and infinities are refused (`gap_and_ties`).

Certified
---------
`distance` and `bound` are enclosures (Arb balls) of the two sides, in real arithmetic on the exact scores given.

Not certified
-------------
Nothing about a floating-point softmax: there the weights carry rounding errors of their own, and scores that differ
by less than one rounding may come out as ties.

Example
-------
Three scores, the best one ahead by 5:

>>> [number.str(6, radius=False) for number in (distance([5, 0, -1]), bound(3, 5), simple_bound(3, 5))]
['0.0182651', '0.0265934', '0.0404277']

Tests
-----
`tests/theorems/test_softmax_temperature_limit.py`
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from certiformer.errors import BadInput
from certiformer.expressivity.exact_numbers import Real, ball, exact

THEOREM = {
    "id": "expressivity.softmax_temperature_limit",
    "title": "Softmax approaches hardmax exponentially fast in the gap between the best score and the next",
    "kind": "upper bound",
    "sources": ("classical",),
    "verb": "explore",
    "assumptions": (("finite-scores", "Every score is a finite number.", "checked"),),
    "uses": (),
}


def gap_and_ties(scores: Sequence[Real]) -> tuple[Fraction | None, int]:
    """The gap below the best score (None when all are equal) and the number of best scores.

    >>> gap_and_ties([2, 5, 5, 3])
    (Fraction(2, 1), 2)
    """
    if not scores:
        raise BadInput("softmax needs at least one score")
    exactly = [exact(score) for score in scores]
    best = max(exactly)
    others = [score for score in exactly if score < best]
    return (best - max(others) if others else None), len(exactly) - len(others)


def distance(scores: Sequence[Real]) -> arb:
    """The L1 distance between softmax and hardmax of these scores: 2 r / (k + r)."""
    _, ties = gap_and_ties(scores)
    best = max(exact(score) for score in scores)
    rest = sum((ball(exact(score) - best).exp() for score in scores if exact(score) < best), arb(0))
    return 2 * rest / (ties + rest)


def bound(count: int, gap: Real | None, ties: int = 1) -> arb:
    """The sharp bound 2 (n-k) e^-gap / (k + (n-k) e^-gap) for n = `count` scores of which k = `ties` are best."""
    _check(count, gap, ties)
    if gap is None or ties == count:
        return arb(0)
    rest = (count - ties) * (-ball(gap)).exp()
    return 2 * rest / (ties + rest)


def simple_bound(count: int, gap: Real) -> arb:
    """The quotable bound 2 n e^-gap."""
    _check(count, gap, 1)
    return 2 * count * (-ball(gap)).exp()


def _check(count: int, gap: Real | None, ties: int) -> None:
    if not 1 <= ties <= count:
        raise BadInput(f"between 1 and {count} of {count} scores can be the best, not {ties}")
    if gap is not None and exact(gap) <= 0:
        raise BadInput(f"the gap between the best score and the next is positive, not {gap}")
