"""Transformers that classify the last token of a sequence of symbols: their shapes at equal weights, training and errors.

All models of one comparison have at most the weights of its first one. Each is trained at every learning rate asked for,
and the run with the smallest training loss counts: a rate that suits one shape may not suit another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout
from certiformer.model.transformer import Transformer
from certiformer.rates.composition_tasks import Task
from certiformer.rates.size_models import parameter_count
from certiformer.sweep.job import Row
from certiformer.train import LOSSES, Optimiser, Problem, Trained, stack, train, transformer_outputs

TRAIN_SEED, TEST_SEED = 21, 22  # the samples must not depend on which models are trained
TEST_SEQUENCES = 4096


def token_config(
    task: Task, *, width: int, depth: int = 1, heads: int = 2, key: int | None = None, norm: str = "none"
) -> Config:
    """`depth` blocks of attention and 2 `width` hidden units with residuals, a table of positions, read off the last token.

    The heads have keys and values of size `key`, by default so large that all of them together have the width.
    """
    size = width // heads if key is None else key
    if size < 1:
        raise BadInput(f"{heads} heads do not fit into a model of width {width}")
    place = None if norm == "none" else Norm(norm)
    block = Block(Attention((Heads(heads, size, size),)), FeedForward(2 * width), place)
    return Config(
        Input("ids", tokens=task.length, vocabulary=task.symbols),
        width=width,
        outputs=task.classes,
        readout=Readout("token", token=task.length - 1),
        blocks=(block,) * depth,
        code=Code("table"),
        dtype="float32",
    )


def equal_width(task: Task, width: int, depth: int, heads: int, norm: str = "none") -> int:
    """The largest width, a multiple of the heads, whose weights do not exceed those of one block of `width`.

    >>> from certiformer.rates.composition_tasks import task
    >>> equal_width(task("parity", 8), 32, 4, heads=2)
    16
    """
    budget = parameter_count(token_config(task, width=width, heads=heads, norm=norm))
    for smaller in range(width - width % heads, 0, -heads):
        if parameter_count(token_config(task, width=smaller, depth=depth, heads=heads, norm=norm)) <= budget:
            return smaller
    raise BadInput(f"{budget:,} weights are too few for {depth} blocks; raise --width")


def trained_rows(task: Task, config: Config, training: Mapping[str, Any], seeds: Sequence[int]) -> list[Row]:
    """One model for each seed; `training` has `samples`, `batch`, `steps` and `rates`.

    A row has the weights, the share of wrong answers on sequences of the training sample and on fresh ones, the
    cross-entropy on the fresh ones, and the rate that counted.
    """
    sample = task.sample(training["samples"], TRAIN_SEED)
    x, y = (jnp.asarray(part) for part in sample)
    starts = stack([_start(config, seed) for seed in seeds])
    apply = transformer_outputs(config)
    problem = Problem(apply, _draw(training["batch"]), "cross-entropy")
    steps = training["steps"]
    runs: list[Trained] = [
        train(
            problem,
            starts,
            seeds=np.asarray(seeds),
            optimiser=Optimiser(rate=rate, schedule="warmup-cosine"),
            steps=steps,
            shared=(x, y),
            record=max(1, steps // 10) if steps % max(1, steps // 10) == 0 else steps,
        )
        for rate in training["rates"]
    ]
    scores = np.array([np.where(run.diverged, np.inf, run.scores) for run in runs])
    rows, fresh = [], task.sample(TEST_SEQUENCES, TEST_SEED)
    for member, seed in enumerate(seeds):
        best = int(np.argmin(scores[:, member]))
        params = jax.tree.map(lambda leaf, place=member: leaf[place], runs[best].params)
        seen = tuple(part[:TEST_SEQUENCES] for part in sample)
        wrong, loss = _errors(apply, params, *fresh)
        row = {"seed": seed, "weights": parameter_count(config), "width": config.width, "wrong": wrong, "loss": loss}
        row |= {"seen_wrong": _errors(apply, params, *seen)[0], "rate": float(training["rates"][best])}
        rows.append(row | {"diverged": bool(np.isinf(scores[best, member]))})
    return rows


def _start(config: Config, seed: int) -> dict[str, jax.Array]:
    drawn = Transformer.random(config, seed).tensors
    return {name: jnp.asarray(tensor, jnp.float32) for name, tensor in drawn.items()}


@cache
def _draw(batch: int) -> Any:
    # One function object a batch size: the compiled training is remembered by it.
    return partial(_batch, batch)


def _batch(batch: int, key: jax.Array, member: Any, shared: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    x, y = shared
    # The type of the integers must not depend on the precision JAX is set to: it changes what is drawn.
    chosen = jax.random.randint(key, (batch,), 0, x.shape[0], dtype=jnp.int32)
    return x[chosen], y[chosen]


def _errors(apply: Any, params: Any, x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """The share of wrong answers, and the cross-entropy in nats."""
    outputs = jax.jit(apply)(params, jnp.asarray(x))
    wrong = float(np.mean(np.argmax(np.asarray(outputs), axis=1) != y))
    return wrong, float(LOSSES["cross-entropy"](outputs, jnp.asarray(y)))
