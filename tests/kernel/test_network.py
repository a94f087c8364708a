"""The checker's forward pass: equal to the model's, and on boxes it contains every point.

Points are boxes of radius zero; there the forms are balls around the real value. The model's float64 value must lie
within rounding of that ball, and the forms of a box must contain the balls of its points, without tolerance.
"""

from __future__ import annotations

import random
from dataclasses import fields, replace

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.kernel.balls import Box, working_precision
from certiformer.kernel.layers import as_prototypes
from certiformer.kernel.problem import Network
from certiformer.kernel.taylor import bounds
from certiformer.model import Attention, Block, FeedForward, Norm, Readout, Transformer
from kernel.networks import network_of, point_box, tiny
from kernel.oracle import places, point_of, polynomial, precisely
from model import oracle
from model.cases import OPTIONS, TWO_GROUPS, configs, model_of

working_precision()

# The model runs in float64: a few hundred roundings of 1.1e-16 on numbers below 1e3. Layer norm with epsilon 1e-5 may
# divide by 3e-3 and so multiply the rounding by up to 3e2 a layer.
AGREEMENT = 1e-9

CONTINUOUS = {name: options for name, options in OPTIONS.items() if name != "ids"}
MORE = {
    "hard, biases": {"blocks": (Block(Attention(TWO_GROUPS, kind="hard", bias=True, score_bias="table")),)},
    "nearest, causal": {"blocks": (Block(Attention(TWO_GROUPS, kind="nearest", bias=True, mask="causal")),)},
    "linear, toeplitz, no residual": {
        "blocks": (Block(Attention(TWO_GROUPS, kind="linear", score_bias="toeplitz", residual=False)),),
        "registers": 2,
    },
    "relu attention, loops": {
        "blocks": (Block(Attention(TWO_GROUPS, kind="relu", score_bias="table", mask="causal")),),
        "registers": 1,
        "loops": 2,
    },
    "gelu, pre-norm, loops": {
        "blocks": (Block(Attention(TWO_GROUPS, mask="causal"), FeedForward(4, "gelu"), Norm("pre")),),
        "registers": 1,
        "loops": 2,
        "readout": Readout("mean"),
    },
    "float32": {"dtype": "float32"},
    "bfloat16": {"dtype": "bfloat16", "registers": 1},
}


def inside_ball(network: Network, point, expected: np.ndarray, tolerance: float) -> None:
    forms = network.forms(point_box(point), 0)
    assert len(forms) == len(expected)
    for form, value in zip(forms, expected, strict=True):
        low, high = (float(end) for end in bounds(form))
        room = tolerance * (1 + abs(value))
        assert low - room <= value <= high + room
        assert high - low <= room  # the ball is thin, so this is agreement and not a wide enclosure


@pytest.mark.parametrize("name", CONTINUOUS)
def test_the_value_at_a_point_is_that_of_the_naive_loops(name):
    """The loops of `model.oracle`, which the tests of the model hold equal to it for these very options."""
    model = model_of(**CONTINUOUS[name])
    network = network_of(model)
    for point in np.random.default_rng(5).normal(size=(3, 6)):
        inside_ball(network, point, np.array(oracle.run(model, point.reshape(3, 2).tolist())), AGREEMENT)


@pytest.mark.parametrize("name", MORE)
def test_the_value_at_a_point_is_the_models(name):
    model = model_of(**MORE[name])
    points = np.random.default_rng(5).normal(size=(3, 6))
    network = network_of(model)
    for point, expected in zip(points, model.evaluate(points), strict=True):
        inside_ball(network, point, expected, AGREEMENT)


def test_agreement_would_notice_any_changed_weight():
    model = model_of(**MORE["gelu, pre-norm, loops"], code=OPTIONS["table code"]["code"])
    point = np.random.default_rng(6).normal(size=6)
    expected = np.array(oracle.run(model, point.reshape(3, 2).tolist()))
    inside_ball(network_of(model), point, expected, AGREEMENT)
    for name in model.tensors:
        changed = Transformer(model.config, {**model.tensors, name: model.tensors[name] * 1.001 + 1e-4})
        low, high = bounds(network_of(changed).forms(point_box(point), 0)[0])
        moved = max(abs(float(low) - expected[0]), abs(float(high) - expected[0]))
        assert moved > 10 * AGREEMENT * (1 + abs(expected[0])), name


def contains_points(network: Network, box: Box, order: int, rng: random.Random, count: int = 4) -> None:
    """Every form of the box against the balls of its points, at 300 bits and without tolerance."""
    forms = network.forms(box, order)
    assert not any(form.rem.is_nan() for form in forms)
    for e in places(rng, box.dimension, count)[: 4 + count]:
        with precisely():
            point = point_of(box, e)
            values = network.forms(Box(tuple(p.mid() for p in point), tuple(p.rad() for p in point)), 0)
            for form, value in zip(forms, values, strict=True):
                low, high = bounds(value)
                p = polynomial(form, e)
                assert not (low - p) > form.rem
                assert not (p - high) > form.rem
                assert not low > form.high
                assert not high < form.low


@pytest.mark.parametrize("name", [*CONTINUOUS, *MORE])
def test_forms_on_boxes_contain_every_point(name):
    rng = random.Random(name)
    network = network_of(model_of(**{**CONTINUOUS, **MORE}[name]))
    for order in (0, 1, 2):
        width = 10 ** rng.uniform(-4, 0) if order else 10 ** rng.uniform(-9, 2)
        centre = tuple(arb(rng.gauss(0, 1)) for _ in range(6))
        contains_points(network, Box(centre, (arb(width),) * 6), order, rng)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(configs, st.integers(0, 99), st.integers(0, 3))
def test_forms_of_any_combination_of_options_contain_every_point(config, seed, order):
    if config.input.kind == "ids":
        config = replace(config, input=replace(config.input, kind="continuous", width=1, vocabulary=None))
    network = network_of(model_of(seed, **{field.name: getattr(config, field.name) for field in fields(config)}))
    rng = random.Random(seed)
    centre = tuple(arb(rng.gauss(0, 1)) for _ in range(network.dimension))
    contains_points(network, Box(centre, (arb(10 ** rng.uniform(-6, 0)),) * network.dimension), order, rng, 2)


def test_higher_orders_and_widths_on_a_small_trained_like_net():
    rng = random.Random(8)
    network = network_of(model_of(blocks=(Block(Attention(TWO_GROUPS), FeedForward(5)),), readout=Readout("mean")))
    for order in (3, 4):
        centre = tuple(arb(rng.gauss(0, 1)) for _ in range(6))
        contains_points(network, Box(centre, (arb(0.05),) * 6), order, rng, 2)


def test_a_form_is_much_tighter_than_its_box_when_the_box_is_small():
    # Not soundness but sense: at order 2 the remainder falls like the cube of the width.
    network = network_of(model_of())
    centre = tuple(arb(x) for x in (0.3, -0.2, 0.5, 0.1, -0.4, 0.2))
    wide, narrow = (network.forms(Box(centre, (arb(r),) * 6), 2)[0].rem for r in (0.02, 0.002))
    assert float(narrow) < float(wide) / 500


# --- scores of +-700, and the two softmax cases that a well-known verifier gets wrong ----------------------------------

LAST_ROW = [[1, 1, 1], [1, 1, 1], [1, 1, 0]]  # the data token attends to both registers, not to itself


def two_scores(slope: float, other: float, values=(1.0, 0.0), residual: float = 0.0) -> Transformer:
    """values . softmax(slope * x, other) + residual * x, with two registers for the two scores."""
    return tiny(
        {
            "registers": [[0, 0, 1, 0], [0, 0, 0, 1]],
            "query": [1, 0, 0, 0],  # q = x
            "key": [0, 0, slope, 0],  # register 0: slope, register 1: 0, the constant comes from the table
            "score_bias": [[0] * 3, [0] * 3, [0, other, 0]],
            "value": [0, 0, *values],
            "output": [0, 0, 0, 1],
            "readout.weight": [residual, 0, 0, 1],
        },
        registers=2,
        mask=LAST_ROW,
        score_bias="table",
        residual=residual != 0,
    )


def both_readings(model: Transformer):
    network = network_of(model)
    prototypes = as_prototypes(network)
    assert prototypes is not None
    return network, prototypes


@pytest.mark.parametrize("order", [0, 1, 2, 3, 6])
def test_the_second_weight_of_softmax_reaches_one(order):
    """softmax_2(x, -40) on [-60, 0] goes from about 4e-18 to 1 - 2e-9; an interval rule with an added 1e-12 says 4e-6."""
    model = two_scores(1.0, -40.0, values=(0.0, 1.0))
    assert model.evaluate([[-60.0]])[0, 0] > 1 - 1e-8
    for function in both_readings(model):
        for low, high in ((-60, 0), (-60, -50), (-45, -35), (-1, 0)):
            box = Box((arb(low + high) / 2,), (arb(high - low) / 2,))
            form = function.forms(box, order)[0]
            _, top = bounds(form)
            with precisely():
                exact = 1 / (1 + arb(low + 40).exp())  # decreasing in x: largest at the lower end
            assert not top < exact
            contains_points(function, box, order, random.Random(order), 20)


@pytest.mark.parametrize("order", [0, 1, 2, 3, 6])
def test_softmax_minus_a_line(order):
    """softmax_1(x, 0) - 0.03 x has maximum 1.8 on [-60, 0] and 0.6 on [-20, 0]; a published rule says 0.627 and 0.550."""
    model = two_scores(1.0, 0.0, residual=-0.03)
    for function in both_readings(model):
        for low in (-60, -20):
            box = Box((arb(low) / 2,), (arb(-low) / 2,))
            _, top = bounds(function.forms(box, order)[0])
            assert not top < arb(str(-low * 0.03))
            contains_points(function, box, order, random.Random(order), 20)


@pytest.mark.parametrize("slope", [700.0, -700.0, 1e4])
@pytest.mark.parametrize("order", [0, 1, 2, 4])
def test_scores_of_seven_hundred(slope, order):
    """Scores slope * x against +-700: floating-point exponentials would overflow; balls must not lose the answer."""
    rng = random.Random(f"{slope}{order}")
    for other in (700.0, -700.0, 0.0):
        model = two_scores(slope, other, values=(1.0, -1.0))
        functions = both_readings(model)
        for function in functions:
            for radius in (1e-12, 1e-3, 1.0, 1e3):
                centre = rng.uniform(-1, 1)
                box = Box((arb(centre),), (arb(radius),))
                contains_points(function, box, order, rng, 6)
                low, high = bounds(function.forms(box, order)[0])
                assert -1 <= low <= high <= 1 or function is not functions[1]  # prototypes stay within their values


def test_narrow_boxes_around_a_steep_step_are_enclosed_tightly():
    # At slope 700 the switch takes about 1/700; boxes of 1e-6 are enclosed to 1e-3 at order 2 by both readings.
    for function in both_readings(two_scores(700.0, 0.0)):
        low, high = bounds(function.forms(Box((arb(1e-4),), (arb(1e-6),)), 2)[0])
        assert float(high - low) < 1e-3


# --- hard attention --------------------------------------------------------------------------------------------------


def hard(scores: list[float]) -> Transformer:
    """Three registers with constant scores and values 1, 2, 4; the data token reads them with hard attention."""
    return tiny(
        {
            "registers": [[0, 0, s, v] for s, v in zip(scores, (1, 2, 4), strict=True)],
            "query": [0, 1, 0, 0],
            "key": [0, 0, 1, 0],
            "value": [0, 0, 0, 1],
            "output": [0, 0, 0, 1],
            "readout.weight": [0, 0, 0, 1],
        },
        registers=3,
        mask=[[1] * 4] * 3 + [[1, 1, 1, 0]],
        kind="hard",
        residual=False,
    )


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([0, 1, 0], 2.0), ([1, 1, 0], 1.5), ([1, 1, 1], 7 / 3), ([0.1, 0.3, 0.3], 3.0), ([-700, -700, -701], 1.5)],
)
def test_exact_ties_of_hard_attention_are_averaged(scores, expected):
    model = hard([float(s) for s in scores])
    assert abs(model.evaluate([[0.25]])[0, 0] - expected) < 1e-12
    inside_ball(network_of(model), [0.25], np.array([expected]), 1e-12)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_hard_attention_across_a_switch_is_the_hull(order):
    model = two_scores(1.0, 0.0, values=(1.0, -1.0))
    attention = replace(model.config.blocks[0].attention, kind="hard")
    network = network_of(Transformer(replace(model.config, blocks=(Block(attention),)), model.tensors))
    low, high = bounds(network.forms(Box((arb(0.01),), (arb(0.1),)), order)[0])
    assert not low > -1
    assert not high < 1
    # Away from the switch it is a constant; at x = 0 the tie gives the mean 0.
    for x, expected in ((0.5, 1.0), (-0.5, -1.0)):
        low, high = bounds(network.forms(Box((arb(x),), (arb(0.4),)), order)[0])
        assert low == expected == high
    low, high = bounds(network.forms(point_box([0.0]), order)[0])
    assert low <= 0 <= high


def test_hard_attention_under_scores_of_zero_takes_the_mean():
    """Zeros tie like any other constant: the form is 0, the mean of 1, -1 and 0, and not their hull."""
    weights = {"value": [0, 0, 0, 1], "output": [0, 0, 0, 1], "readout.weight": [0, 0, 0, 1], "key": [0, 0, 0, 1]}
    weights["registers"] = [[0, 0, 0, 1.0], [0, 0, 0, -1.0]]
    ends = []
    for query in ([0, 0, 0, 0], [1, 0, 0, 0]):
        model = tiny({**weights, "query": query}, registers=2, kind="hard")
        ends.append(bounds(network_of(model).forms(Box((arb(0),), (arb(1),)), 1)[0]))
    assert -1e-20 < ends[0][0] <= 0 <= ends[0][1] < 1e-20
    assert ends[1][0] <= -1 and ends[1][1] >= 1  # here either of the registers may win
