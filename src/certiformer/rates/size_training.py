"""Training members of one shape on one of the targets of size, and what they reach on both samples.

The training sample is fixed and the same for all members; batches are drawn from it. Errors are those of the final
weights on the whole training sample and on a fresh test sample (mean squared, mean absolute) and the largest one
over fine points. Everything is float32, whatever precision JAX is set to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.model.config import Config
from certiformer.model.forward import forward
from certiformer.model.transformer import Transformer
from certiformer.rates.size_models import Tensors
from certiformer.rates.size_targets import SizeTarget
from certiformer.sweep.job import Row
from certiformer.train import Optimiser, Problem, stack, train, transformer_outputs

TEST_POINTS = 8192
# One number a purpose: the samples must not depend on which members are trained.
TRAIN_SEED, TEST_SEED, FINE_SEED = 11, 12, 13


@dataclass(frozen=True)
class Schedule:
    """How long and how fast: Adam with a cosine to zero, batches from a training sample of `samples` points."""

    steps: int
    samples: int
    batch: int = 32
    rate: float = 0.01


def train_members(
    target: SizeTarget,
    config: Config,
    starts: Sequence[Tensors],
    free: Sequence[Tensors],
    seeds: Sequence[int],
    schedule: Schedule,
) -> tuple[list[Tensors], list[bool]]:
    """The trained weights of every member, and whether it diverged."""
    x, y = target.sample(schedule.samples, TRAIN_SEED)
    trained = train(
        Problem(transformer_outputs(config), _draw(schedule.batch)),
        stack([_single(each) for each in starts]),
        seeds=np.asarray(seeds),
        optimiser=Optimiser(rate=schedule.rate, schedule="cosine"),
        steps=schedule.steps,
        shared=(jnp.asarray(_shaped(config, x), jnp.float32), jnp.asarray(y, jnp.float32)),
        free=stack([_single(each) for each in free]),
        record=schedule.steps // 10 if schedule.steps % 10 == 0 else schedule.steps,
    )
    arrays = {name: np.asarray(tensor) for name, tensor in trained.params.items()}
    members = [{name: tensor[m] for name, tensor in arrays.items()} for m in range(len(starts))]
    return members, [bool(d) for d in trained.diverged]


def trained_errors(target: SizeTarget, config: Config, members: Sequence[Tensors], samples: int) -> list[Row]:
    """The errors of every member: train_mse, train_l1, test_mse, test_l1, test_sup."""
    stacked = stack([_single(each) for each in members])
    columns: dict[str, np.ndarray] = {}
    for name, (x, y) in _points(target, samples).items():
        inputs = jnp.asarray(_shaped(config, x), jnp.float32)
        difference = np.asarray(_outputs(config, stacked, inputs), np.float64) - y
        columns |= _measured(name, difference)
    return [{name: float(column[m]) for name, column in columns.items()} for m in range(len(members))]


def built_errors(target: SizeTarget, config: Config, tensors: Mapping[str, Any], samples: int) -> Row:
    """The same errors of one built model, computed in float64."""
    model = Transformer(config, tensors)
    columns: dict[str, np.ndarray] = {}
    for name, (x, y) in _points(target, samples).items():
        columns |= _measured(name, (model.evaluate(x) - y)[None])
    return {name: float(column[0]) for name, column in columns.items()}


def _points(target: SizeTarget, samples: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {
        "train": target.sample(samples, TRAIN_SEED),
        "test": target.sample(TEST_POINTS, TEST_SEED),
        "fine": target.fine(FINE_SEED),
    }


def _measured(name: str, difference: np.ndarray) -> dict[str, np.ndarray]:
    if name == "fine":
        return {"test_sup": np.abs(difference).max(axis=(1, 2))}
    return {f"{name}_mse": (difference**2).mean(axis=(1, 2)), f"{name}_l1": np.abs(difference).mean(axis=(1, 2))}


def _shaped(config: Config, x: np.ndarray) -> np.ndarray:
    return x.reshape(len(x), config.tokens, -1)


def _single(tensors: Mapping[str, np.ndarray]) -> dict[str, jax.Array]:
    return {name: jnp.asarray(tensor, jnp.float32) for name, tensor in tensors.items()}


@lru_cache(maxsize=8)
def _draw(batch: int) -> Any:
    # One function object a batch size: the compiled training is remembered by it.
    return partial(_batch, batch)


def _batch(batch: int, key: jax.Array, member: Any, shared: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    x, y = shared
    # The type of the integers must not depend on the precision JAX is set to: it changes what is drawn.
    chosen = jax.random.randint(key, (batch,), 0, x.shape[0], dtype=jnp.int32)
    return x[chosen], y[chosen]


@partial(jax.jit, static_argnames=("config",))
def _outputs(config: Config, stacked: Any, x: jax.Array) -> jax.Array:
    return jax.lax.map(lambda tensors: jax.vmap(lambda one: forward(config, tensors, one))(x), stacked)
