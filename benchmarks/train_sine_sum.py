"""Trains the small transformer that the benchmarks prove: sin(x1) + sin(x2) on [0, 2 pi]^2.

    python benchmarks/train_sine_sum.py            # writes benchmarks/models/trained-sine-sum

Two scalar tokens, width 16, a learned table of positions, one softmax head (key 16, value 16), a ReLU layer of 64 units,
residuals, mean read-out, float64; Adam with a cosine schedule. Eleven seconds on one core. The shipped files were written
by this script; another machine or another JAX release gives other last digits, hence another net of the same quality.
"""

from __future__ import annotations

import os

# One thread: sums in a fixed order. Read when jax starts, so set before it is imported.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax

from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer, save

FOLDER = Path(__file__).parent / "models" / "trained-sine-sum"
STEPS, BATCH, RATE, SEED = 4000, 512, 3e-3, 0

CONFIG = Config(
    Input("continuous", tokens=2, width=1),
    width=16,
    outputs=1,
    readout=Readout("mean"),
    blocks=(Block(attention=Attention((Heads(1, key=16, value=16),)), ffn=FeedForward(64)),),
    code=Code("table"),
)


def target(x):
    """sin(x1) + sin(x2) on rows."""
    return jnp.sin(x[:, 0]) + jnp.sin(x[:, 1])


def train() -> Transformer:
    """The trained transformer."""
    start = jax.tree.map(jnp.asarray, Transformer.random(CONFIG, SEED))
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, STEPS))

    def loss(model, x):
        outputs = jax.vmap(lambda row: model(row[:, None])[0])(x)
        return jnp.mean((outputs - target(x)) ** 2)

    def step(state, key):
        model, memory = state
        gradient = jax.grad(loss)(model, jax.random.uniform(key, (BATCH, 2), maxval=2 * jnp.pi))
        updates, memory = optimiser.update(gradient, memory)
        return (optax.apply_updates(model, updates), memory), None

    keys = jax.random.split(jax.random.key(SEED), STEPS)
    (model, _), _ = jax.jit(lambda state: jax.lax.scan(step, state, keys))((start, optimiser.init(start)))
    return Transformer(CONFIG, model.tensors)


def sampled_error(model: Transformer, points: int = 401) -> float:
    """The largest error on a grid of points x points."""
    axis = np.linspace(0, 2 * np.pi, points)
    rows = np.stack(np.meshgrid(axis, axis, indexing="ij"), -1).reshape(-1, 2)
    return float(np.abs(model.evaluate(rows)[:, 0] - np.sin(rows).sum(1)).max())


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    began = time.process_time()
    model = train()
    save(model, FOLDER)
    print(f"{FOLDER}: sampled error {sampled_error(model):.6f}, {time.process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
