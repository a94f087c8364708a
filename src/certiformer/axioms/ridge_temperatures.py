"""Sums of ridge functions by heads at several temperatures that all read one short list of registers.

Statement
    Let f_o(x) = l_o . x + sum_r g_{r,o}(p_r . x) on a box, with profiles g_{r,o} that are smooth on the range [lo_r, hi_r]
    of p_r . x. Take N cells, r margin cells, sharpness b, k temperatures and order m as in `rules.temperatures`, once for
    all ridges: register j carries one centre, in units of the cell, and for every ridge and output the value at that place
    of the range. Ridge r has k heads that query with p_r . x in units of its own spacing (hi_r - lo_r)/N. Then

        |T_o - f_o| <= sum_r (the bound of `rules.temperatures` for g_{r,o} on [lo_r, hi_r]).

    sin(x1) + sin(x2) on [0, 2 pi]^2 takes 21 registers and 4 heads within 0.01.

Source: nadaraya1964, watson1964 for the estimator; petrov2024 for attention over prefix tokens; derived here.

Differs from the source in
    The registers are not points of the input space but of the line, and every direction looks at the same ones: the size
    does not grow with the dimension, only with the number of directions.

Proof
    In units of the spacing the grid of every range is the same list of numbers, so a head whose score is
    -(b/i)((p_r . x - c)/delta_r)^2 plus a common term is head i of the theorem for g_{r,o} at s = p_r . x in [lo_r, hi_r].
    T_o is l_o . x (residual stream) plus the sum of these; the triangle inequality finishes. QED.

Assumptions
    ridges (**checked**): every output is, as written, the sum that the certificate states (`kernel.split`).
    smooth (**checked**): all derivatives of the profiles up to order m are enclosed on a partition of their range.
    form (**checked**): the stored weights are these heads, up to a distance that is charged (`axioms.perturbation`).

Certified: sup |T - f| <= bound for the real-number function T of the exact stored weights.

Not certified: Anything outside the box; the rounding of a floating-point run of T.

Example
    >>> from certiformer.target import parse_domain, parse_formula
    >>> ridge = Ridge((1, -2), (parse_formula("exp(x1)"),))
    >>> [float(end) for end in ridge.ends(BallDomain(parse_domain("[0, 1]^2")))]
    [-2.0, 1.0]

Tests: tests/theorems/test_ridge_temperatures.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import arb

from certiformer.axioms import temperatures
from certiformer.axioms.derivatives import DerivativeBounds
from certiformer.axioms.grid import partition
from certiformer.axioms.perturbation import charge_heads, registers_only
from certiformer.axioms.temperatures import Temperatures
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, BallDomain, ball, largest
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.layers import Head, Prototypes
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import Program, exact
from certiformer.kernel.rules import is_sum

THEOREM = {
    "id": "axioms.ridge_temperatures",
    "title": "Sums of ridge functions by heads at several temperatures that all read one short list of registers.",
    "kind": "upper bound",
    "sources": ("nadaraya1964", "watson1964", "petrov2024"),
    "verb": "build",
    "assumptions": (
        ("ridges", "every output is written as a sum of functions of one linear expression", "checked"),
        ("smooth", "derivatives of the profiles up to order m are enclosed on their range", "checked"),
        ("form", "the stored weights are these heads up to a distance that is charged", "checked"),
    ),
    "uses": ("axioms.temperatures",),
}


Linear = list[tuple[Fraction, ...]]  # an output each


@dataclass(frozen=True)
class Ridge:
    """A direction with its profile for every output (None: that output has no such ridge)."""

    direction: tuple[int, ...]
    profiles: tuple[Program | None, ...]

    def ends(self, domain: BallDomain) -> tuple[arb, arb]:
        """The range of direction . x over the box: its ends are attained, so they are real numbers, here as balls."""
        return domain.along(self.direction).ends[0]


def ridge_parameters(linear: Linear, ridges: list[Ridge]) -> dict[str, Any]:
    """The sum of ridges as a theorem node states it."""
    lines = [[profile and profile.to_json() for profile in ridge.profiles] for ridge in ridges]
    return {
        "linear": [[str(c) for c in row] for row in linear],
        "directions": [list(ridge.direction) for ridge in ridges],
        "profiles": lines,
    }


def stated_ridges(parameters: dict[str, Any], target: Program) -> tuple[Linear, list[Ridge]]:
    """The sum of ridges that a theorem node states; `Refused` unless the target is, as written, that sum."""
    try:
        linear = [tuple(exact(text) for text in row) for row in parameters["linear"]]
        ridges = [
            Ridge(tuple(direction), tuple(None if data is None else Program.from_json(data) for data in line))
            for direction, line in zip(parameters["directions"], parameters["profiles"], strict=True)
        ]
    except (BadInput, KeyError, TypeError, ValueError) as error:
        raise Refused(f"the parameters of the theorem node do not state a sum of ridges: {error}") from None
    if any(len(row) != target.inputs for row in [*linear, *(ridge.direction for ridge in ridges)]):
        raise Refused("the sum of ridges of the theorem node has not the inputs of the target")
    if any(len(rows) != len(target.outputs) for rows in [linear, *(ridge.profiles for ridge in ridges)]):
        raise Refused("the sum of ridges of the theorem node has not the outputs of the target")
    if any(not any(ridge.direction) or any(type(n) is not int for n in ridge.direction) for ridge in ridges):
        raise Refused("a direction of the theorem node is not a list of integers, one of them not zero")
    for o, row in enumerate(linear):
        own = [([list(ridge.direction)], profile) for ridge in ridges if (profile := ridge.profiles[o]) is not None]
        if any((profile.inputs, len(profile.outputs)) != (1, 1) for _, profile in own):
            raise Refused("a profile of the theorem node is no function of one variable")
        if not is_sum(target.select(o), list(row), own):
            raise Refused("the target is not the sum of ridges that the theorem node states")
    return linear, ridges


def interval(ridge: Ridge, domain: BallDomain) -> BallDomain:
    """The range of a ridge as a domain of its own."""
    return domain.along(ridge.direction)


def profile_bounds(
    ridges: list[Ridge], domain: BallDomain, parts: int, order: int
) -> list[list[DerivativeBounds | None]]:
    """Taylor coefficients of every ridge's profile for every output."""
    return [
        [profile and DerivativeBounds(profile, interval(ridge, domain), (parts,), order) for profile in ridge.profiles]
        for ridge in ridges
    ]


def apriori(
    chosen: Temperatures, ridges: list[Ridge], domain: BallDomain, bounds: list[list[DerivativeBounds | None]]
) -> list[arb]:
    """The bound of the statement, one an output."""
    totals = [ZERO] * len(bounds[0])
    for ridge, line in zip(ridges, bounds, strict=True):
        for o, derivatives in enumerate(line):
            if derivatives is not None:
                totals[o] = (totals[o] + temperatures.apriori(chosen, interval(ridge, domain), derivatives)[0]).upper()
    return totals


def ideal_values(chosen: Temperatures, ridge: Ridge, domain: BallDomain) -> list[list[arb]]:
    """The values of one ridge at every register, one an output."""
    line = interval(ridge, domain)
    columns = [
        [row[0] for row in temperatures.ideal_values(profile, chosen, line)] if profile else [ZERO] * chosen.grid.size
        for profile in ridge.profiles
    ]
    return [list(row) for row in zip(*columns, strict=True)]


def ideal_heads(chosen: Temperatures, ridge: Ridge, domain: BallDomain) -> list[Head]:
    """The k heads of one ridge, as functions of x."""
    heads = temperatures.ideal_heads(chosen, interval(ridge, domain), ideal_values(chosen, ridge, domain))
    return [
        Head([[slope * c for c in ridge.direction] for (slope,) in head.slopes], head.offsets, head.values)
        for head in heads
    ]


def check(node: TheoremNode, problem: Problem) -> arb:
    """The proved bound of a theorem node, hypotheses checked, distance to the ideal weights charged."""
    if not isinstance(problem.right, ProgramFunction):
        raise Refused("the theorem needs a target program on its right-hand side")
    domain = problem.domain
    linear, ridges = stated_ridges(node.parameters, problem.right.program)
    if not ridges:
        raise Refused("the target has no ridges")
    chosen = Temperatures.from_parameters(node.parameters, 1)
    left = registers_only(problem.left, domain, chosen.heads * len(ridges))
    if left.outputs != len(linear) or left.dimension != domain.dimension:
        raise Refused("transformer and target differ in their number of inputs or outputs")
    if left.registers != chosen.grid.size:
        raise Refused(f"the transformer has {left.registers} prototypes, the theorem speaks of {chosen.grid.size}")
    (parts,) = partition(node.parameters, 1)
    bounds = apriori(chosen, ridges, domain, profile_bounds(ridges, domain, parts, chosen.order))
    ideal = [head for ridge in ridges for head in ideal_heads(chosen, ridge, domain)]
    charges = charge_heads(_without(left, linear), ideal, domain)
    return largest([(b + c).upper() for b, c in zip(bounds, charges, strict=True)])


def _without(left: Prototypes, linear: list[tuple[Fraction, ...]]) -> Prototypes:
    """The transformer minus the linear part of the target."""
    weight = [[w - ball(linear[o][i]) for o, w in enumerate(row)] for i, row in enumerate(left.weight)]
    return replace(left, weight=weight)
