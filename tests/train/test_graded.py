"""A grading changes no function, and a step of training as the page says."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import Transformer
from certiformer.rates.size_models import size_config
from certiformer.rates.size_targets import SizeTarget
from certiformer.train import transformer_outputs
from certiformer.train.graded import graded_outputs, grading, plain

CONFIG = size_config(SizeTarget("sines"), units=6, heads=2, key=2, depth=2, layout="blocks", width=4)
TENSORS = {name: jnp.asarray(t) for name, t in Transformer.random(CONFIG, 0).tensors.items()}
X = jnp.asarray(np.random.default_rng(0).uniform(size=(5, 2, 1)), jnp.float32)
Y = jnp.ones((5, 1), jnp.float32)
READING = ("blocks.0.attention.groups.0.query", "blocks.1.ffn.up", "readout.weight")


def test_the_plain_weights_do_the_same_and_every_plain_transformer_is_reached():
    outputs = transformer_outputs(CONFIG)
    np.testing.assert_array_equal(graded_outputs(CONFIG, TENSORS, X, 0.5), outputs(plain(CONFIG, TENSORS, 0.5), X))
    assert np.abs(outputs(TENSORS, X) - graded_outputs(CONFIG, TENSORS, X, 0.5)).max() > 1e-3
    back = plain(CONFIG, plain(CONFIG, TENSORS, 0.5), 2.0)  # powers of two: exact
    for name, tensor in TENSORS.items():
        np.testing.assert_array_equal(back[name], tensor)


@pytest.mark.parametrize("name", READING)
def test_a_step_of_gradient_descent_has_another_rate_for_every_grade(name):
    def loss(outputs):
        return jnp.mean((outputs - Y) ** 2)

    graded = jax.grad(lambda t: loss(graded_outputs(CONFIG, t, X, 0.5)))(TENSORS)[name]
    ungraded = jax.grad(lambda t: loss(transformer_outputs(CONFIG)(t, X)))(plain(CONFIG, TENSORS, 0.5))[name]
    powers = grading(CONFIG.width, 0.5)[:, None]
    # W' = D W moves by D times the step of W, that is by D^2 G'.
    np.testing.assert_allclose(powers * graded, powers**2 * ungraded, rtol=1e-4, atol=1e-7)  # float32
    assert np.abs(powers * graded - ungraded).max() > 1e-6


def test_what_is_no_grading_is_refused():
    for wrong in ({"base": 0.0}, {"base": 2.0, "parts": 9}):
        with pytest.raises(BadInput):
            grading(4, **wrong)
    normed = size_config(SizeTarget("sines"), units=6, heads=2, key=2, norm="pre")
    with pytest.raises(BadInput, match="stream itself"):
        plain(normed, TENSORS, 0.5)
