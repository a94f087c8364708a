r"""Functions with bounded derivatives up to order s need as many bits and numbers as their class has smooth bumps.

Statement
---------
Let F be the functions on [0,1]^D with s >= 1 continuous derivatives and |f^(a)| <= L for all |a| <= s. Let C bound
prod_i sup |phi^(a_i)| for all |a| <= s, phi(t) = (4 t (1 - t))^(s+1), and let N be the largest whole number with L/(C
N^s) > eps. Then a finite family that comes within eps of every f in F, in the sup norm, has at least 2^(N^D) members,
and numbers that depend continuously on f are at least N^D. So both grow like (L/(C eps))^(D/s).

Source
------
Classical: Kolmogorov and Tikhomirov for the order; the constant is computed here.

Differs from the source in
--------------------------
Explicit for every eps, for polynomial bumps whose derivatives are bounded by their coefficients.

Proof
-----
phi is a polynomial, at most 1 with phi(1/2) = 1, and has a zero of order s + 1 at 0 and at 1, so that it continues by
0 with s continuous derivatives. Cut the cube into N^D cubes; on cube i let b_i be the product of phi(N x_j - i_j)
over the axes, 0 elsewhere. With h = L/(C N^s) every sum of c_i h b_i, |c_i| <= 1, is in F: at a point one bump alone
is not zero, and |(h b)^(a)| <= h N^|a| C <= L. For signs c two of them differ by 2 h > 2 eps at the centre of a cube,
and `expressivity.continuous_selection` counts the numbers. On [0, 1] a polynomial lies between its least and its
largest Bernstein coefficient, of whatever degree; that bounds sup |phi^(j)|. QED.

Assumptions
-----------
- positive: **checked** L and eps are positive, s and D are positive integers.

Certified
---------
`cells` is the exact integer N for an exact rational C.

Not certified
-------------
That C is the best constant: bumps of another shape may have a smaller one.

Example
-------
Two derivatives, two variables:

>>> cells(Fraction(1), 2, 2, Fraction(1, 10_000)), float(roughness(2, 2))
(20, 24.3...)

Tests
-----
`tests/theorems/test_smooth_bumps.py`
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from certiformer.errors import BadInput

THEOREM = {
    "id": "expressivity.smooth_bumps",
    "title": "Functions with bounded derivatives need as many bits and numbers as their class has smooth bumps",
    "kind": "lower bound",
    "sources": ("classical",),
    "verb": "size",
    "assumptions": (("positive", "L and eps are positive, s and D are positive integers.", "checked"),),
    "uses": ("expressivity.continuous_selection",),
}
DEGREE = 400  # of the Bernstein coefficients, which come as close as the square of the order over it


def bump(smoothness: int) -> list[int]:
    """The coefficients of phi, the constant first."""
    power = smoothness + 1
    return [0] * power + [4**power * math.comb(power, k) * (-1) ** k for k in range(power + 1)]


@cache
def derivative_bounds(smoothness: int) -> tuple[Fraction, ...]:
    """Bounds of sup |phi^(j)| on [0, 1], j = 0, ..., s."""
    if smoothness < 1:
        raise BadInput(f"the smoothness is at least 1, not {smoothness}")
    coefficients, found = bump(smoothness), [Fraction(1)]
    for _ in range(smoothness):
        coefficients = [k * c for k, c in enumerate(coefficients)][1:]
        found.append(max(abs(b) for b in _bernstein(coefficients)))
    return tuple(found)


@cache
def roughness(smoothness: int, dimension: int) -> Fraction:
    """C: the largest product of these bounds over the axes, orders together at most s."""
    single = derivative_bounds(smoothness)
    best = list(single)  # best[j]: of the axes so far, orders together j
    for _ in range(min(dimension, smoothness) - 1):
        best = [max(best[j - i] * single[i] for i in range(j + 1)) for j in range(smoothness + 1)]
    return max(best)


def cells(constant: Fraction, smoothness: int, dimension: int, epsilon: Fraction) -> int:
    """N."""
    limit = constant / (roughness(smoothness, dimension) * epsilon)  # N^s is below it
    low, high = 0, 1
    while high**smoothness < limit:
        high *= 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if middle**smoothness < limit else (low, middle)
    return low


def _bernstein(coefficients: list[int]) -> list[Fraction]:
    n = max(DEGREE, len(coefficients))
    parts = [Fraction(c, math.comb(n, k)) for k, c in enumerate(coefficients)]
    return [sum((math.comb(i, k) * part for k, part in enumerate(parts[: i + 1])), Fraction(0)) for i in range(n + 1)]
