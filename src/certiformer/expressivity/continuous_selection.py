r"""Numbers that are chosen continuously from the function are at least as many as the function has independent bumps.

Real weights of unlimited precision escape every count of bits. If they depend continuously on the function, as values
at centres, averages and interpolation do, topology counts them.

Statement
---------
Let a class of functions contain all sums f_c = sum_i c_i b_i, |c_i| <= 1, of K bumps with disjoint supports and
b_i(x_i) = A. Let theta(f) in R^W depend continuously (in the sup norm) on f, and let T(theta(f)) be within epsilon <
A of f, in the sup norm, for every f of the class. Then W >= K.

For the functions with |f(x) - f(y)| <= L max_i |x_i - y_i| on [0,1]^D, K = N^D with N = ceil(L / (2 epsilon)) - 1.

Source
------
Classical: the argument is that of DeVore, Howard and Micchelli 1989 ("Optimal nonlinear approximation"), by Borsuk
and Ulam.

Differs from the source in
--------------------------
Explicit for every epsilon, from the bumps of `expressivity.bits_lower_bound` instead of widths.

Proof
-----
Suppose W < K. The boundary of [-1,1]^K is a sphere of dimension K - 1 and c -> theta(f_c) is continuous on it. By the
theorem of Borsuk and Ulam some c has theta(f_c) = theta(f_-c). One |c_i| is 1, so f_c and f_-c = -f_c differ by 2 A
at x_i and share their approximant: one of the errors is at least A > epsilon. QED.

Assumptions
-----------
- continuous: **trusted** theta is continuous. Weights that a search finds are not; nor are rounded ones.

Certified
---------
`numbers` is the exact integer K of the Lipschitz class.

Not certified
-------------
Anything about weights that are chosen discontinuously: for them count bits.

Example
-------
A number W = 1 cannot serve two bumps. For the first coefficient on the boundary of the square the antipodes are these:

>>> c = antipodes(lambda c: c[0])
>>> [round(each, 6) + 0.0 for each in c]
[0.0, 1.0]
>>> numbers(1, "1/100", 2)
2401

Tests
-----
`tests/theorems/test_continuous_selection.py`
"""

from __future__ import annotations

from collections.abc import Callable

from certiformer.expressivity.bits_lower_bound import Exact, bits

THEOREM = {
    "id": "expressivity.continuous_selection",
    "title": "Numbers chosen continuously from the function are at least as many as its independent bumps",
    "kind": "lower bound",
    "sources": ("classical",),
    "verb": "size",
    "assumptions": (("continuous", "The weights depend continuously on the function.", "trusted"),),
    "uses": ("expressivity.bits_lower_bound",),
}


def numbers(lipschitz: Exact, epsilon: Exact, dimension: int) -> int:
    """K of the Lipschitz class: how many continuously chosen numbers an error of epsilon needs."""
    return bits(lipschitz, epsilon, dimension)


def antipodes(theta: Callable[[tuple[float, float]], float]) -> tuple[float, float]:
    """A point c of the boundary of [-1,1]^2 with theta(c) = theta(-c), up to rounding (Borsuk and Ulam, K = 2).

    On the way from (1, 1) to (-1, -1) the difference theta(c) - theta(-c) changes its sign.
    """

    def at(t: float) -> tuple[float, float]:
        return (1 - 4 * t, 1.0) if t <= 0.5 else (-1.0, 3 - 4 * t)

    def difference(t: float) -> float:
        a, b = at(t)
        return theta((a, b)) - theta((-a, -b))

    low, high = (0.0, 1.0) if difference(0.0) <= 0 else (1.0, 0.0)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if difference(middle) <= 0 else (low, middle)
    return at(low)
