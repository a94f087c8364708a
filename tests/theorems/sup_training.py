"""Training for the largest error: one transformer layer, with an affine or a ReLU feed-forward network, by Adam.

Several restarts run at once. This is the adversary of the impossibility theorems: it looks for a counterexample, and it is
shown to be able to find one where the theorems do not speak.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax

from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer
from certiformer.model.forward import forward

QUERY = "blocks.0.attention.groups.0.query"


def layer(size, heads, ffn, hidden):
    """`size` tokens of `size` coordinates, a one-hot position code, a sink, and room for what the heads gather."""
    attention = Attention((Heads(heads, size, size),), bias=True, scale="unit")
    source, code = Input("continuous", size, width=size), Code("one-hot", offset=size)
    block = Block(attention, FeedForward(hidden, kind=ffn))
    return Config(source, (size + 2) * size, 1, Readout("token", 0), blocks=(block,), registers=1, code=code)


def trained_on_determinant(config, steps, restarts, constant_query, batch=256, rate=0.01):
    """The transformers that Adam finds for the determinant of unit tokens, one for each restart.

    **Arguments:**

    - `constant_query`: keep the query weights at 0, so that only the query's bias is left.
    - `batch`: how many new inputs each step sees.
    """
    starts = [Transformer.random(config, seed).tensors for seed in range(restarts)]
    tensors = {name: jnp.stack([jnp.asarray(start[name]) for start in starts]) for name in starts[0]}
    if constant_query:
        tensors[QUERY] = jnp.zeros_like(tensors[QUERY])
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))

    def loss(weights, inputs):
        error = jax.vmap(lambda x: forward(config, weights, x)[0])(inputs) - jnp.linalg.det(inputs)
        # Between the mean square, whose gradient sees every point, and the largest error.
        return jnp.mean(error**2) + 0.1 * jnp.mean(error**8) ** (1 / 8)

    def step(state, key):
        weights, memory = state
        slope = jax.grad(loss)(weights, unit_tokens(key, batch, config.tokens))
        if constant_query:
            slope[QUERY] = jnp.zeros_like(slope[QUERY])
        change, memory = optimiser.update(slope, memory)
        return (optax.apply_updates(weights, change), memory), None

    def run(weights):
        keys = jax.random.split(jax.random.key(0), steps)
        return jax.lax.scan(step, (weights, optimiser.init(weights)), keys)[0][0]

    found = {name: np.asarray(tensor) for name, tensor in jax.jit(jax.vmap(run))(tensors).items()}
    return [Transformer(config, {name: t[restart] for name, t in found.items()}) for restart in range(restarts)]


def unit_tokens(key, points, size):
    """`points` inputs of `size` tokens, each uniform on the unit sphere of `size` coordinates."""
    tokens = jax.random.normal(key, (points, size, size))
    return tokens / jnp.linalg.norm(tokens, axis=-1, keepdims=True)


def largest_error(model, points=4096):
    """The largest error on new random inputs: a lower bound of the supremum."""
    tokens = np.asarray(unit_tokens(jax.random.key(1), points, model.config.tokens))
    return np.abs(model.evaluate(tokens.reshape(points, -1))[:, 0] - np.linalg.det(tokens)).max()
