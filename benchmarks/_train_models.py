"""What `train.py` and `gpu/train.py` train: many small transformers with starts and batches of their own.

One layer: 8 tokens of two numbers, width 16, a table of positions, two softmax heads with keys and values of size 8, 64
ReLU units, residuals, mean read-out; 3,345 weights in float32; Adam with rate 1e-3. There are 8 batches (of each model
its own, or the same for all), and each step takes one of them, drawn at random, the same for all models.
"""

from __future__ import annotations

import numpy as np

TOKENS, SIZE, WIDTH, HIDDEN, HEADS, BATCHES = 8, 2, 16, 64, 2, 8
RATE, B1, B2, EPSILON = 1e-3, 0.9, 0.999, 1e-8


def config():
    """The configuration of every model."""
    from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout

    size = WIDTH // HEADS
    block = Block(Attention((Heads(HEADS, size, size),)), FeedForward(HIDDEN))
    inputs = Input("continuous", tokens=TOKENS, width=SIZE)
    return Config(inputs, WIDTH, 1, Readout("mean"), (block,), code=Code("table"), dtype="float32")


def starts(models: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights of the usual sizes, by the names of the model's tensors."""
    from certiformer.model.layout import tensor_specs

    generator = np.random.default_rng(seed)
    found = {}
    for name, spec in tensor_specs(config()).items():
        noise = generator.standard_normal((models, *spec.shape)).astype(np.float32)
        found[name] = noise * np.float32(0.0 if name.endswith("bias") else 1 / np.sqrt(spec.shape[-2]))
    return found


def batches(models: int | None, batch: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and wanted outputs of all batches: of every model its own, or (None) the same for all."""
    shape = () if models is None else (models,)
    points = np.random.default_rng(seed).uniform(-1, 1, (*shape, BATCHES, batch, TOKENS, SIZE)).astype(np.float32)
    wanted = np.sin(3 * points[..., 0]).mean(-1) + points[..., 1].max(-1)
    return points, wanted.astype(np.float32)[..., None]


def draw(key, member, shared):
    """One of the batches."""
    import jax

    points, wanted = member if member is not None else shared
    place = jax.random.randint(key, (), 0, BATCHES)
    return points[place], wanted[place]


def order(steps: int) -> np.ndarray:
    """Which batch each step takes when the seed is 0."""
    import jax

    keys = jax.vmap(lambda step: jax.random.fold_in(jax.random.key(np.uint32(0)), step))(np.arange(steps))
    return np.asarray(jax.vmap(lambda key: jax.random.randint(key, (), 0, BATCHES))(keys))


def step_operations(batch: int) -> int:
    """Operations of the matrix products of one step: those of the forward pass, and twice as many to go back."""
    from certiformer.model.cost import cost

    return 3 * batch * cost(config()).flops
