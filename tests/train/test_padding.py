"""Members with fewer key dimensions, padded to the largest: the same run, and the surplus stays exactly zero."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout
from certiformer.model.layout import tensor_specs
from certiformer.train import Optimiser, Problem, train, transformer_outputs

LARGEST, OWN, STEPS = 4, 2, 20
GROUP = "blocks.0.attention.groups.0"


def config(keys: int) -> Config:
    # The scale must not depend on the size of the keys.
    attention = Attention((Heads(1, keys, 2),), scale="unit")
    block = Block(attention, FeedForward(5))
    return Config(Input("continuous", 3, 1), 4, 1, Readout("mean"), (block,), dtype="float32")


def draw(key, member, shared):
    x = jax.random.uniform(key, (8, 3, 1), jnp.float32)
    return x, jnp.max(x, axis=1)


def run(start, keys, free=None):
    problem = Problem(transformer_outputs(config(keys)), draw)
    adam = Optimiser(rate=0.01, weight_decay=0.05)
    stacked = {name: value[None] for name, value in start.items()}
    free = None if free is None else {name: value[None] for name, value in free.items()}
    return train(problem, stacked, seeds=np.array([7]), optimiser=adam, steps=STEPS, record=STEPS, free=free)


@pytest.fixture(scope="module")
def starts():
    generator = np.random.default_rng(5)
    own = {n: generator.normal(size=s.shape).astype(np.float32) for n, s in tensor_specs(config(OWN)).items()}
    padded, free = {}, {}
    for name, spec in tensor_specs(config(LARGEST)).items():
        padded[name], free[name] = np.zeros(spec.shape, np.float32), np.zeros(spec.shape, np.float32)
        place = tuple(slice(0, size) for size in own[name].shape)
        padded[name][place], free[name][place] = own[name], 1.0
    return own, padded, free


def test_a_padded_member_takes_the_same_steps(starts):
    own, padded, free = starts
    small, large = run(own, OWN), run(padded, LARGEST, free)
    # Sums with zeros added may be taken in another order: 20 steps of float32 rounding.
    assert np.allclose(small.losses, large.losses, rtol=1e-5)
    for name, value in small.params.items():
        place = (0, *(slice(0, size) for size in value.shape[1:]))
        assert np.allclose(value[0], large.params[name][place], atol=2e-5), name
        assert np.count_nonzero(np.asarray(large.params[name])[0] * (1 - free[name])) == 0, name
    assert np.abs(np.asarray(small.params[f"{GROUP}.query"])[0] - own[f"{GROUP}.query"]).max() > 0.05


@pytest.mark.slow
def test_without_the_mask_a_surplus_can_grow(starts):
    _, padded, free = starts
    lopsided = {**padded, f"{GROUP}.key": padded[f"{GROUP}.key"] + (1 - free[f"{GROUP}.key"])}
    grown = np.asarray(run(lopsided, LARGEST).params[f"{GROUP}.query"])[0]
    assert np.count_nonzero(grown * (1 - free[f"{GROUP}.query"])) > 0
    held = run(lopsided, LARGEST, free).params
    assert np.count_nonzero(np.asarray(held[f"{GROUP}.query"])[0] * (1 - free[f"{GROUP}.query"])) == 0
    assert (np.asarray(held[f"{GROUP}.key"])[0][free[f"{GROUP}.key"] == 0] == 1).all()
