"""Sums of cosines: in their classes and apart, and the net of polynomials, against samples."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.expressivity.orthogonal_sums import (
    analytic_costs,
    needed_bits,
    net_bits,
    numbers,
    smooth_costs,
)
from certiformer.kernel import Refused

ONE = Fraction(1)


def test_cosines_are_orthogonal_with_the_stated_mean_square():
    """Exactly integrated by the midpoint rule, which is exact for these frequencies."""
    t = (np.arange(64) + 0.5) / 64
    waves = np.array([np.cos(np.pi * k * t) for k in range(6)])
    gram = waves @ waves.T / 64
    assert np.allclose(gram, np.diag([1.0] + [0.5] * 5), atol=1e-13)  # rounding of 64 terms


def test_derivatives_stay_below_the_costs():
    """|e_k^(a)| / F_a <= g_k for the class of constant 1, over all multi-indices in question."""
    shells = list(zip(range(4), smooth_costs(ONE, 3, 2)(), strict=False))
    for k in product(range(4), repeat=2):
        cost = float(shells[max(k)][1][0])
        for a in product(range(4), repeat=2):
            if sum(a) <= 3:
                assert math.prod((math.pi * x) ** y for x, y in zip(k, a, strict=True)) <= cost + 1e-9
    radius = Fraction(1, 2)
    costs = [float(cost) for _, (cost, _) in zip(range(7), analytic_costs(ONE, radius, 2)(), strict=False)]
    for k in product(range(4), repeat=2):
        for a in product(range(12), repeat=2):
            size = math.prod((math.pi * x) ** y / math.factorial(y) for x, y in zip(k, a, strict=True))
            assert size * float(radius) ** sum(a) <= costs[sum(k)] * (1 + 1e-12)


def test_shells_count_every_index_once():
    counts = [size for _, (_, size) in zip(range(5), smooth_costs(ONE, 2, 3)(), strict=False)]
    assert sum(counts) == 5**3
    counts = [size for _, (_, size) in zip(range(5), analytic_costs(ONE, ONE, 3)(), strict=False)]
    assert sum(counts) == sum(1 for k in product(range(5), repeat=3) if sum(k) < 5)


@pytest.mark.parametrize("dimension", [1, 2])
def test_members_of_the_family_are_further_apart_than_twice_epsilon(dimension):
    """Two coefficients that differ by 2 A: the largest difference over a grid is at least what the proof says."""
    epsilon = 1e-3
    apart = epsilon * 2 ** (dimension / 2)
    generator = np.random.default_rng(0)
    axes = np.meshgrid(*[np.linspace(0, 1, 81)] * dimension)
    for _ in range(20):
        total = np.zeros(axes[0].shape)
        for k in product(range(3), repeat=dimension):
            wave = np.prod([np.cos(np.pi * i * x) for i, x in zip(k, axes, strict=True)], axis=0)
            total = total + 2 * apart * generator.integers(-2, 3) * wave
        assert np.abs(total).max() == 0 or np.abs(total).max() > 2 * epsilon


def test_numbers_are_the_most_that_the_condition_allows():
    """Negative control: one more shell violates eps^2 2^D sum g^2 < 1."""
    costs, epsilon = smooth_costs(ONE, 4, 2), Fraction(1, 10**6)
    count, total, shells = 0, Fraction(0), list(zip(range(50), costs(), strict=False))
    kept = numbers(costs, 2, epsilon)
    for _, (cost, size) in shells:
        total += size * cost**2
        count += size
        assert (epsilon**2 * 4 * total < 1) == (count <= kept)


@pytest.mark.parametrize("radius", [Fraction(1, 4), Fraction(1), Fraction(4)])
def test_chebyshev_coefficients_of_a_member_stay_below_the_bound(radius):
    """1/(1 + R - x) has convergence radius R at 1 and more elsewhere; constant M = 1/R, |f^(a)|/a! = (1 + R - x)^-(a+1)."""
    r = float(radius)
    series = np.polynomial.chebyshev.chebinterpolate(lambda u: 1 / (1 + r - (u + 1) / 2), 60)
    for t in (0.25, 0.5, 0.9):
        s = 2 * t * r + math.sqrt(4 * t * t * r * r + 1)
        limit = 2 / r / (1 - t) / s ** np.arange(61)
        assert (np.abs(series) <= limit + 1e-12).all()  # rounding of the interpolation


def test_both_counts_of_bits_grow_alike():
    """log(1/eps)^2 in one dimension: the ratio of net and family stays bounded."""
    gaps = []
    for power in (6, 9, 12, 15):
        epsilon = Fraction(1, 10**power)
        gaps.append(net_bits(ONE, ONE, 1, epsilon) / needed_bits(analytic_costs(ONE, ONE, 1), 1, epsilon))
    assert all(1 <= gap < 12 for gap in gaps) and gaps[-1] < 1.1 * gaps[0]


def test_a_coarse_net_is_one_function_and_a_hopeless_one_is_refused():
    assert net_bits(ONE, ONE, 2, Fraction(2)) == 0
    with pytest.raises(Refused, match="radius"):
        net_bits(ONE, Fraction(1, 10**6), 2, Fraction(1, 100))
