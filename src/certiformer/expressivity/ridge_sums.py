r"""Sums of r ridge functions: hidden units that interpolate suffice, and so many bits are needed.

The errors of the ridges add up, so each of them has an r-th of epsilon; and functions that differ in half of their
ridges differ by as much, so nobody can do much better.

Statement
---------
Let R be the functions f(x) = sum_{j <= r} g_j(a_j . x) on [0,1]^D with sum_i |a_ji| <= 1, |g_j(s) - g_j(t)| <= L |s -
t| on [-1, 1] and f(0) = 0.

(a) For N = 2 ceil(r L / (2 eps)), the ReLU units of the linear interpolations of g_j at N + 1 equal steps, r (N - 1) of
them, come within eps, with at most r (N - 1)(D + 2) + 2 D + 2 nonzero weights that hold r (N + D) numbers of f.

(b) For even n, eta > 0 and a whole number p with r (L/n + eta/2 + D L/p) <= eps, finitely many such transformers
suffice, 2^B with B <= r (n log2(2 m + 1) + D log2(2 p + 1)), m = ceil(2 L/(n eta)). None are needed (B = 0) if r L <=
eps.

(c) Let q = min(r, D), d = ceil(q/2), M = floor((ceil(d L/(2 eps)) - 1)/2) and n_1 = ceil(L/(2 eps)) - 1. A finite
family that comes within eps of every f in R has at least 2^(q n_1) members, and if q <= 2^M at least 2^(M (floor(q/2)
+ 1)). Numbers that depend continuously on f are at least q n_1.

Source
------
Classical: interpolation, packing, Reed and Solomon's codes.

Differs from the source in
--------------------------
Explicit for every eps; the code makes the lower bound see that the errors of the ridges add up.

Proof
-----
(a) We may take g_j(0) = 0: their sum is 0. Between two knots at distance 2/N an interpolation is off by at most L/N,
r of them by r L/N <= eps. N - 1 inner knots are N - 1 units; the first slopes make one linear part. Counted: D + 2
weights a unit, D weights of the embedding, D of the linear part, one from the output coordinate, one constant.

(b) Round the entries of a_j towards zero to multiples of 1/p, which moves a_j . x by at most D/p and keeps the sum of
|a_ji| below 1; round the values of g_j at the knots to multiples of eta, outwards from g_j(0) = 0. From one knot to
the next a rounded value changes by less than 2 L/n + eta and by a multiple of eta, so by one of 2 m + 1.

(c) Let h be the pyramids of slope L over n equal parts of [0, 1], of height L/(2 n). For signs c the sums over q axes
j of sum_i c_ji h_i(x_j) are in R. With n = n_1 two of them differ by L/n > 2 eps somewhere. Their number, and the
argument of `expressivity.continuous_selection`, give q n_1. Now take n = ceil(d L/(2 eps)) - 1 and let signs come in
pairs c, -c on neighbouring parts: M bits for each axis, a letter of the field with 2^M elements. Take the words of a
Reed-Solomon code of length q <= 2^M and dimension q - d + 1 = floor(q/2) + 1: two of them differ on at least d axes.
On each of these a pair differs, so that x_j can be chosen with difference +L/n; on the others it is 0. Together they
differ by d L/n > 2 eps. QED.

Assumptions
-----------
- positive: **checked** L and eps are positive, r and D are positive integers.

Certified
---------
`units`, `weights` and `described_bits` are exact or rounded up, `needed_bits` and `needed_numbers` exact. A
transformer that was built for one sum of ridges is proved afterwards, piece by piece.

Not certified
-------------
That the number of weights is necessary: (a) has about q times more numbers than (c) asks for.

Example
-------
Four ridges of four variables at epsilon 0.01:

>>> units(4, Fraction(1), Fraction(1, 100)), needed_numbers(4, 4, Fraction(1), Fraction(1, 100))
(1596, 196)
>>> described_bits(4, 4, Fraction(1), Fraction(1, 100)), needed_bits(4, 4, Fraction(1), Fraction(1, 100))
(7014, 196)

Tests
-----
`tests/theorems/test_ridge_sums.py`
"""

from __future__ import annotations

import math
from fractions import Fraction

from certiformer.errors import BadInput
from certiformer.expressivity.logarithms import log2_above

THEOREM = {
    "id": "expressivity.ridge_sums",
    "title": "Sums of r ridge functions: hidden units that interpolate suffice, and so many bits are needed",
    "kind": "upper bound",
    "sources": ("classical",),
    "verb": "size",
    "assumptions": (("positive", "L and eps are positive, r and D are positive integers.", "checked"),),
    "uses": ("expressivity.continuous_selection",),
}
DIRECTIONS = Fraction(1, 16)  # the part of the room in (b) that goes to the directions; the rest goes to the values


def steps(ridges: int, constant: Fraction, epsilon: Fraction) -> int:
    """N of (a)."""
    if ridges < 1 or constant <= 0 or epsilon <= 0:
        raise BadInput("a sum of ridges has at least one ridge, a positive constant and a positive epsilon")
    return 2 * math.ceil(ridges * constant / (2 * epsilon))


def units(ridges: int, constant: Fraction, epsilon: Fraction) -> int:
    """The hidden units of (a)."""
    return ridges * (steps(ridges, constant, epsilon) - 1)


def weights(ridges: int, dimension: int, constant: Fraction, epsilon: Fraction) -> int:
    """At most so many nonzero weights are in (a)."""
    return units(ridges, constant, epsilon) * (dimension + 2) + 2 * dimension + 2


def described_bits(ridges: int, dimension: int, constant: Fraction, epsilon: Fraction) -> int:
    """B of (b) for the best of some grids, rounded up."""
    if ridges * constant <= epsilon:
        return 0
    least, fewest = steps(ridges, constant, epsilon), None
    for finer in range(1, 40):
        n = least + 2 * math.ceil(Fraction(least, 4 * finer))
        room = epsilon / ridges - constant / n
        p = math.ceil(dimension * constant / (DIRECTIONS * room))
        eta = 2 * (room - dimension * constant / p)
        m = math.ceil(2 * constant / (n * eta))
        bits = math.ceil(ridges * (n * log2_above(2 * m + 1) + dimension * log2_above(2 * p + 1)))
        fewest = bits if fewest is None else min(fewest, bits)
    return fewest or 0


def needed_numbers(ridges: int, dimension: int, constant: Fraction, epsilon: Fraction) -> int:
    """q n_1."""
    return min(ridges, dimension) * (math.ceil(constant / (2 * epsilon)) - 1)


def needed_bits(ridges: int, dimension: int, constant: Fraction, epsilon: Fraction) -> int:
    """The larger of the two bounds of (c)."""
    axes = min(ridges, dimension)
    distance = (axes + 1) // 2
    letters = (math.ceil(distance * constant / (2 * epsilon)) - 1) // 2
    coded = letters * (axes // 2 + 1) if letters >= axes.bit_length() else 0
    return max(needed_numbers(ridges, dimension, constant, epsilon), coded)
