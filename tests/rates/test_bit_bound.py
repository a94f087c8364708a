"""Lower bounds in exact arithmetic: the table of sizes, the bumps of the proofs, orbits by counting, claims that cannot be."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.axioms.lattice import moments
from certiformer.errors import BadInput
from certiformer.expressivity.bits_lower_bound import bits, bumps
from certiformer.rates.bit_bound import (
    SHARPNESS_4,
    Curvature,
    Hoelder,
    Slopes,
    contradiction,
    hard_cells,
    size_table,
    softmax_cells,
)


def test_size_table():
    # L = 1, alpha = 1; every number can be had by hand: 49 = ceil(50) - 1, 50, ceil(100 sqrt(0.2507)) = 51.
    rows = {(row[0], row[1]): row[2:] for row in size_table().rows}
    assert [rows[1, e] for e in ("1/10", "3/100", "1/100")] == [[4, 5, 6], [16, 17, 17], [49, 50, 51]]
    assert [rows[2, e] for e in ("1/10", "3/100", "1/100")] == [[16, 25, 64], [256, 289, 576], [2401, 2500, 5041]]
    assert [rows[3, e][0] for e in ("1/10", "3/100", "1/100")] == [64, 4096, 117649]
    assert [rows[3, e][1] for e in ("1/10", "3/100", "1/100")] == [125, 4913, 125000]
    assert [rows[3, e][2] for e in ("1/10", "3/100", "1/100")] == [729, 24389, 658503]
    assert rows[4, "1/100"] == [5764801, 6250000, 104060401]
    assert rows[4, "1/10"] == [256, 625, 14641] and rows[4, "3/100"] == [65536, 83521, 1336336]


def test_second_moment_of_sharpness_4_is_an_upper_bound():
    # Proved bound of E y^2 over all positions, in balls; the table's v may not be below what the head really has.
    places = np.linspace(0, 1, 2001)
    y = places[:, None] - (np.arange(-20, 21) + 0.5)
    weights = np.exp(-4 * y**2)
    assert ((weights * y**2).sum(1) / weights.sum(1)).max() < float(SHARPNESS_4)
    assert float(SHARPNESS_4) < float(moments(Fraction(4), 8).second)  # the Poisson bound is coarser at this sharpness


@pytest.mark.parametrize("alpha", ["1", "1/2", "1/3", "3/4", "9/10"])
def test_cells_are_the_largest_with_a_bump_above_epsilon(alpha):
    exponent = Fraction(alpha)
    p, q = exponent.numerator, exponent.denominator
    for lipschitz in (Fraction(1), Fraction(7, 3), Fraction(1, 10)):
        for epsilon in (Fraction(1, 3), Fraction(1, 10), Fraction(3, 100), Fraction(1, 128)):
            found = Hoelder(lipschitz, 1, alpha).cells(epsilon)

            def above(n: int, lipschitz=lipschitz, epsilon=epsilon) -> bool:  # L / (2 n^(p/q)) > epsilon, without roots
                return (2 * epsilon) ** q * n**p < lipschitz**q

            assert (found == 0 or above(found)) and not above(found + 1)


def test_at_an_exact_power_the_bump_is_not_above_epsilon():
    # (L / 2 eps)^(1/alpha) = 125 exactly: the bump of 125 cells has height eps itself. A float root gives 124.99999999999997
    # or 125.00000000000003 and may be off by one; here it is 124.
    assert Hoelder(1, 1, "1/3").cells("1/10") == 124
    assert Hoelder(1, 1).cells("1/2") == 0 and Hoelder(1, 3).patterns("1/2") == 0
    assert Hoelder(10**30, 1).cells(1) == 5 * 10**29 - 1  # beyond the digits of a float


def test_agrees_with_the_theorem_for_slopes():
    for epsilon in ("1/10", "1/77", "0.003"):
        for d in (1, 2, 3):
            assert Hoelder("5/2", d).patterns(epsilon) == bits("5/2", epsilon, d)
            assert Slopes(("5/2",) * d).patterns(epsilon) == bits("5/2", epsilon, d)


def test_hoelder_bumps_are_in_the_class():
    # The pyramids of alpha = 1 to the power 1/2: f = 2^(-1/2) L dist^(1/2), with random signs.
    rng = np.random.default_rng(0)
    cells, alpha = 3, 0.5
    signs = rng.choice([-1, 1], cells**2).tolist()
    pyramid = bumps(signs, cells, 2, 1)
    points = [[Fraction(int(a), 97), Fraction(int(b), 97)] for a, b in rng.integers(0, 98, (120, 2))]
    dist = np.array([float(pyramid(p)) for p in points])
    values = np.sign(dist) * 2 ** (alpha - 1) * np.abs(dist) ** alpha
    x = np.array(points, float)
    apart = np.abs(x[:, None] - x[None]).max(-1) ** alpha
    change = np.abs(values[:, None] - values[None])
    assert (change <= apart + 1e-12).all()  # rounding of powers of numbers below 1
    # The factor 2^(alpha - 1) is needed: without it some pair of different cubes breaks the class.
    assert (change * 2 ** (1 - alpha) > apart + 1e-12).any()
    centre = [Fraction(1, 2 * cells)] * 2
    assert float(pyramid(centre)) ** 1 in (1 / (2 * cells), -1 / (2 * cells))


def test_slopes_of_different_axes():
    # On axis i the largest N_i with L_i / (2 N_i) > 1/10: 9, 4 and 0 (a slope of 1/5 cannot rise by more than 1/10).
    assert Slopes((2, 1)).patterns("1/10") == 9 * 4
    assert Slopes((2, "1/5")).patterns("1/10") == 0


def test_curvature_bumps():
    # M = 16: N < 1 / sqrt(eps). psi by two sums of its second derivative: rises to 1 and returns to 0.
    assert [Curvature(16, 2).patterns(e) for e in ("1/100", "1/101", "1")] == [81, 100, 0]
    n = 4000
    second = np.where((np.arange(n) + 0.5) // (n // 4) % 3 == 0, 16.0, -16.0)
    slope = np.cumsum(second) / n
    psi = np.cumsum(slope) / n
    assert (
        abs(psi.max() - 1) < 2e-3 and psi.min() > -2e-3 and abs(slope).max() <= 4 + 1e-9
    )  # steps of 1/4000 times slope 4
    assert abs(slope[-1]) < 1e-9 and abs(psi[-1]) < 2e-3


@pytest.mark.parametrize(("n", "d", "cells"), [(2, 1, 3), (3, 1, 2), (2, 2, 2), (4, 1, 3)])
def test_orbits_by_counting(n, d, cells):
    cubes = list(product(range(cells), repeat=d))
    orbits = {tuple(sorted(choice)) for choice in product(cubes, repeat=n)}
    epsilon = Fraction(1, 2 * cells + 1)  # L / (2 eps) = cells + 1/2: exactly `cells` cells
    assert Hoelder(1, d, tokens=n, symmetric=True).patterns(epsilon) == len(orbits)
    assert Hoelder(1, d, tokens=n).patterns(epsilon) == cells ** (d * n)
    assert Hoelder(1, d * n).patterns(epsilon) == cells ** (d * n)
    assert Hoelder(1, d, tokens=n, symmetric=True).patterns(1) == 0


def test_impossible_claims_are_refused_and_possible_ones_are_not():
    unit = Hoelder(1, 4)
    assert "5764801" in contradiction(unit, "1/100", 5_764_800)
    assert not contradiction(unit, "1/100", hard_cells(1, 4, "1/100"))  # what values at centres reach
    assert not contradiction(unit, "1/100", softmax_cells(1, 4, "1/100", SHARPNESS_4))
    # Real weights without continuity: nothing is known against a single one; with bits there is.
    assert not contradiction(unit, "1/100", 1, continuous=False)
    assert contradiction(unit, "1/100", 180_150, bits_per_weight=32, continuous=False)
    assert not contradiction(unit, "1/100", 180_151, bits_per_weight=32, continuous=False)
    assert math.ceil(5_764_801 / 32) == 180_151


def test_nonsense_is_refused():
    for wrong in (
        Hoelder(0, 1),
        Hoelder(1, 0),
        Hoelder(1, 1, 0),
        Hoelder(1, 1, 2),
        Hoelder(1, 1, "0.33333333"),
        Slopes((0,)),
    ):
        with pytest.raises(BadInput):
            wrong.patterns("1/10")
    with pytest.raises(BadInput):
        Curvature(1, 1).patterns(0)
