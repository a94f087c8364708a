"""The one-block transformer of a sum of ridge units: the same function in exact arithmetic, in every layout, and small."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from flint import arb

from certiformer.construct.gather_block import gather_size, gather_transformer
from certiformer.construct.method import Shape, Size
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.taylor import bounds
from kernel.networks import network_of, point_box

working_precision()
LAYOUTS = ("token", "sequence", "output-token")
SHAPES = [(1, 1, 1, 2), (1, 3, 1, 1), (2, 1, 1, 1), (2, 1, 2, 1), (3, 2, 3, 2), (3, 1, 2, 2), (4, 1, 4, 1)]


def instance(shape: Shape, seed: int, units: int = 5):
    """A random function with many zeros: (low, high, linear, constant, weights, bias, coefficients)."""
    rng = np.random.default_rng(seed)

    def sparse(*size):
        return rng.normal(size=size) * (rng.random(size) < 0.6)

    inputs, outputs = shape.inputs, shape.outputs
    coefficients = sparse(units, outputs)
    coefficients[0] = np.tile(rng.normal(size=shape.out_width), shape.out_tokens)  # one unit is shared by all positions
    low, high = -2 * rng.random(inputs), 3 * rng.random(inputs)
    return (
        low,
        high,
        sparse(inputs, outputs),
        rng.normal(size=outputs),
        sparse(units, inputs),
        rng.normal(size=units),
        coefficients,
    )


def by_formula(parts, point, act) -> list[arb]:
    """The function of the module docstring in balls, from the exact float64 numbers."""
    _, _, linear, constant, weights, bias, coefficients = parts
    x = [arb(v) for v in point]
    values = []
    for o in range(len(constant)):
        value = arb(constant[o]) + sum((x[i] * arb(linear[i, o]) for i in range(len(x))), arb(0))
        for u in range(len(bias)):
            inside = arb(bias[u]) + sum((x[i] * arb(weights[u, i]) for i in range(len(x))), arb(0))
            value = value + arb(coefficients[u, o]) * act(inside)
        values.append(value)
    return values


def relu(t: arb) -> arb:
    return t if t > 0 else arb(0)


def distance(model, parts, points, act=relu) -> float:
    network, worst = network_of(model), 0.0
    for point in points:
        for form, b in zip(network.forms(point_box(point), 0), by_formula(parts, point, act), strict=True):
            low, high = bounds(form)
            worst = max(worst, float(abs(low - b).upper()), float(abs(high - b).upper()))
    return worst


def points_of(parts, count=6, seed=0):
    low, high = parts[:2]
    rng = np.random.default_rng(seed)
    inside = rng.uniform(low, high, (count, len(low)))
    corners = np.where(rng.random((count, len(low))) < 0.5, low, high)
    return [*inside, *corners, low, high]


# The stored A^{-1}, lambda, shifted biases and constants carry a few roundings of 1.1e-16 each, on numbers below 50.
ROUNDING = 1e-13


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_it_is_the_function_up_to_rounding_of_the_weights(layout, sizes):
    shape = Shape(*sizes, layout)
    for seed in range(3):
        parts = instance(shape, seed)
        model = gather_transformer(shape, *parts)
        assert distance(model, parts, points_of(parts)) < ROUNDING
        assert gather_size(shape, *parts) == Size.of(model)


def test_a_changed_coefficient_would_be_noticed():
    shape = Shape(3, 2, 3, 2, "sequence")
    parts = instance(shape, 1)
    changed = [p.copy() for p in parts]
    changed[6][0, 3] += 1e-6
    assert distance(gather_transformer(shape, *changed), parts, points_of(parts)) > 1e-8


def test_a_gate_holds_on_the_box_and_not_beyond():
    """So `low` and `high` are really used, and no gate is merely enormous."""
    shape = Shape(2, 1, 2, 1, "sequence")
    parts = (
        np.zeros(2),
        np.ones(2),
        np.zeros((2, 2)),
        np.zeros(2),
        np.array([[1.0, 1.0]]),
        np.zeros(1),
        np.array([[1.0, 0.0]]),
    )
    model = gather_transformer(shape, *parts)
    assert distance(model, parts, points_of(parts)) < ROUNDING
    assert distance(model, parts, [np.array([3.0, 3.0])]) > 3.9


@pytest.mark.parametrize("activation", ["gelu", "identity"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_activations_without_gates(layout, activation):
    shape = Shape(2, 1, 1, 1, layout)
    parts = instance(shape, 4)
    parts[4][2] = 0.0  # a unit without weights is a constant
    act = {"gelu": lambda t: t * (1 + (t / arb(2).sqrt()).erf()) / 2, "identity": lambda t: t}[activation]
    model = gather_transformer(shape, *parts, activation)
    assert distance(model, parts, points_of(parts), act) < ROUNDING
    assert model.config.blocks[0].ffn is not None and model.config.blocks[0].ffn.kind == activation


def test_a_gelu_unit_is_switched_off_far_below_zero_and_may_be_shared():
    shape = Shape(2, 1, 2, 1, "sequence")
    box, weights = (np.zeros(2), np.ones(2), np.zeros((2, 2)), np.zeros(2)), np.array([[1.0, 2.0]])
    shared = gather_transformer(shape, *box, weights, np.zeros(1), np.array([[3.0, 3.0]]), "gelu")
    assert Size.of(shared).units == 1
    alone = gather_transformer(shape, *box, weights, np.zeros(1), np.array([[3.0, 0.0]]), "gelu")
    points = np.random.default_rng(0).random((50, 2))
    both, one = shared.evaluate(points), alone.evaluate(points)
    # The gate adds and subtracts some 43: 2^-48 of rounding in float64. Off, the unit is exp(-800) at most, that is 0.
    assert np.abs(one[:, 0] - both[:, 0]).max() < 1e-13
    assert (one[:, 1] == 0).all()


def test_an_identity_unit_cannot_be_switched_off():
    shape = Shape(2, 1, 2, 1, "sequence")
    box, weights = (np.zeros(2), np.ones(2), np.zeros((2, 2)), np.zeros(2)), np.array([[1.0, 2.0]])
    with pytest.raises(BadInput, match="switched off, not identity"):
        gather_transformer(shape, *box, weights, np.zeros(1), np.array([[3.0, 0.0]]), "identity")


def thirty_four_units():
    """The least number of relu units for sin(x1) + sin(x2) at 0.01, with the affine part a ridge construction has."""
    weights = np.repeat(np.eye(2), 17, axis=0)
    knots = np.tile(np.linspace(0.1, 6, 17), 2)
    affine = np.ones((2, 1)), np.ones(1)
    return np.zeros(2), np.full(2, 2 * math.pi), *affine, weights, -knots, np.cos(knots)[:, None]


@pytest.mark.parametrize(
    ("layout", "nonzero", "dense"), [("sequence", 115, 365), ("token", 108, 266), ("output-token", 117, 287)]
)
def test_the_size_of_the_additive_example(layout, nonzero, dense):
    # 3 weights a unit, and 13 for embedding (1), two heads (query, key, value: 6; output: 2) and read-out (4).
    size = gather_size(Shape(2, 1, 1, 1, layout), *thirty_four_units())
    assert (size.nonzero, size.dense, size.units) == (nonzero, dense, 34)


def test_what_does_nothing_costs_nothing():
    shape = Shape(2, 1, 1, 1, "sequence")
    low, high = np.zeros(2), np.ones(2)
    weights, bias = np.array([[1.0, 1.0], [0.0, 0.0], [2.0, 1.0]]), np.array([0.5, 0.25, 0.0])
    size = gather_size(shape, low, high, np.zeros((2, 1)), np.zeros(1), weights, bias, np.array([[1.0], [4.0], [0.0]]))
    plain = gather_size(shape, low, high, np.zeros((2, 1)), np.ones(1), weights[:1], bias[:1], np.array([[1.0]]))
    assert size == plain and size.units == 1
    first_only = gather_size(
        shape, low, high, np.array([[1.0], [0.0]]), np.zeros(1), weights[:0], bias[:0], np.zeros((0, 1))
    )
    assert (first_only.nonzero, first_only.heads, first_only.units) == (2, 1, 0)  # the row that is read has x1 already


def test_linear_parts_by_position_are_read_where_they_cost_nothing():
    """Swapping two tokens is the sum of both minus the own one: no unit; a map without such a form needs one unit an output."""
    none = np.zeros((0, 2)), np.zeros(0), np.zeros((0, 2))
    shape = Shape(2, 1, 2, 1, "sequence")
    for linear, units in (
        ([[1, 0], [0, 1]], 0),
        ([[0, 1], [1, 0]], 0),
        ([[1, 1], [-1, -1]], 0),
        ([[1, 1], [-1, 3]], 1),
    ):
        parts = (-np.ones(2), np.ones(2), np.array(linear, float), np.array([0.5, 0.25]), *none)
        model = gather_transformer(shape, *parts)
        assert Size.of(model).units == units
        assert distance(model, parts, points_of(parts)) < ROUNDING


def test_a_free_layout_is_a_sequence_unless_there_is_one_token():
    shape = Shape(2, 1, 1, 1)
    parts = instance(shape, 0)
    assert gather_size(shape, *parts) == gather_size(replace(shape, layout="sequence"), *parts)
    assert gather_size(Shape(1, 2, 1, 1), *parts) == gather_size(replace(shape, layout="token"), *parts)


def test_arrays_that_do_not_fit_are_refused():
    shape = Shape(2, 1, 1, 1, "token")
    parts = instance(shape, 0)
    for position in range(7):
        wrong = list(parts)
        wrong[position] = np.zeros((7, 7))
        with pytest.raises(BadInput, match="do not fit"):
            gather_transformer(shape, *wrong)
    with pytest.raises(BadInput, match="activation"):
        gather_transformer(shape, *parts, "tanh")


@pytest.mark.parametrize(
    ("tokens", "width", "refused"), [(256, 1, True), (129, 1, True), (1, 256, False), (128, 1, False)]
)
def test_more_numbers_than_can_be_checked_are_refused_before_the_weights_are_made(tokens, width, refused):
    shape = Shape(tokens, width, 1, 1, "sequence")
    size = tokens * width
    none = np.zeros((0, size)), np.zeros(0), np.zeros((0, 1))
    words = shape, np.zeros(size), np.ones(size), np.ones((size, 1)), np.zeros(1), *none
    if refused:
        with pytest.raises(Refused, match="too many to be gathered"):
            gather_transformer(*words)
    else:
        assert gather_transformer(*words).config.tokens == tokens
