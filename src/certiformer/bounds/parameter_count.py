"""Counting parameters: depth enters only through the logarithm of a Lipschitz constant.

Statement
---------
Let f_t be a class with p real parameters t in a Euclidean ball of radius R, |f_t| <= A, and
|f_t(x) - f_u(x)| <= G |t - u|_2 for all inputs x. Then log N(eps) <= p log(1 + 2 R G / eps), and

    Rad <= chain(A, log N, m) = O(A sqrt(p log(R G / A) / m)).

Source
------
Classical (volume of balls).

Differs from the source in
--------------------------
Constants are explicit.

Proof
-----
A maximal set of points in the ball at distances above eps / G is a net for eps / G; balls of half that radius around
them are disjoint and inside a ball of radius R + eps / (2 G), so there are at most (1 + 2 R G / eps)^p. QED.

Assumptions
-----------
- lipschitz: **trusted** G is a Lipschitz constant of the outputs in the parameters, over the ball and all inputs.
- independent: **trusted** the sample consists of independent examples.

Certified
---------
The right side, in balls.

Not certified
-------------
That R and G were fixed before the data: see the cells of `bounds.rademacher_gap`.

Example
-------
200,000 parameters, a Lipschitz constant of 1e30, a thousand million examples:

>>> round(above(complexity(200_000, 10.0, 1e30, 1.0, 10**9)), 3)
0.727

Tests
-----
`tests/theorems/test_parameter_count.py`
"""

from __future__ import annotations

from flint import arb

from certiformer.bounds.chaining import chain
from certiformer.bounds.numbers import above as above
from certiformer.bounds.numbers import ball, require_positive

THEOREM = {
    "id": "bounds.parameter_count",
    "title": "Few parameters generalize, and depth enters only through the logarithm of a Lipschitz constant",
    "kind": "upper bound",
    "sources": ("classical",),
    "verb": "audit",
    "assumptions": (
        ("lipschitz", "The outputs are Lipschitz in the parameters with the constant given.", "trusted"),
        ("independent", "The sample consists of independent examples.", "trusted"),
    ),
    "uses": ("bounds.chaining",),
}


def complexity(parameters: int, radius: float, lipschitz: float, largest: float, examples: int) -> arb:
    """The bound of the Rademacher complexity."""
    require_positive(
        number_of_parameters=parameters, radius=radius, lipschitz_constant=lipschitz, number_of_examples=examples
    )
    size = 2 * ball(radius) * ball(lipschitz)
    return chain(largest, lambda eps: parameters * (1 + size / eps).log(), examples)
