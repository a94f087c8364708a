"""Polynomial bumps: their derivatives against samples, sums in the class and apart, the order of N."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.smooth_bumps import bump, cells, derivative_bounds, roughness

ONE = Fraction(1)


@pytest.mark.parametrize("smoothness", [1, 2, 4, 8])
def test_derivatives_are_bounded_and_nearly_attained(smoothness):
    polynomial = np.polynomial.Polynomial([float(c) for c in bump(smoothness)])
    t = np.linspace(0, 1, 20_001)
    for order, limit in enumerate(derivative_bounds(smoothness)):
        largest = np.abs(polynomial.deriv(order)(t)).max() if order else polynomial(t).max()
        assert largest <= float(limit) * (1 + 1e-9) + 1e-9 * 8**smoothness  # cancellation of float64 at order 8
        assert largest >= 0.75 * float(limit)  # they come closer with their degree only slowly
    for order in range(smoothness + 1):  # so many derivatives vanish at the ends, exactly
        coefficients = bump(smoothness)
        for _ in range(order):
            coefficients = [k * c for k, c in enumerate(coefficients)][1:]
        assert coefficients[0] == 0 == sum(coefficients)


def test_the_product_is_the_largest_over_all_multi_indices():
    single = derivative_bounds(3)
    every = [a for a in product(range(4), repeat=3) if sum(a) <= 3]
    assert roughness(3, 3) == max(single[a] * single[b] * single[c] for a, b, c in every)
    assert roughness(3, 9) == roughness(3, 3) >= roughness(3, 1)


@pytest.mark.parametrize(("smoothness", "dimension"), [(1, 1), (2, 2), (3, 1)])
def test_signed_bumps_are_in_the_class_and_apart(smoothness, dimension):
    """On a fine grid along the first axis: derivatives of order s at most 1, distance 2 h > 2 eps at the centres."""
    epsilon = Fraction(1, 5000)
    n = cells(ONE, smoothness, dimension, epsilon)
    height = 1 / (float(roughness(smoothness, dimension)) * n**smoothness)
    assert n >= 2 and height > float(epsilon)
    polynomial = np.polynomial.Polynomial([float(c) for c in bump(smoothness)])
    t = np.linspace(0, 1, 4001)
    for order in range(smoothness + 1):
        assert np.abs(height * n**order * polynomial.deriv(order)(t)).max() <= 1 + 1e-9
    assert 2 * height * float(polynomial(0.5)) ** dimension > 2 * float(epsilon)


def test_one_more_cell_would_not_be_in_the_class():
    """Negative control: N is the largest; with N + 1 the bumps are not higher than epsilon."""
    for epsilon in (Fraction(1, 100), Fraction(1, 12345)):
        n = cells(ONE, 2, 2, epsilon)
        limit = ONE / (roughness(2, 2) * epsilon)
        assert n**2 < limit <= (n + 1) ** 2
    assert cells(ONE, 2, 2, ONE) == 0


def test_the_order_is_that_of_the_construction():
    few, many = cells(ONE, 4, 1, Fraction(1, 10**8)), cells(ONE, 4, 1, Fraction(1, 10**12))
    assert 9 < many / few < 11  # (10^4)^(1/4)
    with pytest.raises(BadInput, match="smoothness"):
        cells(ONE, 0, 1, ONE)
