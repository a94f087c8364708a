"""k softmax heads over the same prototypes at k temperatures are accurate to order 2k for smooth functions.

Statement
    Let f be m times continuously differentiable on the box X = prod [a_i, b_i] with |f^(a)|/a! <= F_a, 1 <= |a| <= m. Take
    N_i cells per axis, delta_i = (b_i - a_i)/N_i, r margin cells on every side, one register per centre c; head i = 1..k
    has sharpness b/i and output weight alpha_i = (-1)^(i-1) C(k, i). Let P c be the nearest point of X to c and give the
    register of c the value v(c) of the Taylor polynomial of degree m - 1 of f at P c. Then for every x in X

        |T(x) - f(x)| <= sum_{1 <= |a| < m} F_a M_a delta^a + sum_{|a| = m} F_a A_a delta^a,

    with the computed constants M_a >= |sum_i alpha_i E_i y^a| and A_a >= sum_i |alpha_i| E_i |y|^a of the discrete
    Gaussians in units of the spacing (`rules.temperature_moments`). M_a is tiny for |a| < 2k (b = 0.6: about 1e-6 at order
    1), so the bound is of order delta^(2k) until it reaches that floor. For one axis, k = 2 and b = 0.6 the term of order
    4 is 4.167 F_4 delta^4 = f'''' delta^4/(16 b^2), what Richardson extrapolation leaves.

Source
    nadaraya1964, watson1964 for the estimator; petrov2024 for attention over prefix tokens; Richardson extrapolation in
    the temperature and all constants are derived here.

Differs from the source in
    The usual heads differ in what they look at; these differ only in temperature. Any m >= 1 may be chosen: m = 2k has the
    fewest derivatives, m = 2k + 2 a bound whose leading term is exact. k = 1 sharpens the second-order theorem.

Proof
    Write y = c - x, p = P c, u = p - x, w = c - p. Axis by axis p_i lies between x_i and c_i, so |u_i| + |w_i| = |y_i|.
    The Taylor coefficient f^(e)(p)/e!, expanded at x to degree m - 1 - |e|, is (X is convex, Taylor's theorem)

        sum_{|g| < m - |e|} C(e+g, e) f^(e+g)(x)/(e+g)! u^g + R_e,   |R_e| <= sum_{|g| = m - |e|} C(e+g, e) F_{e+g} |u|^g.

    Multiply by w^e and sum over |e| < m: by the binomial theorem (w + u = y) the main terms are the Taylor polynomial of f
    at x of degree m - 1, evaluated at c. The remainders give sum_{|h| = m} F_h ((|w| + |u|)^h - |w|^h) <= sum F_h |y|^h. So

        |v(c) - sum_{|a| < m} f^(a)(x)/a! y^a| <= sum_{|h| = m} F_h |y|^h,       inside and in the margin alike.

    Take E_i, multiply by alpha_i and sum over the heads: sum_i alpha_i = 1 leaves f(x); the terms 1 <= |a| < m give
    f^(a)(x)/a! sum_i alpha_i E_i y^a, the remainders at most sum_h F_h sum_i |alpha_i| E_i |y|^h. The weights of each head
    factorise over the axes, so the moments are products of one-dimensional ones. QED.

Assumptions
    smooth (**checked**): f is smooth on the box; all derivatives up to order m are enclosed on a partition, every kink
    decided strictly (`axioms.derivatives`).
    form (**checked**): the stored weights are the k heads of the grid, up to a distance that is charged
    (`axioms.perturbation`).

Certified: sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified: Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from fractions import Fraction
    >>> from certiformer.kernel.balls import working_precision
    >>> from certiformer.axioms.temperature_moments import combined_moments
    >>> working_precision()
    >>> found = combined_moments(Fraction(3, 5), heads=2, margin=9, dimension=1, order=6)
    >>> " ".join(f"{float(found.signed[j]):.1e}" for j in range(1, 6))
    '1.5e-06 8.4e-06 4.5e-05 4.2e+00 1.5e-03'

Tests: tests/theorems/test_temperatures.py
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from flint import arb

from certiformer.axioms.derivatives import DerivativeBounds, series
from certiformer.axioms.grid import Grid, partition
from certiformer.axioms.perturbation import charge_heads, registers_only
from certiformer.axioms.temperature_moments import MAX_HEADS, MAX_ORDER, combined_moments, output_weights
from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, BallDomain, ConstantAlgebra, largest
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.layers import Head
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import Program, fold
from certiformer.kernel.taylor import table

THEOREM = {
    "id": "axioms.temperatures",
    "title": "k softmax heads over the same prototypes at k temperatures are accurate to order 2k.",
    "kind": "upper bound",
    "sources": ("nadaraya1964", "watson1964", "petrov2024"),
    "verb": "build",
    "assumptions": (
        ("smooth", "f is smooth on the box; derivatives up to order m are enclosed", "checked"),
        ("form", "the stored weights are the k heads of the grid up to a distance that is charged", "checked"),
    ),
}

MAX_MONOMIALS = 500  # a certificate may not ask for more Taylor coefficients on every box of its partition


@dataclass(frozen=True)
class Temperatures:
    """The grid (its sharpness is that of the sharpest head), the number k of heads and the order m of the remainder."""

    grid: Grid
    heads: int
    order: int

    @staticmethod
    def from_parameters(parameters: dict[str, Any], dimension: int) -> Temperatures:
        """Read the parameters of a theorem node, refusing anything that does not fit."""
        grid = Grid.from_parameters(parameters, dimension)
        heads, order = parameters.get("heads"), parameters.get("order")
        if type(heads) is not int or not 1 <= heads <= MAX_HEADS or type(order) is not int:
            raise Refused("the parameters of the theorem node do not name the heads and the order")
        if not 1 <= order <= MAX_ORDER or monomials(dimension, order) > MAX_MONOMIALS:
            raise Refused(f"order {order} is outside the range the theorem is checked for")
        return Temperatures(grid, heads, order)

    def parameters(self) -> dict[str, Any]:
        return {**self.grid.parameters(), "heads": self.heads, "order": self.order}

    def constants(self, dimension: int) -> list[arb]:
        """M_a or A_a for every monomial a of degree <= m, in the order of the monomial table; 0 for a = 0."""
        found = combined_moments(self.grid.sharpness, self.heads, self.grid.margin, dimension, self.order)
        both = {**found.signed, **found.absolute}
        return [both.get(place, ZERO) for place in range(table(dimension, self.order).size)]


def monomials(dimension: int, order: int) -> int:
    """How many monomials have degree at most `order`."""
    count = 1
    for i in range(1, dimension + 1):
        count = count * (order + i) // i
    return count


def apriori(chosen: Temperatures, domain: BallDomain, derivatives: DerivativeBounds) -> list[arb]:
    """The bound of the statement, one an output; raises `Refused` when f is not known to be smooth."""
    if derivatives.smooth < 2:
        raise Refused(f"the target is not known to be smooth on {derivatives.where}: {derivatives.why}")
    spacing, tab = chosen.grid.spacing(domain), table(domain.dimension, chosen.order)
    scale = [ONE] * tab.size
    for place, monomial in enumerate(tab.monomials[: tab.size]):
        for delta, power in zip(spacing, monomial, strict=True):
            for _ in range(power):
                scale[place] = scale[place] * delta
    constants = chosen.constants(domain.dimension)
    return [
        sum((f * c * s for f, c, s in zip(line[: tab.size], constants, scale, strict=True)), ZERO).upper()
        for line in derivatives.largest
    ]


def ideal_values(program: Program, chosen: Temperatures, domain: BallDomain) -> list[list[arb]]:
    """v(c) at every centre, in register order: f(c) inside, its continuation by Taylor polynomials in the margin."""
    grid, tab = chosen.grid, table(domain.dimension, chosen.order - 1)
    centres, clipped = grid.axes(domain), grid.clipped(domain)
    inside = [range(grid.margin, grid.margin + n) for n in grid.cells]

    @cache
    def taylor_at(nearest: tuple[int, ...]) -> list[dict[int, arb]]:
        point = [clipped[axis][k] for axis, k in enumerate(nearest)]
        return [found.coef for found in series(program, point, chosen.order - 1)]

    values = []
    for choice in product(*(range(len(axis)) for axis in centres)):
        if all(k in row for k, row in zip(choice, inside, strict=True)):
            values.append(fold(program, [centres[axis][k] for axis, k in enumerate(choice)], ConstantAlgebra()))
            continue
        # Margin centres beyond the same point of the boundary share its Taylor polynomial; the first index stands for all.
        nearest = tuple(
            0 if k < row.start else len(centres[axis]) - 1 if k >= row.stop else k
            for axis, (k, row) in enumerate(zip(choice, inside, strict=True))
        )
        step = [centres[axis][k] - clipped[axis][k] for axis, k in enumerate(choice)]
        values.append([_polynomial(coefficients, tab.monomials, step) for coefficients in taylor_at(nearest)])
    return values


def _polynomial(coefficients: dict[int, arb], exponents: list[tuple[int, ...]], step: list[arb]) -> arb:
    total = ZERO
    for place, coefficient in coefficients.items():
        for s, power in zip(step, exponents[place], strict=True):
            for _ in range(power):
                coefficient = coefficient * s
        total = total + coefficient
    return total


def ideal_heads(chosen: Temperatures, domain: BallDomain, values: list[list[arb]]) -> list[Head]:
    """The k heads of the theorem: scores divided by i, values times alpha_i."""
    first = chosen.grid.ideal_head(domain, values)
    return [
        Head(
            [[a / i for a in line] for line in first.slopes],
            [offset / i for offset in first.offsets],
            [[v * alpha for v in line] for line in values],
        )
        for i, alpha in enumerate(output_weights(chosen.heads), start=1)
    ]


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node, hypotheses checked, distance to the ideal weights charged."""
    if not isinstance(problem.right, ProgramFunction):
        raise Refused("the theorem needs a target program on its right-hand side")
    program, domain = problem.right.program, problem.domain
    chosen = Temperatures.from_parameters(node.parameters, domain.dimension)
    left = registers_only(problem.left, domain, chosen.heads)
    if left.outputs != problem.right.outputs:
        raise Refused("transformer and target differ in their number of outputs")
    if left.registers != chosen.grid.size:
        raise Refused(f"the transformer has {left.registers} prototypes, the theorem speaks of {chosen.grid.size}")
    parts = partition(node.parameters, domain.dimension)
    bounds = apriori(chosen, domain, DerivativeBounds(program, domain, parts, chosen.order))
    ideal = ideal_heads(chosen, domain, ideal_values(program, chosen, domain))
    charges = charge_heads(left, ideal, domain)
    return largest([(b + c).upper() for b, c in zip(bounds, charges, strict=True)])
