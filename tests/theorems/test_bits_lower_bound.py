"""The bit lower bound: the packing of its proof, checked exactly for small N, and the numbers it gives."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, product

import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.bits_lower_bound import bits, bumps, cells_per_axis, weights

SMALL = [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (1, 3)]  # cells and dimension: at most 16 sign patterns


def grid(dimension: int, side: int) -> list[tuple[Fraction, ...]]:
    return list(product([Fraction(k, side) for k in range(side + 1)], repeat=dimension))


@pytest.mark.parametrize(("cells", "dimension"), SMALL)
def test_the_bumps_are_in_the_class_and_apart(cells, dimension):
    """Exact: Lipschitz on a grid that contains centres and corners, distance exactly L/N between any two."""
    constant = Fraction(3, 2)
    functions = [bumps(s, cells, dimension, constant) for s in product((1, -1), repeat=cells**dimension)]
    points = grid(dimension, 4 * cells if dimension < 3 else 4)
    tables = [[f(x) for x in points] for f in functions]
    for table in tables[:: max(1, len(tables) // 4)]:
        for (x, a), (y, b) in combinations(zip(points, table, strict=True), 2):
            assert abs(a - b) <= constant * max(abs(s - t) for s, t in zip(x, y, strict=True))
    for one, other in combinations(tables, 2):
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) == constant / cells
    assert len(functions) == 2 ** bits(constant, constant / (2 * cells) - Fraction(1, 10**9), dimension)


@pytest.mark.parametrize(("cells", "dimension"), SMALL)
def test_the_threshold_is_sharp_for_the_packing(cells, dimension):
    """At eps = L/(2N) one function, zero, serves all bumps, and the bound no longer asks for N^D bits."""
    points = grid(dimension, 2 * cells)
    heights = [max(abs(bumps(s, cells, dimension, 1)(x)) for x in points) for s in [(1,) * cells**dimension]]
    assert heights == [Fraction(1, 2 * cells)]
    assert bits(1, Fraction(1, 2 * cells), dimension) == (cells - 1) ** dimension


def test_steeper_bumps_leave_the_class():
    """Negative control: pyramids that are higher would be further apart, but they are too steep."""
    f = bumps([1, -1], 2, 1, Fraction(3, 2))
    assert abs(f([Fraction(1, 4)]) - f([Fraction(3, 4)])) > 1 * Fraction(1, 2)


def test_the_numbers_of_the_table():
    assert [bits(1, eps, 2) for eps in ("0.1", "0.03", "0.01")] == [16, 256, 2401]
    assert bits(1, "0.01", 4) == 5_764_801 and weights(1, "0.01", 4, bits_per_weight=32) == 180_151
    assert cells_per_axis(1, 1) == 0 and bits(1, "0.5", 3) == 0 and weights(1, 2, 1) == 0


def test_one_dimensional_functions_really_need_about_that_many():
    """For D = 1 a table of N + 1 rounded values describes every f: at most (N+1) log2(L/eps + 1) bits, so the bound is
    within a logarithm of what suffices."""
    eps = Fraction(1, 100)
    needed = bits(1, eps, 1)
    # Values at N + 1 centres to eps/2, pieces constant: error 1/(2(N+1)) + eps/2 <= eps with N + 1 = 100 centres.
    centres = 100
    assert Fraction(1, 2 * centres) + eps / 2 <= eps
    assert needed <= centres * 7 <= 16 * needed


@pytest.mark.parametrize(
    ("constant", "epsilon", "dimension"), [(0, 1, 1), (1, 0, 1), (-1, 1, 1), (1, -1, 1), (1, 1, 0)]
)
def test_what_makes_no_sense_is_refused(constant, epsilon, dimension):
    with pytest.raises(BadInput):
        bits(constant, epsilon, dimension)


def test_signs_must_fit_the_cubes():
    with pytest.raises(BadInput, match="as many signs"):
        bumps([1], 2, 2, 1)
