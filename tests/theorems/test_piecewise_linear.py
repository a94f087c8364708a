"""Relu units along one direction: the bound is attained, contains the truth, and refuses what it does not cover."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from certiformer.axioms.piecewise_linear import check, largest_gap
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.layers import Unit, UnitSum
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.target import parse_domain, parse_formula

working_precision()


def bend(steepness: arb, offset: arb, coefficient: arb) -> Unit:
    return Unit([steepness], offset, coefficient, arb(0))


def problem(profile: UnitSum, formula: str, on: str) -> Problem:
    return Problem(profile, ProgramFunction(parse_formula(formula, 1)), BallDomain(parse_domain(on)))


def interpolant(f, low: float, high: float, pieces: int, backward: bool = False) -> UnitSum:
    """Relu units through f at evenly spaced knots; `backward` builds them from the right end."""
    knots = np.linspace(low, high, pieces + 1)
    slopes = np.diff(f(knots)) / np.diff(knots)
    first = slopes[-1] if backward else slopes[0]
    start = knots[-1] if backward else knots[0]
    sign = -1.0 if backward else 1.0
    bends = [bend(arb(sign), arb(-sign * knots[i]), arb(slopes[i] - slopes[i - 1])) for i in range(1, pieces)]
    return UnitSum("relu", [arb(first)], arb(float(f(start))) - arb(first) * arb(float(start)), bends)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("pieces", [1, 4, 25])
def test_interpolation_of_a_parabola_has_exactly_the_classical_error(pieces, backward):
    # On [-1, 1] with evenly spaced dyadic or rounded knots: |x^2 - chord| is at most (h/2)^2, attained in the middle.
    left = interpolant(lambda x: x**2, -1.0, 1.0, pieces, backward)
    bound = float(largest_gap(problem(left, "x1**2", "[-1, 1]"), 3, arb(2)))
    exact = (1.0 / pieces) ** 2
    # Knots at multiples of 2/25 are rounded to float64: relative 1e-15 of values of size 1, against an error of 1.6e-3.
    assert exact * (1 - 1e-12) <= bound <= exact * (1 + 1e-11)


@pytest.mark.parametrize(
    ("formula", "f", "on"),
    [
        ("sin(x1)", np.sin, (0.0, 6.0)),
        ("exp(x1)", np.exp, (-1.0, 2.0)),
        ("abs(x1 - 0.25)", lambda x: np.abs(x - 0.25), (-1.0, 1.0)),
        ("1/(1 + 25*x1**2)", lambda x: 1 / (1 + 25 * x**2), (-1.0, 1.0)),
        ("where(x1 < 0.5, x1, 1 - x1)", lambda x: np.where(x < 0.5, x, 1 - x), (0.0, 1.0)),
    ],
)
def test_the_bound_contains_the_error_and_is_tight(formula, f, on):
    left = interpolant(f, *on, 16)
    points = np.linspace(*on, 20001)
    knots = np.array([-float(b.offset) for b in left.units])
    value = float(left.linear[0]) * points + float(left.constant)
    value += np.maximum(points[:, None] - knots, 0) @ np.array([float(b.coefficient) for b in left.units])
    sampled = np.abs(value - f(points)).max()
    bound = float(largest_gap(problem(left, formula, f"[{on[0]}, {on[1]}]"), 4, arb(float(sampled) * 1.01 + 1e-9)))
    # The sample of 20,000 points misses the peak by less than 1 %; the float64 evaluation is good to 1e-13. At the very
    # point where a `where` switches both branches are possible: thirty bisections leave 2^-30 / 16 of it.
    assert sampled - 1e-13 <= bound <= sampled * 1.01 + 1e-9


def test_units_at_the_same_knot_and_outside_the_range():
    bends = [
        bend(arb(1), arb(-1), arb(2)),
        bend(arb(2), arb(-2), arb(-1)),  # the same knot: cancels the first
        bend(arb(1), arb(-50), arb(9)),  # never active
        bend(arb(-1), arb(60), arb(1)),  # always active: 60 - s
    ]
    left = UnitSum("relu", [arb(1)], arb(-60), bends)
    assert float(largest_gap(problem(left, "0*x1", "[-3, 7]"), 2, arb("1e-20"))) < 1e-24


def test_exact_rationals_agree_with_an_independent_maximum():
    # Cubic against a two-piece function with rational data; the error is a cubic on each piece: compare with a fine
    # rational sample, from which it differs by at most the Lipschitz constant times half the step.
    left = UnitSum("relu", [arb(fmpq(1, 3))], arb(fmpq(1, 7)), [bend(arb(3), arb(-1), arb(fmpq(2, 5)))])
    wanted = problem(left, "x1**3", "[0, 1]")

    def gap(x: Fraction) -> Fraction:
        return abs(Fraction(1, 3) * x + Fraction(1, 7) + Fraction(2, 5) * max(3 * x - 1, Fraction(0)) - x**3)

    sampled = max(gap(Fraction(k, 3000)) for k in range(3001))
    bound = float(largest_gap(wanted, 3, arb(float(sampled) + 5 / 6000)))
    assert float(sampled) <= bound <= float(sampled) + 5 / 6000


def test_a_planted_fault_is_refused():
    left = interpolant(np.sin, 0.0, 6.0, 30)
    node = Theorem("0.006", "piecewise_linear", {"order": 4})
    assert float(check(node, problem(left, "sin(x1)", "[0, 6]"))) <= 0.006
    bends = list(left.units)
    bends[7] = replace(bends[7], coefficient=bends[7].coefficient + arb("0.001"))
    with pytest.raises(Refused, match="could only be bounded"):
        check(node, problem(UnitSum("relu", left.linear, left.constant, bends), "sin(x1)", "[0, 6]"))
    moved = [replace(b, offset=b.offset + arb("0.05")) for b in left.units]
    with pytest.raises(Refused):
        check(node, problem(UnitSum("relu", left.linear, left.constant, moved), "sin(x1)", "[0, 6]"))


def test_assumptions_are_checked():
    node = Theorem("5", "piecewise_linear", {"order": 4})
    smooth = UnitSum("gelu", [arb(0)], arb(0), [])
    with pytest.raises(Refused, match="needs relu units"):
        check(node, problem(smooth, "x1", "[0, 1]"))
    flat = UnitSum("relu", [arb(0)], arb(0), [])
    with pytest.raises(Refused, match="division"):
        check(node, problem(flat, "1/x1", "[0, 1]"))
    with pytest.raises(Refused, match="log"):
        check(node, problem(flat, "log(x1)", "[0, 1]"))
    still = UnitSum("relu", [arb(0)], arb(0), [bend(arb(0), arb(1), arb(1))])
    with pytest.raises(Refused, match="constant along"):
        check(node, problem(still, "x1", "[0, 1]"))


@pytest.mark.parametrize("parameters", [{}, {"order": 1}, {"order": 99}, {"order": True}, {"order": 4, "more": 1}])
def test_forged_parameters_are_refused(parameters):
    left = UnitSum("relu", [arb(0)], arb(0), [])
    with pytest.raises(Refused, match="order"):
        check(Theorem("5", "piecewise_linear", parameters), problem(left, "x1", "[0, 1]"))


def test_nan_is_never_a_proof():
    left = UnitSum("relu", [arb.nan()], arb(0), [])
    with pytest.raises(Refused):
        check(Theorem("5", "piecewise_linear", {"order": 4}), problem(left, "x1", "[0, 1]"))
