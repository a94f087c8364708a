"""Rule *split* for a head over a product grid: only for additive targets and complete grids; then group by group."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Boxes, Split
from certiformer.kernel.layers import Head, Prototypes, as_prototypes
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import prove, prove_piece, root, subproblems
from certiformer.model import Transformer
from certiformer.search.split_proposal import by_groups
from certiformer.target import Target
from certiformer.target.floating import as_jax
from kernel.networks import exact, network_of
from kernel.oracle import precisely
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


def proposed(problem: Problem, total: str, *parts: str) -> Split:
    """The node that the search writes, with box leaves that claim these bounds."""
    return replace(by_groups(problem)[0], bound=total, children=tuple(Boxes(part, 4, 0, len(TREE)) for part in parts))


def proved(problem: Problem, total: str, *parts: str) -> arb:
    return prove(proposed(problem, total, *parts), problem, local)


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
    problems, spent = subproblems(proposed(problem, "1", "1", "1"), problem)
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
    upper = proved(problem, "0.3", *bounds)
    points = np.array([[float(x) for x in point] for point in sample(problem, 300)])
    largest = float(np.abs(model.evaluate(points) - np.asarray(as_jax(target.program)(points))).max())
    assert largest <= float(upper) + 1e-12  # float64 rounding of the two evaluations
    assert float(upper) < 6 * largest + 0.01


def test_groups_of_several_variables():
    target, model = built("x1*x2 + x3", "[0,1]^3", (3, 3, 2))
    problem = problem_of(target, model)
    problems, _ = subproblems(proposed(problem, "1", "1", "1"), problem)
    assert [part.domain.dimension for part in problems] == [2, 1]
    assert proved(problem, "0.4", "0.25", "0.1") <= 0.4


@pytest.mark.parametrize("formula", ["x1*x2", "sin(x1 + x2)", "exp(x1)*x2 + x1", "max(x1, x2)"])
def test_parts_of_another_target_are_refused(formula):
    target, model = built(formula, "[0,1]^2", (3, 3))
    additive = target_of("x1 + x2", "[0,1]^2")
    problem = problem_of(target, model)
    node = proposed(replace(problem, right=ProgramFunction(additive.program)), "9", "4", "4")
    with pytest.raises(Refused, match="do not add up to the target"):
        prove(node, problem, local)


def test_a_variable_that_does_not_occur_is_charged():
    """The prototypes of x3 are on no line: the lines that are left do not span the grid."""
    target, model = built("sin(x1) + x2 + 0*x3", "[0,1]^3", (2, 2, 2))
    with pytest.raises(Refused, match="product grid"):
        proved(problem_of(target, model), "9", "4", "4")


def test_two_outputs_are_refused():
    target, model = built("[x1 + x2, x1 - x2]", "[0,1]^2", (2, 2))
    node = proposed(problem_of(*built("x1 + x2", "[0,1]^2", (2, 2))), "9", "4", "4")
    with pytest.raises(Refused, match="one output"):
        prove(node, problem_of(target, model), local)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_children_is_refused(count):
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))
    with pytest.raises(Refused, match="children for 2 parts"):
        proved(problem_of(target, model), "9", *["2"] * count)


def test_swapped_children_are_refused():
    # The error of sin(3 x1) is much larger than that of x2/10.
    target, model = built("sin(3*x1)+0.1*x2", "[0,2]^2", (8, 8))
    problem = problem_of(target, model)
    assert proved(problem, "0.12", "0.11", "0.005") <= 0.12
    with pytest.raises(Refused):
        proved(problem, "0.12", "0.005", "0.11")


def with_registers(model: Transformer, change) -> Transformer:
    registers = np.array(model.tensors["registers"])
    return Transformer(model.config, {**model.tensors, "registers": change(registers)})


def refused(formula: str, cells: tuple[int, ...], change, match: str) -> None:
    """The node of the honest transformer, whose parts close, does not prove the claim of the changed one."""
    target, model = built(formula, "[0,1]^2", cells)
    problem = problem_of(target, model)
    node = proposed(problem, "0.1", "0.05", "0.05")
    assert prove(node, problem, local) <= 0.1
    with pytest.raises(Refused, match=match):
        prove(node, problem_of(target, with_registers(model, change)), local)


def test_a_grid_point_that_stands_in_for_others_is_refused():
    """The grid lines through register 0 are intact and the count is right, but inner points are copies of one of them.

    The softmax over this list does not factorise: T(1, 1) = 0.39 where x1 + x2 = 2. Every register has a place in the
    product; the distance to the head over the true product is what notices.
    """

    def doubled(rows: np.ndarray) -> np.ndarray:
        grid = rows.reshape(7, 7, -1).copy()
        grid[1:, 1:] = grid[1, 1]
        return grid.reshape(rows.shape)

    forged = with_registers(built("x1 + x2", "[0,1]^2", (3, 3))[1], doubled)
    assert abs(forged.evaluate([[1.0, 1.0]])[0, 0] - 2.0) > 1
    refused("x1 + x2", (3, 3), doubled, "only about")


@pytest.mark.parametrize("lost", [0, 10, 24, 48])
def test_a_grid_with_a_point_replaced_is_refused(lost):
    def replaced(rows: np.ndarray) -> np.ndarray:
        rows[lost] = rows[(lost + 8) % 49]
        return rows

    refused("x1 + x2", (3, 3), replaced, "only about|could only be bounded")


@pytest.mark.parametrize("lost", [0, 10, 24, 48])
def test_a_grid_with_a_point_missing_is_refused(lost):
    """All remaining registers are different and exactly additive; only their number gives it away."""
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))
    registers = np.delete(np.asarray(model.tensors["registers"]), lost, axis=0)
    fewer = Transformer(replace(model.config, registers=48), {**model.tensors, "registers": registers})
    node = proposed(problem_of(target, model), "0.1", "0.05", "0.05")
    with pytest.raises(Refused, match="product grid"):
        prove(node, problem_of(target, fewer), local)


@pytest.mark.parametrize("column", [3, 4, 5, 6], ids=["centre 1", "centre 2", "offset", "value"])
def test_a_register_that_is_not_additive_is_charged(column):
    """Columns: x1 x2 | flag | c1 c2 | offset | value | out. A changed number makes the head not additive."""

    def moved(rows: np.ndarray) -> np.ndarray:
        rows[24, column] += 0.4
        return rows

    refused("x1 + x2", (3, 3), moved, "only about")


@pytest.mark.parametrize("change", ["a point twice", "a point left out", "an empty line", "a point of another line"])
def test_lines_that_do_not_span_the_grid_are_refused(change):
    """The product of the lines must be every prototype, once."""
    target, model = built("x1 + x2", "[0,1]^2", (3, 3))
    problem = problem_of(target, model)
    node = proposed(problem, "9", "4", "4")
    first, second = (part["units"] for part in node.parts)
    lines = {
        "a point twice": ([*first[:-1], first[0]], second),
        "a point left out": (first[:-1], second),
        "an empty line": ([], second),
        "a point of another line": ([*first[:-1], [second[1][0], *first[-1][1:]]], second),
    }[change]
    parts = [{**part, "units": line} for part, line in zip(node.parts, lines, strict=True)]
    assert prove(node, problem, local) <= 9
    with pytest.raises(Refused, match="product grid"):
        prove(replace(node, parts=parts), problem, local)


def test_prototypes_made_by_hand():
    """Four prototypes on a 2 x 2 grid; a doubled point in the place of the last one is charged."""
    points = [(0, 0), (0, 1), (1, 0), (1, 1)]
    target = target_of("x1 + x2", "[0,1]^2")

    def claim(points: list[tuple[int, int]]) -> Problem:
        slopes = [[arb(3 * a), arb(3 * b)] for a, b in points]
        head = Head(slopes, [arb(-a - b) for a, b in points], [[arb(a + b)] for a, b in points])
        left = Prototypes(2, 1, 4, [head], [[arb(0)], [arb(0)]], [arb(0)], [arb(0)])
        return Problem(left, ProgramFunction(target.program), BallDomain(target.domain))

    node = proposed(claim(points), "0.8", "0.4", "0.4")
    assert prove(node, claim(points), local) <= 0.8
    with pytest.raises(Refused, match="only about"):
        prove(node, claim([*points[:3], (0, 1)]), local)
