"""One softmax head over grid prototypes approximates every Lipschitz function, at first order in the spacing.

Statement
    Let f be Lipschitz on the box X = prod [a_i, b_i] with |df/dx_i| <= L_i (Clarke), and let b >= 2. Take N_i cells per
    axis, delta_i = (b_i - a_i)/N_i, one register per cell centre c with value f(c), and scores
    -b sum_i ((x_i - c_i)/delta_i)^2 + (a term common to all). Then for every x in X

        |T(x) - f(x)| <= (1/2) sqrt(1 + 5.2 e^-b) sum_i L_i delta_i.

Source
    nadaraya1964, watson1964 for the estimator; petrov2024 for attention over prefix tokens; the constant is derived here.

Differs from the source in
    Explicit constant; per-axis Lipschitz constants instead of one Euclidean constant; no logarithm of the number of
    prototypes in the sharpness.

Proof
    T(x) = E f(c) for c drawn with the softmax weights, which factorise over the axes. |f(c) - f(x)| <= sum L_i |c_i -
    x_i|, so it is enough that E (c_i - x_i)^2 <= delta_i^2 V with V = (1 + 5.2 e^-b)/4 (then E|c_i - x_i| <= delta_i
    sqrt V). In units of delta let u in [0, 1/2] be the offset of x from its nearest centre (mirror if negative); the
    lattice point m away from it has squared distance u^2 + g_m, g_m = m^2 - 2 u m >= 0, so
    E y^2 = u^2 + sum g_m e^{-b g_m} / sum e^{-b g_m}, and the last sum is >= 1.
    m = 1: with g = 1 - 2u, u^2 = 1/4 - g/2 + g^2/4, and g/(e^{bg} + 1) <= g/2 - g^2/4 because e^{bg} >= 1 + 2g >=
    (2 + g)/(2 - g) for b >= 2, g <= 1. So these two points give at most 1/4 (and u^2 <= 1/4 if m = 1 is beyond the grid).
    Others: g e^{-bg} decreases for g >= 1/b; m = -1, 2, -2, 3, -3, ... have g >= 1, 2, 4, 6, 9, ..., together at most
    e^-b (1 + 2e^-2 + 4e^-6 + 6e^-10 + 9e^-16 + ...) <= 1.29 e^-b <= 1.3 e^-b. So E y^2 <= 1/4 + 1.3 e^-b = V. QED.

Assumptions
    lipschitz (**checked**): f is Lipschitz on the box; enclosures of Clarke's gradient on a partition.
    form (**checked**): the stored weights are the grid's, up to a distance that is charged (`axioms.perturbation`).

Certified: sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified: Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from fractions import Fraction
    >>> from certiformer.kernel.balls import working_precision
    >>> from certiformer.axioms.lattice import first_order_moment
    >>> working_precision()
    >>> round(float(first_order_moment(Fraction(4))), 4)
    0.5233

Tests: tests/theorems/test_voronoi_first_order.py
"""

from __future__ import annotations

from itertools import product

from flint import arb

from certiformer.axioms.derivatives import DerivativeBounds
from certiformer.axioms.grid import Grid
from certiformer.axioms.grid_theorem import prove_on_grid
from certiformer.axioms.lattice import first_order_moment
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, BallDomain, ConstantAlgebra
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.problem import Problem
from certiformer.kernel.programs import Program, fold

THEOREM = {
    "id": "axioms.voronoi_first_order",
    "title": "One softmax head over grid prototypes approximates every Lipschitz function at first order.",
    "kind": "upper bound",
    "sources": ("nadaraya1964", "watson1964", "petrov2024"),
    "verb": "build",
    "assumptions": (
        ("lipschitz", "f is Lipschitz on the box; Clarke's gradient is enclosed on a partition", "checked"),
        ("form", "the stored weights are the grid's up to a distance that is charged to the bound", "checked"),
    ),
}


def apriori(grid: Grid, domain: BallDomain, derivatives: DerivativeBounds) -> list[arb]:
    """The bound of the statement, one an output; raises `Refused` when f is not known to be Lipschitz."""
    if grid.margin:
        raise Refused("the first-order theorem speaks of a grid without margin")
    if derivatives.smooth < 1:
        raise Refused(f"the target is not known to be Lipschitz on {derivatives.where}: {derivatives.why}")
    factor, spacing = first_order_moment(grid.sharpness), grid.spacing(domain)
    bounds = []
    for gradient in derivatives.gradient:
        total = sum((g * delta for g, delta in zip(gradient, spacing, strict=True)), ZERO)
        bounds.append((factor * total).upper())
    return bounds


def ideal_values(program: Program, grid: Grid, domain: BallDomain) -> list[list[arb]]:
    """f at every centre, in register order."""
    algebra = ConstantAlgebra()
    return [fold(program, list(point), algebra) for point in product(*grid.axes(domain))]


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node, hypotheses checked, distance to the ideal weights charged."""
    return prove_on_grid(node, problem, 1, apriori, ideal_values)
