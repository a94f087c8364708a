"""Heads at several temperatures for a class: members met within the bound, weights counted, sums over partitions."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.axioms.derivatives import TaylorBounds
from certiformer.axioms.grid import Grid
from certiformer.axioms.temperature_moments import combined_moments
from certiformer.axioms.temperatures import Temperatures, ideal_values
from certiformer.construct.method import Task
from certiformer.construct.program_values import as_numpy
from certiformer.construct.smooth_heads import (
    analytic,
    bound,
    described_bits,
    fewest,
    smooth,
)
from certiformer.construct.temperatures import plan, transformer
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.taylor import table
from certiformer.target import Target, parse_domain, parse_formula

ONE = Fraction(1)
CLASSES = [(smooth(ONE), 2, 4), (smooth(ONE), 1, 6), (analytic(ONE, Fraction(1, 2)), 2, 4), (smooth(ONE), 3, 2)]


@pytest.mark.parametrize(("bounds", "dimension", "highest"), CLASSES)
def test_the_bound_is_the_sum_over_all_monomials(bounds, dimension, highest):
    """Partitions against the full table of `axioms.temperature_moments`."""
    chosen = fewest(bounds, dimension, highest, Fraction(1, 1000))
    moments = combined_moments(chosen.sharpness, chosen.heads, chosen.margin, dimension, chosen.order)
    tab, total = table(dimension, chosen.order), 0.0
    for place, monomial in enumerate(tab.monomials[: tab.size]):
        if any(monomial):
            constant = moments.signed.get(place, moments.absolute.get(place))
            size = sum(monomial)
            total += float(bounds(tuple(filter(None, monomial)))) * float(constant) / chosen.cells**size
    stated = bound(chosen.terms, chosen.cells)
    assert total * (1 - 1e-12) <= float(stated) <= total * (1 + 1e-8)  # constants are rounded up to nine digits
    assert stated <= Fraction(1, 1000) < bound(chosen.terms, chosen.cells - 1)


@pytest.mark.parametrize(
    ("formula", "dimension", "smoothness"), [("cos(x1+x2)", 2, 4), ("sin(x1)", 1, 6), ("cos(x1)*sin(x2)", 2, 2)]
)
def test_members_are_met_by_the_grid_of_the_class(formula, dimension, smoothness):
    working_precision()
    epsilon = Fraction(1, 200)
    chosen = fewest(smooth(ONE), dimension, smoothness, epsilon)
    target = Target(formula, parse_formula(formula, dimension), parse_domain(f"[0,1]^{dimension}"))
    domain = BallDomain(target.domain)
    grid = Temperatures(Grid((chosen.cells,) * dimension, chosen.margin, chosen.sharpness), chosen.heads, chosen.order)
    values = np.array([[float(v.mid()) for v in row] for row in ideal_values(target.program, grid, domain)])
    model = transformer(grid, domain, values)
    assert model.nonzero_count() <= chosen.weights and model.config.registers == chosen.registers
    points = np.array(list(product(np.linspace(0, 1, 41), repeat=dimension)))
    exact = as_numpy(target.program)(points)[:, 0]
    assert np.abs(model.evaluate(points)[:, 0] - exact).max() <= float(bound(chosen.terms, chosen.cells)) + 1e-12


@pytest.mark.parametrize(("formula", "dimension"), [("cos(x1+x2)", 2), ("sin(x1)", 1)])
def test_what_build_makes_is_not_larger(formula, dimension):
    target = Target(formula, parse_formula(formula, dimension), parse_domain(f"[0,1]^{dimension}"))
    for epsilon in (Fraction(1, 100), Fraction(1, 10_000)):
        highest = {1: 10, 2: 8}[dimension]
        made = plan(Task.of(target, epsilon))
        assert (
            made.size().nonzero <= fewest(smooth(ONE), dimension, highest, epsilon).weights * 1.05 + 50
        )  # ROOM, one cell


def test_a_class_with_larger_derivatives_breaks_the_bound():
    """Negative control: cos(6 x) is not in the class of constant 1, and misses the epsilon of its grid."""
    working_precision()
    chosen = fewest(smooth(ONE), 1, 2, Fraction(1, 200))
    target = Target("cos(6*x1)", parse_formula("cos(6*x1)", 1), parse_domain("[0,1]"))
    domain = BallDomain(target.domain)
    grid = Temperatures(Grid((chosen.cells,), chosen.margin, chosen.sharpness), chosen.heads, chosen.order)
    values = np.array([[float(v.mid()) for v in row] for row in ideal_values(target.program, grid, domain)])
    points = np.linspace(0, 1, 201)[:, None]
    error = np.abs(transformer(grid, domain, values).evaluate(points)[:, 0] - np.cos(6 * points[:, 0])).max()
    assert error > 1 / 200
    assert TaylorBounds(target.program, domain, (20,), 2).smooth


def test_rounding_the_values_costs_what_is_counted():
    """Two heads: weights 2 and -1, so that values that move by eta/2 each move the output by 3 eta/2 at most."""
    chosen = fewest(smooth(ONE), 1, 4, Fraction(1, 1000))
    bits = described_bits(chosen, smooth(ONE), Fraction(1, 1000))
    assert chosen.registers < bits < 40 * chosen.registers
    assert described_bits(fewest(smooth(ONE), 1, 4, Fraction(1, 10)), smooth(ONE), Fraction(1, 10)) < bits


def test_more_derivatives_need_fewer_registers_for_small_epsilon():
    counts = [fewest(smooth(ONE), 2, s, Fraction(1, 10**6)).registers for s in (2, 4, 8)]
    assert counts == sorted(counts, reverse=True) and counts[-1] < counts[0] / 100
