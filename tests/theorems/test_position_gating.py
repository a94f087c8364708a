"""Position gating: different affine maps at different positions are exact on the box, and a weak gate is charged."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.construct.exact_gather import plan
from certiformer.construct.method import Shape, Task
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.certificate import Boxes
from certiformer.kernel.rules import prove
from certiformer.model import Transformer
from negative.forge import target_of
from theorems.test_exact_gather import corners, largest_error, one_leaf, problem_of

working_precision()
UP, BIAS = "blocks.0.ffn.up", "blocks.0.ffn.up_bias"


def node(bound="1") -> Boxes:
    return Boxes(bound, 1, 0, 1)


def built(formula, on, sizes):
    target = target_of(formula, on)
    return target, plan(Task(target, Fraction(1, 1000), Shape(*sizes, "sequence")))


INSTANCES = [
    ("[x1 - x2, x1 + 3*x2]", "[0,1]^2", (2, 1, 2, 1)),
    ("[x1 - x2 + x3, 0.1*x3 + pi, x1]", "[-1,2]^3", (3, 1, 3, 1)),
    ("[x1, x4 - x1/3, -x2 - 5, x1 + x2 + x3 + x4]", "[0,1]x[-3,-2]x[0,1]x[0,100]", (2, 2, 2, 2)),
    ("[x1, x1, x2, x1 - x4]", "[-1,1]^4", (4, 1, 4, 1)),
]


@pytest.mark.parametrize(("formula", "on", "sizes"), INSTANCES)
def test_every_position_gets_its_own_map(formula, on, sizes):
    target, chosen = built(formula, on, sizes)
    assert chosen.theorem == "position_gating"
    problem = problem_of(target, chosen.model)
    bound = prove(chosen.proof, problem, one_leaf)
    assert bound < 1e-12  # roundings of 1.1e-16 on numbers up to 300: gates, lifts and the gather
    rng = np.random.default_rng(0)
    low, high = ([float(pair[k].mid()) for pair in problem.domain.ends] for k in (0, 1))
    points = rng.uniform(low, high, (15, len(low)))
    assert not largest_error(problem, [*points, *corners(problem)]) > bound


def test_the_bound_is_attained_at_a_corner():
    # Every unit has one sign, so the difference is affine on the box and largest at a corner.
    target, chosen = built("[x1 - x2 + x3, 0.1*x3 + pi, x1]", "[-1,2]^3", (3, 1, 3, 1))
    problem = problem_of(target, chosen.model)
    truth = largest_error(problem, corners(problem))
    assert truth > 1e-17
    assert 1 <= float(prove(node(), problem, one_leaf) / truth) < 1 + 1e-9


TARGET, CHOSEN = built("[x1 - x2, x1 + 3*x2]", "[0,1]^2", (2, 1, 2, 1))


def changed(model: Transformer, name, index, value) -> Transformer:
    tensors = {n: np.array(t) for n, t in model.tensors.items()}
    tensors[name][index] = value
    return Transformer(model.config, tensors)


def gates(model: Transformer) -> list[tuple[int, int]]:
    """The places of the gates: weights of units on the one-hot code, which follows the token's own numbers."""
    offset, tokens = model.config.code.offset, model.config.tokens
    return [(offset + int(t), int(u)) for t, u in np.argwhere(model.tensors[UP][offset : offset + tokens])]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9999, -1.0])
def test_a_gate_that_is_too_small_is_refused(share):
    """relu(4 x2 - B) at the wrong position lets (1 - share) of the unit through."""
    (gate,) = gates(CHOSEN.model)
    weak = changed(CHOSEN.model, UP, gate, share * CHOSEN.model.tensors[UP][gate])
    problem = problem_of(TARGET, weak)
    assert largest_error(problem, corners(problem)) > 1e-4
    with pytest.raises(Refused, match="only"):
        prove(node("1e-9"), problem, one_leaf)


def test_a_stronger_gate_changes_nothing():
    (gate,) = gates(CHOSEN.model)
    strong = changed(CHOSEN.model, UP, gate, 1000 * CHOSEN.model.tensors[UP][gate])
    assert prove(node("1e-14"), problem_of(TARGET, strong), one_leaf)


@pytest.mark.parametrize("on", ["[0,1.125]^2", "[-0.125,1]^2", "[0,4]^2"])
def test_a_larger_box_opens_the_gate_or_closes_the_unit(on):
    problem = problem_of(target_of("[x1 - x2, x1 + 3*x2]", on), CHOSEN.model)
    with pytest.raises(Refused, match="only"):
        prove(node("1e-9"), problem, one_leaf)
    assert not largest_error(problem, corners(problem)) > prove(node("100"), problem, one_leaf)


def test_a_unit_that_bends_inside_the_box_costs_what_it_bends():
    shift = float(CHOSEN.model.tensors[BIAS][0])
    problem = problem_of(TARGET, changed(CHOSEN.model, BIAS, 0, shift - 1e-3))
    with pytest.raises(Refused, match="only"):
        prove(node("1e-9"), problem, one_leaf)
    assert not largest_error(problem, corners(problem)) > prove(node("1"), problem, one_leaf)


def test_maps_at_exchanged_positions_are_refused():
    problem = problem_of(target_of("[x1 + 3*x2, x1 - x2]", "[0,1]^2"), CHOSEN.model)
    assert float(prove(node("5"), problem, one_leaf)) == pytest.approx(4.0, abs=1e-9)
    with pytest.raises(Refused, match="only"):
        prove(node("3.9"), problem, one_leaf)


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("blocks.0.attention.groups.0.query_bias", (0, 0)),
        ("blocks.0.ffn.down", (0, -1)),
        ("readout.weight", (1, 0)),
        ("embed.bias", (0,)),
    ],
)
def test_any_changed_weight_is_charged(name, index):
    tensor = CHOSEN.model.tensors[name]
    model = changed(CHOSEN.model, name, index, tensor[index] + 1e-9)
    problem = problem_of(TARGET, model)
    truth = largest_error(problem, corners(problem))
    assert truth > 1e-11
    assert 1 <= float(prove(node(), problem, one_leaf) / truth) < 1 + 1e-9
    with pytest.raises(Refused, match="only"):
        prove(node("1e-12"), problem, one_leaf)


def test_the_gate_of_the_statement_on_small_integers():
    """w.x + b - B e_s is at most 0 at s and untouched elsewhere, for every corner and the least B."""
    for w, b in product(product((-2, 0, 3), repeat=2), (-1, 0, 2)):
        values = [w[0] * x + w[1] * y + b for x, y in product((0, 1), repeat=2)]
        least = max(0, *values)
        assert all(max(v - least, 0) == 0 for v in values)
        assert least == 0 or any(max(v - (least - Fraction(1, 100)), 0) > 0 for v in values)
