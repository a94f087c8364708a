"""Training for the largest error: one transformer layer, with an affine or a ReLU feed-forward network, by Adam.

Several restarts run at once. This is the adversary of the impossibility theorems: it looks for a counterexample, and it
is shown to be able to find one where the theorems do not speak.
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


def trained_on_determinant(config, steps, restarts, constant_query, law, batch, rate):
    """The transformers that Adam finds for the determinant, one for each restart.

    **Arguments:**

    - `constant_query`: keep the query weights at 0, so that only the query's bias is left.
    - `law`: draws inputs: `unit_tokens` or `frames`; each step sees `batch` new ones.
    """
    starts = [Transformer.random(config, seed).tensors for seed in range(restarts)]
    tensors = {name: np.stack([start[name] for start in starts]) for name in starts[0]}
    if constant_query:
        tensors[QUERY] = np.zeros_like(tensors[QUERY])
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, steps))
    inputs = law(np.random.default_rng(0), (steps, batch), config.tokens)

    def loss(weights, tokens, target):
        error = jax.vmap(lambda x: forward(config, weights, x)[0])(tokens) - target
        # Between the mean square, whose gradient sees every point, and the largest error.
        return jnp.mean(error**2) + 0.1 * jnp.mean(error**8) ** (1 / 8)

    def step(state, seen):
        weights, memory = state
        slope = jax.grad(loss)(weights, *seen)
        if constant_query:
            slope[QUERY] = jnp.zeros_like(slope[QUERY])
        change, memory = optimiser.update(slope, memory)
        return (optax.apply_updates(weights, change), memory), None

    def run(weights, tokens, target):
        return jax.lax.scan(step, (weights, optimiser.init(weights)), (tokens, target))[0][0]

    found = jax.jit(jax.vmap(run, in_axes=(0, None, None)))(tensors, inputs, np.linalg.det(inputs))
    arrays = {name: np.asarray(tensor) for name, tensor in found.items()}
    return [Transformer(config, {name: t[restart] for name, t in arrays.items()}) for restart in range(restarts)]


def unit_tokens(generator, shape, size):
    """Inputs of `size` tokens, each uniform on the unit sphere of `size` coordinates."""
    tokens = generator.standard_normal((*shape, size, size))
    return tokens / np.linalg.norm(tokens, axis=-1, keepdims=True)


def frames(generator, shape, size):
    """Inputs of `size` orthonormal tokens of `size` coordinates, of both orientations: the determinant is 1 or -1."""
    basis, _ = np.linalg.qr(generator.standard_normal((*shape, size, size)))
    return basis * generator.choice([-1.0, 1.0], (*shape, 1, size))


def largest_error(model, law, points=4096):
    """The largest error on new random inputs: a lower bound of the supremum."""
    tokens = law(np.random.default_rng(1), (points,), model.config.tokens)
    return np.abs(model.evaluate(tokens.reshape(points, -1))[:, 0] - np.linalg.det(tokens)).max()
