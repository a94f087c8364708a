"""Rule *split* over disjoint groups of variables: what is read is the transformer, and whatever is in no group is paid for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from certiformer.construct.gather_block import gather_transformer
from certiformer.construct.method import Shape
from certiformer.kernel import Refused
from certiformer.kernel import rules as split_rule
from certiformer.kernel.balls import ZERO, BallDomain, working_precision
from certiformer.kernel.certificate import Boxes, Outputs, Split
from certiformer.kernel.layers import UnitSum
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import outputs, prove, prove_piece, root, subproblems
from certiformer.kernel.taylor import value_ball
from certiformer.model import Transformer
from certiformer.search.split_proposal import by_groups
from certiformer.target import parse_domain, parse_formula
from kernel.networks import network_of, point_box
from negative.forge import uniform_tree

working_precision()

# Two units in (x1, x2), two in (x3, x4), slopes along all of them.
WEIGHTS = np.array([[1.0, -2.0, 0, 0], [0.5, 0.25, 0, 0], [0, 0, 1.5, 1.0], [0, 0, -1.0, 0.125]])
LINEAR = np.array([0.25, -0.5, 1.0, 0.125])
FORMULA = "x1*x2/8 + sin(x3*x4)"


def block(weights=WEIGHTS, linear=LINEAR, activation="gelu", outer=(0.5, -0.25, 0.75, 1.0), shift=0.5) -> Transformer:
    inputs = weights.shape[1]
    return gather_transformer(
        Shape(inputs, 1, 1, 1, "sequence"),
        np.full(inputs, -1.0),
        np.ones(inputs),
        linear[:, None],
        np.array([shift]),
        weights,
        np.linspace(-0.5, 0.5, len(weights)),
        np.array(outer)[:, None],
        activation,
    )


def problem_of(model: Transformer, formula: str = FORMULA, inputs: int = 4) -> Problem:
    right = ProgramFunction(parse_formula(formula, inputs))
    return Problem(network_of(model), right, BallDomain(parse_domain(f"[-1,1]^{inputs}")))


def local(node: Boxes, problem: Problem, path, limit: arb) -> arb:
    tree = uniform_tree(problem.domain.dimension, 2)
    return prove_piece(problem, root(problem.domain.dimension), tree, node.order, limit, lambda _: None)


def node(problem: Problem, total: str, *parts: str) -> Split:
    """The split that the search proposes, with these bounds."""
    return replace(by_groups(problem)[0], bound=total, children=tuple(Boxes(part, 4, 0, 1) for part in parts))


def gap(problem: Problem, point) -> arb:
    """left - right at a point, in balls."""
    box = point_box(point)
    return value_ball(problem.left.forms(box, 0)[0]) - value_ball(problem.right.forms(box, 0)[0])


def not_covered(model: Transformer, formula: str = FORMULA, groups=((0, 1), (2, 3)), cut=None) -> int:
    """At how many of 24 points the parts and the charge certainly do not explain the whole error."""
    problem = problem_of(model, formula)
    problems, charge = subproblems(node(problem, "9", *["9"] * len(groups)), problem)
    problems = problems if cut is None else cut(problems)
    missed = 0
    for point in np.random.default_rng(0).uniform(-1, 1, (24, 4)):
        parts = [gap(part, point[list(group)]) for part, group in zip(problems, groups, strict=True)]
        missed += bool(abs(gap(problem, point) - sum(parts, ZERO)) > charge)
    return missed


@pytest.mark.parametrize("activation", ["relu", "gelu", "identity"])
def test_the_parts_add_up_to_the_whole_at_every_point(activation):
    model = block(activation=activation)
    problem = problem_of(model)
    problems, charge = subproblems(node(problem, "9", "9", "9"), problem)
    assert [part.domain.dimension for part in problems] == [2, 2]
    assert charge < 1e-13
    assert not_covered(model) == 0


@pytest.mark.parametrize(
    ("weights", "linear", "formula", "groups"),
    [
        (WEIGHTS + np.array([[0, 0, 0.125, 0]] + [[0] * 4] * 3), LINEAR, FORMULA, ((0, 1), (2, 3))),
        (np.ones((4, 4)), LINEAR, FORMULA, ((0, 1), (2, 3))),
        (WEIGHTS, LINEAR, "x1*x2 + x3", ((0, 1), (2,))),
        (WEIGHTS, LINEAR, "x1*x2", ((0, 1),)),
        (WEIGHTS, LINEAR, "x2*x3", ((1, 2),)),
    ],
    ids=["a unit across two groups", "all units", "a variable not read", "a group not read", "mixed groups"],
)
def test_what_is_in_no_group_is_charged(weights, linear, formula, groups):
    model = block(weights, linear)
    assert not_covered(model, formula, groups) == 0
    problem = problem_of(model, formula)
    _, charge = subproblems(node(problem, "9", *["9"] * len(groups)), problem)
    assert charge > 0.05
    with pytest.raises(Refused, match="claims"):
        # The children are generous; only the charge is missing.
        prove(node(problem, repr(8.0 * len(groups) + 0.05), *["8"] * len(groups)), problem, _generous)


def _generous(node: Boxes, problem: Problem, path, limit: arb) -> arb:
    return limit


def test_the_comparison_sees_a_forgotten_charge_slope_unit_or_constant(monkeypatch):
    def changed(**fields):
        return lambda problems: [replace(problems[0], left=replace(problems[0].left, **fields)), problems[1]]

    whole = problem_of(block())
    first = subproblems(node(whole, "9", "9", "9"), whole)[0][0].left
    assert isinstance(first, UnitSum)
    assert not_covered(block(), cut=changed(linear=[ZERO, ZERO])) > 18
    assert not_covered(block(), cut=changed(linear=first.linear[::-1])) > 18
    assert not_covered(block(), cut=changed(units=first.units[1:])) > 18
    assert not_covered(block(), cut=changed(constant=first.constant + arb(1e-9))) == 24
    assert not_covered(block(), cut=lambda problems: problems[::-1]) > 18
    across = block(np.ones((4, 4)))
    assert not_covered(across) == 0
    monkeypatch.setitem(split_rule.LIPSCHITZ, "gelu", ZERO)
    assert not_covered(across) > 12


def test_no_sum_of_bounds_is_lost_to_a_constant():
    """Errors that lean to one side in both groups: with balanced constants the bounds add up to the joint error."""
    problem = problem_of(block())
    problems, _ = subproblems(node(problem, "9", "9", "9"), problem)
    points = np.random.default_rng(1).uniform(-1, 1, (4_000, 2))
    points[:1000] = np.sign(points[:1000])
    errors = [np.array([float(gap(part, point)) for point in points]) for part in problems]
    joint = max(sum(e.max() for e in errors), -sum(e.min() for e in errors))
    assert (
        sum(np.abs(e).max() for e in errors) <= 1.002 * joint
    )  # 4,000 points and the checker's grid see almost the same


def test_a_true_claim_is_proved_and_a_tighter_one_refused():
    weights, outer = (
        np.array([[1.0, 1.0, 0, 0], [-1.0, -1.0, 0, 0], [0, 0, 1.0, 0], [0, 0, -1.0, 0]]),
        (0.6, 0.6, 0.6, 0.6),
    )
    model = block(weights, np.zeros(4), "relu", outer, -0.5)
    problem = problem_of(model, "(x1+x2)**2/4 + x3**2")
    points = np.random.default_rng(2).uniform(-1, 1, (500, 4))
    largest = float(
        np.abs(model.evaluate(points)[:, 0] - (points[:, 0] + points[:, 1]) ** 2 / 4 - points[:, 2] ** 2).max()
    )
    upper = prove(node(problem, "2", "1", "1"), problem, local)
    assert largest <= float(upper)
    with pytest.raises(Refused):
        prove(node(problem, "0.2", "0.1", "0.1"), problem, local)


@pytest.mark.parametrize(
    ("formula", "count", "match"),
    [(FORMULA, 1, "children for 2 parts"), (FORMULA, 3, "children for 2 parts"), ("2", 1, "reads no variable")],
)
def test_trees_that_do_not_fit_are_refused(formula, count, match):
    with pytest.raises(Refused, match=match):
        problem = problem_of(block(), formula)
        prove(node(problem, "0.001", *["0.0005"] * count), problem, local)


def test_other_blocks_are_refused():
    from kernel.networks import tiny

    model = tiny(
        {
            "query": [[1.0], [0], [0], [0]],
            "key": [[1.0], [0], [0], [0]],
            "value": [[1.0], [0], [0], [0]],
            "output": [[1.0, 0, 0, 0]],
            "readout.weight": [[1.0], [0], [0], [0]],
        },
        tokens=2,
    )
    problem = Problem(network_of(model), ProgramFunction(parse_formula("x1 + x2")), BallDomain(parse_domain("[0,1]^2")))
    # The attention depends on x: what is not affine in it is slack, and that is large.
    with pytest.raises(Refused):
        prove(node(problem, "0.1", "0.05", "0.05"), problem, _generous)


def test_outputs_then_sum():
    model = gather_transformer(
        Shape(2, 1, 2, 1, "sequence"),
        np.full(2, -1.0),
        np.ones(2),
        np.array([[0.0, 1.0], [0.0, -1.0]]),
        np.zeros(2),
        np.array([[1.0, 1.0], [1.0, -1.0]]),
        np.zeros(2),
        np.array([[0.25, 0.0], [-0.25, 0.0]]),
        "gelu",
    )
    problem = problem_of(model, "[x1*x2/5, x1-x2]", 2)
    first, second = outputs(problem)
    good = Outputs("0.3", (node(first, "0.3", "0.3"), node(second, "1e-9", "1e-12", "1e-12")))
    assert prove(good, problem, local) <= 0.3
    with pytest.raises(Refused):
        prove(replace(good, children=good.children[::-1]), problem, local)
    with pytest.raises(Refused):
        prove(replace(good, children=good.children[:1]), problem, local)
