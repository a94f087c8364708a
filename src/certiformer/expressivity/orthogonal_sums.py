r"""Sums of cosines count the bits and numbers that classes of smooth and of analytic functions need.

Bumps show the right order for eps to 0, but pay for their edges. Functions that are orthogonal do not have edges, and
the mean square keeps their sums apart.

Statement
---------
Let a class of functions on [0,1]^D contain all sums of c_k e_k over k in a finite set K with sum |c_k| g_k <= 1, where
e_k(x) = prod_i cos(pi k_i x_i) and the g_k > 0 are *costs*.

(a) Numbers that depend continuously on f, and reach eps in the sup norm, are at least |K| if eps^2 2^D sum_K g_k^2 < 1.

(b) A finite family that comes within eps of every f in the class has at least 2^B members, for every A > eps 2^(D/2),
with B = sum_K log2(floor(1/(|K| g_k A)) + 1).

(c) Functions with |f^(a)| <= L for all |a| <= s contain them with g_k = max(1, pi max_i k_i)^s / L, those with
|f^(a)| <= M a! R^-|a| for all a with g_k = exp(pi R sum_i k_i) / M.

(d) Let |f^(a)| <= M a! R^-|a| on [0,1]^D for all a, 0 < t < 1, and s = 2 t R + sqrt(4 t^2 R^2 + 1). Then for every n
and eta > 0 finitely many functions of this class, 2^B of them with

    B <= sum_{j < n} binom(j + D - 1, D - 1) log2(2 G s^-j/eta + 2),   G = M (2/(1 - t))^D,

come within 2 G sum_{j >= n} binom(j + D - 1, D - 1) s^-j + binom(n + D - 1, D) eta of every f of the class.

Source
------
Classical: Fourier and Chebyshev series; DeVore, Howard and Micchelli 1989 for (a).

Differs from the source in
--------------------------
Every constant is explicit, and K is chosen for the epsilon that is asked about.

Proof
-----
The e_k are orthogonal on [0,1]^D with mean square at least 2^-D, so |f_c| reaches at least 2^(-D/2) |c|_2. (a) The
boundary of sum |c_k| g_k <= 1 is a sphere of dimension |K| - 1; on it |c|_2^2 >= 1/sum g_k^2 (Cauchy and Schwarz).
With fewer numbers two antipodes share them (Borsuk and Ulam), and one of the errors is at least 2^(-D/2)/sqrt(sum
g_k^2) > eps. (b) Let c_k/A run through -m_k, -m_k + 2, ..., m_k, m_k = floor(1/(|K| g_k A)). Two of these sums differ
by at least 2 A 2^(-D/2) > 2 eps. (c) |e_k^(a)| <= prod (pi k_i)^(a_i), at most (pi max k)^|a|; and x^j/j! <= e^x for
x = pi k_i R.

(d) At a distance below t R of [0,1] on every axis, f is analytic and bounded by M/(1 - t)^D (its Taylor series). The
ellipse with foci 0 and 1 and half axes (s + 1/s)/4, (s - 1/s)/4 = t R lies within that distance, so that the
Chebyshev coefficients are at most 2^D M/(1 - t)^D s^-|k|. Round those with |k| < n to multiples of eta, and keep one
function of the class for every rounding that occurs: two with the same one differ by the two tails and by eta for
each coefficient. QED.

Assumptions
-----------
- positive: **checked** L, M, R and eps are positive, s and D are positive integers.

Certified
---------
`numbers`, `needed_bits` are exact or rounded down, `net_bits` is rounded up.

Not certified
-------------
That other orthogonal functions do not give larger lower bounds.

Example
-------
Analytic functions of two variables with radius 1, and smooth ones with four derivatives:

>>> eps = Fraction(1, 10**6)
>>> sums = [analytic_costs(Fraction(1), Fraction(1), 2), smooth_costs(Fraction(1), 4, 2)]
>>> [(numbers(costs, 2, eps), needed_bits(costs, 2, eps)) for costs in sums]
[(10, 66), (36, 75)]

Tests
-----
`tests/theorems/test_orthogonal_sums.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache

from flint import arb

from certiformer.expressivity.logarithms import log2_above, log2_below
from certiformer.kernel import Refused
from certiformer.kernel.balls import ball, decimal, working_precision

THEOREM = {
    "id": "expressivity.orthogonal_sums",
    "title": "Sums of cosines count the bits and numbers that classes of smooth and of analytic functions need",
    "kind": "lower bound",
    "sources": ("classical",),
    "verb": "size",
    "assumptions": (("positive", "L, M, R and eps are positive, s and D are positive integers.", "checked"),),
    "uses": ("expressivity.continuous_selection",),
}

Costs = Callable[[], Iterator[tuple[Fraction, int]]]  # cost and number of the k of shell 0, 1, 2, ..., each rounded up
MOST_SHELLS = 400
SHARES = tuple(Fraction(n, 16) for n in range(4, 16))  # the t of (d) that are tried


def smooth_costs(constant: Fraction, smoothness: int, dimension: int) -> Costs:
    """Shell j: the k with largest entry j."""

    def shells() -> Iterator[tuple[Fraction, int]]:
        working_precision()
        pi = Fraction(decimal(arb.pi(), up=True))
        for j in range(MOST_SHELLS):
            yield max(Fraction(1), pi * j) ** smoothness / constant, (j + 1) ** dimension - j**dimension

    return shells


def analytic_costs(constant: Fraction, radius: Fraction, dimension: int) -> Costs:
    """Shell j: the k with sum j."""

    def shells() -> Iterator[tuple[Fraction, int]]:
        working_precision()
        for j in range(MOST_SHELLS):
            cost = (arb.pi() * ball(radius * j)).exp()
            yield Fraction(decimal(cost, up=True)) / constant, math.comb(j + dimension - 1, dimension - 1)

    return shells


def numbers(costs: Costs, dimension: int, epsilon: Fraction) -> int:
    """|K| of (a), for the largest union of shells."""
    total, count = Fraction(0), 0
    for cost, size in costs():
        total += size * cost**2
        if epsilon**2 * 2**dimension * total >= 1:
            break
        count += size
    return count


def needed_bits(costs: Costs, dimension: int, epsilon: Fraction) -> int:
    """The largest B of (b) over some unions of shells, rounded down."""
    apart = (
        epsilon * (2 ** (dimension // 2)) * (Fraction(70_711, 50_000) if dimension % 2 else Fraction(1_000_001, 10**6))
    )
    shells: list[tuple[Fraction, int]] = []
    best, count, tried = 0, 0, 0
    for cost, size in costs():
        shells.append((cost, size))
        count += size
        if len(shells) <= tried + tried // 12:  # every twelfth of many unions is enough
            continue
        tried = len(shells)
        levels = [(math.floor(1 / (count * g * apart)) + 1, number) for g, number in shells]
        if levels[0][0] < 2:
            break
        best = max(best, math.floor(sum(number * log2_below(level) for level, number in levels)))
        if levels[-1][0] < 2:  # the last shell brings nothing: larger unions only have smaller shares
            break
    return best


@cache
def net_bits(constant: Fraction, radius: Fraction, dimension: int, error: Fraction) -> int:
    """The least B of (d) over t and n for that error, rounded up."""
    found = [bits for share in SHARES if (bits := _net(constant, radius, dimension, error, share)) is not None]
    if not found:
        raise Refused("the radius of convergence is too small for a net of polynomials of a sensible degree")
    return min(found)


def _net(constant: Fraction, radius: Fraction, dimension: int, error: Fraction, share: Fraction) -> int | None:
    if constant * 2 <= error:
        return 0
    working_precision()
    half = ball(2 * share * radius)
    ratio = Fraction(decimal(half + (half * half + 1).sqrt(), up=False))
    largest = constant * (2 / (1 - share)) ** dimension
    for n in range(1, 4 * MOST_SHELLS):
        # binom(j + D - 1, D - 1)/s^j falls by the factor q at least from n on.
        q = Fraction(n + dimension, n + 1) / ratio
        if q >= 1:
            continue
        tail = 2 * largest * math.comb(n + dimension - 1, dimension - 1) / ratio**n / (1 - q)
        if tail > error / 2:
            continue
        eta = (error - tail) / math.comb(n + dimension - 1, dimension)
        shells = [(math.comb(j + dimension - 1, dimension - 1), 2 * largest / ratio**j / eta + 2) for j in range(n)]
        return math.ceil(sum(number * log2_above(math.ceil(levels)) for number, levels in shells))
    return None
