"""Zero in, zero out, for random bias-free networks; one bias, or one word, and the theorem does not speak."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.expressivity.word_network import FLOATS, PLACES, NormedShape, WordBlock, WordNetwork, outputs
from certiformer.expressivity.zero_stays_zero import ZERO_AT_ZERO, BiasFree, zero_limit

WIDTH, UNITS = 6, 5


def network(shape: NormedShape, rows: np.ndarray, seed: int) -> WordNetwork:
    """Random weights; the vectors of an input stand in the table."""
    rng = np.random.default_rng(seed)

    def normal(*size: int) -> np.ndarray:
        return rng.normal(size=size)

    query, key, value = (normal(2, WIDTH) for _ in range(3))
    gate = normal(UNITS, WIDTH) if shape.gated else None
    block = WordBlock(query, key, value, normal(WIDTH, 2), normal(UNITS, WIDTH), normal(WIDTH, UNITS), gate)
    return WordNetwork(shape, rows @ normal(3, WIDTH), None, (block, block), normal(2, WIDTH))


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("gated", [False, True])
def test_zero_in_zero_out_for_all_weights(place, gated):
    shape = NormedShape(place, "rms", 1e-6, "silu", gated, biased=False, rotary=0.7)
    for seed in range(5):
        model = network(shape, np.zeros((3, 3)), seed)
        assert not outputs(model, (0, 1, 2)).any()
        biased = replace(model, blocks=tuple(replace(b, up_bias=np.ones(UNITS), gate=None) for b in model.blocks))
        assert outputs(biased, (0, 1, 2)).any()  # the negative control: a bias lifts it


def test_without_epsilon_the_size_is_forgotten():
    shape = NormedShape("post", "rms", 0.0, "gelu", biased=False)
    rows = np.random.default_rng(3).normal(size=(3, 3))

    def behind_a_norm(size: float, epsilon: float) -> np.ndarray:
        model = network(replace(shape, epsilon=epsilon), size * rows, 0)
        squares = (model.table**2).mean(1, keepdims=True) + epsilon
        return outputs(replace(model, table=model.table / np.sqrt(squares)), (0, 1, 2), FLOATS)

    assert np.allclose(behind_a_norm(1.0, 0.0), behind_a_norm(7.0, 0.0), rtol=1e-12)
    assert not np.allclose(behind_a_norm(1.0, 0.5), behind_a_norm(7.0, 0.5), rtol=1e-3)


def test_each_assumption():
    shape = BiasFree("vectors", "gelu")
    assert zero_limit(shape, -2.0) == 2.0
    assert zero_limit(replace(shape, inputs="words"), 2.0) is None
    assert zero_limit(replace(shape, added=("biases",)), 2.0) is None
    assert zero_limit(replace(shape, activation="sigmoid"), 2.0) is None and "sigmoid" not in ZERO_AT_ZERO
