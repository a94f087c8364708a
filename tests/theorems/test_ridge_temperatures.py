"""Ridges at several temperatures over shared registers: true on instances, small where it should be, refused when broken."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.axioms import ridge_temperatures as rule
from certiformer.axioms.grid import Grid
from certiformer.axioms.sigmoid_knots import ridge_sum
from certiformer.axioms.temperatures import Temperatures
from certiformer.construct import ridge_temperatures
from certiformer.construct.method import Task
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import prove
from certiformer.model import Transformer
from certiformer.target import Target, parse_domain, parse_formula
from kernel.networks import exact, network_of
from kernel.oracle import precisely, values

working_precision()


def target_of(formula: str, on: str) -> Target:
    domain = parse_domain(on)
    return Target(formula, parse_formula(formula, domain.dimension), domain)


def problem_of(target: Target, model: Transformer) -> Problem:
    left = as_prototypes(network_of(model))
    assert left is not None
    return Problem(left, ProgramFunction(target.program), BallDomain(target.domain))


def model_of(target: Target, chosen: Temperatures) -> Transformer:
    return ridge_temperatures.transformer(*ridge_sum(target.program), chosen, BallDomain(target.domain))


def node(chosen: Temperatures, bound="1e6", parts=40) -> Theorem:
    return Theorem(bound, "ridge_temperatures", {**chosen.parameters(), "partition": [parts]})


def no_boxes(*_):
    raise AssertionError("a theorem node needs no boxes")


def largest_error(problem: Problem, count: int, seed: int = 0) -> arb:
    """The largest |T - f| over corners, cell edges and random points, each value in balls and rounded down."""
    rng, worst = random.Random(seed), arb(0)
    for _ in range(count):
        point = []
        for low, high in problem.domain.ends:
            t = rng.choice([0.0, 1.0, rng.random(), rng.randrange(17) / 16])
            point.append((low.upper() + (high.lower() - low.upper()) * arb(t)).mid())
        for a, b in zip(exact(problem.left, point), values(problem.right.program, point), strict=True):
            with precisely():
                error = abs(a - b).lower()
                worst = error if error > worst else worst
    return worst


INSTANCES = [
    ("sin(x1) + sin(x2)", "[0,2*pi]^2", 12), ("exp(x1 - 2*x2) + 3*x2 - x1", "[0,1]^2", 5), ("x1**2 - x2**2 + 7", "[-1,2]x[0,1]", 4),
    ("[sin(x1 + x2 + x3), x3 - cos(x1)]", "[0,1]^3", 6), ("tanh(x1/3) + 4", "[-1,1]", 3), ("3", "[0,1]", 2),
]  # fmt: skip
KINDS = [(1, 4, 3, Fraction(1)), (2, 6, 6, Fraction(4, 5)), (3, 6, 8, Fraction(3, 5))]


@pytest.mark.parametrize(("formula", "on", "cells"), INSTANCES)
@pytest.mark.parametrize(("heads", "order", "margin", "sharpness"), KINDS, ids=str)
def test_the_statement_holds_on_instances(formula, on, cells, heads, order, margin, sharpness):
    target, chosen = target_of(formula, on), Temperatures(Grid((cells,), margin, sharpness), heads, order)
    problem = problem_of(target, model_of(target, chosen))
    assert not largest_error(problem, 25) > prove(node(chosen), problem, no_boxes)


def test_the_bound_is_tight_for_a_sum_of_cosines():
    # Both ridges have their worst point at x = 0, so the leading terms add up; the rest as for one cosine.
    target = target_of("cos(2*x1) + cos(2*x2)", "[0,1]^2")
    chosen = Temperatures(Grid((16,), 9, Fraction(3, 5)), 2, 6)
    problem = problem_of(target, model_of(target, chosen))
    assert 1 <= float(prove(node(chosen), problem, no_boxes) / largest_error(problem, 200)) < 1.05


GOOD = target_of("sin(x1 + x2) + exp(x2) - 2*x1", "[0,1]^2")
CHOSEN = Temperatures(Grid((10,), 5, Fraction(4, 5)), 2, 6)


@pytest.fixture(scope="module")
def good_model() -> Transformer:
    return model_of(GOOD, CHOSEN)


HEAD = "blocks.0.attention.groups.0."
# Stream: x1, x2, flag, centre, offset, two values, out.
FAULTS = [
    ("registers", (3, 3), 0.1), ("registers", (3, 4), 0.1), ("registers", (9, 5), 0.01), ("registers", (19, 6), 0.1),
    (HEAD + "query", (0, 0, 0), 0.2), (HEAD + "query", (1, 1, 0), 0.2), (HEAD + "query", (2, 2, 1), 0.1), (HEAD + "query", (3, 2, 0), 0.1),
    (HEAD + "key", (1, 2, 1), 200.0), (HEAD + "key", (2, 3, 0), 0.01), (HEAD + "value", (0, 5, 0), 0.01), (HEAD + "value", (3, 6, 0), 0.01),
    (HEAD + "output", (1, 0, 7), 0.01), ("readout.weight", (0, 0), 0.01), ("readout.weight", (7, 0), 0.01), ("readout.bias", (0,), 0.01),
    ("embed.weight", (1, 1), 0.01),
]  # fmt: skip


@pytest.mark.parametrize(("name", "index", "by"), FAULTS)
def test_one_changed_weight_is_refused(good_model, name, index, by):
    assert prove(node(CHOSEN, "0.002"), problem_of(GOOD, good_model), no_boxes) <= 0.002
    tensors = {key: np.array(value) for key, value in good_model.tensors.items()}
    tensors[name][index] += by
    with pytest.raises(Refused):
        prove(node(CHOSEN, "0.002"), problem_of(GOOD, Transformer(good_model.config, tensors)), no_boxes)


@pytest.mark.parametrize(
    "formula",
    ["sin(x1 + x2) + exp(x2) - x1", "sin(x1 - x2) + exp(x2) - 2*x1", "exp(x1 + x2) + sin(x2) - 2*x1", "x1*x2", "x1 - x2",
     "sin(x1 + x2)", "abs(x1 + x2 - 1) + exp(x2) - 2*x1", "[sin(x1 + x2) + exp(x2) - 2*x1, x2]"],
)  # fmt: skip
def test_another_target_is_refused(good_model, formula):
    """Other profiles, directions and slopes, no ridges, too few of them, a kink, another number of outputs."""
    with pytest.raises(Refused):
        prove(node(CHOSEN, "0.002"), problem_of(target_of(formula, "[0,1]^2"), good_model), no_boxes)


def test_a_kink_really_breaks_the_statement():
    """Negative control of the hypothesis: the higher derivatives of abs vanish beside its kink, yet its error does not."""
    chosen = Temperatures(Grid((11,), 9, Fraction(3, 5)), 2, 6)
    straight, domain = target_of("(x1 - 0.47)**2/1000 + x2**2", "[0,1]^2"), BallDomain(parse_domain("[0,1]^2"))
    _, ridges = ridge_sum(straight.program)
    (fooled,) = rule.apriori(chosen, ridges, domain, rule.profile_bounds(ridges, domain, 4, 6))
    tensors = {key: np.array(value) for key, value in model_of(straight, chosen).tensors.items()}
    centres = (np.arange(-9, 20) + 0.5) / 11
    (first,) = [r for r, ridge in enumerate(ridges) if ridge.direction == (1, 0)]
    tensors["registers"][:, 5 + first] = np.abs(centres - 0.47)
    kink = target_of("abs(x1 - 0.47) + x2**2", "[0,1]^2")
    problem = problem_of(kink, Transformer(model_of(straight, chosen).config, tensors))
    assert largest_error(problem, 100) > 10 * fooled


@pytest.mark.parametrize("change", [{"heads": 1}, {"heads": 4}, {"order": 2}, {"margin": 4}, {"cells": [11]}, {"cells": [10, 10]},
                                    {"sharpness": "1"}, {"partition": [0]}, {"partition": [5, 5]}], ids=str)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(good_model, change):
    with pytest.raises(Refused):
        prove(
            Theorem("0.002", "ridge_temperatures", {**node(CHOSEN).parameters, **change}),
            problem_of(GOOD, good_model),
            no_boxes,
        )


@pytest.mark.parametrize(
    ("formula", "on", "epsilon", "nonzero", "dense"),
    [("sin(x1) + sin(x2)", "[0,2*pi]^2", "1/100", 97, 344), ("sin(x1) + sin(x2)", "[0,2*pi]^2", "1/1000", 131, 470),
     ("[sin(x1 + 2*x2) + 3*x1, exp(x1)]", "[0,1]^2", "1/1000", 112, 497), ("3", "[0,1]", "1/1000", 18, 73)],
)  # fmt: skip
def test_plans_are_proved_within_epsilon_and_small(formula, on, epsilon, nonzero, dense):
    target = target_of(formula, on)
    planned = ridge_temperatures.plan(Task.of(target, Fraction(epsilon)))
    built = planned.realise()
    assert planned.size().nonzero <= nonzero and planned.size().dense <= dense
    assert built.proof is not None and Fraction(built.proof.bound) <= Fraction(epsilon)
    problem = problem_of(target, built.model)
    assert not largest_error(problem, 20) > prove(built.proof, problem, no_boxes)


def test_plans_refuse_what_they_cannot_do():
    for formula, why in [("abs(x1) + x2", "smooth"), ("x1*x2", "ridge"), ("x1 - x2", "ridges")]:
        with pytest.raises(Refused, match=why):
            ridge_temperatures.plan(Task.of(target_of(formula, "[-1,1]^2"), Fraction(1, 10)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e-2])
def test_the_charge_covers_noise_on_every_weight(good_model, seed, size):
    """Every nonzero weight is changed a little: the proved bound grows, and still bounds the error."""
    rng = np.random.default_rng(seed)
    tensors = {key: np.array(v) * (1 + size * rng.uniform(-1, 1, v.shape)) for key, v in good_model.tensors.items()}
    problem = problem_of(GOOD, Transformer(good_model.config, tensors))
    bound = prove(node(CHOSEN), problem, no_boxes)
    assert not largest_error(problem, 20) > bound
    assert bound > prove(node(CHOSEN), problem_of(GOOD, good_model), no_boxes)
