"""The second-order Voronoi theorem: true on instances, tight where it should be, refused when a hypothesis is broken."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from flint import arb

from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import DerivativeBounds
from certiformer.axioms.voronoi_second_order import apriori
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.rules import prove
from certiformer.model import Transformer
from negative.forge import grid_model, moved_register, target_of
from theorems.test_voronoi_first_order import dense_points, largest_error, no_boxes, problem_of

working_precision()
SOFT = Fraction(1)


def theorem(cells, margin=3, sharpness=SOFT, bound="1000", parts=30) -> Theorem:
    parameters = {**Grid(cells, margin, sharpness).parameters(), "partition": [parts] * len(cells)}
    return Theorem(bound, "voronoi_second_order", parameters)


INSTANCES = [
    ("x1**2", "[0,1]", (5,)), ("sin(3*x1)", "[0,2*pi]", (12,)), ("exp(-x1)", "[-1,2]", (1,)), ("x1*x2", "[0,1]^2", (3, 2)),
    ("sin(x1*x2) + exp(-x1*x2)", "[0,1]x[-1,1]", (3, 4)), ("[x1**2, x1 - x2]", "[-1,1]^2", (2, 2)),
    ("x1*x2*x3", "[0,1]^3", (2, 1, 2)), ("where(x1 < 5, tanh(x1), 1/(x1 - 5))", "[-1,1]", (4,)), ("1/(2 + x1)", "[0,4]", (6,)),
]  # fmt: skip


@pytest.mark.parametrize(("formula", "on", "cells"), INSTANCES)
@pytest.mark.parametrize(("sharpness", "margin"), [(Fraction(1), 3), (Fraction(2), 2), (Fraction(1, 2), 5)], ids=str)
def test_the_statement_holds_on_instances(formula, on, cells, sharpness, margin):
    target = target_of(formula, on)
    problem = problem_of(target, grid_model(target, "second", cells, margin, sharpness).model)
    parts = 30 if len(cells) == 1 else 8
    bound = prove(theorem(cells, margin, sharpness, parts=parts), problem, no_boxes)
    points = dense_points(problem, random.Random(formula), 40 if len(cells) > 1 else 100)
    assert not largest_error(problem, points) > bound


def test_the_bound_is_tight_for_a_parabola():
    # f = x1**2: E (c - x)^2 = V exactly, and |f''| = 2: T - f is the second moment times delta^2, up to the drift.
    target = target_of("x1**2", "[-1,1]")
    problem = problem_of(target, grid_model(target, "second", (8,), 4, SOFT).model)
    bound = prove(theorem((8,), 4), problem, no_boxes)
    truth = largest_error(problem, [[arb(k) / 100] for k in range(-100, 101)])
    assert 1 <= float(bound / truth) < 1.3


def test_the_error_really_falls_with_the_square_of_the_spacing():
    target = target_of("sin(3*x1)", "[0,2]")
    bounds = []
    for cells in (10, 20, 40):
        problem = problem_of(target, grid_model(target, "second", (cells,), 4, Fraction(3, 5)).model)
        bounds.append(float(prove(theorem((cells,), 4, Fraction(3, 5)), problem, no_boxes)))
    # Slope 2 between consecutive grids; the drift (first order, tiny at this sharpness) lets it be a little less.
    assert 3.6 < bounds[0] / bounds[1] < 4.1
    assert 3.6 < bounds[1] / bounds[2] < 4.1


KINKS = [
    "abs(x1 - 0.3)",
    "max(x1, 0.5)",
    "min(x1, 1 - x1)",
    "abs(x1 - 0.5)**3",
    "where(x1 < 0.5, 0, (x1 - 0.5)**4)",
    "sqrt(x1)",
]


@pytest.mark.parametrize("formula", KINKS)
@pytest.mark.parametrize("parts", [1, 10, 64])
def test_a_target_with_a_kink_is_refused(formula, parts):
    target, smooth = target_of(formula, "[0,1]"), target_of("x1", "[0,1]")
    problem = problem_of(target, grid_model(smooth, "second", (40,), 3, SOFT).model)
    with pytest.raises(Refused, match="not known to be smooth"):
        prove(theorem((40,), parts=parts), problem, no_boxes)


def test_a_kink_really_breaks_the_statement():
    """Negative control of the hypothesis: second derivatives are 0 beside the kink of abs, yet the error is not."""
    kink, straight = target_of("abs(x1 - 0.5)", "[0,1]"), target_of("x1", "[0,1]")
    domain = BallDomain(kink.domain)
    (fooled,) = apriori(Grid((11,), 3, SOFT), domain, DerivativeBounds(straight.program, domain, (4,), order=2))
    problem = problem_of(kink, grid_model(kink, "second", (11,), 3, SOFT).model)
    assert largest_error(problem, [[arb(k) / 100] for k in range(40, 61)]) > 10 * fooled


GOOD = target_of("sin(x1)", "[0,3]")


def good_model() -> Transformer:
    return grid_model(GOOD, "second", (12,), 3, SOFT).model


@pytest.mark.parametrize("column", [2, 3, 4], ids=["centre", "offset", "value"])
@pytest.mark.parametrize("row", [0, 2, 9, 17])
def test_a_changed_register_is_charged_and_so_refused(row, column):
    """Margin registers included: their values matter near the ends of the domain."""
    assert prove(theorem((12,), bound="0.02"), problem_of(GOOD, good_model()), no_boxes) <= 0.02
    with pytest.raises(Refused):
        prove(theorem((12,), bound="0.02"), problem_of(GOOD, moved_register(row, column, 0.08)(good_model())), no_boxes)


def test_margin_values_must_be_the_linear_continuation():
    """Zeroth-order continuation f(Pc) instead of f(Pc) + f'(Pc)(c - Pc) is off by f' times half a cell and more."""
    model = good_model()
    registers = model.tensors["registers"]
    forged = moved_register(0, 4, float(registers[3, 4] - registers[0, 4]))(model)
    with pytest.raises(Refused):
        prove(theorem((12,), bound="0.02"), problem_of(GOOD, forged), no_boxes)


@pytest.mark.parametrize(
    "change",
    [{"margin": 0}, {"margin": 2}, {"margin": 4}, {"margin": 65}, {"sharpness": "16"}, {"sharpness": "1/5"}, {"sharpness": "2"},
     {"cells": [13]}, {"cells": [11]}, {"cells": [12, 12]}, {"partition": [0]}],
    ids=str,
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(change):
    node = theorem((12,), bound="0.02")
    with pytest.raises(Refused):
        prove(Theorem("0.02", node.id, {**node.parameters, **change}), problem_of(GOOD, good_model()), no_boxes)


def test_first_and_second_order_nodes_cannot_be_exchanged():
    problem = problem_of(GOOD, good_model())
    node = theorem((12,), bound="1")
    with pytest.raises(Refused):
        prove(Theorem("1", "voronoi_first_order", node.parameters), problem, no_boxes)
    first = problem_of(GOOD, grid_model(GOOD, "first", (12,), 0, Fraction(4)).model)
    with pytest.raises(Refused):
        prove(node, first, no_boxes)


def test_another_domain_is_refused():
    for on in ("[0,3.1]", "[-0.1,3]", "[0.1,3]", "[0,6]"):
        other = target_of("sin(x1)", on)
        with pytest.raises(Refused):
            prove(theorem((12,), bound="0.02"), problem_of(other, good_model()), no_boxes)
