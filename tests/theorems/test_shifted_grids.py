"""Shifted grids of soft bins and AND units: the theorem is true on instances, its terms are real, faults are refused."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb

from certiformer.axioms.shifted_grids import constants
from certiformer.axioms.shifted_lattice import ShiftedLattice
from certiformer.construct import shifted_grids
from certiformer.construct.method import Shape, Size, Task
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import prove
from certiformer.kernel.taylor import value_ball
from certiformer.model import Transformer
from certiformer.target import Target, parse_domain, parse_formula
from kernel.networks import network_of, point_box
from kernel.oracle import precisely, values

working_precision()


def target_of(formula: str, on: str) -> Target:
    domain = parse_domain(on)
    return Target(formula, parse_formula(formula, domain.dimension), domain)


def shape_of(target: Target, layout="token") -> Shape:
    return Shape(target.domain.dimension, 1, 1, len(target.program.outputs), layout)


def problem_of(target: Target, model: Transformer) -> Problem:
    return Problem(network_of(model), ProgramFunction(target.program), BallDomain(target.domain))


def build(target: Target, lattice: ShiftedLattice, shape: Shape | None = None, levels=None) -> Transformer:
    levels = levels or (0.3,) * len(target.program.outputs)
    return shifted_grids.transformer(target, shape or shape_of(target), lattice, tuple(levels))


def node(lattice: ShiftedLattice, bound="100", parts=20) -> Theorem:
    return Theorem(bound, "shifted_grids", {**lattice.parameters(), "partition": [parts] * len(lattice.cells)})


def no_boxes(*_):
    raise AssertionError("a theorem node needs no boxes")


def largest_error(problem: Problem, points: list[list[float]]) -> arb:
    """The largest |T - f| over the points, in balls by the checker's general forward pass, and rounded down."""
    worst = arb(0)
    for point in points:
        found = [value_ball(form) for form in problem.left.forms(point_box(point), 0)]
        for a, b in zip(found, values(problem.right.program, [arb(x) for x in point]), strict=True):
            with precisely():
                error = abs(a - b).lower()
                worst = error if error > worst else worst
    return worst


def trouble(lattice: ShiftedLattice, target: Target, count: int, seed: int = 0) -> list[list[float]]:
    """Points with many coordinates on or near a threshold, corners, and random ones, all inside the domain."""
    rng, domain = random.Random(seed), BallDomain(target.domain)
    points = []
    for _ in range(count):
        shift, point = rng.randrange(lattice.shifts), []
        for axis, (low, high) in enumerate(domain.ends):
            a, b = float(low), float(high)
            cuts = lattice.thresholds(axis, shift) or [0]
            near = a + (b - a) * (rng.choice(cuts) + rng.choice([0, 0, 0.3, -0.3])) / (
                2 * lattice.shifts * lattice.cells[axis]
            )
            point.append(min(max(rng.choice([near, near, near, a, b, rng.uniform(a, b)]), a), b))
        points.append(point)
    return points


INSTANCES = [
    ("abs(x1 - 0.3)", "[0,1]", (7,), 1), ("sin(3*x1)", "[-1,2]", (5,), 2), ("abs(x1 - 0.3)", "[0,1]", (1,), 3),
    ("max(x1, x2)", "[0,1]^2", (4, 3), 3), ("x1*x2 - abs(x1)", "[-1,1]x[0,2]", (3, 4), 4), ("x1 - x2", "[0,1]^2", (4, 4), 1),
    ("[x1, abs(x2)]", "[-1,1]^2", (3, 1), 2), ("x1 + 2*x2 - x3", "[0,1]^3", (2, 2, 1), 3),
]  # fmt: skip


@pytest.mark.parametrize(("formula", "on", "cells", "shifts"), INSTANCES)
@pytest.mark.parametrize("sharpness", [Fraction(3), Fraction(10)], ids=str)
@pytest.mark.parametrize("layout", ["token", "sequence"])
def test_the_statement_holds_on_instances(formula, on, cells, shifts, sharpness, layout):
    target, lattice = target_of(formula, on), ShiftedLattice(cells, shifts, sharpness)
    problem = problem_of(target, build(target, lattice, shape_of(target, layout)))
    bound = prove(node(lattice), problem, no_boxes)
    assert not largest_error(problem, trouble(lattice, target, 8)) > bound


def test_every_row_of_a_sequence_has_its_own_answer():
    target, lattice = (
        target_of("[max(x1, x2), min(x1, x2), x1 - x2, x2]", "[0,1]^2"),
        ShiftedLattice((3, 3), 2, Fraction(6)),
    )
    model = build(target, lattice, Shape(2, 1, 2, 2, "sequence"), (0.5, 0.25, 0.0, -0.5))
    problem = problem_of(target, model)
    bound = prove(node(lattice), problem, no_boxes)
    assert not largest_error(problem, trouble(lattice, target, 20)) > bound
    exchanged = target_of("[x1 - x2, x2, max(x1, x2), min(x1, x2)]", "[0,1]^2")
    with pytest.raises(Refused):
        prove(node(lattice, bound=str(float(bound) * 1.001)), problem_of(exchanged, model), no_boxes)


def test_one_axis_is_tight():
    # D = 1, one sharp grid: T is nearly a staircase, so |T - f| reaches L delta/2; kappa adds log(2)/g to that.
    target, lattice = target_of("x1", "[0,1]"), ShiftedLattice((8,), 1, Fraction(60))
    problem = problem_of(target, build(target, lattice))
    bound = prove(node(lattice), problem, no_boxes)
    truth = largest_error(problem, [[0.125 + step] for step in (0.003, 0.005, 0.008)])
    assert 1 <= float(bound / truth) < 1.2


def test_one_grid_fails_where_two_coordinates_change_cells_and_shifts_repair_it():
    """Gap G2 of plain cell detectors: at a corner of four cells all four units are shut, whatever the sharpness."""
    target = target_of("x1", "[0,1]^2")
    errors = {}
    for shifts in (1, 4, 16):
        lattice = ShiftedLattice((8, 8), shifts, Fraction(8))
        model = build(target, lattice, levels=(0.5,))
        corner = [[(lattice.thresholds(0, q)[-1]) / (16 * shifts)] * 2 for q in range(shifts)]
        problem = problem_of(target, model)
        errors[shifts] = float(largest_error(problem, corner[:3])), float(prove(node(lattice), problem, no_boxes))
    # At the last corner of cells f - m = 7/8 - 1/2, and nothing of it is left; F = 1/2 at the edge of the box.
    assert errors[1][0] == pytest.approx(0.375, abs=1e-3) and errors[1][1] / errors[1][0] < 1.6
    assert errors[4][0] < errors[1][0] / 2.9 and errors[16][0] < errors[4][0] / 2.5
    assert errors[4][1] < errors[1][1] / 3 and errors[16][1] < errors[4][1] / 2


def test_the_constants_bound_what_soft_bins_do():
    """kappa and beta against direct sums in floats over a fine grid of positions (float sums are good to 1e-12)."""
    for shifts, sharpness, cells in [(1, 3, 3), (2, 4, 2), (3, 3, 3), (4, 8, 1), (5, 2, 2)]:
        lattice = ShiftedLattice((cells, cells), shifts, Fraction(sharpness))
        kappa, beta = (float(c) for c in constants(lattice))
        xs = np.linspace(0, 2 * shifts * cells, 2001)
        distance, defect = np.zeros_like(xs), np.zeros((400, 400))
        for shift in range(shifts):
            cuts = np.array(lattice.thresholds(0, shift), float)
            steps = 1 / (1 + np.exp(-sharpness * (xs[:, None] - cuts)))
            edges = np.hstack([np.ones((len(xs), 1)), steps, np.zeros((len(xs), 1))])
            bins = edges[:, :-1] - edges[:, 1:]
            centres = np.array(lattice.centres(0, shift), float)
            distance += (bins * np.abs(xs[:, None] - centres)).sum(1) / (2 * shifts) / shifts
            some = bins[::5][:400]
            sums = sum(np.maximum(some[:, None, i] + some[None, :, j] - 1, 0)
                       for i, j in product(range(len(centres)), repeat=2))  # fmt: skip
            defect[: len(some), : len(some)] += (1 - sums) / shifts
        assert distance.max() <= kappa + 1e-12
        assert defect.max() <= beta + 1e-12 and defect.min() >= -1e-12
        assert shifts > 1 or defect.max() > 0.99  # one grid really loses everything somewhere


GOOD, LATTICE = target_of("abs(x1 - x2)", "[0,1]^2"), ShiftedLattice((4, 3), 3, Fraction(8))


@pytest.fixture(scope="module")
def good_model() -> Transformer:
    return build(GOOD, LATTICE, shape_of(GOOD, "sequence"))


@pytest.fixture(scope="module")
def good_bound(good_model) -> str:
    # One thousandth above what is proved: any fault below costs more.
    return str(float(prove(node(LATTICE), problem_of(GOOD, good_model), no_boxes)) * 1.001)


# Stream: x, flag, two positions, bins from 4 on, out.
HEAD = "blocks.0.attention.groups.0."
FAULTS = [
    (HEAD + "key", (3, 0, 0), 1.0), (HEAD + "key", (3, 1, 0), 0.5), (HEAD + "key", (5, 2, 0), -60.0),
    (HEAD + "key", (5, 3, 0), 80.0), (HEAD + "query", (0, 1, 0), 0.1), (HEAD + "value", (7, 1, 0), 0.05),
    (HEAD + "output", (2, 0, 6), 0.1), (HEAD + "output", (2, 0, -1), 0.01), ("registers", (0, 1), 0.1),
    ("blocks.0.ffn.up", (5, 9), 0.1), ("blocks.0.ffn.up", (0, 9), 0.05), ("blocks.0.ffn.up_bias", (4,), 0.05),
    ("blocks.0.ffn.down", (30, -1), 0.01), ("blocks.0.ffn.down_bias", (-1,), 0.2), ("readout.weight", (0, 0), 0.01),
    ("readout.weight", (-1, 0), 0.1), ("readout.bias", (0,), 0.2), ("embed.bias", (4,), 0.1), ("embed.bias", (1,), 0.1),
    ("embed.weight", (0, 0), 0.01),
]  # fmt: skip


@pytest.mark.parametrize(("name", "index", "by"), FAULTS)
def test_one_changed_weight_is_refused(good_model, good_bound, name, index, by):
    assert prove(node(LATTICE, bound=good_bound), problem_of(GOOD, good_model), no_boxes) > 0
    tensors = {key: np.array(value) for key, value in good_model.tensors.items()}
    tensors[name][index] += by
    with pytest.raises(Refused):
        prove(node(LATTICE, bound=good_bound), problem_of(GOOD, Transformer(good_model.config, tensors)), no_boxes)


@pytest.mark.parametrize("name", [HEAD + "query", HEAD + "value"])
def test_heads_that_read_the_input_are_refused(good_model, name):
    tensors = {key: np.array(value) for key, value in good_model.tensors.items()}
    tensors[name][0, 0, 0] = 1e-9
    with pytest.raises(Refused, match="depends on the input"):
        prove(node(LATTICE), problem_of(GOOD, Transformer(good_model.config, tensors)), no_boxes)


@pytest.mark.parametrize(
    "change",
    [{"cells": [3, 4]}, {"cells": [4]}, {"cells": [4, 0]}, {"cells": [4, 3.0]}, {"cells": "43"}, {"shifts": 2}, {"shifts": 0},
     {"shifts": True}, {"shifts": 10**7}, {"sharpness": "7"}, {"sharpness": "8.1"}, {"sharpness": "1/2"}, {"sharpness": "65"},
     {"sharpness": 8}, {"sharpness": "nan"}, {"partition": [0, 1]}, {"partition": [10**6, 10**6]}],
    ids=str,
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(good_model, good_bound, change):
    parameters = {**node(LATTICE).parameters, **change}
    with pytest.raises(Refused):
        prove(Theorem(good_bound, "shifted_grids", parameters), problem_of(GOOD, good_model), no_boxes)


@pytest.mark.parametrize("formula", ["sqrt(abs(x1 - x2))", "where(x1 < 0.5, 0, 1)", "[x1, x2]", "1 - abs(x1 - x2)"])
def test_another_target_is_refused(good_model, good_bound, formula):
    with pytest.raises(Refused):
        prove(node(LATTICE, bound=good_bound), problem_of(target_of(formula, "[0,1]^2"), good_model), no_boxes)


def test_a_steep_target_really_needs_its_lipschitz_constant(good_model):
    """Negative control of the hypothesis: a narrow spike between the centres, equal at all of them, is not approximated."""
    spike = target_of("abs(x1 - x2) + max(0, 1 - 1000*abs(x1 - 0.0213))", "[0,1]^2")
    problem = problem_of(spike, good_model)
    honest = prove(node(LATTICE), problem_of(GOOD, good_model), no_boxes)
    assert largest_error(problem, [[0.0213, 0.5], [0.0213, 0.0213]]) > honest
    with pytest.raises(Refused):
        prove(node(LATTICE, bound=str(float(honest) * 1.001)), problem, no_boxes)


@pytest.mark.parametrize(
    ("formula", "on", "epsilon", "shape"),
    [("abs(x1 - x2)", "[0,1]^2", "1/4", None), ("abs(x1)", "[-1,1]", "1/20", None), ("3", "[0,1]", "1/10", None),
     ("[max(x1, x2), min(x1, x2)]", "[0,1]^2", "1/3", Shape(2, 1, 2, 1, "sequence")),
     ("(x1 + x2 - x3 - x4)/9", "[0,1]^4", "1/4", Shape(2, 2, 1, 1, "sequence")), ("max(x1, x2)", "[0,1]^2", "1/4", Shape(1, 2, 1, 1, "token"))],
)  # fmt: skip
def test_plans_are_proved_within_epsilon(formula, on, epsilon, shape):
    target = target_of(formula, on)
    task = Task.of(target, Fraction(epsilon)) if shape is None else Task(target, Fraction(epsilon), shape)
    planned = shifted_grids.plan(task)
    built = planned.realise()
    assert Fraction(built.proof.bound) <= Fraction(epsilon)
    problem = problem_of(target, built.model)
    bound = prove(built.proof, problem, no_boxes)
    assert not largest_error(problem, trouble(planned.lattice, target, 3)) > bound
    stored = Size.of(built.model)
    assert (stored.dense, stored.heads, stored.units) == (
        planned.size().dense,
        planned.size().heads,
        planned.size().units,
    )
    # Zero values, thresholds and levels are not stored as nonzero weights: the plan may only overcount.
    assert 0.7 * planned.size().nonzero <= stored.nonzero <= planned.size().nonzero


def test_plans_refuse_what_they_cannot_do():
    with pytest.raises(Refused, match="not known to be Lipschitz"):
        shifted_grids.plan(Task.of(target_of("sqrt(x1)", "[0,1]"), Fraction(1, 10)))
    with pytest.raises(Refused, match="weights"):
        shifted_grids.plan(Task.of(target_of("sin(9*x1*x2*x3)", "[0,1]^3"), Fraction(1, 100)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e-2])
def test_the_charge_covers_noise_on_every_weight(good_model, seed, size):
    """Every nonzero weight is changed a little: the proved bound grows, and still bounds the error."""
    rng = np.random.default_rng(seed)
    tensors = {key: np.array(v) * (1 + size * rng.uniform(-1, 1, v.shape)) for key, v in good_model.tensors.items()}
    problem = problem_of(GOOD, Transformer(good_model.config, tensors))
    bound = prove(node(LATTICE, bound="1e6"), problem, no_boxes)
    assert not largest_error(problem, trouble(LATTICE, GOOD, 8, seed)) > bound
    assert bound > prove(node(LATTICE, bound="1e6"), problem_of(GOOD, good_model), no_boxes)
