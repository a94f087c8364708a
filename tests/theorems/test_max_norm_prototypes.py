"""Softmax heads over a grid for functions that are Lipschitz in the max norm: the bound, how nearly it is attained, bits."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import certiformer
from certiformer.construct.max_norm_prototypes import (
    bound,
    described_bits,
    fewest_cells,
    overshoot,
    plan,
    weights,
)
from certiformer.construct.method import Task
from certiformer.construct.prototype_attention import prototype_transformer
from certiformer.construct.voronoi import realise
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.target import Target, parse_domain, parse_formula

EPSILON = Fraction(1, 10)


def task(formula: str, dimension: int, epsilon: Fraction = EPSILON) -> Task:
    target = Target(formula, parse_formula(formula, dimension), parse_domain(f"[0,1]^{dimension}"))
    return Task.of(target, epsilon)


@pytest.mark.parametrize("sharpness", [2, 3, 5, 9, 30, 256])
@pytest.mark.parametrize("cells", [1, 2, 3, 8])
def test_the_mean_overshoot_stays_below_its_bound(sharpness, cells):
    """E (|y| - 1/2)_+ of the softmax weights on a fine grid, edges and all; the pair of neighbours nearly attains it."""
    x = np.linspace(0, cells, 40_001)[:, None]
    y = np.abs(np.arange(cells) + 0.5 - x)
    scores = -sharpness * y**2
    p = np.exp(scores - scores.max(1, keepdims=True))
    mean = (p * np.maximum(y - 0.5, 0)).sum(1) / p.sum(1)
    assert mean.max() <= float(overshoot(sharpness)) + 1e-15  # rounding of the sum of at most 8 terms
    if cells > 1:
        assert mean.max() >= 0.13923 / sharpness * 0.99  # and the leading term is sharp: the pair attains it


@pytest.mark.parametrize(("cells", "dimension", "sharpness"), [(4, 1, 6), (3, 2, 4), (2, 3, 3)])
def test_functions_of_the_class_are_met_within_the_bound(cells, dimension, sharpness):
    """Saw teeth in the max norm, the hardest members, and random maxima of cones."""
    axis = (np.arange(cells) + 0.5) / cells
    centres = np.array(list(product(axis, repeat=dimension)))
    random = np.random.default_rng(0)
    points = random.uniform(0, 1, (4000, dimension))
    points[: len(points) // 2] = np.round(points[: len(points) // 2] * cells) / cells  # corners of cells
    limit = float(bound(Fraction(1), cells, sharpness, dimension))
    worst = 0.0
    for number in range(6):
        tips = centres if number == 0 else random.uniform(0, 1, (3, dimension))

        def function(x, tips=tips):
            return np.abs(x[:, None, :] - tips[None]).max(2).min(1)

        model = prototype_transformer(
            centres - 0.5, function(centres)[:, None], np.full(dimension, 0.5), np.full(dimension, 0.5),
            np.full(dimension, 2 * sharpness * cells**2.0))  # fmt: skip
        error = np.abs(model.evaluate(points)[:, 0] - function(points)).max()
        assert error <= limit + 1e-12  # float64 against the theorem about real numbers
        worst = max(worst, error)
    assert worst >= 0.4999 / cells  # nearly attained: no head over these centres can do better than 1/(2N) here


@pytest.mark.parametrize(("epsilon", "dimension"), [("0.1", 1), ("0.01", 4), ("0.0031", 2), ("0.3", 5), ("0.6", 2)])
def test_the_cells_are_the_fewest(epsilon, dimension):
    tolerance = Fraction(epsilon)
    cells, sharpness = fewest_cells(Fraction(1), tolerance, dimension)
    assert bound(Fraction(1), cells, sharpness, dimension) <= tolerance
    assert cells == 1 or bound(Fraction(1), cells - 1, 256, dimension) > tolerance
    assert cells <= math.ceil(1 / (2 * tolerance)) + 1 + cells // 100


def test_a_softer_head_would_break_the_bound():
    """Negative control: at sharpness 2 the bound of sharpness 9 is false."""
    mean = 0.25 / (np.exp(1.0) + 1)  # u = 1/4, b = 2: (g/2)/(e^{bg} + 1) with g = 1/2
    assert mean > float(overshoot(9))
    with pytest.raises(BadInput, match="at least 2"):
        overshoot(1)


def test_build_makes_it_and_the_checker_agrees():
    run = certiformer.build("max(x1, x2)", on="[0,1]^2", eps="0.1", method="max-norm", seconds=60)
    assert run.certified and run.model is not None
    cells, _ = fewest_cells(Fraction(1), EPSILON, 2)
    assert run.model.nonzero_count() <= weights(cells, 2)
    assert run.model.config.registers == cells**2


def test_the_constant_is_taken_jointly_over_the_axes():
    """|x1 - x2|/2 has slopes 1/2 and 1/2: constant 1, the grid of max(x1, x2)."""
    half, whole = plan(task("abs(x1-x2)/2", 2)).grid, plan(task("max(x1, x2)", 2)).grid
    assert half.cells == whole.cells == (6, 6) and plan(task("x1+x2", 2)).grid.cells == (11, 11)


def test_a_target_without_a_constant_is_refused():
    with pytest.raises(Refused, match="Lipschitz"):
        plan(task("sqrt(x1)", 1))


def test_rounded_heads_are_as_many_as_described():
    """All value tables of a walk on three cells, counted: at most 2^B, and each member of the class has one."""
    constant, cells, eta = 6, 3, 1  # values in units of eta, L/(N eta) = 2
    steps = 2 * -(-constant // (cells * eta)) + 1
    first = constant // eta + 2
    random = np.random.default_rng(1)
    seen = set()
    for _ in range(3000):
        values = np.cumsum([random.uniform(0, constant), *random.uniform(-2, 2, cells - 1)])
        rounded = np.floor(values / eta + 0.5)
        assert np.abs(np.diff(rounded)).max() <= (steps - 1) // 2
        seen.add(tuple(rounded - rounded[0]))
    assert len(seen) <= steps ** (cells - 1) and len(seen) > steps ** (cells - 1) // 2 and first == 8
    assert described_bits(Fraction(1), Fraction(1, 2), 3) == 0


def test_it_really_makes_a_transformer_of_the_planned_size():
    made = plan(task("max(x1, x2)", 2))
    assert made.size().nonzero == weights(6, 2) == realise(made).model.nonzero_count()
