"""The exact gather: the lemma in balls, its one box on affine targets, tight at a corner, any other map charged in full."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb, arb_mat

from certiformer.construct.affine_target import affine_outputs
from certiformer.construct.exact_gather import plan
from certiformer.construct.gather_block import inverse_mixing
from certiformer.construct.method import Shape, Task
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, ball, working_precision
from certiformer.kernel.certificate import Boxes
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import Problem, ProgramFunction, error_upper
from certiformer.kernel.rules import LEAF, prove, prove_piece, root
from certiformer.model import Attention, Block, Heads, Transformer, tensor_specs
from certiformer.target import parse_formula
from kernel.networks import network_of, point_box
from negative.forge import target_of

working_precision()
HEAD = "blocks.0.attention.groups.0"


def one_leaf(node, problem, path, limit):
    """The boxes of these proofs: the whole box, one first-order form."""
    return prove_piece(problem, root(problem.domain.dimension), bytes([LEAF]), node.order, limit, lambda count: None)


def problem_of(target, model) -> Problem:
    network = network_of(model)
    return Problem(as_prototypes(network) or network, ProgramFunction(target.program), BallDomain(target.domain))


def node(bound="1e-9") -> Boxes:
    return Boxes(bound, 1, 0, 1)


def built(formula, on, sizes, layout="sequence"):
    target = target_of(formula, on)
    chosen = plan(Task(target, Fraction(1, 1000), Shape(*sizes, layout)))
    return target, chosen


def largest_error(problem: Problem, points) -> arb:
    """The largest |T - f| over exact points, each a lower end of its ball."""
    worst = arb(0)
    for point in points:
        for left, right in zip(
            problem.left.forms(point_box(point), 0), problem.right.forms(point_box(point), 0), strict=True
        ):
            gap = abs(left.coef.get(0, arb(0)) - right.coef.get(0, arb(0))) - left.rem - right.rem
            worst = gap.lower() if gap.lower() > worst else worst
    return worst


def corners(problem: Problem):
    """The corners of the box, a hair inside where an end is not a float."""
    ends = [(float(low.mid()), float(high.mid())) for low, high in problem.domain.ends]
    return product(*ends)


# --- the lemma --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tokens", "keys"), [(1, 1), (1, 2), (2, 2), (2, 3), (5, 5), (5, 6), (16, 17)])
def test_the_inverse_undoes_the_softmax_mixture(tokens, keys):
    """A is computed as attention computes it: exponentials over their sum, one row a head, zero values beyond the data."""
    power = (arb(tokens + 1).log()).exp()
    total = power + keys - 1
    mixing = arb_mat(
        tokens, tokens, [(power if h == j else arb(1)) / total for h in range(tokens) for j in range(tokens)]
    )
    diagonal, other = (ball(v) for v in inverse_mixing(tokens, keys))
    inverse = arb_mat(tokens, tokens, [diagonal if h == j else other for h in range(tokens) for j in range(tokens)])
    for i, entry in enumerate((mixing * inverse).entries()):
        assert entry.contains(1 if i % (tokens + 1) == 0 else 0)
        assert entry.rad() < 1e-25
    assert abs(diagonal) < 2 and abs(other) <= 1 + arb(1) / 2


@pytest.mark.parametrize("power", [Fraction(11, 10), Fraction(3), Fraction(1000)])
def test_any_positive_lambda_can_be_undone(power):
    """The general formula of the statement, exactly, with e^lambda = `power`."""
    n, m = 4, 5
    a, c = (power - 1) / (power + m - 1), 1 / (power + m - 1)
    k = c / (a + n * c)
    on, off = (1 - k) / a, -k / a
    assert (a + c) * on + (n - 1) * c * off == 1
    assert (a + c) * off + c * on + (n - 2) * c * off == 0


# --- the rule ---------------------------------------------------------------------------------------------------------

INSTANCES = [
    ("0.1*x1 - 0.3*x2 + 7*x3", "[0,1]^3", (3, 1, 1, 1)),
    ("[x1 - x2, x2/3 + pi]", "[-1,2]x[0,pi]", (2, 1, 1, 2)),
    ("[x1 + x4, x2 - x3]", "[-5,5]^4", (2, 2, 1, 2)),
    ("[x2, x1]", "[0,1]^2", (2, 1, 2, 1)),
    ("[x1 + x2 + x3 + 1, x1 + x2 + x3 + 1, x1 + x2 + x3 + 2]", "[0,1]^3", (3, 1, 3, 1)),
    ("3*x1 + 1/3", "[0,1]", (1, 1, 1, 1)),
    ("[x1, x2]", "[0,1]^2", (2, 1, 2, 1)),
]


@pytest.mark.parametrize("layout", ["sequence", "token", "output-token"])
@pytest.mark.parametrize(("formula", "on", "sizes"), INSTANCES)
def test_the_stored_map_is_the_target_up_to_the_bound(formula, on, sizes, layout):
    target, chosen = built(formula, on, sizes, layout)
    assert chosen.theorem == "exact_gather"
    problem = problem_of(target, chosen.model)
    bound = prove(chosen.proof, problem, one_leaf)
    assert bound < 1e-14  # some roundings of 1.1e-16, on numbers below 25
    rng = random.Random(formula)
    points = [[rng.uniform(a, b) for a, b in zip(*(tuple(c) for c in ends(problem)), strict=True)] for _ in range(20)]
    assert not largest_error(problem, [*points, *corners(problem)]) > bound


def ends(problem):
    return [[float(pair[k].mid()) for pair in problem.domain.ends] for k in (0, 1)]


@pytest.mark.parametrize("layout", ["sequence", "output-token"])
def test_the_bound_is_attained_at_a_corner(layout):
    # The difference is affine: its supremum is the bound, up to balls of some 1e-28 around errors of some 1e-16.
    target, chosen = built("0.1*x1 - 0.3*x2 + 7*x3", "[0,1]^3", (3, 1, 1, 1), layout)
    problem = problem_of(target, chosen.model)
    truth = largest_error(problem, corners(problem))
    assert truth > 1e-17
    assert 1 <= float(node_bound(problem) / truth) < 1 + 1e-9


def node_bound(problem):
    return prove(node("1"), problem, one_leaf)


def test_an_error_of_the_target_is_charged_in_full():
    target, chosen = built("x1 - x2", "[0,1]^2", (2, 1, 1, 1))
    problem = problem_of(target_of("x1 - 1.25*x2 + 0.125", "[0,1]^2"), chosen.model)
    assert abs(float(node_bound(problem)) - 0.125) < 1e-15  # |0.25 x2 - 0.125|


# --- what is refused --------------------------------------------------------------------------------------------------

GOOD, CHOSEN = built("0.1*x1 - 0.3*x2 + 7*x3", "[0,1]^3", (3, 1, 1, 1))


def changed(name, index, by=None, to=None) -> Transformer:
    tensors = {n: np.array(t) for n, t in CHOSEN.model.tensors.items()}
    tensors[name][index] = to if to is not None else tensors[name][index] + by
    return Transformer(CHOSEN.model.config, tensors)


def test_the_untouched_model_is_accepted():
    assert prove(node(), problem_of(GOOD, CHOSEN.model), one_leaf) < 1e-14


@pytest.mark.parametrize("part", ["query", "key"])
@pytest.mark.parametrize("size", [1.0, -1e-6, 1e-12, 5e-324])
def test_a_score_that_depends_on_the_input_is_charged(part, size):
    """Coordinate 0 carries x: then the mixture is not fixed and the map not affine, by as much as the weight is large."""
    problem = problem_of(GOOD, changed(f"{HEAD}.{part}", (1, 0, 0), to=size))
    truth = largest_error(problem, corners(problem))
    if abs(size) > 1e-9:
        assert truth > 1e-9 * abs(size)
        with pytest.raises(Refused, match="only"):
            prove(node("1e-14"), problem, one_leaf)
    assert not truth > prove(node("100"), problem, one_leaf)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        (f"{HEAD}.query_bias", (0, 0)),  # lambda of one head: then A^{-1} is the wrong inverse
        (f"{HEAD}.key", (2, 3, 0)),
        (f"{HEAD}.key_bias", (0, 0)),
        (f"{HEAD}.value", (1, 0, 0)),
        (f"{HEAD}.output", (1, 0, 2)),
        ("embed.weight", (0, 0)),
        ("readout.weight", (0, 0)),
        ("readout.bias", (0,)),
    ],
)
def test_any_changed_weight_is_charged(name, index):
    model = changed(name, index, by=1e-4)
    problem = problem_of(GOOD, model)
    if name.endswith("key_bias"):
        # A shift of all keys of a head changes all its scores alike: the same function, and the rule sees it.
        assert node_bound(problem) < 1e-14
        return
    truth = largest_error(problem, corners(problem))
    assert truth > 1e-7
    with pytest.raises(Refused, match="only"):
        prove(node("1e-8"), problem, one_leaf)
    assert 1 <= float(node_bound(problem) / truth) < 1 + 1e-9


NOT_AFFINE = ["x1*x2", "x1**2", "abs(x1 - 1.5)", "max(x1, x2)", "sin(x1)", "1/x1", "where(x1 < x2, x1, x2)"]


@pytest.mark.parametrize("formula", NOT_AFFINE)
def test_a_target_that_bends_is_not_met(formula):
    target, chosen = built("x1 + x2", "[1,2]^2", (2, 1, 1, 1))
    problem = problem_of(target_of(f"{formula} + 0*x2", "[1,2]^2"), chosen.model)
    with pytest.raises(Refused, match="only"):
        prove(node("0.2"), problem, one_leaf)
    assert not largest_error(problem, corners(problem)) > prove(node("100"), problem, one_leaf)


def test_a_target_without_a_value_is_refused():
    target, chosen = built("x1 + x2", "[0,1]^2", (2, 1, 1, 1))
    with pytest.raises(Refused, match="not defined"):
        prove(node("100"), problem_of(target_of("0*log(x1) + x2", "[0,1]^2"), chosen.model), one_leaf)


def test_the_reader_of_affine_maps_is_exact():
    (f,) = affine_outputs(parse_formula("3*(x1 - 2*x2)/4 - (x2 - 1)**1 + where(1 < 2, x1, x2) + 2**3"))
    assert [float(s) for s in f.slope] == [1.75, -2.5] and float(f.constant) == 9.0
    with pytest.raises(Refused, match="divides by zero"):
        affine_outputs(parse_formula("x1 + sqrt(pi - 4)"))


def test_a_bound_below_the_rounding_is_refused():
    with pytest.raises(Refused, match="only"):
        prove(node("1e-17"), problem_of(GOOD, CHOSEN.model), one_leaf)
    with pytest.raises(Refused, match="float64"):
        plan(Task(GOOD, Fraction(1, 10**17), Shape(3, 1, 1, 1, "sequence")))


def test_a_head_that_moves_with_the_input_really_breaks_the_statement():
    """Negative control of the hypothesis: with a score that depends on x the map bends, and a first-order form says so."""
    attention = Attention((Heads(1, 1, 1),))
    config = replace(CHOSEN.model.config, blocks=(Block(attention),))
    tensors = {n: CHOSEN.model.tensors.get(n) for n in tensor_specs(config)}
    rng = np.random.default_rng(0)
    tensors |= {n: rng.normal(size=s.shape) for n, s in tensor_specs(config).items() if n.startswith(HEAD)}
    problem = problem_of(GOOD, Transformer(config, tensors))
    box = problem.domain.box(((0, 0),) * 3)
    assert all(form.rem > 1e-3 for form in problem.left.forms(box, 1))
    assert error_upper(problem, box, 1)[0] > 1e-3
