"""The rational run against plain floats, straight from the definition, on random weights of every kind it accepts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.rational_run import rational_outputs
from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    Transformer,
    tensor_specs,
)
from model.oracle import run as outputs

HARD = Attention((Heads(2, 2, 3), Heads(1, 1, 1)), kind="hard", bias=True, scale="unit")
BASE = Config(
    Input("continuous", 3, width=2),
    4,
    2,
    Readout("all"),
    blocks=(Block(HARD, FeedForward(5)), Block(None, FeedForward(3, kind="identity", residual=False))),
    code=Code("table"),
    loops=2,
)
CONFIGS = {
    "hard": BASE,
    "linear": replace(BASE, blocks=(Block(replace(HARD, kind="linear", bias=False, residual=False), FeedForward(5)),)),
    "token": replace(BASE, readout=Readout("token", 1), code=Code("one-hot", offset=1)),
    "mean": replace(BASE, readout=Readout("mean"), code=Code(), loops=1),
    "sum": replace(BASE, readout=Readout("sum"), blocks=(Block(HARD),)),
}


def whole(config, seed):
    """Small whole numbers: the float64 run is then exact, except for thirds, and ties are frequent."""
    generator = np.random.default_rng(seed)
    return Transformer(
        config, {n: generator.integers(-2, 3, s.shape).astype(float) for n, s in tensor_specs(config).items()}
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_it_is_what_the_definition_says(name):
    for seed in range(3):
        model = whole(CONFIGS[name], seed)
        points = np.random.default_rng(seed + 10).integers(-2, 3, (8, 6)).astype(float)
        exact = [rational_outputs(model, [[Fraction(x) for x in token] for token in p.reshape(3, 2)]) for p in points]
        run = [outputs(model, p.reshape(3, 2).tolist()) for p in points]
        wanted = np.array([[float(y) for row in e for y in row] for e in exact])
        # Whole numbers below 2^53 up to divisions by the size of a tie, each rounded once and scaled by later layers.
        np.testing.assert_allclose(run, wanted, rtol=1e-12, atol=1e-9)
        assert np.abs(wanted).max() > 1


def test_thirds_stay_thirds():
    config = replace(CONFIGS["mean"], blocks=())
    model = whole(config, 0)
    model = Transformer(config, {n: np.ones_like(t) for n, t in model.tensors.items()})
    assert rational_outputs(model, [[Fraction(1, 3), 0], [0, 0], [0, 0]]) == [[Fraction(4, 9) + 5] * 2]


@pytest.mark.parametrize(
    "config",
    [
        replace(BASE, blocks=(Block(replace(HARD, kind="softmax")),)),
        replace(BASE, blocks=(Block(replace(HARD, scale="inverse-sqrt")),)),
        replace(BASE, blocks=(Block(replace(HARD, mask="causal")),)),
        replace(BASE, blocks=(Block(replace(HARD, score_bias="toeplitz")),)),
        replace(BASE, blocks=(Block(HARD, FeedForward(2, kind="gelu")),)),
        replace(BASE, blocks=(Block(HARD, norm=Norm("pre")),)),
        replace(BASE, code=Code("circle", offset=0, period=5)),
        replace(BASE, registers=1),
        replace(BASE, input=Input("ids", 3, vocabulary=4)),
    ],
)
def test_what_is_not_rational_is_refused(config):
    with pytest.raises(BadInput, match="only a transformer of rational operations"):
        rational_outputs(whole(config, 0), [[Fraction(0)] * 2] * 3)


def test_other_shapes_are_refused():
    with pytest.raises(BadInput, match="3 tokens of 2 numbers"):
        rational_outputs(whole(BASE, 0), [[Fraction(0)] * 2] * 2)
