"""`fit`: what it reaches, what it does not claim to reach, and that the same seed gives the same network."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.construct.method import Shape, Task
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.search.fit import SHARE, fit, shrink
from certiformer.target import Target, parse_domain, parse_formula


def task(formula, on, epsilon, shape=None):
    target = Target(formula, parse_formula(formula), parse_domain(on))
    made = Task.of(target, Fraction(epsilon))
    return made if shape is None else Task(target, made.epsilon, shape)


def test_two_sines_need_few_units():
    best = fit(task("sin(x1) + sin(x2)", "[0, 2*pi]^2", "1/100"), seconds=120)[0]
    assert best.reached and best.sampled_error <= SHARE * 0.01
    # Two units and a slope for each sine; found in every run so far, three would still be a good result.
    assert best.units <= 6 and best.size.nonzero <= 40
    points = np.random.default_rng(5).uniform(0, 2 * np.pi, (4000, 2))
    errors = np.abs(best.model.evaluate(points)[:, 0] - np.sin(points).sum(1))
    assert errors.max() <= 0.01
    # Steep units would make the proof expensive.
    assert max(np.abs(t).max() for t in best.model.tensors.values()) < 300


@pytest.mark.parametrize(
    ("formula", "on", "units"), [("abs(x1 - x2)", "[0,1]^2", 1), ("3*x1 - x2/4", "[0,1]^2", 0), ("2", "[0,1]", 0)]
)
def test_piecewise_linear_targets_are_met_to_rounding(formula, on, units):
    best = fit(task(formula, on, "1/1000"), seconds=120)[0]
    assert best.reached and best.units == units
    assert best.sampled_error < 1e-12  # a few rounding errors of numbers of size 1


def test_max_and_min_share_their_unit():
    best = fit(task("[max(x1, x2), min(x1, x2)]", "[0,1]^2", "1/1000"), seconds=120)[0]
    assert best.reached and best.units == 1 and best.sampled_error < 1e-12


@pytest.mark.slow
def test_a_product_is_fitted_in_two_dimensions():
    best = fit(task("x1*x2", "[-1,1]^2", "1/5"), seconds=120)[0]
    assert best.reached and best.units <= 6


def test_different_outputs_by_position():
    shape = Shape(tokens=2, width=1, out_tokens=2, out_width=1, layout="sequence")
    best = fit(task("[abs(x1 - x2), x1 + x2]", "[0,1]^2", "1/1000", shape), seconds=120)[0]
    assert best.reached and best.activation == "relu"
    assert best.model.evaluate([[0.25, 1.0]]) == pytest.approx(np.array([[0.75, 1.25]]), abs=1e-12)


def test_what_is_not_reached_is_not_called_reached(monkeypatch):
    monkeypatch.setattr(shrink, "WIDTHS", (0, 1))
    results = fit(task("sin(x1)", "[0, 2*pi]", "1/100"), seconds=120)
    # One gelu unit and a slope leave an error of 0.11.
    assert [r.reached for r in results] == [False]
    assert results[0].sampled_error > 0.1
    assert {units for _, units, _ in results[0].history} == {0, 1}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_network():
    first, second = (fit(task("exp(-x1**2)", "[-2,2]", "1/100"), seconds=60)[0] for _ in range(2))
    assert first.history == second.history
    assert all(np.array_equal(first.model.tensors[n], second.model.tensors[n]) for n in first.model.tensors)


def test_a_target_without_value_is_refused():
    with pytest.raises(Refused, match="not finite"):
        fit(task("log(x1)", "[0,1]", "1/10"), seconds=1)


def test_an_unknown_objective_is_a_mistake():
    with pytest.raises(BadInput, match="objective"):
        fit(task("x1", "[0,1]", "1/10"), objective="beauty")  # type: ignore[arg-type]
