"""Squares by attention and bumps by the feed-forward part: true on instances, tight once, refused when broken."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

from certiformer.axioms.grid import Grid
from certiformer.axioms.radial_lattice import Bump, constants
from certiformer.axioms.squares_network import read_squares, square_error
from certiformer.axioms.squares_rbf import Bounds, Layer, apriori, less_affine
from certiformer.construct.method import Construction, Task
from certiformer.construct.square_attention import fit_squares
from certiformer.construct.squares_rbf import BUMPS, TOLERANCE, Plan, plan, sampled_constants
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, Box, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.programs import decimal_text
from certiformer.kernel.rules import prove
from certiformer.kernel.taylor import value_ball
from certiformer.model import Transformer
from certiformer.target import Target
from kernel.networks import network_of
from negative.forge import Run, judged, reseal, target_of
from theorems.test_voronoi_first_order import dense_points, no_boxes

working_precision()


def bump(thresholds: str, heights: str) -> Bump:
    return Bump(tuple(map(Fraction, thresholds.split())), tuple(map(Fraction, heights.split())))


LINE = bump("3.03149 5.05868", "0.06193 0.03719")
PLANE = bump("2.09127 3.71181", "0.04835 0.03086")
SPACE = bump("4.58798", "0.01324")


def problem_of(target: Target, model: Transformer) -> Problem:
    return Problem(network_of(model), ProgramFunction(target.program), BallDomain(target.domain))


def largest_error(problem: Problem, points: list[list[arb]]) -> arb:
    """The largest |T - f| over the points, a lower bound of each value."""
    worst = arb(0)
    for point in points:
        box = Box(tuple(point), (arb(0),) * len(point))
        for a, b in zip(problem.left.forms(box, 0), problem.right.forms(box, 0), strict=True):
            worst = max(worst, abs(value_ball(a) - value_ball(b)).lower())
    return worst


def built(target: Target, cells, order=2, shape=None, slopes=None, shifts=None) -> tuple[Construction, Problem]:
    dimension, outputs = len(cells), len(target.program.outputs)
    shape = shape or {1: LINE, 2: PLANE, 3: SPACE}[dimension]
    slopes = slopes or ((Fraction(0),) * dimension,) * outputs
    shifts = shifts or (Fraction(0),) * outputs
    layer = Layer(
        Grid(cells, 2, Fraction(1)), shape, TOLERANCE, order, {1: 32, 2: 12, 3: 4}[dimension], 5, slopes, shifts
    )
    parts = ({1: 30, 2: 8, 3: 4}[dimension],) * dimension
    program = less_affine(target.program, slopes, shifts)
    made = Plan(Task.of(target, Fraction(1)), layer, program, parts, 1e6, 0.0).realise()
    return made, problem_of(target, made.model)


HALF = Fraction(1, 2)
INSTANCES = [
    ("sin(3*x1)", "[0,2]", (7,), 2, None, None),
    ("x1**2", "[-1,1]", (3,), 2, None, None),
    ("abs(x1 - 0.3)", "[0,1]", (6,), 1, None, None),
    ("exp(-x1)", "[-1,pi]", (1,), 2, ((Fraction(-1),),), (Fraction(1, 3),)),
    ("x1*x2", "[0,1]^2", (3, 2), 2, ((HALF, HALF),), (-HALF / 2,)),
    ("[max(x1, x2), x1 - x2]", "[0,1]x[-1,1]", (2, 3), 1, None, None),
    ("x1*x2*x3 + sin(x1)", "[0,1]^3", (2, 1, 1), 2, None, None),
]


@pytest.mark.parametrize(("formula", "on", "cells", "order", "slopes", "shifts"), INSTANCES)
def test_the_statement_holds_on_instances(formula, on, cells, order, slopes, shifts):
    target = target_of(formula, on)
    made, problem = built(target, cells, order, slopes=slopes, shifts=shifts)
    assert made.proof is not None
    bound = prove(made.proof, problem, no_boxes)
    points = dense_points(problem, random.Random(formula), {1: 60, 2: 12, 3: 4}[len(cells)])
    assert not largest_error(problem, points) > bound


def test_the_bound_is_tight_for_a_parabola():
    # u = x1**2 about the middle: the error is the second moment of the bump times delta^2, plus the defect, which the
    # bound charges at the largest u and with the sign that hurts: twice a part of some 2 percent of the bound, and the
    # moment is enclosed on 32 slices, 3 percent above its largest value.
    target = target_of("x1**2", "[-1,1]")
    made, problem = built(target, (4,))
    bound = prove(made.proof, problem, no_boxes)
    truth = largest_error(problem, [[arb(k) / 32] for k in range(-32, 33)])
    assert 1 <= float(bound / truth) < 1.25


@pytest.mark.parametrize("shape, dimension", [(LINE, 1), (PLANE, 2), (SPACE, 3)])
def test_the_lattice_sums_stay_below_their_constants(shape, dimension):
    """Sums at random positions and shifts, in balls; and the constants are not far above what occurs."""
    rng = random.Random(dimension)
    found = constants(shape, dimension, Fraction(1, 100), {1: 64, 2: 16, 3: 5}[dimension])
    worst = {"defect": 0.0, "drift": 0.0, "absolute": 0.0, "second": 0.0}
    for _ in range(60 if dimension < 3 else 15):
        z = [arb(rng.random()) for _ in range(dimension)]
        eta = arb(rng.choice([-1, 0, 1])) / 100
        sums = {"defect": arb(-1), "drift": arb(0), "absolute": arb(0), "second": arb(0)}
        for c in product(range(-3, 5), repeat=dimension):
            y = [a - b for a, b in zip(z, c, strict=True)]
            t = sum((a * a for a in y), arb(0)) + eta
            height = arb(0)
            for threshold, h in zip(shape.thresholds, shape.heights, strict=True):
                gap = arb(threshold.numerator) / threshold.denominator - t
                height += arb(h.numerator) / h.denominator * gap.max(arb(0))
            sums["defect"] += height
            sums["drift"] += height * y[0]
            sums["absolute"] += height * abs(y[0])
            sums["second"] += height * y[0] * y[0]
        for name, value in sums.items():
            assert abs(value) <= getattr(found, name), name
            worst[name] = max(worst[name], float(abs(value)))
    for name in ("absolute", "second"):
        assert worst[name] > 0.7 * float(getattr(found, name))
    # Cancelling sums are enclosed less tightly; in three dimensions five slices are too few for a fair comparison.
    assert worst["defect"] > 0.4 * float(found.defect) or dimension == 3


def test_finer_slices_only_tighten():
    coarse, fine = (constants(PLANE, 2, Fraction(0), n) for n in (4, 16))
    for name in ("defect", "drift", "absolute", "second", "mixed"):
        assert getattr(fine, name) < getattr(coarse, name)


GOOD = target_of("x1*x2", "[0,1]^2")


def good() -> tuple[Construction, Problem]:
    return built(GOOD, (3, 3), slopes=((HALF, HALF),), shifts=(Fraction(1, 4),))


def claimed(made: Construction, bound: str, **changes) -> Theorem:
    proof = made.proof
    assert isinstance(proof, Theorem)
    return Theorem(bound, proof.id, {**proof.parameters, **changes})


def test_the_good_one_is_good():
    made, problem = good()
    assert prove(claimed(made, "0.1"), problem, no_boxes) <= 0.1
    with pytest.raises(Refused, match="is proved"):
        prove(claimed(made, "0.01"), problem, no_boxes)


def changed(model: Transformer, name: str, index: tuple, by: float) -> Transformer:
    tensor = np.array(model.tensors[name])
    tensor[index] += by
    return Transformer(model.config, {**model.tensors, name: tensor})


HEAD = "blocks.0.attention.groups.0"


@pytest.mark.parametrize(
    ("name", "index"),
    [(f"{HEAD}.key", (0, 0, 0)), (f"{HEAD}.key", (0, 1, 0)), (f"{HEAD}.key", (3, 2, 0)), (f"{HEAD}.output", (2, 0, 3)),
     (f"{HEAD}.output", (2, 0, 2)), (f"{HEAD}.value", (1, 0, 0)), (f"{HEAD}.query", (5, 2, 0)), ("embed.bias", (3,)),
     ("embed.weight", (0, 3)), ("readout.weight", (3, 0)), ("readout.weight", (0, 0)), ("readout.bias", (0,)),
     ("blocks.0.ffn.up", (0, 40)), ("blocks.0.ffn.up", (3, 50)), ("blocks.0.ffn.up_bias", (50,)),
     ("blocks.0.ffn.down", (50, 2)), ("blocks.0.ffn.down_bias", (2,)), ("registers", (0, 2))],
    ids=str,
)  # fmt: skip
def test_a_changed_weight_is_charged_and_so_refused(name, index):
    made, problem = good()
    honest = float(prove(claimed(made, "0.1"), problem, no_boxes))
    node = claimed(made, decimal_text(honest + 1e-5, up=True))
    assert prove(node, problem, no_boxes) > 0
    with pytest.raises(Refused):
        prove(node, problem_of(GOOD, changed(made.model, name, index, 0.25)), no_boxes)


@pytest.mark.parametrize(
    "change",
    [{"cells": [3, 4]}, {"cells": [3]}, {"margin": 1}, {"margin": 3}, {"thresholds": ["2", "3.71181"]}, {"order": 1}, {"order": 3},
     {"thresholds": ["3.71181", "2.09127"]}, {"heights": ["0.04835"]}, {"heights": ["0.05", "0.03086"]}, {"tolerance": "0"},
     {"heights": ["0.04835", "-0.03086"]}, {"tolerance": "2"}, {"tolerance": 0.002}, {"tolerance": None}, {"slices": 0},
     {"slices": 10**9}, {"levels": -1}, {"levels": 99}, {"slopes": [["1/2", "0"]]}, {"slopes": [["1/2"]]}, {"constants": []},
     {"constants": ["1/3"]}, {"partition": [0, 1]}, {"partition": None}, {"levels": True}],
    ids=str,
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(change):
    made, problem = good()
    with pytest.raises(Refused):
        prove(claimed(made, "0.1", **change), problem, no_boxes)


def test_squares_that_are_not_squares_are_refused():
    """The tolerance is the hypothesis: a node that claims a smaller one than the heads reach is not believed."""
    made, problem = good()
    network = read_squares(problem.left)
    spacing = Grid((3, 3), 2, Fraction(1)).spacing(problem.domain)
    error = square_error(network, problem.domain, spacing, 5).abs_upper()
    assert float(TOLERANCE) / 10 < error <= float(TOLERANCE)
    with pytest.raises(Refused, match="square within"):
        prove(claimed(made, "0.1", tolerance="1/10000"), problem, no_boxes)


def test_a_shift_of_the_squares_really_breaks_the_statement():
    """Negative control: with Q off by one the bumps no longer sum to one, far beyond the bound."""
    made, problem = good()
    bound = prove(claimed(made, "1"), problem, no_boxes)
    broken = problem_of(GOOD, changed(made.model, "embed.bias", (3,), 1.0))
    assert largest_error(broken, [[arb(0), arb(0)], [arb(1), arb(1)]]) > bound


@pytest.mark.parametrize("formula", ["abs(x1 - 0.4)", "where(x1 < 0.5, 0, (x1 - 0.5)**4)"])
def test_a_target_that_is_not_smooth_is_refused(formula):
    made, problem = built(target_of("x1", "[0,1]"), (4,))
    other = replace(problem, right=ProgramFunction(target_of(formula, "[0,1]").program))
    with pytest.raises(Refused, match="smooth"):
        prove(claimed(made, "100"), other, no_boxes)


def test_a_kink_really_breaks_the_second_order_statement():
    """Negative control of the hypothesis: second derivatives are 0 beside the kink, yet the error is first order."""
    kink, flat = target_of("abs(x1)", "[-1,1]"), target_of("0*x1", "[-1,1]")
    made, problem = built(kink, (6,), order=1)
    domain, program = BallDomain(kink.domain), less_affine(flat.program, ((Fraction(0),),), (Fraction(0),))
    layer = Layer(Grid((6,), 2, Fraction(1)), LINE, TOLERANCE, 2, 32, 5, ((Fraction(0),),), (Fraction(0),))
    (fooled,) = apriori(layer, domain, Bounds(program, domain, (4,), 2), constants(LINE, 1, TOLERANCE, 32))
    assert largest_error(problem, [[arb(0)]]) > fooled + 0.05


def test_other_transformers_are_refused():
    made, problem = good()
    from certiformer.construct.sigmoid_attention import sigmoid_transformer

    other = sigmoid_transformer(np.ones((2, 1)), np.zeros(1), np.ones((3, 2)), np.zeros(3), np.ones((3, 1)))
    with pytest.raises(Refused, match="feed-forward"):
        prove(claimed(made, "0.1"), problem_of(GOOD, other), no_boxes)


@pytest.mark.parametrize(
    ("formula", "on", "epsilon"),
    [("sin(3*x1)", "[0,2]", "1/10"), ("x1*x2", "[0,1]^2", "1/20"), ("max(x1, x2)", "[0,1]^2", "1/5"),
     ("[x1*x2, exp(-x1 - x2**2)]", "[0,1]x[-1,1]", "1/10"), ("3*x1 - x2 + 100", "[0,1]x[5,6]", "1e-12"),
     ("2 + 0*x1", "[0,1]", "1e-12")],
)  # fmt: skip
def test_plans_are_proved(formula, on, epsilon):
    target = target_of(formula, on)
    chosen = plan(Task.of(target, Fraction(epsilon)))
    made, size = chosen.realise(), chosen.size()
    assert size.dense == made.model.parameter_count()
    assert made.model.nonzero_count() <= size.nonzero < 3_000
    assert Fraction(made.proof.bound) <= Fraction(epsilon)
    problem = problem_of(target, made.model)
    proved = prove(made.proof, problem, no_boxes)
    assert not largest_error(problem, dense_points(problem, random.Random(1), 5)) > proved


def test_refusals_are_in_words():
    with pytest.raises(Refused, match="at most 3 variables"):
        plan(Task.of(target_of("x1*x2*x3*x4", "[0,1]^4"), Fraction(1, 10)))
    with pytest.raises(Refused, match="Lipschitz"):
        plan(Task.of(target_of("where(x1 < 0.5, 0, 1)", "[0,1]"), Fraction(1, 10)))
    with pytest.raises(Refused, match="float64"):
        plan(Task.of(target_of("3*x1 - x2", "[0,1]^2"), Fraction(1, 10**17)))
    with pytest.raises(Refused, match="hidden units"):
        plan(Task.of(target_of("sin(9*x1)", "[0,9]"), Fraction(1, 10**6)))


@pytest.mark.parametrize("half", [0.5, 2.0, 7.5])
def test_few_sigmoids_square(half):
    found = fit_squares(half, 1e-3)
    tau = np.linspace(-half, half, 5001)
    value = found.constant + (found.coefficients / (1 + np.exp(-found.steepness * (tau[:, None] - found.places)))).sum(
        1
    )
    # Between the points of the fit the error may be a little larger than on them.
    assert np.abs(value - tau**2).max() < 1.02e-3
    assert len(found.places) <= 12


def test_the_bumps_of_the_table_are_useful():
    """Sampled constants rank the bumps: they must not exceed the enclosed ones, and every bump sums nearly to one."""
    for dimension, shapes in BUMPS.items():
        for shape in shapes:
            sampled = sampled_constants(shape, dimension)
            enclosed = constants(shape, dimension, Fraction(0), {1: 32, 2: 12, 3: 4}[dimension])
            assert sampled.defect < 0.08
            for name in ("defect", "drift", "absolute", "second", "mixed"):
                # Floating-point sums of some hundred numbers below one.
                assert getattr(sampled, name) <= getattr(enclosed, name) + 1e-13


def test_a_whole_folder_is_checked(tmp_path):
    target = target_of("x1*x2", "[0,1]^2")
    made = plan(Task.of(target, Fraction("0.05"))).realise()
    folder = Run(made.model, target, "0.05", made.proof).write(tmp_path / "run")
    assert judged(folder).outcome == "proved"
    name = "readout.bias"
    assert judged(reseal(folder, model=lambda old: changed(old, name, (0,), 0.02))).outcome == "refused"
