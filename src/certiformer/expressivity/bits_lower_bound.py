r"""No family described by few bits comes close to every Lipschitz function.

Whatever the architecture, the training or the encoding: W weights of b bits each have at most 2^(W b) values.

Statement
---------
Let F be the functions on [0,1]^D with |f(x) - f(y)| <= L max_i |x_i - y_i|, and eps > 0. If every f in F is within eps,
in the sup norm, of some member of a family of at most 2^B functions, then

    B >= N^D,   N = ceil(L / (2 eps)) - 1.

In particular W weights of b bits need W b >= N^D. On a box with |df/dx_i| <= L_i take L = sum_i L_i (b_i - a_i).

Source
------
Classical (packing numbers of Lipschitz classes go back to Kolmogorov and Tikhomirov); the constants are derived here.

Differs from the source in
--------------------------
Explicit for every eps, not asymptotic.

Proof
-----
N is the largest integer with L/(2N) > eps; if it is 0 there is nothing to prove. Cut the cube into N^D cubes of side
1/N and let b_i(x) = L dist(x, boundary of cube i) inside cube i, 0 outside (distances in the max norm): a pyramid of
height L/(2N). For signs c_i = +-1 let f_c = sum_i c_i b_i. It is in F: inside one cube because a distance is
1-Lipschitz; for x, y in different cubes the segment between them leaves the first and enters the second, so
|f_c(x)| + |f_c(y)| <= L (dist(x, boundary) + dist(y, boundary)) <= L |x - y|. Two different sign patterns differ at the
centre of some cube by L/N > 2 eps, so no function is within eps of both: the family has at least 2^(N^D) members.

Assumptions
-----------
- positive: **checked** L and eps are positive, D is a positive integer (`cells_per_axis`).

Certified
---------
`bits` is the integer N^D, computed exactly from rational L and eps.

Not certified
-------------
Nothing about a single function: a constant has this Lipschitz constant too and needs one weight. Nothing about real
numbers of unlimited precision.

Example
-------
L = 1, eps = 1/100: 49 cubes an axis, in two variables 2401 bits, or 38 weights of 64 bits:

>>> bits(1, "1/100", 2), weights(1, "1/100", 2, bits_per_weight=64)
(2401, 38)

Tests
-----
`tests/theorems/test_bits_lower_bound.py`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from certiformer.errors import BadInput

THEOREM = {
    "id": "expressivity.bits_lower_bound",
    "title": "No family described by few bits comes close to every Lipschitz function",
    "kind": "lower bound",
    "sources": ("classical",),
    "verb": "explore",
    "assumptions": (("positive", "L and eps are positive, D is a positive integer.", "checked"),),
    "uses": (),
}

Exact = Fraction | int | str


def cells_per_axis(lipschitz: Exact, epsilon: Exact) -> int:
    """N: the largest integer with L/(2N) > eps, or 0."""
    constant, tolerance = Fraction(lipschitz), Fraction(epsilon)
    if constant <= 0 or tolerance <= 0:
        raise BadInput("the lower bound needs a positive Lipschitz constant and a positive epsilon")
    return math.ceil(constant / (2 * tolerance)) - 1


def bits(lipschitz: Exact, epsilon: Exact, dimension: int) -> int:
    """N^D: how many bits any description of all functions of the class needs."""
    if dimension < 1:
        raise BadInput(f"a function has at least one variable, not {dimension}")
    return cells_per_axis(lipschitz, epsilon) ** dimension


def weights(lipschitz: Exact, epsilon: Exact, dimension: int, bits_per_weight: int = 64) -> int:
    """How many weights of that many bits they are."""
    return -(-bits(lipschitz, epsilon, dimension) // bits_per_weight)


def bumps(
    signs: Sequence[int], cells: int, dimension: int, lipschitz: Exact
) -> Callable[[Sequence[Fraction]], Fraction]:
    """The function f_c of the proof; cubes are counted with the last axis fastest.

    >>> f = bumps([1, -1], cells=2, dimension=1, lipschitz=1)
    >>> [str(f([Fraction(k, 8)])) for k in range(9)]
    ['0', '1/8', '1/4', '1/8', '0', '-1/8', '-1/4', '-1/8', '0']
    """
    if len(signs) != cells**dimension:
        raise BadInput(f"{cells}^{dimension} cubes need as many signs, not {len(signs)}")

    def function(x: Sequence[Fraction]) -> Fraction:
        place, nearest = 0, Fraction(1, 2 * cells)
        for value in x:
            k = min(math.floor(value * cells), cells - 1)
            place = place * cells + k
            nearest = min(nearest, value - Fraction(k, cells), Fraction(k + 1, cells) - value)
        return signs[place] * Fraction(lipschitz) * nearest

    return function
