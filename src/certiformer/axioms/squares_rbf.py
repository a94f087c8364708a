"""Attention writes |x|^2 and the feed-forward part makes radial bumps of it: one block for functions of several variables.

Statement
    Grid of N_i cells of length delta_i with r margin cells, middle m; in cell units t_c(x) = sum_i ((x_i - c_i)/delta_i)^2
    for a centre c. Let Q be what the heads write, |Q(x) - sum_i ((x_i - m_i)/delta_i)^2| <= tolerance on the box, phi a
    bump (`rules.radial_lattice`) with (r + 1/2)^2 >= its last threshold + tolerance, f = a . x + c0 + u, and

        T(x) = a . x + c0 + sum_c phi(t_c(x) + eta(x)) v(c),     eta = Q - sum_i ((x_i - m_i)/delta_i)^2,

    realised by one hidden unit for every centre and threshold. With |u| <= U, |u_i| <= G_i, |u_ij| <= H_ij on the box

        order 2:  |T - f| <= defect U + drift sum_i G_i delta_i + (second/2) sum_i H_ii delta_i^2
                             + mixed sum_{i<j} H_ij delta_i delta_j,   v(c) = u(P c) + grad u(P c) . (c - P c),
        order 1:  |T - f| <= defect U + absolute sum_i G_i delta_i,    v(c) = u(P c),  u only Lipschitz,

    P c the nearest point of the box, and defect, drift, ... the constants of the bump for that tolerance. Two variables,
    two thresholds 2.09127 and 3.71181: defect 0.0133, drift 0.033, second 0.573, mixed 0.418 at tolerance 1/2000.

Source: nadaraya1964, watson1964 for kernel sums; the construction and its constants are derived here.

Differs from the source in
    Nothing is normalised: the bumps sum to one up to `defect`, by the choice of the thresholds. The bump is piecewise
    linear in the squared distance with compact support, so that no tail is left, and need not resemble a Gaussian. How
    well the heads square is enclosed on the stored weights, not estimated.

Proof
    The scores of a unit: relu(theta_k - |c|^2 + 2 c . tau - Q) with tau = (x - m)/delta and c in cell units about m is
    relu(theta_k - t_c - eta), so the units of a centre with weights heights_k v(c) sum to phi(t_c + eta) v(c). A centre
    outside the grid has |tau_i - c_i| >= r + 1/2 on some axis, where phi is zero: sums over the grid are sums over the
    whole lattice. Write y = c - x in original units. Order 2: |v(c) - u(x) - grad u(x) . y| <= (1/2) sum_ij H_ij |y_i||y_j|
    (proved in `rules.voronoi_second_order`), so T - f = u (sum phi - 1) + grad u . sum phi y + rest, and phi >= 0. Order 1:
    |u(P c) - u(x)| <= sum_i G_i |y_i|, because |P c - x| <= |c - x| on every axis. QED.
    Stored weights: relu is 1-Lipschitz; a unit whose pre-activation is off by d and whose output weight by w costs at
    most |out| d + w (theta_k + tolerance).

Assumptions
    smooth (**checked**): u is twice differentiable (order 1: Lipschitz) on the box, derivatives enclosed on a partition.
    squares (**checked**): the heads write the sum of squares within the tolerance, enclosed on the stored weights.
    form (**checked**): one block, one data token and a sink; the distance of its weights to the ideal ones is charged.

Certified: sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified: Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from fractions import Fraction
    >>> from certiformer.kernel.balls import working_precision
    >>> from certiformer.axioms.radial_lattice import Bump, constants
    >>> working_precision()
    >>> bump = Bump((Fraction("3.03149"), Fraction("5.05868")), (Fraction("0.06193"), Fraction("0.03719")))
    >>> found = constants(bump, 1, Fraction(0), 32)
    >>> f"{float(found.defect):.3f} {float(found.drift):.4f} {float(found.second):.3f}"
    '0.017 0.0039 0.892'

Tests: tests/theorems/test_squares_rbf.py
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb, fmpq

from certiformer.axioms.derivatives import DerivativeBounds, series
from certiformer.axioms.grid import Grid, partition
from certiformer.axioms.radial_lattice import Bump, Constants, constants
from certiformer.axioms.squares_network import SquaresNetwork, read_squares, square_error
from certiformer.axioms.voronoi_second_order import ideal_values as taylor_values
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ZERO, BallDomain, ConstantAlgebra, ball, larger, largest
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import Program, exact, fold

THEOREM = {
    "id": "axioms.squares_rbf",
    "title": "Squares by attention and radial bumps by the feed-forward part approximate functions of several variables.",
    "kind": "upper bound",
    "sources": ("nadaraya1964", "watson1964"),
    "verb": "build",
    "assumptions": (
        ("smooth", "u is twice differentiable (order 1: Lipschitz); derivatives are enclosed", "checked"),
        ("squares", "the heads write the sum of squares within the tolerance", "checked"),
        ("form", "one block, one data token and a sink; the distance of its weights is charged", "checked"),
    ),
    "uses": ("axioms.voronoi_second_order",),
}

MAX_LEVELS = 10
MAX_UNITS = 200_000


@dataclass(frozen=True)
class Layer:
    """What a theorem node says: the grid, the bump, the tolerance of the squares, the order, the affine part an output."""

    grid: Grid
    bump: Bump
    tolerance: Fraction
    order: int
    slices: int
    levels: int
    slopes: tuple[tuple[Fraction, ...], ...]
    constants: tuple[Fraction, ...]

    def parameters(self) -> dict[str, Any]:
        return {
            "cells": list(self.grid.cells),
            "margin": self.grid.margin,
            "thresholds": [str(x) for x in self.bump.thresholds],
            "heights": [str(x) for x in self.bump.heights],
            "tolerance": str(self.tolerance),
            "order": self.order,
            "slices": self.slices,
            "levels": self.levels,
            "slopes": [[str(a) for a in row] for row in self.slopes],
            "constants": [str(c) for c in self.constants],
        }

    @staticmethod
    def from_parameters(data: dict[str, Any], dimension: int, outputs: int) -> Layer:
        """Read a theorem node, refusing anything that is not such a layer."""
        bad = Refused("the parameters of the theorem node do not describe squares and bumps for this domain")
        # The grid of the Voronoi theorems has a sharpness, which has no meaning here.
        grid = Grid.from_parameters({**data, "sharpness": "1"}, dimension)
        limits = {"order": (1, 2), "slices": (1, 512), "levels": (0, MAX_LEVELS)}
        counts: dict[str, Any] = {name: data.get(name) for name in limits}
        if any(type(n) is not int or not limits[name][0] <= n <= limits[name][1] for name, n in counts.items()):
            raise bad
        slopes = data.get("slopes")
        if not isinstance(slopes, list) or len(slopes) != outputs:
            raise bad
        rows = [_numbers(row, dimension) for row in slopes]
        bump = Bump(_numbers(data.get("thresholds")), _numbers(data.get("heights")))
        (tolerance,) = _numbers([data.get("tolerance")])
        if grid.size * len(bump.heights) > MAX_UNITS or tolerance < 0:
            raise bad
        return Layer(
            grid, bump, tolerance, **counts, slopes=tuple(rows), constants=_numbers(data.get("constants"), outputs)
        )


def _numbers(texts: Any, count: int | None = None) -> tuple[Fraction, ...]:
    if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
        raise Refused("the parameters of the theorem node hold something that is not a list of numbers")
    if count is not None and len(texts) != count:
        raise Refused(f"the parameters of the theorem node hold {len(texts)} numbers in place of {count}")
    try:
        return tuple(exact(text) for text in texts)
    except BadInput as error:
        raise Refused(str(error)) from None


def less_affine(program: Program, slopes: tuple[tuple[Fraction, ...], ...], shifts: tuple[Fraction, ...]) -> Program:
    """u = f - a . x - c0 for every output."""
    nodes, outputs = list(program.nodes), []

    def put(*node: Any) -> int:
        nodes.append(node)
        return len(nodes) - 1

    for value, slope, shift in zip(program.outputs, slopes, shifts, strict=True):
        for i, a in enumerate(slope):
            if a:
                value = put("sub", value, put("mul", put("const", str(a)), put("var", i)))
        outputs.append(put("sub", value, put("const", str(shift))))
    return Program(program.inputs, tuple(nodes), tuple(outputs))


class Bounds(DerivativeBounds):
    """Derivative bounds together with upper bounds of |u|."""

    def __init__(self, program: Program, domain: BallDomain, parts: tuple[int, ...], order: int):
        super().__init__(program, domain, parts, order)
        self.size = [ZERO] * len(program.outputs)
        halves = [(high - low) / (2 * n) for (low, high), n in zip(domain.ends, parts, strict=True)]
        for choice in product(*(range(n) for n in parts)):
            centre = [
                low + (high - low) * arb(fmpq(2 * k + 1, 2 * n))
                for (low, high), n, k in zip(domain.ends, parts, choice, strict=True)
            ]
            for o, value in enumerate(fold(program, centre, ConstantAlgebra())):
                # Lipschitz with Clarke's gradients: the value at the centre and the reach of the part.
                reach = sum((g * half for g, half in zip(self.gradient[o], halves, strict=True)), ZERO)
                self.size[o] = larger(self.size[o], (abs(value) + reach).upper())


def apriori(layer: Layer, domain: BallDomain, bounds: Bounds, sums: Constants) -> list[arb]:
    """The bound of the statement, one an output; raises `Refused` when u is not known to be smooth enough."""
    if bounds.smooth < layer.order:
        raise Refused(f"the target is not known to be smooth enough on {bounds.where}: {bounds.why}")
    spacing = layer.grid.spacing(domain)
    result = []
    for size, gradient, hessian in zip(bounds.size, bounds.gradient, bounds.hessian, strict=True):
        first = sum((g * delta for g, delta in zip(gradient, spacing, strict=True)), ZERO)
        total = sums.defect * size + (sums.absolute if layer.order == 1 else sums.drift) * first
        for (i, j), h in hessian.items() if layer.order == 2 else ():
            total = total + (sums.second * HALF if i == j else sums.mixed) * h * spacing[i] * spacing[j]
        result.append(total.upper())
    return result


def ideal_values(program: Program, layer: Layer, domain: BallDomain) -> list[list[arb]]:
    """v(c) for every centre, the last axis fastest."""
    if layer.order == 2:
        return taylor_values(program, layer.grid, domain)
    return [[jet.value for jet in series(program, list(c), 1)] for c in product(*layer.grid.clipped(domain))]


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node, hypotheses checked, distance to the ideal weights charged."""
    if not isinstance(problem.right, ProgramFunction):
        raise Refused("the theorem needs a target program on its right-hand side")
    domain, target = problem.domain, problem.right.program
    layer = Layer.from_parameters(node.parameters, domain.dimension, len(target.outputs))
    parts = partition(node.parameters, domain.dimension)
    stored = read_squares(problem.left)
    if not ball(layer.bump.thresholds[-1] + layer.tolerance) <= ball(Fraction(2 * layer.grid.margin + 1, 2) ** 2):
        raise Refused("the margin of the grid is smaller than the radius of the bumps")
    error = square_error(stored, domain, layer.grid.spacing(domain), layer.levels)
    if not error.abs_upper() <= ball(layer.tolerance):
        raise Refused(
            f"the heads square within about {float(error.abs_upper()):.3g} only, not about {float(layer.tolerance):.3g}"
        )
    program = less_affine(target, layer.slopes, layer.constants)
    sums = constants(layer.bump, domain.dimension, layer.tolerance, layer.slices)
    bounds = apriori(layer, domain, Bounds(program, domain, parts, layer.order), sums)
    charges = charge(stored, layer, ideal_values(program, layer, domain), domain)
    return largest([(b + c).upper() for b, c in zip(bounds, charges, strict=True)])


def charge(stored: SquaresNetwork, layer: Layer, values: list[list[arb]], domain: BallDomain) -> list[arb]:
    """Upper bounds, one an output, of |stored transformer - ideal one| over the domain."""
    terms, dimension = len(layer.bump.heights), domain.dimension
    if stored.unit_slope.ncols() != layer.grid.size * terms:
        raise Refused(f"the transformer has {stored.unit_slope.ncols()} units, not {layer.grid.size * terms}")
    outputs = len(layer.constants)
    if stored.out.ncols() != outputs:
        raise Refused("the transformer and the target have different numbers of outputs")
    box = domain.box(((0, 0),) * dimension)
    spacing, middle = layer.grid.spacing(domain), [(low + high) * HALF for low, high in domain.ends]
    largest_square = sum((arb(fmpq(n * n, 4)) for n in layer.grid.cells), ball(layer.tolerance)).upper()

    def size(slope: list[arb], constant: arb) -> arb:
        """The largest |slope . x + constant| on the box."""
        reach = ZERO
        for a, c, r in zip(slope, box.centre, box.radius, strict=True):
            constant, reach = constant + a * c, reach + abs(a) * r
        return (abs(constant) + reach).upper()

    totals = []
    for o in range(outputs):
        slope = [stored.slope[i, o] - ball(a) for i, a in enumerate(layer.slopes[o])]
        totals.append(size(slope, stored.constant[o] - ball(layer.constants[o])))
    thresholds, heights = [ball(x) for x in layer.bump.thresholds], [ball(x) for x in layer.bump.heights]
    axes = [range(-layer.grid.margin, n + layer.grid.margin) for n in layer.grid.cells]
    for number, choice in enumerate(product(*axes)):
        place = [arb(fmpq(2 * k + 1 - n, 2)) for k, n in zip(choice, layer.grid.cells, strict=True)]
        steep = [2 * c / delta for c, delta in zip(place, spacing, strict=True)]
        offset = sum((s * m + c * c for s, m, c in zip(steep, middle, place, strict=True)), ZERO)
        for k in range(terms):
            unit = number * terms + k
            gap = [stored.unit_slope[i, unit] - steep[i] for i in range(dimension)]
            moved = size(gap, stored.unit_constant[unit] - (thresholds[k] - offset))
            moved = moved + abs(stored.unit_square[unit] + 1) * largest_square
            highest = thresholds[k] + ball(layer.tolerance)
            for o in range(outputs):
                out = stored.out[unit, o]
                off = abs(out - heights[k] * values[number][o])
                totals[o] = (totals[o] + abs(out) * moved + off * highest).upper()
    return totals
