"""Predictive coding against automatic differentiation: equal for a small nudge, not for a large one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.model.forward import forward
from certiformer.rates.size_models import size_config
from certiformer.rates.size_targets import SizeTarget
from certiformer.train.predictive_coding import cosine, layers_of, loss_gradients, predictive_updates

CONFIG = size_config(SizeTarget("graph", tokens=3), units=6, heads=2, key=2, depth=2, layout="blocks", width=4)


@pytest.fixture(scope="module")
def case():
    with jax.enable_x64(True):
        tensors = {n: jnp.asarray(t, jnp.float64) for n, t in Transformer.random(CONFIG, 1).tensors.items()}
        x = jnp.asarray(np.random.default_rng(0).uniform(size=(3, 1)))
        yield layers_of(CONFIG), tensors, x, x[::-1] + 1.0


def test_the_layers_are_the_transformer(case):
    layers, tensors, x, _ = case
    rows = x
    for layer in layers:
        rows = layer(tensors, rows)
    np.testing.assert_allclose(rows.reshape(-1), forward(CONFIG, tensors, x), atol=1e-12)  # float64


def test_updates_agree_with_backpropagation_as_the_nudge_goes_to_zero(case):
    layers, tensors, x, y = case
    wanted = loss_gradients(layers, tensors, x, y)
    size = max(float(jnp.abs(slope).max()) for slope in wanted.values())
    errors = {}
    for beta in (1e-2, 1e-4):
        found, rest = predictive_updates(layers, tensors, x, y, beta, steps=4000, rate=0.1)
        assert rest < 1e-3 * size
        errors[beta] = max(float(jnp.abs(found[name] - wanted[name]).max()) for name in wanted) / size
    assert errors[1e-4] < 5e-3 < 0.1 < errors[1e-2]  # planted: with a strong nudge they are not the gradients
    assert 50 < errors[1e-2] / errors[1e-4] < 200  # first order in beta
    assert cosine(wanted, wanted) == pytest.approx(1)


def test_other_transformers_are_refused():
    with pytest.raises(BadInput, match="all tokens"):
        layers_of(size_config(SizeTarget("sines"), units=4, heads=1, key=1))
