"""Whatever the parameters of a theorem node say: the transformer that they call ideal is as close as the rule then says.

The parameters are drawn at random, whole and meaningless ones among them. The transformer is the rule's own ideal one for
just these parameters, so nothing is charged to the bound, and a parameter that moves the ideal away from the target
without enlarging the bound shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest
from flint import arb

from certiformer.axioms import (
    ridge_temperatures,
    sigmoid_heads,
    temperatures,
    voronoi_first_order,
    voronoi_second_order,
)
from certiformer.axioms.grid import Grid
from certiformer.axioms.sigmoid_knots import Ideal, Knots, ridge_sum
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, BallDomain, ball, working_precision
from certiformer.kernel.certificate import Theorem, axiom
from certiformer.kernel.layers import Head, Prototypes
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.target import Target
from negative.forge import target_of
from theorems.test_voronoi_first_order import dense_points, largest_error

working_precision()

Parameters = dict[str, Any]
ON_A_LINE = [
    "sin(x1)",
    "exp(x1)",
    "x1**3 - x1",
    "abs(x1 - 0.3)",
    "max(x1, 0.2)",
    "3",
    "x1",
    "x1**0",
    "where(x1 < 5, x1**2, log(x1))",
]
IN_THE_PLANE = ["x1*x2", "sin(x1 + 2*x2) + x2", "x1", "sin(x2)", "5", "max(x1, x2)", "x1**2"]
RIDGES = [
    "sin(x1 + 2*x2) + x2",
    "exp(x1 - x2) + 3",
    "x1",
    "sin(x2)",
    "5",
    "max(x1, x2)",
    "sin(x1) + 3*x1",
    "sin(x1 - x1) + x2",
]
CASES = 45


def drawn(rng: random.Random, low: int, high: int) -> Fraction:
    return Fraction(rng.randint(16 * low, 16 * high), 16)


def drawn_target(rng: random.Random, plane: list[str]) -> Target:
    dimension = rng.choice([1, 2])
    formulas = [rng.choice(ON_A_LINE if dimension == 1 else plane) for _ in range(rng.randint(1, 3))]
    sides = ((low, low + rng.choice([0.25, 1, 3])) for low in (rng.choice([-2, -1, 0.5]) for _ in range(dimension)))
    return target_of(f"[{', '.join(formulas)}]", "x".join(f"[{low},{high}]" for low, high in sides))


def grid_parameters(rng: random.Random, axes: int, least_margin: int) -> Parameters:
    return {
        "cells": [rng.randint(1, 5) for _ in range(axes)],
        "margin": rng.randint(least_margin, 4),
        "sharpness": str(drawn(rng, 0, 5)),
        "partition": [rng.randint(1, 16) for _ in range(axes)],
    }


def temperature_parameters(rng: random.Random, axes: int) -> Parameters:
    return {**grid_parameters(rng, axes, 1), "heads": rng.randint(1, 3), "order": rng.randint(1, 5)}


def middles(rows: list[list[arb]]) -> list[list[arb]]:
    return [[value.mid() for value in row] for row in rows]


def stored(heads: list[Head], weight: list[list[arb]], outputs: int) -> Prototypes:
    own = [Head(middles(h.slopes), [o.mid() for o in h.offsets], middles(h.values)) for h in heads]
    zero = [ZERO] * outputs
    return Prototypes(len(weight), outputs, len(own[0].offsets) if own else 1, own, weight, zero, zero)


def flat(target: Target) -> list[list[arb]]:
    return [[ZERO] * target.outputs for _ in range(target.domain.dimension)]


def on_grid(rule: Any, margin: bool) -> Callable[[random.Random], tuple[Target, Parameters, Prototypes]]:
    def draw(rng: random.Random) -> tuple[Target, Parameters, Prototypes]:
        target = drawn_target(rng, IN_THE_PLANE)
        parameters = grid_parameters(rng, target.domain.dimension, int(margin))
        parameters |= {} if margin else {"margin": 0}
        grid, domain = Grid.from_parameters(parameters, target.domain.dimension), BallDomain(target.domain)
        head = grid.ideal_head(domain, rule.ideal_values(target.program, grid, domain))
        return target, parameters, stored([head], flat(target), target.outputs)

    return draw


def at_temperatures(rng: random.Random) -> tuple[Target, Parameters, Prototypes]:
    target = drawn_target(rng, IN_THE_PLANE)
    parameters = temperature_parameters(rng, target.domain.dimension)
    chosen = temperatures.Temperatures.from_parameters(parameters, target.domain.dimension)
    domain = BallDomain(target.domain)
    heads = temperatures.ideal_heads(chosen, domain, temperatures.ideal_values(target.program, chosen, domain))
    return target, parameters, stored(heads, flat(target), target.outputs)


def along_ridges(rng: random.Random) -> tuple[Target, Parameters, Prototypes]:
    target, parameters = drawn_target(rng, RIDGES), temperature_parameters(rng, 1)
    chosen, domain = temperatures.Temperatures.from_parameters(parameters, 1), BallDomain(target.domain)
    linear, ridges = ridge_sum(target.program)
    heads = [head for ridge in ridges for head in ridge_temperatures.ideal_heads(chosen, ridge, domain)]
    weight = [[ball(row[i]).mid() for row in linear] for i in range(target.domain.dimension)]
    return target, parameters, stored(heads, weight, target.outputs)


def drawn_knots(rng: random.Random, outputs: int) -> Parameters:
    order = rng.choice([1, 2, 4, 6, 8])
    beyond = 0 if order == 1 else 3
    return {
        "pieces": rng.randint(0, 5),
        "left": rng.randint(0, beyond),
        "right": rng.randint(0, beyond),
        "sharpness": str(drawn(rng, 1, 5)),
        "order": order,
        "slopes": [str(rng.choice([Fraction(0), drawn(rng, -2, 2)])) for _ in range(outputs)],
    }


def by_sigmoids(rng: random.Random) -> tuple[Target, Parameters, Prototypes]:
    target = drawn_target(rng, RIDGES)
    linear, ridges = ridge_sum(target.program)
    listed = [drawn_knots(rng, target.outputs) for _ in ridges]
    knots = [Knots.from_parameters(data, target.outputs) for data in listed]
    ideal = sigmoid_heads.ideal_heads(linear, ridges, knots, BallDomain(target.domain))
    return target, {"ridges": listed, "partition": rng.randint(4, 40)}, sink_heads(ideal)


def sink_heads(ideal: Ideal) -> Prototypes:
    """Two-token heads over a sink whose score and value are zero."""
    dimension, outputs = len(ideal.slope), len(ideal.constant)
    rows = zip(ideal.weights, ideal.bias, ideal.coefficients, strict=True)
    heads = [
        Head([[ZERO] * dimension, *middles([weight])], [ZERO, bias.mid()], [[ZERO] * outputs, *middles([out])])
        for weight, bias, out in rows
    ]
    constant = [c.mid() for c in ideal.constant]
    return Prototypes(dimension, outputs, 1, heads, middles(ideal.slope), constant, [ZERO] * outputs)


DRAWN = {
    "voronoi_first_order": on_grid(voronoi_first_order, margin=False),
    "voronoi_second_order": on_grid(voronoi_second_order, margin=True),
    "temperatures": at_temperatures,
    "ridge_temperatures": along_ridges,
    "sigmoid_heads": by_sigmoids,
}


def accepted(rule: str) -> Iterator[tuple[arb, Problem, random.Random]]:
    """Proved bounds for parameters that the rule accepts."""
    for seed in range(CASES):
        rng = random.Random(f"{rule} {seed}")
        try:
            target, parameters, left = DRAWN[rule](rng)
            problem = Problem(left, ProgramFunction(target.program), BallDomain(target.domain))
            bound = axiom(rule, "functions on a box").check(Theorem("1", rule, parameters), problem)
        except Refused:
            continue
        if bound.is_finite():
            yield bound, problem, rng


@pytest.mark.parametrize("rule", DRAWN)
def test_no_parameters_make_a_bound_smaller_than_the_error(rule):
    count = 0
    for bound, problem, rng in accepted(rule):
        assert not largest_error(problem, dense_points(problem, rng, 12)) > bound
        count += 1
    assert count >= CASES // 4  # enough of what is drawn is accepted for the test to mean something


def test_a_slope_for_an_output_without_the_ridge_is_caught(monkeypatch):
    """Negative control: a rule that moves every output by the slopes of the node, but bounds only those with the ridge."""
    sound = sigmoid_heads.ideal_heads

    def moved(linear, ridges, knots, domain) -> Ideal:
        ideal = sound(linear, ridges, knots, domain)
        for ridge, cut in zip(ridges, knots, strict=True):
            for o in (o for o, profile in enumerate(ridge.profiles) if profile is None):
                for i, c in enumerate(ridge.direction):
                    ideal.slope[i][o] = ideal.slope[i][o] + c * ball(cut.slopes[o])
        return ideal

    monkeypatch.setattr(sigmoid_heads, "ideal_heads", moved)
    wrong = [
        bound
        for bound, problem, rng in accepted("sigmoid_heads")
        if largest_error(problem, dense_points(problem, rng, 12)) > bound
    ]
    assert wrong
