"""The first-order Voronoi theorem: true on instances, tight where it should be, refused when a hypothesis is broken."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import DerivativeBounds
from certiformer.axioms.voronoi_first_order import apriori
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import prove
from certiformer.model import Transformer
from certiformer.target import Target
from kernel.networks import exact, network_of
from kernel.oracle import precisely, values
from negative.forge import grid_model, moved_register, target_of

working_precision()


def theorem(target: Target, cells, sharpness=Fraction(4), bound="100", parts=40) -> Theorem:
    return Theorem(
        bound, "voronoi_first_order", {**Grid(cells, 0, sharpness).parameters(), "partition": [parts] * len(cells)}
    )


def problem_of(target: Target, model: Transformer) -> Problem:
    left = as_prototypes(network_of(model))
    assert left is not None
    return Problem(left, ProgramFunction(target.program), BallDomain(target.domain))


def no_boxes(*_):
    raise AssertionError("a theorem node needs no boxes")


def dense_points(problem: Problem, rng: random.Random, count: int) -> list[list[arb]]:
    """Corners, cell edges and random points, all certainly inside the domain."""
    points = []
    for _ in range(count):
        point = []
        for low, high in problem.domain.ends:
            t = rng.choice([0.0, 1.0, rng.random(), rng.randrange(17) / 16])
            inside = low.upper() + (high.lower() - low.upper()) * arb(t)
            point.append(inside.mid())
        points.append(point)
    return points


def largest_error(problem: Problem, points: list[list[arb]]) -> arb:
    """The largest |T - f| over the points, a lower bound of each value."""
    worst = arb(0)
    for point in points:
        for a, b in zip(exact(problem.left, point), values(problem.right.program, point), strict=True):
            with precisely():
                error = abs(a - b).lower()
                worst = error if error > worst else worst
    return worst


INSTANCES = [
    ("x1", "[0,1]", (5,)), ("abs(x1 - 0.3)", "[0,1]", (7,)), ("sin(3*x1)", "[0,2*pi]", (9,)),
    ("max(x1, x2)", "[0,1]^2", (4, 3)), ("x1*x2 - abs(x1)", "[-1,1]x[0,2]", (4, 4)), ("[x1, abs(x2)]", "[-1,1]^2", (3, 2)),
    ("x1 + 2*x2 - x3", "[0,1]^3", (2, 3, 2)), ("min(x1, 1 - x1)", "[0,1]", (1,)), ("exp(-abs(x1))", "[-2,3]", (6,)),
]  # fmt: skip


@pytest.mark.parametrize(("formula", "on", "cells"), INSTANCES)
@pytest.mark.parametrize("sharpness", [Fraction(2), Fraction(4), Fraction(50)], ids=str)
def test_the_statement_holds_on_instances(formula, on, cells, sharpness):
    target = target_of(formula, on)
    problem = problem_of(target, grid_model(target, "first", cells, 0, sharpness).model)
    bound = prove(theorem(target, cells, sharpness, parts=40 if len(cells) < 3 else 5), problem, no_boxes)
    points = dense_points(problem, random.Random(formula), 120)
    assert not largest_error(problem, points) > bound


def test_the_bound_is_tight_for_a_linear_function():
    # f = x1 with a sharp softmax: at the end of the domain the nearest centre is half a cell away.
    target = target_of("x1", "[0,1]")
    problem = problem_of(target, grid_model(target, "first", (5,), 0, Fraction(8)).model)
    bound = prove(theorem(target, (5,), Fraction(8)), problem, no_boxes)
    truth = largest_error(problem, [[arb(k) / 400] for k in range(401)])
    assert 1 <= float(bound / truth) < 1.3


@pytest.mark.parametrize(
    "formula", ["where(x1 < 0.5, 0, 1)", "where(x1 <= 0.5, x1, x1 + 1)", "sqrt(x1)", "tan(x1*2)", "1/x1"]
)
def test_a_target_that_is_not_lipschitz_is_refused(formula):
    target, fine = target_of(formula, "[0,1]"), target_of("x1", "[0,1]")
    problem = problem_of(target, grid_model(fine, "first", (40,), 0, Fraction(4)).model)
    for parts in (1, 40, 64):
        with pytest.raises(Refused, match="not known to be Lipschitz"):
            prove(theorem(target, (40,), parts=parts), problem, no_boxes)


def test_a_step_really_breaks_the_statement():
    """Negative control of the hypothesis: with the derivatives of a constant, the step would be 'proved' within 0."""
    step, flat = target_of("where(x1 < 0.5, 0, 1)", "[0,1]"), target_of("0*x1", "[0,1]")
    domain = BallDomain(step.domain)
    derivatives = DerivativeBounds(flat.program, domain, (4,), order=1)
    (fooled,) = apriori(Grid((10,), 0, Fraction(4)), domain, derivatives)
    problem = problem_of(step, grid_model(step, "first", (10,), 0, Fraction(4)).model)
    assert largest_error(problem, [[arb(0.49)], [arb(0.51)]]) > fooled + 0.3


GOOD = target_of("sin(x1)", "[0,3]")


def good_model() -> Transformer:
    return grid_model(GOOD, "first", (30,), 0, Fraction(4)).model


@pytest.mark.parametrize("column", [2, 3, 4], ids=["centre", "offset", "value"])
@pytest.mark.parametrize("row", [0, 13, 29])
def test_a_changed_register_is_charged_and_so_refused(row, column):
    """Columns: x | flag | centre | offset | value | out. The a-priori bound is 0.052; 0.3 is 4 epsilon and more."""
    assert prove(theorem(GOOD, (30,), bound="0.06"), problem_of(GOOD, good_model()), no_boxes) <= 0.06
    moved = moved_register(row, column, 0.3)(good_model())
    with pytest.raises(Refused):
        prove(theorem(GOOD, (30,), bound="0.06"), problem_of(GOOD, moved), no_boxes)


def test_a_bound_below_the_constant_of_the_theorem_is_refused():
    problem = problem_of(GOOD, good_model())
    proved = prove(theorem(GOOD, (30,)), problem, no_boxes)
    with pytest.raises(Refused, match="claims .* but only"):
        prove(theorem(GOOD, (30,), bound=str(float(proved) * 0.999)), problem, no_boxes)


@pytest.mark.parametrize(
    "change",
    [
        {"cells": [29]}, {"cells": [31]}, {"cells": [30, 1]}, {"cells": []}, {"cells": [0]}, {"cells": [-30]}, {"cells": "30"},
        {"cells": [30.0]}, {"cells": [True]}, {"cells": [10**7]}, {"margin": 1}, {"margin": -1}, {"margin": "0"},
        {"margin": None}, {"sharpness": "1.9"}, {"sharpness": "8"}, {"sharpness": 4}, {"sharpness": "nan"}, {"sharpness": "-4"},
        {"sharpness": "1e999999999"}, {"partition": [0]}, {"partition": []}, {"partition": [40, 40]}, {"partition": [100_001]},
        {"partition": ["40"]}, {"partition": None},
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(change):
    node = theorem(GOOD, (30,))
    problem = problem_of(GOOD, good_model())
    assert prove(Theorem("0.06", node.id, node.parameters), problem, no_boxes) <= 0.06
    with pytest.raises(Refused):
        prove(Theorem("0.06", node.id, {**node.parameters, **change}), problem, no_boxes)


def test_a_grid_too_large_to_check_is_refused_before_it_is_made():
    with pytest.raises(Refused, match="more than 2000000 prototypes"):
        prove(theorem(GOOD, (10**9,)), problem_of(GOOD, good_model()), no_boxes)


def test_a_grid_with_margin_is_not_what_the_theorem_speaks_of():
    """Prototypes beyond the box with values f(c): f is not even looked at there."""
    built = grid_model(GOOD, "first", (30,), 1, Fraction(4))
    with pytest.raises(Refused, match="without margin"):
        prove(Theorem("0.06", built.proof.id, built.proof.parameters), problem_of(GOOD, built.model), no_boxes)


def test_an_unknown_theorem_is_refused():
    with pytest.raises(Refused, match="no axiom about functions on a box"):
        prove(Theorem("1", "voronoi_third_order", {}), problem_of(GOOD, good_model()), no_boxes)


def test_another_domain_is_refused():
    # The same weights on a wider box: the grid of the theorem is wider than that of the model.
    wider = target_of("sin(x1)", "[0,3.1]")
    with pytest.raises(Refused):
        prove(theorem(wider, (30,), bound="0.06"), problem_of(wider, good_model()), no_boxes)


def test_a_second_output_that_is_wrong_is_not_overlooked():
    target = target_of("[x1, x1]", "[0,1]")
    model = grid_model(target, "first", (20,), 0, Fraction(4)).model
    assert prove(theorem(target, (20,), bound="0.03"), problem_of(target, model), no_boxes) <= 0.03
    for column in (4, 5):
        with pytest.raises(Refused):
            prove(
                theorem(target, (20,), bound="0.03"),
                problem_of(target, moved_register(9, column, 0.2)(model)),
                no_boxes,
            )


def test_only_a_head_over_registers_is_accepted():
    target = GOOD
    sides = Problem(ProgramFunction(target.program), ProgramFunction(target.program), BallDomain(target.domain))
    with pytest.raises(Refused, match="one softmax head"):
        prove(theorem(target, (30,)), sides, no_boxes)


def test_the_ideal_weights_need_not_be_stored_exactly():
    """Rounding the registers to float32 costs about 1e-7 and is charged, not refused."""
    model = good_model()
    rounded = {name: np.asarray(tensor, np.float32).astype(float) for name, tensor in model.tensors.items()}
    exact_bound = prove(theorem(GOOD, (30,)), problem_of(GOOD, model), no_boxes)
    bound = prove(theorem(GOOD, (30,)), problem_of(GOOD, Transformer(model.config, rounded)), no_boxes)
    assert 1e-9 < float(bound - exact_bound) < 1e-3
