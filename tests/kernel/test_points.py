"""Point evaluation in balls: equal to the model, to the box evaluation, and to exact sums of units."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.kernel import Refused
from certiformer.kernel.balls import Box, ball, working_precision
from certiformer.kernel.problem import FiniteProblem, Network, PointNetwork
from certiformer.kernel.rules import finite
from certiformer.kernel.taylor import value_ball
from certiformer.kernel.weights import read_model
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer
from certiformer.model.store import tensors_to_bytes
from certiformer.target import Table

working_precision()


def stored(model: Transformer, kind=PointNetwork):
    return kind(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))


CONTINUOUS = Config(
    Input("continuous", tokens=3, width=2),
    width=5,
    outputs=2,
    readout=Readout("all"),
    registers=1,
    code=Code("table"),
    blocks=(Block(Attention((Heads(2, 2, 3),)), FeedForward(6), Norm("pre")), Block(None, FeedForward(4, kind="gelu"))),
)
IDS = Config(
    Input("ids", tokens=4, vocabulary=3),
    width=4,
    outputs=1,
    readout=Readout("token", token=2),
    registers=1,
    code=Code("one-hot", offset=0),
    blocks=(Block(Attention((Heads(1, 2, 2),)), FeedForward(5)),),
)


def test_points_agree_with_the_box_evaluation():
    model = Transformer.random(CONTINUOUS, 3)
    point = tuple(Fraction(k, 7) for k in range(6))
    box = Box(tuple(ball(x).mid() for x in point), (ball(0),) * 6)
    by_box = [value_ball(form) for form in stored(model, Network).forms(box, 0)]
    for a, b in zip(stored(model).values(point), by_box, strict=True):
        assert a.overlaps(b)
        assert float(a.rad()) < 1e-20


def test_token_ids_agree_with_the_model():
    model = Transformer.random(IDS, 5)
    rows = [[0, 2, 1, 1], [2, 2, 2, 2], [1, 0, 0, 2]]
    # The model runs in float64 with numbers of size one: a few hundred roundings of 2^-53.
    for row, value in zip(rows, model.evaluate(rows), strict=True):
        (enclosed,) = stored(model).values(tuple(map(Fraction, row)))
        assert abs(float(enclosed.mid()) - value[0]) < 1e-13


@pytest.mark.parametrize("row", [(0, 1, 2), (0, 1, 2, 3), (0, -1, 0, 0), (Fraction(1, 2), 0, 0, 0)])
def test_what_is_no_sequence_of_letters_is_refused(row):
    with pytest.raises(Refused):
        stored(Transformer.random(IDS, 5)).values(tuple(map(Fraction, row)))


def one_direction(units: int, seed: int, directions: int = 1) -> Transformer:
    """Units that look in few directions, as memorisation makes them."""
    config = Config(
        Input("continuous", tokens=1, width=1),
        3,
        2,
        Readout("token", token=0),
        blocks=(Block(None, FeedForward(units)),),
    )
    generator = np.random.default_rng(seed)
    model = Transformer.random(config, seed)
    up = generator.normal(size=(3, directions))[:, np.arange(units) % directions]
    return Transformer(config, {**model.tensors, "blocks.0.ffn.up": up})


@pytest.mark.parametrize("directions", [1, 3])
def test_bundled_units_are_the_same_sum(directions):
    model = one_direction(40, 7, directions)
    network, plain = stored(model), stored(model, Network)
    up, shift = model.tensors["blocks.0.ffn.up"], model.tensors["blocks.0.ffn.up_bias"]
    embed, bias = model.tensors["embed.weight"][0], model.tensors["embed.bias"]
    # Points right at a kink of a unit too: there the sign of the unit is not certain in balls.
    kinks = [float(-(bias @ up[:, i] + shift[i]) / (embed @ up[:, i])) for i in range(6)]
    for x in [Fraction(1, 3), Fraction(-5), Fraction(0), *map(Fraction, kinks)]:
        box = Box((ball(x),), (ball(0),))
        for a, form in zip(network.values((x,)), plain.forms(box, 0), strict=True):
            assert a.overlaps(value_ball(form))
            assert float(a.rad()) < 1e-20
    (layer,) = [bundles for _, bundles in network._steps if bundles is not None]
    assert len(layer.bundles) == directions


def test_the_bundled_sum_is_exact_on_integers():
    config = Config(Input("continuous", 1, 1), 2, 1, Readout("token", token=0), blocks=(Block(None, FeedForward(8)),))
    up, down = np.zeros((2, 8)), np.zeros((8, 2))
    up[0], down[:, 1] = 1.0, [3, -1, 4, -1, 5, -9, 2, 6]
    tensors = {
        "embed.weight": np.array([[1.0, 0.0]]),
        "embed.bias": np.zeros(2),
        "blocks.0.ffn.up": up,
        "blocks.0.ffn.up_bias": -np.array([5, 3, 1, 0, -2, 3, 8, 2.0]),
        "blocks.0.ffn.down": down,
        "blocks.0.ffn.down_bias": np.zeros(2),
        "readout.weight": np.array([[0.0], [1.0]]),
        "readout.bias": np.zeros(1),
    }
    network = stored(Transformer(config, tensors))
    for s in range(-4, 12):
        wanted = sum(int(d) * max(s - int(t), 0) for d, t in zip(down[:, 1], [5, 3, 1, 0, -2, 3, 8, 2], strict=True))
        (value,) = network.values((Fraction(s),))
        assert value == wanted


def finite_problem() -> FiniteProblem:
    model = Transformer.random(CONTINUOUS, 3)
    points = [tuple(Fraction(k * r, 5) for k in range(6)) for r in range(1, 4)]
    values = model.evaluate([[float(x) for x in point] for point in points])
    rows = tuple((p, tuple(Fraction(float(v)) for v in row)) for p, row in zip(points, values, strict=True))
    return FiniteProblem(stored(model), Table("t", "continuous", rows))


def test_the_rule_finds_the_largest_error_and_the_witness_cannot_exceed_it():
    problem = finite_problem()
    upper = finite(problem)
    assert 0 < float(upper) < 1e-12  # the table holds float64 outputs of the same model
    for point, outputs in problem.target.rows:
        for output in range(len(outputs)):
            assert problem.error_lower(point, output) <= upper


@pytest.mark.parametrize(
    ("point", "output", "why"),
    [(("9",) * 6, 0, "not a row"), (None, 6, "output"), (None, -1, "output"), (("0",), 0, "not a row")],
)
def test_a_witness_that_is_no_row_is_refused(point, output, why):
    problem = finite_problem()
    row = tuple(map(Fraction, point)) if point else problem.target.rows[0][0]
    with pytest.raises(Refused, match=why):
        problem.error_lower(row, output)
