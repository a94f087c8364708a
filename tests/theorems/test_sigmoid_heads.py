"""The sigmoid-head theorem: true on instances, tight where it should be, refused when a hypothesis is broken."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.axioms.logistic_rounding import rounding
from certiformer.axioms.profile_series import derivatives
from certiformer.axioms.sigmoid_heads import apriori
from certiformer.axioms.sigmoid_knots import Knots, ProfileBounds, ridge_sum
from certiformer.construct.method import Construction, Task
from certiformer.construct.sigmoid_heads import Plan, plan, sigmoid_transformer
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.problem import Problem
from certiformer.kernel.rules import prove
from certiformer.model import Transformer
from certiformer.target import Target, parse_formula
from negative.forge import Run, judged, reseal, target_of
from theorems.test_voronoi_first_order import dense_points, largest_error, no_boxes, problem_of

working_precision()


def built(target: Target, knots: list[Knots], bound: float = 1e6) -> tuple[Construction, Problem]:
    linear, ridges = ridge_sum(target.program)
    made = Plan(Task.of(target, Fraction(1)), linear, ridges, knots, bound, 0.0).realise()
    return made, problem_of(target, made.model)


def knots(pieces, left=0, right=0, sharpness="2", order=2, slopes=("0",)) -> Knots:
    return Knots(pieces, left, right, Fraction(sharpness), order, tuple(map(Fraction, slopes)))


INSTANCES = [
    ("cos(3*x1)", "[0,1]", [knots(8, 5, 5)]),
    ("cos(3*x1)", "[0,1]", [knots(8, 2, 1, "5/2", 4, ("1/3",))]),
    ("cos(3*x1)", "[0,1]", [knots(6, 3, 2, "5/2", 6, ("-1",))]),
    ("exp(x1) + x1", "[-1,1]", [knots(5, 6, 4, "7/4", 8)]),
    ("exp(-x1)", "[-1,2]", [knots(3, 0, 0, "3", 2)]),
    ("exp(-x1)", "[-1,2]", [knots(1, 0, 2, "1", 4)]),
    ("sin(x1) + x1/3 + sin(x2)", "[0,2*pi]^2", [knots(9, 1, 2, "9/4", 4), knots(5, 4, 4)]),
    ("tanh(3*(x1 - 2*x2)) + x1", "[0,1]^2", [knots(20, 3, 3, "5/2", 4)]),
    ("[sin(x1 + x2), (x1 + x2)**3 - x2, x1]", "[-1,1]^2", [knots(7, 3, 3, "2", 4, ("1", "0", "0"))]),
    ("abs(x1 - 0.3) + max(x2, x1)", "[0,1]^2", [knots(9, sharpness="8", order=1), knots(4, sharpness="3", order=1)]),
    ("abs(x1)", "[-1,1]", [knots(0)]),
    ("min(x1, 1 - x1)*2", "[0,1]", [knots(6, sharpness="16", order=1, slopes=("1/2",))]),
    ("where(x1 < 5, tanh(x1), 1/(x1 - 5))", "[-1,1]", [knots(4, 2, 2, "3", 4)]),
]


@pytest.mark.parametrize(("formula", "on", "cuts"), INSTANCES)
def test_the_statement_holds_on_instances(formula, on, cuts):
    target = target_of(formula, on)
    outputs = len(target.program.outputs)
    cuts = [replace(cut, slopes=(cut.slopes * outputs)[:outputs]) for cut in cuts]
    made, problem = built(target, cuts)
    assert made.proof is not None
    bound = prove(made.proof, problem, no_boxes)
    assert not largest_error(problem, dense_points(problem, random.Random(formula), 150)) > bound


@pytest.mark.parametrize("pieces", [20, 40, 80, 160])
def test_the_second_order_bound_is_tight(pieces):
    # T - f = (h^2/2) V f'' up to the terms in omega and h^4; f'' is largest in the middle, which is sampled. The
    # h^4 term takes off 9 h^2 mu_4/(12 V) of it: 2.7 percent at h = 0.1, 0.1 percent at h = 0.0125, where omega_1 h |f'|
    # is 2 percent of the bound.
    target = target_of("cos(3*x1)", "[-1,1]")
    made, problem = built(target, [knots(pieces, 8, 8)])
    bound = prove(made.proof, problem, no_boxes)
    ratio = float(bound / largest_error(problem, [[arb(k) / 50] for k in range(-50, 51)]))
    assert 1 <= ratio < 1.04


def test_the_first_order_bound_is_tight_for_a_kink():
    # abs with a knot at its kink: at the kink T - f is E|y|, and sqrt(E y^2) bounds it with 0.5 h for steep heads.
    target = target_of("abs(x1)", "[-1,1]")
    made, problem = built(target, [knots(9, sharpness="8", order=1)])
    bound = prove(made.proof, problem, no_boxes)
    truth = largest_error(problem, [[arb(k) / 180] for k in range(-180, 181)])
    assert 1 <= float(bound / truth) < 1.05


@pytest.mark.parametrize("order", [4, 6, 8])
def test_high_orders_fall_with_their_power(order):
    target = target_of("sin(3*x1)", "[0,2]")
    bounds, errors = [], []
    for pieces in (12, 24):
        made, problem = built(target, [knots(pieces, 24, 24, "1", order)])
        bounds.append(float(prove(made.proof, problem, no_boxes)))
        errors.append(float(largest_error(problem, [[arb(k) / 40] for k in range(81)])))
    # omega_1 is 3e-8 at this sharpness, so nothing but h^order is left; the next order takes up to a third off at h = 1/6.
    assert 0.95 < bounds[0] / bounds[1] / 2**order < 1.05
    assert 0.6 < errors[0] / errors[1] / 2**order < 1.1


@pytest.mark.parametrize("sharpness", ["1", "3/2", "2", "3", "8", "16"])
def test_the_moments_are_those_of_the_sums(sharpness):
    """Sums over 241 lattice points in balls; the other points weigh less than e^-110 together."""
    constants, kappa = (
        rounding(Fraction(sharpness)),
        arb(Fraction(sharpness).numerator) / Fraction(sharpness).denominator,
    )
    worst = [arb(0)] * 7
    for place in range(17):
        weights, at = [], arb(place) / 16
        for n in range(-120, 121):
            y = n - at
            weights.append((y, ((kappa * (y + arb(0.5)) / 2).tanh() - (kappa * (y - arb(0.5)) / 2).tanh()) / 2))
        for k, mean in (
            (1, arb(0)),
            (2, constants.moments[1]),
            (3, arb(0)),
            (4, constants.moments[2]),
            (6, constants.moments[3]),
        ):
            off = abs(sum((y**k * w for y, w in weights if not y.contains(0)), arb(0)) - mean).lower()
            worst[k] = max(worst[k], off)
    for k in (1, 2, 3, 4, 6):
        assert worst[k] <= constants.omega[k] + arb(10) ** -20
        # Attained for even moments, and within a few percent for odd ones, unless the heads are steep.
        assert worst[k] >= 0.9 * constants.omega[k] or kappa > 4


GOOD = target_of("cos(3*x1) + x2/2", "[0,1]^2")
CUT = knots(12, 4, 4, "2", 4, ("-1",))


def good() -> tuple[Construction, Problem]:
    return built(GOOD, [CUT])


def claimed(made: Construction, bound: str, **changes) -> Theorem:
    proof = made.proof
    assert isinstance(proof, Theorem)
    return Theorem(bound, proof.id, {**proof.parameters, **changes})


def changed(model: Transformer, name: str, index: tuple, by: float) -> Transformer:
    tensor = np.array(model.tensors[name])
    tensor[index] += by
    return Transformer(model.config, {**model.tensors, name: tensor})


HEAD = "blocks.0.attention.groups.0"


@pytest.mark.parametrize(
    ("name", "index"),
    [(f"{HEAD}.key", (0, 0, 0)), (f"{HEAD}.key", (9, 2, 0)), (f"{HEAD}.output", (19, 0, 2)), (f"{HEAD}.value", (7, 2, 0)),
     (f"{HEAD}.query", (7, 2, 0)), ("readout.weight", (0, 0)), ("readout.weight", (1, 0)), ("readout.bias", (0,)),
     ("registers", (0, 2)), ("embed.weight", (0, 1)), ("embed.weight", (0, 2))],
    ids=str,
)  # fmt: skip
def test_a_changed_weight_is_charged_and_so_refused(name, index):
    made, problem = good()
    node = claimed(made, "0.0032")
    assert prove(node, problem, no_boxes) <= 0.0032
    with pytest.raises(Refused):
        prove(node, problem_of_any(changed(made.model, name, index, 0.05)), no_boxes)


def problem_of_any(model: Transformer) -> Problem:
    """Like `problem_of`, for a model that may not be of prototype form any more."""
    from certiformer.kernel.layers import as_prototypes
    from certiformer.kernel.problem import ProgramFunction
    from kernel.networks import network_of

    network = network_of(model)
    return Problem(as_prototypes(network) or network, ProgramFunction(GOOD.program), BallDomain(GOOD.domain))


def test_a_bound_that_is_too_small_is_refused():
    made, problem = good()
    with pytest.raises(Refused, match="is proved"):
        prove(claimed(made, "0.0005"), problem, no_boxes)


RIDGE = CUT.parameters()


@pytest.mark.parametrize(
    "ridges",
    [[], None, [RIDGE, RIDGE], [{**RIDGE, "pieces": 13}], [{**RIDGE, "pieces": 11}], [{**RIDGE, "left": 3}],
     [{**RIDGE, "right": -1}], [{**RIDGE, "left": 5, "right": 3}], [{**RIDGE, "sharpness": "21/10"}],
     [{**RIDGE, "sharpness": "17"}], [{**RIDGE, "sharpness": 2}], [{**RIDGE, "order": 2}], [{**RIDGE, "order": 1}],
     [{**RIDGE, "order": 3}], [{**RIDGE, "order": 6}], [{**RIDGE, "order": 10}], [{**RIDGE, "slopes": ["-0.9"]}], [{**RIDGE, "slopes": []}], [{**RIDGE, "pieces": True}],
     [{**RIDGE, "extra": 1}], [{**RIDGE, "slopes": ["nan"]}], [{**RIDGE, "pieces": 0}]],
    ids=str,
)  # fmt: skip
def test_parameters_that_do_not_fit_are_refused(ridges):
    made, problem = good()
    with pytest.raises(Refused):
        prove(claimed(made, "0.0032", ridges=ridges), problem, no_boxes)


@pytest.mark.parametrize("parts", [0, "9", None, 10**9, True])
def test_a_partition_that_is_none_is_refused(parts):
    made, problem = good()
    with pytest.raises(Refused, match="partition"):
        prove(claimed(made, "0.0032", partition=parts), problem, no_boxes)


def test_one_part_is_sound_but_coarse():
    made, problem = good()
    assert prove(claimed(made, "10", partition=1), problem, no_boxes) > prove(claimed(made, "10"), problem, no_boxes)


@pytest.mark.parametrize(
    "formula", ["abs(x1 - 0.4)", "max(x1, 0.5)**2", "where(x1 < 0.5, 0, (x1 - 0.5)**6)", "sqrt(x1)"]
)
@pytest.mark.parametrize("order", [2, 4, 8])
def test_a_profile_that_is_not_smooth_is_refused(formula, order):
    smooth = target_of("x1**2", "[0,1]")
    made, problem = built(smooth, [knots(9, 2, 2, order=order)])
    other = Problem(problem.left, type(problem.right)(parse_formula(formula, 1)), problem.domain)
    with pytest.raises(Refused, match="smooth"):
        prove(claimed(made, "1000"), other, no_boxes)


def test_a_kink_really_breaks_the_statement():
    """Negative control of the hypothesis: with the derivatives of a line, abs would be 'proved' within its clipping."""
    kink, line = target_of("abs(x1 - 0.5)", "[0,1]"), target_of("-x1", "[0,1]")
    cut = knots(11, sharpness="2", order=1, slopes=("-1",))
    made, problem = built(kink, [cut])
    low, high = BallDomain(kink.domain).ends[0]
    fooled = apriori(replace(cut, order=4), 0, ProfileBounds(line.program, low, high, 8))
    assert largest_error(problem, [[arb(k) / 100] for k in range(40, 61)]) > fooled + 0.05


def test_extra_knots_are_needed():
    """Without extra knots the clipping of a slope that does not vanish is really lost, and the bound says so."""
    target = target_of("x1**2 + x1", "[0,1]")
    made, problem = built(target, [knots(10)])
    bound = prove(made.proof, problem, no_boxes)
    truth = largest_error(problem, [[arb(0)], [arb(1)]])
    wide, wide_problem = built(target, [knots(10, 6, 6)])
    assert truth > 0.09 and 1 <= float(bound / truth) < 3
    assert prove(wide.proof, wide_problem, no_boxes) < 0.011


def test_a_target_that_is_no_sum_of_ridges_is_refused():
    with pytest.raises(Refused, match="ridge"):
        plan(Task.of(target_of("x1*x2", "[0,1]^2"), Fraction(1, 10)))


@pytest.mark.parametrize(
    ("formula", "on", "epsilon", "heads"),
    [("cos(3*x1)", "[0,1]", "1e-2", 9), ("[sin(x1 + 2*x2), exp(x1) - x2**2]", "[0,1]^2", "1e-2", 26),
     ("abs(x1 - x2)", "[0,1]^2", "1e-1", 11), ("3*x1 - pi*x2 + 1", "[0,1]^2", "1e-12", 0), ("2 + 0*x1", "[0,1]", "1e-9", 0),
     ("sin(x1) + sin(x2)", "[0,2*pi]^2", "1e-2", 31),
     ("sin(x1) + sin(x2)", "[0,2*pi]^2", "1e-3", 48)],
)  # fmt: skip
def test_plans_are_proved(formula, on, epsilon, heads):
    target = target_of(formula, on)
    chosen = plan(Task.of(target, Fraction(epsilon)))
    made = chosen.realise()
    size = chosen.size()
    assert size.heads <= heads
    assert size.dense == made.model.parameter_count()
    assert made.model.nonzero_count() <= size.nonzero
    assert Fraction(made.proof.bound) <= Fraction(epsilon)
    problem = problem_of(target, made.model)
    proved = prove(made.proof, problem, no_boxes)
    assert not largest_error(problem, dense_points(problem, random.Random(1), 40)) > proved


def test_an_epsilon_below_float64_is_refused_in_words():
    with pytest.raises(Refused, match="float64"):
        plan(Task.of(target_of("3*x1 - pi*x2", "[0,1]^2"), Fraction(1, 10**16)))


def test_a_step_is_refused_in_words():
    with pytest.raises(Refused, match="Lipschitz"):
        plan(Task.of(target_of("where(x1 < 0.5, 0, 1)", "[0,1]"), Fraction(1, 10)))


def test_the_sigmoid_transformer_is_what_it_says():
    rng = np.random.default_rng(0)
    linear, constant = rng.normal(size=(2, 3)), rng.normal(size=3)
    weights, bias, coefficients = rng.normal(size=(5, 2)), rng.normal(size=5), rng.normal(size=(5, 3))
    points = rng.normal(size=(20, 2))
    wanted = points @ linear + constant + (1 / (1 + np.exp(-(points @ weights.T + bias)))) @ coefficients
    got = sigmoid_transformer(linear, constant, weights, bias, coefficients).evaluate(points)
    # Some thirty roundings of numbers of size ten.
    assert np.abs(got - wanted).max() < 1e-13


@pytest.mark.parametrize("formula", ["exp(sin(x1))/(2 + x1**3)", "tanh(x1)*log(2 + x1) - sqrt(1 + x1)", "atan(x1)**2 + erf(x1)",
                                     "abs(x1 + 3)*max(x1, -9) - min(x1, 7)", "tan(x1/2) + where(x1 < 9, x1**4, 0) + pi"])  # fmt: skip
def test_series_enclose_the_derivatives(formula):
    """Finite differences of balls: f on five points around x determine the fourth difference quotient's mean value."""
    program = parse_formula(formula, 1)
    x, step = arb("0.3"), arb(2) ** -8
    around = derivatives(program, x + arb(0, 1) * 4 * step, 4)[0]
    values = [derivatives(program, x + k * step, 0)[0][0] for k in range(5)]
    differences = values
    for order in range(1, 5):
        differences = [b - a for a, b in zip(differences, differences[1:], strict=False)]
        # The quotient equals the derivative at some point in between, so it must meet the enclosure.
        assert around[order].overlaps(differences[0] / step**order), order
        assert around[order].rad() < abs(around[order].mid()) + 60


def test_a_whole_folder_is_checked(tmp_path):
    target = target_of("sin(x1 + 2*x2) - x1/3", "[0,1]^2")
    made = plan(Task.of(target, Fraction("0.01"))).realise()
    folder = Run(made.model, target, "0.01", made.proof).write(tmp_path / "run")
    assert judged(folder).outcome == "proved"
    name = "readout.bias"
    assert judged(reseal(folder, model=lambda old: changed(old, name, (0,), 0.02))).outcome == "refused"


def test_a_node_cannot_give_an_output_a_slope_along_a_ridge_that_it_does_not_have(tmp_path):
    """Output 2 is x2 and reads 5 x1 besides; the node says that this is its slope along the ridge of output 1."""
    target = target_of("[sin(x1), x2]", "[0,1]^2")
    made = plan(Task.of(target, Fraction("0.1"))).realise()
    assert isinstance(made.proof, Theorem)
    (ridge,) = made.proof.parameters["ridges"]
    folder = Run(made.model, target, "0.1", made.proof).write(tmp_path / "run")
    assert judged(folder).outcome == "proved"
    sloped = {**made.proof.parameters, "ridges": [{**ridge, "slopes": [ridge["slopes"][0], "5"]}]}
    forged = reseal(
        folder,
        model=lambda old: changed(old, "readout.weight", (0, 1), 5.0),
        proof=replace(made.proof, parameters=sloped),
    )
    # By the stored weights alone: at (1, 0) output 2 of the transformer is 5, and the target is 0.
    assert changed(made.model, "readout.weight", (0, 1), 5.0).evaluate(np.array([[1.0, 0.0]]))[0, 1] > 4.9
    assert judged(forged).outcome == "refused"
