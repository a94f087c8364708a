"""Rule *boxes*: an enclosure on every leaf, or a refusal."""

from __future__ import annotations

import time

import pytest
from flint import arb

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Boxes
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import EXTRA, LEAF, Effort, prove, prove_piece, root, subtrees
from certiformer.kernel.taylor import MAX_ORDER, Form, table
from certiformer.kernel.workers import _joined
from certiformer.target import parse_domain, parse_formula
from kernel.trees import encode
from negative.forge import uniform_tree

working_precision()


def problem_of(left: str, right: str, on: str) -> Problem:
    domain = parse_domain(on)
    sides = [ProgramFunction(parse_formula(text, domain.dimension)) for text in (left, right)]
    return Problem(sides[0], sides[1], BallDomain(domain))


def proved(problem: Problem, tree: bytes, order: int, bound: float | str) -> tuple[float, int]:
    """The proved bound and how many leaves were confirmed."""
    count = 0

    def tick(leaves: int) -> None:
        nonlocal count
        count += leaves

    upper = prove_piece(problem, root(problem.domain.dimension), tree, order, arb(bound), tick)
    return float(upper), count


@pytest.mark.parametrize("order", [0, 1, 2, 4, 6, MAX_ORDER])
def test_the_bound_is_true_and_every_leaf_is_counted(order):
    problem = problem_of("sin(x1)*x2", "0", "[0,3]x[0,1]")
    upper, count = proved(problem, uniform_tree(2, 3), order, 1.3)
    assert 1 <= upper <= 1.3  # the maximum is 1, at (pi/2, 1)
    assert count == 64


@pytest.mark.parametrize(
    ("left", "right", "on", "true"),
    [
        ("exp(x1)", "1 + x1 + x1**2/2", "[0,1]", 0.21828),
        ("abs(x1 - 0.3)", "x1**2", "[0,1]", 0.3),
        ("[x1, 2*x2]", "[0, 0]", "[0,1]^2", 2.0),
        ("where(x1 < 0.5, 0, 1)", "0", "[0,1]", 1.0),
        ("x1*x2*x3", "0", "[0,1]^3", 1.0),
    ],
)
def test_a_bound_below_the_true_error_is_never_proved(left, right, on, true):
    problem = problem_of(left, right, on)
    dimension = problem.domain.dimension
    for order in (0, 2, 5):
        for levels in (0, 1, 3):
            with pytest.raises(Refused, match="the error could only be bounded by"):
                proved(problem, uniform_tree(dimension, levels), order, true * 0.9999)
    assert proved(problem, uniform_tree(dimension, 3), 5, true * 1.02)[0] >= true * 0.9999


def test_the_mean_value_across_a_step_is_never_assumed():
    # f is 0 left of 0.5 and 1 right of it: a first-order form with slope 0 on both sides would see no error at all.
    problem = problem_of("where(x1 < 0.5, 0, 1)", "where(x1 <= 0.5, 0, 1)", "[0,1]")
    for order in (0, 1, 3):
        with pytest.raises(Refused):
            proved(problem, uniform_tree(1, 6), order, 0.5)


def test_a_leaf_that_is_a_little_too_wide_is_bisected_by_the_checker():
    problem = problem_of("x1**2", "0", "[-1,1]")
    # At order 0 the enclosure on a cell [a, b] is within a few |b - a| of the truth: one leaf needs further bisection.
    upper, count = proved(problem, uniform_tree(1, 0), 0, 1.05)
    assert count == 1
    assert 1 <= upper <= 1.05
    assert EXTRA == 5


def recorded(problem: Problem, tree: bytes, order: int, bound: float | str, effort: Effort) -> tuple[float, bytes]:
    """The proved bound and the tree that was accepted."""
    accepted = bytearray()
    whole = root(problem.domain.dimension)
    upper = prove_piece(problem, whole, tree, order, arb(bound), lambda _: None, effort, accepted)
    return float(upper), bytes(accepted)


@pytest.mark.parametrize("order", [0, 1, 3])
def test_the_accepted_tree_proves_the_same_without_another_bisection(order):
    problem = problem_of("sin(3*x1)*x2", "x1*x2**2", "[0,2]x[0,1]")
    upper, accepted = recorded(problem, uniform_tree(2, 1), order, 2.75, Effort(deepest=60))
    assert accepted.count(LEAF) > 4
    assert recorded(problem, accepted, order, upper * (1 + 1e-15), Effort(deepest=0)) == (upper, accepted)
    with pytest.raises(Refused, match="could only be bounded"):
        recorded(problem, uniform_tree(2, 1), order, upper, Effort(deepest=0))


def test_a_goal_within_reach_is_reached_and_one_out_of_reach_costs_no_proof():
    problem = problem_of("x1**2", "0", "[-1,1]")
    coarse, _ = recorded(problem, uniform_tree(1, 0), 0, 5, Effort())
    assert coarse == 1.0  # the interval of a square is exact
    problem = problem_of("x1 - x1**2", "0", "[0,1]")
    loose, _ = recorded(problem, uniform_tree(1, 1), 0, 2, Effort())
    reached, _ = recorded(problem, uniform_tree(1, 1), 0, 2, Effort(goal="0.3", deepest=60))
    beyond, tree = recorded(problem, uniform_tree(1, 1), 0, 2, Effort(goal="0.2", deepest=60))
    assert loose > 0.5 and reached <= 0.3
    assert 0.25 <= beyond < loose  # the maximum is 1/4
    assert tree.count(LEAF) <= 4 * 2**EXTRA  # once a leaf had to stay above the goal, the others need not go below


def test_no_effort_proves_what_is_false_and_the_clock_ends_it():
    problem = problem_of("x1*x2", "0", "[0,1]^2")
    began = time.monotonic()
    with pytest.raises(Refused, match="the time was spent"):
        recorded(problem, uniform_tree(2, 2), 1, "1", Effort(deepest=60, end=began - 1))
    for bound in ("0.99", "0.9999"):
        with pytest.raises(Refused):
            recorded(problem, uniform_tree(2, 2), 1, bound, Effort("0.5", 60, time.monotonic() + 1))
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("largest", [0, 1, 4, 9, 1000])
def test_pieces_are_put_back_where_they_were_cut(largest):
    tree = encode(2, {((0, 0), (0, 0)): 0, ((1, 0), (0, 0)): 1, ((1, 0), (1, 1)): 0, ((1, 1), (0, 0)): 1})
    parts = [part for _, part in subtrees(tree, 2, largest)]
    assert _joined(tree, 2, largest, parts) == tree
    finer = [part.replace(b"\xff", b"\x01\xff\xff") for part in parts]
    assert _joined(tree, 2, largest, finer) == tree.replace(b"\xff", b"\x01\xff\xff")


@pytest.mark.parametrize("order", [-1, MAX_ORDER + 1, 10**6])
def test_an_order_out_of_range_is_refused(order):
    with pytest.raises(Refused, match="outside 0..12"):
        proved(problem_of("x1", "0", "[0,1]"), uniform_tree(1, 1), order, 2)


@pytest.mark.parametrize("tree", [b"", b"\x00\xff", b"\xff\xff", b"\x01\xff\xff"])
def test_a_malformed_tree_is_refused(tree):
    with pytest.raises(BadInput, match="malformed"):
        proved(problem_of("x1", "0", "[0,1]"), tree, 1, 2)


@pytest.mark.parametrize("text", ["1/x1", "log(x1)", "sqrt(x1)", "tan(x1)", "1/x1 - 1/x1", "0*(1/x1)"])
def test_a_singular_target_is_refused_with_the_box(text):
    with pytest.raises(Refused, match=r"on the box about \[.*\] the function is not defined"):
        proved(problem_of("0", text, "[-1,2]"), uniform_tree(1, 2), 2, 1e6)


def test_no_bound_is_large_enough_for_what_is_not_defined():
    problem = problem_of("0", "1/x1", "[-1,1]")
    with pytest.raises(Refused):
        proved(problem, uniform_tree(1, 2), 2, "1e1000000")


class Broken:
    """A side whose enclosure is one given form, right or wrong."""

    outputs = 1

    def __init__(self, **parts):
        self.parts = {"coef": {0: arb(0)}, "rem": arb(0), "low": arb(0), "high": arb(0), **parts}

    def forms(self, box, order):
        return [Form(table(1, order), **self.parts)]

    def restrict(self, box):
        return self


@pytest.mark.parametrize("part", [{"coef": {0: arb.nan()}}, {"rem": arb.nan()}, {"low": arb.nan()}, {"high": arb.nan()},
                                  {"rem": arb.pos_inf(), "low": arb.neg_inf(), "high": arb.pos_inf()}, {"singular": "why"}],
                         ids=str)  # fmt: skip
def test_nan_infinity_and_poison_are_never_proved(part):
    zero, domain = ProgramFunction(parse_formula("0*x1")), BallDomain(parse_domain("[0,1]"))
    fine = Problem(Broken(), zero, domain)
    assert proved(fine, uniform_tree(1, 1), 1, 1.0) == (0.0, 2)
    for sides in ((Broken(**part), zero), (zero, Broken(**part))):
        for bound in (1.0, "1e1000"):
            with pytest.raises(Refused):
                proved(Problem(*sides, domain), uniform_tree(1, 1), 1, bound)


def local(node: Boxes, problem: Problem, path, limit: arb) -> arb:
    return prove_piece(problem, root(problem.domain.dimension), uniform_tree(1, 3), node.order, limit, lambda _: None)


@pytest.mark.parametrize("bound", ["nan", "-1", "0", "inf", "", "1e99999", "x1", "[1]", "1e-400000"])
def test_a_bound_that_is_no_positive_number_is_refused(bound):
    problem = problem_of("x1", "x1", "[0,1]")
    assert prove(Boxes("1e-9", 2, 0, 15), problem, local) <= 1e-9
    with pytest.raises(Refused, match="not a positive number"):
        prove(Boxes(bound, 2, 0, 15), problem, local)


def test_a_prover_that_returns_too_much_or_nan_is_not_believed():
    problem = problem_of("x1", "x1", "[0,1]")
    for value in (arb(2), arb.nan(), arb.pos_inf(), arb(0.5, 0.6)):
        with pytest.raises(Refused, match="claims 1 but only"):
            prove(Boxes("1", 2, 0, 15), problem, lambda *_, value=value: value)
