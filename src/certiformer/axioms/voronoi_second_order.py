"""The same head, with a softer softmax and a margin of extra prototypes, is second-order accurate for smooth functions.

Statement
    Let f be twice differentiable on the box X = prod [a_i, b_i] with |f_i| <= G_i and |f_ij| <= H_ij. Take N_i cells per
    axis, delta_i = (b_i - a_i)/N_i, r margin cells on every side, sharpness b; for every centre c let P c be the nearest
    point of X and give its register the value v(c) = f(P c) + grad f(P c) . (c - P c). Then for every x in X

        |T(x) - f(x)| <= mu sum_i G_i delta_i + (V/2) sum_i H_ii delta_i^2 + A^2 sum_{i<j} H_ij delta_i delta_j,

    with mu, V, A the bounds of |E y|, E y^2, E|y| of the discrete Gaussian (`rules.lattice`); b = 1, r = 3 gives
    mu = 3.4e-4, V = 0.502, A = 0.62.

Source: nadaraya1964, watson1964, petrov2024; the second-order statement and its constants are derived here.

Differs from the source in
    The usual argument sharpens the softmax and gets first order only. Bounds are per axis and per pair, which removes a
    factor (1 + sqrt 5)/2 that a Euclidean argument pays for the margin values, and uses E|y_i||y_j| = E|y_i| E|y_j|.

Proof
    Write y = c - x, p = P c, alpha_i = |p_i - x_i|, eta_i = |c_i - p_i|. Axis by axis p_i lies between x_i and c_i, so
    alpha_i + eta_i = |y_i|. Taylor at x and the mean value theorem for the gradient (X is convex) give
    |v(c) - f(x) - grad f(x).y| <= (1/2) sum_ij H_ij alpha_i alpha_j + sum_ij H_ij eta_i alpha_j
    = (1/2) sum_ij H_ij (alpha_i alpha_j + eta_i alpha_j + alpha_i eta_j) <= (1/2) sum_ij H_ij |y_i||y_j|.
    Take expectations: |E grad f(x).y| <= mu sum G_i delta_i; the weights factorise over axes, so E|y_i||y_j| = E|y_i|
    E|y_j| <= A^2 delta_i delta_j for i != j and E y_i^2 <= V delta_i^2. QED.

Assumptions
    smooth (**checked**): f is twice differentiable on the box; second derivatives are enclosed on a partition, every kink
    decided strictly.
    form (**checked**): the stored weights are the grid's, up to a distance that is charged (`axioms.perturbation`).

Certified: sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified: Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from fractions import Fraction
    >>> from certiformer.kernel.balls import working_precision
    >>> from certiformer.axioms.lattice import moments
    >>> working_precision()
    >>> constants = moments(Fraction(1), 3)
    >>> f"{float(constants.drift):.1e} {float(constants.second):.3f} {float(constants.absolute):.2f}"
    '3.4e-04 0.501 0.62'

Tests: tests/theorems/test_voronoi_second_order.py
"""

from __future__ import annotations

from itertools import product

from flint import arb

from certiformer.axioms.derivatives import DerivativeBounds, series
from certiformer.axioms.grid import Grid
from certiformer.axioms.grid_theorem import prove_on_grid
from certiformer.axioms.lattice import moments
from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ZERO, BallDomain
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.problem import Problem
from certiformer.kernel.programs import Program

THEOREM = {
    "id": "axioms.voronoi_second_order",
    "title": "A softer softmax head with margin prototypes is second-order accurate for smooth functions.",
    "kind": "upper bound",
    "sources": ("nadaraya1964", "watson1964", "petrov2024"),
    "verb": "build",
    "assumptions": (
        ("smooth", "f is twice differentiable on the box; second derivatives are enclosed", "checked"),
        ("form", "the stored weights are the grid's up to a distance that is charged to the bound", "checked"),
    ),
}


def apriori(grid: Grid, domain: BallDomain, derivatives: DerivativeBounds) -> list[arb]:
    """The bound of the statement, one an output; raises `Refused` when f is not known to be smooth."""
    if derivatives.smooth < 2:
        raise Refused(f"the target is not known to be smooth on {derivatives.where}: {derivatives.why}")
    constants, spacing = moments(grid.sharpness, grid.margin), grid.spacing(domain)
    bounds = []
    for gradient, hessian in zip(derivatives.gradient, derivatives.hessian, strict=True):
        total = sum((constants.drift * g * delta for g, delta in zip(gradient, spacing, strict=True)), ZERO)
        for (i, j), h in hessian.items():
            factor = constants.second * HALF if i == j else constants.absolute * constants.absolute
            total = total + factor * h * spacing[i] * spacing[j]
        bounds.append(total.upper())
    return bounds


def ideal_values(program: Program, grid: Grid, domain: BallDomain) -> list[list[arb]]:
    """v(c) = f(P c) + grad f(P c) . (c - P c) at every centre, in register order."""
    centres, clipped = grid.axes(domain), grid.clipped(domain)
    values = []
    for choice in product(*(range(len(axis)) for axis in centres)):
        point = [clipped[axis][k] for axis, k in enumerate(choice)]
        step = [centres[axis][k] - clipped[axis][k] for axis, k in enumerate(choice)]
        values.append(
            [j.value + sum((g * s for g, s in zip(j.grad, step, strict=True)), ZERO) for j in series(program, point, 1)]
        )
    return values


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node, hypotheses checked, distance to the ideal weights charged."""
    return prove_on_grid(node, problem, 2, apriori, ideal_values)
