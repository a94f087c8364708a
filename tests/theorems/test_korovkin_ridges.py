"""The sound Theorem 1: true on instances, tight for the operator, refused when a hypothesis or a weight is wrong."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from certiformer.axioms import korovkin_ridges
from certiformer.axioms.cosine_ridges import Cosines, bent_line_error, first_line, multipliers, spread
from certiformer.axioms.korovkin_ridges import Grid, Slopes, operator_ridges, primitive_direction
from certiformer.construct.korovkin import plan
from certiformer.construct.method import Construction, Shape, Task
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.problem import Problem, ProgramFunction
from certiformer.kernel.rules import prove
from certiformer.model import Transformer
from certiformer.target import Target
from kernel.networks import network_of, point_box
from kernel.oracle import values
from negative.forge import target_of

working_precision()


def problem_of(target: Target, model: Transformer) -> Problem:
    return Problem(network_of(model), ProgramFunction(target.program), BallDomain(target.domain))


def no_boxes(*_):
    raise AssertionError("a theorem node needs no boxes")


def built(formula: str, on: str, epsilon: str, shape: Shape | None = None) -> tuple[Target, Construction]:
    target = target_of(formula, on)
    task = Task.of(target, Fraction(epsilon))
    return target, plan(task if shape is None else replace(task, shape=shape)).realise()


def claimed(node, bound: str | None = None, **changes) -> Theorem:
    return Theorem(bound or node.bound, node.id, {**node.parameters, **changes})


# --- the operator ------------------------------------------------------------------------------------------------------


def operator_value(formula: str, degree: int, nodes: int, t: arb) -> arb:
    """P of one variable at t in [0, 1]."""
    target = target_of(formula, "[0,1]")
    constant, profiles = operator_ridges(target.program, BallDomain(target.domain), Grid((degree,), (nodes,)))
    return constant + profiles[(1,)](t)


@pytest.mark.parametrize(("degree", "nodes", "ratio"), [(20, 80, 1.04), (60, 124, 1.06)])
def test_the_operator_bound_is_tight_for_a_tent(degree, nodes, ratio):
    # f = |t - 1/2| at t = 1/2: the error is E|y - 1/2| itself. What is left: |y - 1/2| is folded beyond half the circle
    # (about 1/m of the moment), and the aliases of the nodes are added with their absolute values.
    error = abs(operator_value("abs(x1-0.5)", degree, nodes, arb(0.5)))
    assert 1 <= float(spread(degree, nodes).absolute / error) < ratio


@pytest.mark.parametrize(("degree", "nodes"), [(0, 2), (1, 2), (2, 3), (5, 4), (9, 30), (22, 13), (22, 48), (45, 24)])
def test_the_moments_bound_those_of_the_weights_at_many_offsets(degree, nodes):
    """By definition, in balls: the mean of |y| and of y^2 over the 2N nodes of the circle."""
    rho, bounds = multipliers(degree), spread(degree, nodes)
    for step in range(13):
        offset = arb(fmpq(step, 12 * nodes))
        total, first, second = arb(0), arb(0), arb(0)
        for q in range(2 * nodes):
            y = offset - arb(fmpq(q, nodes))
            y = y + 2 if float(y) < -1 else y
            weight = (1 + 2 * sum((rho[k] * (k * y).cos_pi() for k in range(1, degree + 1)), arb(0))) / (2 * nodes)
            total, first, second = total + weight, first + weight * abs(y), second + weight * y * y
        assert total.contains(1) and total.rad() < 1e-20
        assert not first > bounds.absolute and not second.sqrt() > bounds.square
    assert bounds.absolute <= bounds.square <= (arb.pi() / (2 * degree + 4)).sin()


def test_too_few_nodes_break_the_moments():
    """Negative control of 2N > m + 2: with N = m/2 nodes the mean of u^2 is aliased, and the formula is not a bound."""
    degree, nodes = 10, 5
    error = abs(operator_value("abs(x1-0.5)", degree, nodes, arb(0)) - arb(0.5))
    assert error > spread(degree, nodes).absolute * 1.2
    with pytest.raises(Refused, match="half as many nodes"):
        Grid((degree,), (nodes,)).refuse_if_unfit(1)


def test_the_ridges_of_the_operator_are_the_operator():
    """Against the definition E f(y) with the product weights, in two variables, on a box that is not the unit square."""
    target, grid = target_of("abs(x1-x2)+x1*x2", "[-1,2]x[0,3]"), Grid((4, 3), (5, 6))
    constant, profiles = operator_ridges(target.program, BallDomain(target.domain), grid)
    rng = random.Random(1)
    for _ in range(5):
        t = [arb(rng.random()), arb(rng.random())]
        ours = constant
        for p, profile in profiles.items():
            ours = ours + profile(p[0] * t[0] + p[1] * t[1])
        wanted = arb(0)
        for q1 in range(5):
            for q2 in range(6):
                share = arb(1)
                for axis, (q, n) in enumerate(((q1, 5), (q2, 6))):
                    rho, at = multipliers(grid.degrees[axis]), arb(fmpq(2 * q + 1, 2 * n))
                    terms = [2 * rho[k] * (k * t[axis]).cos_pi() * (k * at).cos_pi() for k in range(1, len(rho))]
                    share = share * (1 + sum(terms, arb(0))) / n
                point = [arb(fmpq(3 * (2 * q1 + 1), 10)) - 1, arb(fmpq(3 * (2 * q2 + 1), 12))]
                wanted = wanted + share * values(target.program, point)[0]
        assert ours.overlaps(wanted) and ours.rad() < 1e-20


@pytest.mark.parametrize(("gradients", "joint_wins"), [([(2, 0), (0, 2)], True), ([(2, 2), (0, 0)], False)])
def test_both_forms_of_the_first_term_are_used(gradients, joint_wins):
    """Slopes that are large at different places favour the joint form, sqrt(2) v < 2 s; slopes at one place the other."""
    target = target_of("x1", "[0,1]^2")
    slopes, moments = Slopes(target.program, BallDomain(target.domain), (1, 1)), spread(20, 44)
    slopes.boxes[0] = [tuple(arb(g) for g in box) for box in gradients]
    single, joint = 4 * float(moments.absolute), 2 * 2**0.5 * float(moments.square) * (1 if joint_wins else 2**0.5)
    assert float(slopes.operator_bound(0, [moments] * 2)) == pytest.approx(min(single, joint), rel=1e-12)
    assert (joint < single) is joint_wins


# --- bent lines --------------------------------------------------------------------------------------------------------


def test_the_error_of_a_bent_line_is_enclosed_closely():
    """Against 4,000 points: never below, and at most 5 % above (1/64 of h^2/8 |g''| a piece, twice the balanced error)."""
    profile = Cosines({1: arb(0.7), 3: arb(-0.2)})
    knots = [arb(k) / 16 for k in range(1, 32)]
    line = first_line(profile, arb(0), knots[0])
    rng = np.random.default_rng(0)
    s = np.linspace(0, 2, 4001)
    wave = 0.7 * np.cos(np.pi * s) - 0.2 * np.cos(3 * np.pi * s)
    at = np.linspace(0, 2, 33)
    smooth = np.interp(at, s, wave) + rng.normal(0, 0.005, 33)
    smooth[0], smooth[1] = float(line[0]), float(line[0] + line[1] / 16)
    bends = np.diff(np.diff(smooth) * 16)
    bound = bent_line_error(profile, (1, 1), line, [(k, arb(b)) for k, b in zip(knots, bends, strict=True)])
    measured = np.abs(np.interp(s, at, smooth) - wave).max()
    assert measured <= float(bound) < 1.05 * measured


def test_knots_outside_the_range_count_as_what_they_are_there():
    profile, line = Cosines({1: arb(0)}), (arb(0), arb(1))
    inside = bent_line_error(profile, (1,), line, [])
    assert float(inside) == 1.0
    assert float(bent_line_error(profile, (1,), line, [(arb(5), arb(100))])) == 1.0
    assert float(bent_line_error(profile, (1,), line, [(arb(-1), arb(1))])) == 3.0  # s + (s + 1) at 1


# --- the theorem -------------------------------------------------------------------------------------------------------

INSTANCES = [
    ("abs(x1-0.5)", "[0,1]", "0.05", None), ("sin(3*x1)", "[0,2]", "0.4", None),
    ("abs(x1-x2)", "[0,1]^2", "0.15", None), ("x1*x2", "[-1,1]x[0,3]", "1.2", None),
    ("x1*x2", "[0,1]^2", "0.3", Shape(2, 1, 1, 1, "token")), ("x1*x2", "[0,1]^2", "0.3", Shape(2, 1, 1, 1, "output-token")),
    ("[abs(x1-x2), max(x1,x2)]", "[0,1]^2", "0.2", Shape(2, 1, 2, 1, "sequence")),
    ("[x1*x2, x1-x2]", "[0,1]^2", "0.3", Shape(2, 1, 1, 2, "sequence")), ("x1*x2*x3", "[0,1]^3", "0.4", None),
]  # fmt: skip


@pytest.mark.parametrize(("formula", "on", "epsilon", "shape"), INSTANCES)
def test_the_statement_holds_on_instances(formula, on, epsilon, shape):
    target, construction = built(formula, on, epsilon, shape)
    problem, rng = problem_of(target, construction.model), random.Random(formula)
    bound = prove(construction.proof, problem, no_boxes)
    assert bound <= arb(construction.proof.bound) and Fraction(construction.proof.bound) <= Fraction(epsilon)
    worst = arb(0)
    for _ in range(12):
        point = [
            low.upper() + (high.lower() - low.upper()) * arb(rng.choice([0.0, 1.0, 0.5, rng.random(), rng.random()]))
            for low, high in problem.domain.ends
        ]
        point = [x.mid() for x in point]
        ours = [form.coef.get(0, arb(0)) for form in network_of(construction.model).forms(point_box(point), 0)]
        for a, b in zip(ours, values(target.program, point), strict=True):
            worst = max(worst, abs(a - b).lower(), key=float)
    assert not worst > bound


def test_the_example_of_the_theory_is_small_and_within_twice_its_error():
    """|x1 - x2| and max(x1, x2), one a position, within 0.15: 30 units."""
    target, construction = built("[abs(x1-x2), max(x1,x2)]", "[0,1]^2", "0.15", Shape(2, 1, 2, 1, "sequence"))
    points = np.stack(np.meshgrid(*[np.linspace(0, 1, 65)] * 2), -1).reshape(-1, 2)
    ours = construction.model.evaluate(points)
    wanted = np.stack([np.abs(points[:, 0] - points[:, 1]), points.max(axis=1)], -1)
    measured = np.abs(ours - wanted).max()
    assert construction.model.config.blocks[0].ffn.width < 100
    # Between the tight case of one variable and this: E|y1 - y2| < E|y1| + E|y2|, and the errors of pieces add up.
    assert 1 <= float(construction.proof.bound) / measured < 2.5


@pytest.mark.parametrize("formula", ["sqrt(x1)", "where(x1 < 0.5, 0, 1)", "1/x1", "sqrt(x1)*x2"])
def test_a_target_that_is_not_lipschitz_is_refused(formula):
    on = "[0,1]^2" if "x2" in formula else "[0,1]"
    target = target_of(formula, on)
    with pytest.raises(Refused, match="not known to be Lipschitz"):
        plan(Task.of(target, Fraction("0.3")))
    fine, construction = built("x1*x1" if on == "[0,1]" else "x1*x2", on, "0.3")
    with pytest.raises(Refused, match="not known to be Lipschitz"):
        prove(claimed(construction.proof, "9"), problem_of(target, construction.model), no_boxes)


def test_a_step_really_breaks_the_statement():
    """Negative control of the hypothesis: the operator of a step misses it by half a step whatever the degree."""
    for degree in (10, 40):
        value = operator_value("where(x1 < 0.5, 0, 1)", degree, 2 * degree, arb(0.5))
        assert value > 0.4 and value < 0.6


@pytest.fixture(scope="module")
def good() -> tuple[Target, Construction]:
    return built("abs(x1-x2)", "[0,1]^2", "0.15")


FAULTS = [("blocks.0.ffn.up_bias", 0.3), ("blocks.0.ffn.up", 0.3), ("blocks.0.ffn.down", 0.3), ("readout.bias", 0.05),
          ("blocks.0.attention.groups.0.output", 0.3), ("blocks.0.attention.groups.0.query_bias", 0.3)]  # fmt: skip


@pytest.mark.parametrize(("name", "change"), FAULTS)
def test_a_changed_weight_is_refused(good, name, change):
    target, construction = good
    tensors = dict(construction.model.tensors)
    tensor = np.array(tensors[name])
    place = np.unravel_index(np.abs(tensor).argmax(), tensor.shape)
    tensor[place] += change
    broken = Transformer(construction.model.config, tensors | {name: tensor})
    with pytest.raises(Refused):
        prove(construction.proof, problem_of(target, broken), no_boxes)


def test_a_small_change_is_charged():
    target, construction = built("abs(x1-x2)", "[0,1]^2", "0.15")
    tensors = {n: np.asarray(t, np.float32).astype(float) for n, t in construction.model.tensors.items()}
    rounded = problem_of(target, Transformer(construction.model.config, tensors))
    extra = korovkin_ridges.check(construction.proof, rounded) - arb(construction.proof.bound)
    assert 0 < float(extra) < 1e-4  # some 1e-7 a weight, 60 weights, slopes up to 20


def test_a_claim_below_what_is_proved_is_refused(good):
    target, construction = good
    smaller = str(float(construction.proof.bound) * 0.999)
    with pytest.raises(Refused, match="claims .* but only"):
        prove(claimed(construction.proof, smaller), problem_of(target, construction.model), no_boxes)


@pytest.mark.parametrize(
    "change",
    [
        {"degrees": [[19, 20]]}, {"degrees": [[9, 9]]}, {"degrees": [[60, 60]]}, {"degrees": [[20]]}, {"degrees": [20, 20]},
        {"degrees": [[20, -1]]}, {"degrees": [[20, True]]}, {"degrees": [[20.0, 20.0]]}, {"degrees": None}, {"degrees": []},
        {"degrees": [[10**9, 10**9]]}, {"degrees": [[350, 350]], "nodes": [[200, 200]]}, {"nodes": [[11, 11]]},
        {"nodes": [[5000, 5000]]}, {"nodes": [["44", "44"]]}, {"nodes": [[44, 44], [44, 44]]}, {"partition": [1, 1, 1]},
        {"partition": [0, 4]}, {"partition": None},
    ],
    ids=str,
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(good, change):
    target, construction = good
    with pytest.raises(Refused):
        prove(claimed(construction.proof, **change), problem_of(target, construction.model), no_boxes)


def test_another_target_and_another_box_are_refused(good):
    _, construction = good
    for target in (target_of("abs(x1-x2)+x1/10", "[0,1]^2"), target_of("abs(x1-x2)", "[0,1.2]x[0,1]")):
        with pytest.raises(Refused):
            prove(claimed(construction.proof), problem_of(target, construction.model), no_boxes)


def test_a_unit_that_looks_elsewhere_is_refused(good):
    """A direction that is not one of the operator's, and one that looks backwards."""
    target, construction = good
    for factor in (np.pi, -1.0):
        tensors = dict(construction.model.tensors)
        up = np.array(tensors["blocks.0.ffn.up"])
        rows = np.flatnonzero(up.any(axis=1))
        unit = np.flatnonzero((up[rows] != 0).all(axis=0))[0]
        up[rows[0], unit] *= factor
        with pytest.raises(Refused):
            prove(
                construction.proof,
                problem_of(target, Transformer(construction.model.config, tensors | {"blocks.0.ffn.up": up})),
                no_boxes,
            )


def test_only_blocks_of_that_form_are_accepted(good):
    target, construction = good
    sides = Problem(ProgramFunction(target.program), ProgramFunction(target.program), BallDomain(target.domain))
    with pytest.raises(Refused):
        prove(construction.proof, sides, no_boxes)


def test_limits_are_said_before_they_are_met():
    with pytest.raises(Refused, match="too high to check"):
        plan(Task.of(target_of("x1*x2", "[0,1]^2"), Fraction(1, 1000)))
    with pytest.raises(Refused, match="at most 3 variables"):
        plan(Task.of(target_of("x1*x2*x3*x4", "[0,1]^4"), Fraction(1, 2)))
    with pytest.raises(Refused, match="nothing to bend"):
        plan(Task.of(target_of("0*x1+2", "[0,1]"), Fraction(1, 2)))


@pytest.mark.parametrize("p", [(1, 0), (0, 1), (3, -2), (149, 148), (1, -150), (2, 3, -5)])
def test_directions_are_recognised_from_rounded_slopes(p):
    noisy = [n * 0.37 * (1 + 1e-13) for n in p]
    assert primitive_direction(noisy, 150) == p
