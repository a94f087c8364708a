"""Taylor coefficients over a box: every derivative at every point is enclosed, and smoothness is never overstated."""

from __future__ import annotations

import random
from itertools import product
from math import comb, factorial

import pytest
from flint import arb

from certiformer.axioms.derivatives import DerivativeBounds, series
from certiformer.kernel.balls import BallDomain, Box, hull, working_precision
from certiformer.kernel.taylor import table
from certiformer.target import Program, parse_domain, parse_formula
from kernel.oracle import point_of, precisely, random_box, values

working_precision()

STEP = arb((1, -40))
# Central differences of order <= 5 at 300 bits with step 2^-40: rounding 2^5 2^-300 / 2^-200 and truncation 2^-80 times
# the next derivatives; both stay below 2^-50 for the functions and boxes of these tests.
ERROR = arb((1, -50))


def balls_of(box: Box) -> list[arb]:
    return [hull(box.low(i), box.high(i)) for i in range(box.dimension)]


def difference(program: Program, point: list[arb], monomial: tuple[int, ...]) -> arb:
    """f^(a)/a! at a point, by central differences of order a_i in every axis."""
    with precisely():
        total = arb(0)
        for moves in product(*(range(power + 1) for power in monomial)):
            sign = (-1) ** (sum(monomial) - sum(moves))
            weight = sign
            for power, move in zip(monomial, moves, strict=True):
                weight *= comb(power, move)
            shifted = [
                x + STEP * (arb(2 * move - power) / 2) for x, move, power in zip(point, moves, monomial, strict=True)
            ]
            total = total + weight * values(program, shifted)[0]
        for power in monomial:
            total = total / (factorial(power) * STEP**power)
        return total


SMOOTH = {
    1: ["sin(3*x1)", "exp(-x1**2)", "log(x1 + 3)", "sqrt(x1 + 3)", "tan(x1/3)", "tanh(2*x1)", "atan(x1)", "erf(x1)",
        "x1**5 - x1", "1/(2 + x1)", "-x1*cos(x1)", "abs(x1 + 5)", "max(x1, x1 - 3)", "x1**0",
        "where(x1 < 7, sin(x1), 1/(x1 - 7))", "min(x1**2, 9 + x1)"],
    2: ["x1*x2", "sin(x1*x2) + exp(-x1*x2)", "sqrt(4 + x1*x2)", "x1**3*x2**2", "tanh(x1 - 2*x2)/(3 + x2)"],
    3: ["exp(x1 - x2*x3)"],
}  # fmt: skip


@pytest.mark.parametrize(("dimension", "text"), [(d, text) for d, texts in SMOOTH.items() for text in texts])
def test_all_derivatives_are_enclosed_on_boxes_and_tight_at_points(dimension, text):
    rng, program, order = random.Random(text), parse_formula(text, dimension), 5 if dimension == 1 else 3
    tab = table(dimension, order)
    for width in (0.0, 1e-3, 0.3):
        box = random_box(rng, dimension, centre=1.0, width=width)
        (found,) = series(program, balls_of(box), order)
        assert found.smooth
        point = point_of(box, [rng.uniform(-1, 1) for _ in range(dimension)])
        for place, monomial in enumerate(tab.monomials[: tab.size]):
            truth, enclosure = difference(program, point, monomial), found.coef.get(place, arb(0))
            with precisely():
                room = ERROR * (1 + abs(truth))
                assert not (truth - room > enclosure.upper() or truth + room < enclosure.lower()), monomial
            assert width or enclosure.rad() < 1e-18


def test_known_coefficients_exactly():
    """Zero tolerance: binomials for powers, 1/n! for exp, alternating powers for 1/(1+x)."""
    for n in range(6):
        (power,) = series(parse_formula("x1**5"), [arb(3)], 5)
        assert power.coef[n] == comb(5, n) * 3 ** (5 - n)
        (exponential,) = series(parse_formula("exp(x1)"), [arb(0)], 5)
        assert exponential.coef[n].overlaps(arb(1) / factorial(n)) and exponential.coef[n].rad() < 1e-27
        (inverse,) = series(parse_formula("1/(1 + x1)"), [arb(1)], 5)
        assert inverse.coef[n] == (-1) ** n * arb(2) ** -(n + 1)


def test_bounds_over_a_partition_are_the_suprema():
    domain = BallDomain(parse_domain("[0, pi]"))
    found = DerivativeBounds(parse_formula("sin(x1)"), domain, (40,), 6)
    for n, bound in enumerate(found.largest[0]):
        # sup |sin^(n)|/n! = 1/n!, attained; the enclosures on 40 pieces overshoot by at most half a piece.
        assert 1 <= float(bound) * factorial(n) < 1.05
    mixed = DerivativeBounds(parse_formula("[x1*x2**2, x1]"), BallDomain(parse_domain("[0,2]x[-1,3]")), (4, 4), 3)
    places = {monomial: i for i, monomial in enumerate(mixed.table.monomials)}
    # Radii of balls have 30 bits, so the hull of a piece sticks out by 2^-30 of its size.
    assert mixed.largest[0][places[1, 2]] == 1 and 2 <= float(mixed.largest[0][places[0, 2]]) <= 2 * (1 + 2**-29)
    assert mixed.largest[1][places[1, 0]] == 1 and mixed.largest[1][places[2, 0]] == 0


NOT_SMOOTH = ["abs(x1)", "abs(x1 - 0.5)", "max(x1, 0.25)", "min(x1, 1 - x1)**2", "where(x1 < 0.5, 0, (x1 - 0.5)**9)",
              "sqrt(x1)", "log(x1)", "1/x1", "x1**2*abs(x1)", "tan(4*x1)", "sqrt(abs(x1 - 0.5))"]  # fmt: skip


@pytest.mark.parametrize("text", NOT_SMOOTH)
@pytest.mark.parametrize("parts", [1, 2, 4, 7])
def test_a_kink_or_a_pole_is_found_on_every_partition(text, parts):
    """Partitions into 2 and 4 put the kinks at 0.25 and 0.5 exactly on an interface."""
    found = DerivativeBounds(parse_formula(text), BallDomain(parse_domain("[0,1]")), (parts,), 4)
    assert not found.smooth and found.why and found.where


def test_a_kink_that_is_not_on_the_box_does_not_matter():
    assert DerivativeBounds(parse_formula("abs(x1 + 0.001)"), BallDomain(parse_domain("[0,1]")), (3,), 4).smooth
    assert DerivativeBounds(
        parse_formula("where(x1 < 2, x1, log(x1 - 5))"), BallDomain(parse_domain("[0,1]")), (3,), 4
    ).smooth
