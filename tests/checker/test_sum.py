"""Rule *sum*: only for additive targets and complete product grids; then group by group."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.kernel.affine_softmax import Head, Prototypes, as_prototypes
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Boxes, Sum
from certiformer.kernel.cover import prove_piece, root
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rules import prove, subproblems
from certiformer.model import Transformer
from certiformer.target import Target
from certiformer.target.floating import as_jax
from checker.networks import exact, network_of
from checker.oracle import precisely
from negative.forge import grid_model, target_of, uniform_tree

working_precision()
TREE = uniform_tree(1, 4)


def built(formula: str, on: str, cells: tuple[int, ...]) -> tuple[Target, Transformer]:
    target = target_of(formula, on)
    return target, grid_model(target, "second", cells, 2, Fraction(3, 2)).model


def problem_of(target: Target, model: Transformer) -> Problem:
    left = as_prototypes(network_of(model))
    assert left is not None
    return Problem(left, ProgramFunction(target.program), BallDomain(target.domain))


def local(node: Boxes, problem: Problem, path, limit: arb) -> arb:
    tree = uniform_tree(problem.domain.dimension, 4)
    return prove_piece(problem, root(problem.domain.dimension), tree, node.order, limit, lambda _: None)


def sum_node(total: str, *parts: str) -> Sum:
    return Sum(total, tuple(Boxes(part, 4, 0, len(TREE)) for part in parts))


def sample(problem: Problem, count: int = 40) -> list[list[arb]]:
    rng = np.random.default_rng(0)
    ends = [(float(low.upper()), float(high.lower())) for low, high in problem.domain.ends]
    points = [
        [low + t * (high - low) for (low, high), t in zip(ends, row, strict=True)]
        for row in rng.random((count, len(ends)))
    ]
    return [[arb(x) for x in point] for point in points]


def test_the_groups_add_up_to_the_whole_at_every_point():
    target, model = built("sin(x1) + x2**2 + 1", "[0,1]x[-1,1]", (4, 5))
    problem = problem_of(target, model)
    problems, spent = subproblems(sum_node("1", "1", "1"), problem)
    assert float(spent) < 1e-12
    for point in sample(problem):
        whole = exact(problem.left, point)[0]
        parts = [exact(part.left, [point[i]])[0] for i, part in enumerate(problems)]
        with precisely():
            assert not abs(whole - parts[0] - parts[1]) > spent


@pytest.mark.parametrize(
    ("formula", "on", "cells", "bounds"),
    [
        ("sin(x1) + x2**2", "[0,1]x[-1,1]", (4, 5), ("0.1", "0.1")),
        ("x1 + x2 - 2*x3", "[0,1]^3", (2, 3, 2), ("0.1", "0.1", "0.1")),
    ],
)
def test_the_proved_bound_is_true(formula, on, cells, bounds):
    target, model = built(formula, on, cells)
    problem = problem_of(target, model)
    upper = prove(sum_node("0.3", *bounds), problem, local)
    points = np.array([[float(x) for x in point] for point in sample(problem, 300)])
    largest = float(np.abs(model.evaluate(points) - np.asarray(as_jax(target.program)(points))).max())
    assert largest <= float(upper) + 1e-12  # float64 rounding of the two evaluations
    assert float(upper) < 6 * largest + 0.01


def test_groups_of_several_variables():
    target, model = built("x1*x2 + x3", "[0,1]^3", (3, 3, 2))
    problem = problem_of(target, model)
    problems, _ = subproblems(sum_node("1", "1", "1"), problem)
    assert [part.domain.dimension for part in problems] == [2, 1]
    assert prove(Sum("0.4", (Boxes("0.25", 4, 0, 1), Boxes("0.1", 4, 0, 1))), problem, local) <= 0.4


@pytest.mark.parametrize("formula", ["x1*x2", "sin(x1 + x2)", "exp(x1)*x2 + x1", "max(x1, x2)"])
def test_a_target_that_is_no_sum_is_refused(formula):
    target, model = built(formula, "[0,1]^2", (3, 3))
    with pytest.raises(Refused, match="not a sum of terms"):
        prove(sum_node("9", "4", "4"), problem_of(target, model), local)


def test_a_variable_that_does_not_occur_is_refused():
    target, model = built("sin(x1) + x2 + 0*x3", "[0,1]^3", (2, 2, 2))
    with pytest.raises(Refused, match="every variable"):
        prove(sum_node("9", "4", "4"), problem_of(target, model), local)


def test_two_outputs_are_refused():
    target, model = built("[x1 + x2, x1 - x2]", "[0,1]^2", (2, 2))
    with pytest.raises(Refused, match="one output"):
        prove(sum_node("9", "4", "4"), problem_of(target, model), local)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_children_is_refused(count):
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))
    with pytest.raises(Refused, match="children for 2 parts"):
        prove(sum_node("9", *["2"] * count), problem_of(target, model), local)


def test_swapped_children_are_refused():
    # The error of x1**2 on [0, 4] is much larger than that of x2 on [0, 0.1].
    target, model = built("x1**2 + x2", "[0,4]x[0,0.1]", (5, 2))
    problem = problem_of(target, model)
    assert prove(sum_node("0.35", "0.3", "0.02"), problem, local) <= 0.35
    with pytest.raises(Refused):
        prove(sum_node("0.35", "0.02", "0.3"), problem, local)


def with_registers(model: Transformer, change) -> Transformer:
    registers = np.array(model.tensors["registers"])
    return Transformer(model.config, {**model.tensors, "registers": change(registers)})


def test_registers_in_another_order_are_the_same_function():
    target, model = built("sin(x1) + x2**2", "[0,1]x[-1,1]", (3, 2))
    order = np.random.default_rng(1).permutation(len(model.tensors["registers"]))
    shuffled = with_registers(model, lambda rows: rows[order])
    assert prove(sum_node("0.52", "0.35", "0.17"), problem_of(target, shuffled), local) <= 0.52


def test_a_grid_point_that_stands_in_for_others_is_refused():
    """The grid lines through register 0 are intact and the count is right, but inner points are copies of one of them.

    The softmax over this list does not factorise: T(1, 1) = 0.39 where x1 + x2 = 2. The distance to the additive head is
    zero register by register, so only the bijection between registers and grid points can notice.
    """
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))
    assert prove(sum_node("0.1", "0.05", "0.05"), problem_of(target, model), local) <= 0.1

    def doubled(rows: np.ndarray) -> np.ndarray:
        grid = rows.reshape(7, 7, -1).copy()
        grid[1:, 1:] = grid[1, 1]
        return grid.reshape(rows.shape)

    forged = with_registers(model, doubled)
    assert abs(forged.evaluate([[1.0, 1.0]])[0, 0] - 2.0) > 1
    with pytest.raises(Refused, match="occurs twice"):
        prove(sum_node("0.1", "0.05", "0.05"), problem_of(target, forged), local)


@pytest.mark.parametrize("lost", [0, 10, 24, 48])
def test_a_grid_with_a_point_replaced_is_refused(lost):
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))

    def replaced(rows: np.ndarray) -> np.ndarray:
        rows[lost] = rows[(lost + 8) % 49]
        return rows

    with pytest.raises(Refused, match="product grid"):
        prove(sum_node("0.1", "0.05", "0.05"), problem_of(target, with_registers(model, replaced)), local)


@pytest.mark.parametrize("lost", [0, 10, 24, 48])
def test_a_grid_with_a_point_missing_is_refused(lost):
    """All remaining registers are different and exactly additive; only their number gives it away."""
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))
    registers = np.delete(np.asarray(model.tensors["registers"]), lost, axis=0)
    fewer = Transformer(replace(model.config, registers=48), {**model.tensors, "registers": registers})
    with pytest.raises(Refused, match="product grid"):
        prove(sum_node("0.1", "0.05", "0.05"), problem_of(target, fewer), local)


@pytest.mark.parametrize("column", [3, 4, 5, 6], ids=["centre 1", "centre 2", "offset", "value"])
def test_a_register_that_is_not_additive_is_charged(column):
    """Columns: x1 x2 | flag | c1 c2 | offset | value | out. A changed number makes the head not additive."""
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))

    def moved(rows: np.ndarray) -> np.ndarray:
        rows[24, column] += 0.4
        return rows

    with pytest.raises(Refused):
        prove(sum_node("0.1", "0.05", "0.05"), problem_of(target, with_registers(model, moved)), local)


def test_a_hand_made_incomplete_grid_is_refused():
    """Four prototypes on three points of a 2 x 2 grid: the count fits, one point is missing, one is doubled."""
    points = [(0, 0), (1, 0), (0, 1), (0, 1)]
    slopes = [[arb(3 * a), arb(3 * b)] for a, b in points]
    offsets = [arb(-a - b) for a, b in points]
    head = Head(slopes, offsets, [[arb(a + b)] for a, b in points])
    left = Prototypes(2, 1, 4, [head], [[arb(0)], [arb(0)]], [arb(0)], [arb(0)])
    target = target_of("x1 + x2", "[0,1]^2")
    problem = Problem(left, ProgramFunction(target.program), BallDomain(target.domain))
    with pytest.raises(Refused, match="product grid"):
        prove(sum_node("9", "4", "4"), problem, local)
    whole = replace(head, slopes=[*slopes[:3], [arb(3), arb(3)]], offsets=[*offsets[:3], arb(-2)])
    whole = replace(whole, values=[*head.values[:3], [arb(2)]])
    fine = Problem(replace(left, heads=[whole]), problem.right, problem.domain)
    assert prove(sum_node("9", "4", "4"), fine, local) <= 9
