"""Orbits of cells: counted, bumps that are symmetric and in the class, heads that inherit the symmetry."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest

from certiformer.construct.max_norm_prototypes import bound
from certiformer.construct.prototype_attention import prototype_transformer
from certiformer.errors import BadInput
from certiformer.expressivity.bits_lower_bound import bumps
from certiformer.expressivity.symmetric_bumps import orbit, orbits

BOTH = ("symmetric", "equivariant")


@pytest.mark.parametrize("symmetry", BOTH)
@pytest.mark.parametrize(("cells", "dimension"), [(1, 1), (1, 3), (3, 2), (2, 4), (4, 3)])
def test_orbits_are_counted(cells, dimension, symmetry):
    names = {orbit(cell, symmetry) for cell in product(range(cells), repeat=dimension)}
    assert len(names) == orbits(cells, dimension, symmetry)
    for name in names:  # reached from a neighbour: lower the first positive index
        place = next((k for k, index in enumerate(name) if index and (symmetry == "symmetric" or k)), None)
        if place is not None:
            assert orbit([index - (k == place) for k, index in enumerate(name)], symmetry) in names


@pytest.mark.parametrize("symmetry", BOTH)
def test_signed_bumps_are_invariant_and_in_the_class(symmetry):
    """Exact on a grid that contains the centres: the sums of the proof of (b), two of which differ by L/N."""
    cells, dimension = 2, 3
    names = sorted({orbit(cell, symmetry) for cell in product(range(cells), repeat=dimension)})
    points = list(product([Fraction(k, 8) for k in (0, 1, 2, 4, 6, 7)], repeat=dimension))
    tables = []
    for signs in product((1, -1), repeat=len(names)):
        of = dict(zip(names, signs, strict=True))
        f = bumps([of[orbit(c, symmetry)] for c in product(range(cells), repeat=dimension)], cells, dimension, 1)
        if signs[:2] == (1, -1):
            for x in points[::7]:
                for order in permutations(range(dimension)):
                    if symmetry == "symmetric" or order[0] == 0:
                        assert f([x[k] for k in order]) == f(x)
        tables.append([f(x) for x in points])
    for one, other in list(combinations(tables, 2))[::3]:
        assert max(abs(a - b) for a, b in zip(one, other, strict=True)) == Fraction(1, cells)
    assert len(tables) == 2 ** orbits(cells, dimension, symmetry)


def test_signs_that_differ_within_an_orbit_break_the_symmetry():
    """Negative control: with one sign for each cube the functions are more, but not symmetric."""
    f = bumps([1, 1, -1, 1], 2, 2, 1)
    x = (Fraction(1, 4), Fraction(3, 4))
    assert f(x) != f(x[::-1])


def test_an_equivariant_function_is_met_within_the_bound():
    """f_i = max(x_i, the mean of the two others) has constant 1: the head with three outputs is as good as stated."""
    cells, dimension, sharpness = 4, 3, 6
    axis = (np.arange(cells) + 0.5) / cells
    centres = np.array(list(product(axis, repeat=dimension)))

    def function(x):
        others = (x.sum(1, keepdims=True) - x) / 2
        return np.maximum(x, others)

    model = prototype_transformer(
        centres - 0.5, function(centres), np.full(3, 0.5), np.full(3, 0.5), np.full(3, 2 * sharpness * cells**2.0)
    )
    points = np.random.default_rng(0).uniform(0, 1, (2000, dimension))
    outputs = model.evaluate(points)
    limit = float(bound(Fraction(1), cells, sharpness, dimension))
    assert np.abs(outputs - function(points)).max() <= limit + 1e-12  # float64 against real numbers
    turned = model.evaluate(points[:, [1, 2, 0]])
    assert np.abs(turned - outputs[:, [1, 2, 0]]).max() <= 1e-12  # sums of 64 terms in another order
    values = {
        orbit(c, "equivariant"): v
        for c, v in zip(product(range(cells), repeat=3), function(centres)[:, 0], strict=True)
    }
    assert len(values) == orbits(cells, 3, "equivariant")


def test_nothing_is_counted_without_an_axis():
    with pytest.raises(BadInput, match="at least one axis"):
        orbits(3, 0, "symmetric")
