"""What the study `gravity` measures on one model: errors, attention against the physical weights, change under permutation;
and the same errors of the heads that are built without training."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.model.config import Config
from certiformer.model.forward import trace_weights
from certiformer.model.transformer import Transformer
from certiformer.rates.gravity_models import (
    acceleration_by_register,
    centre_model,
    nearest_model,
    nearest_tokens,
    pull_features,
    pull_model,
)
from certiformer.rates.point_masses import physical_weights, queries, sample, unit, wanted
from certiformer.sweep.job import Row

COMPARED = 64  # configurations on which attention is compared with the physical weights
TESTED = 1024  # configurations behind every error
BETAS = (10.0, 100.0, 1000.0, 10000.0)
PULL_RANKS = (2, 4, 8, 16, 24)


def compared_with_physics(
    config: Config, tensors: dict[str, np.ndarray], task: str, scale: float, diverged: bool
) -> Row:
    """Errors, attention against the physical weights, and the change under a permutation."""
    points, asked = config.tokens, queries(task, config.tokens)
    empty = {"points": [], "weights": [], "wanted": []}
    names = ("mse", "l1", "distance", "distance_of_uniform", "correlation", "permuted_rms", "permuted_largest")
    if diverged:
        return dict.fromkeys(names) | empty
    tokens, right = sample(task, points, jax.random.key(987_654), TESTED)
    model = Transformer(config, tensors)
    outputs = _outputs(model, np.asarray(tokens))
    error = outputs[:, :asked] - np.asarray(right, np.float64) / scale
    # Within each half, so that permuted nearest-point inputs are inputs of that task again.
    halves = np.random.default_rng(5)
    order = np.concatenate([halves.permutation(points // 2), points // 2 + halves.permutation(points - points // 2)])
    moved = (_outputs(model, np.asarray(tokens)[:, order]) - outputs[:, order])[:, :asked]
    shares, physical = (np.asarray(each)[:, :asked] for each in _attention(config, tensors, tokens[:COMPARED], task))
    distances = 0.5 * np.abs(shares - physical).sum(axis=-1)
    uniform = 0.5 * np.abs(1.0 / points - physical).sum(axis=-1)
    values = (
        np.mean(error**2),
        np.mean(np.abs(error)),
        distances.mean(),
        uniform.mean(),
        np.corrcoef(shares.ravel(), physical.ravel())[0, 1],
        np.sqrt(np.mean(moved**2)),
        np.abs(moved).max(),
    )
    picture = {"points": tokens[0, :, :2], "weights": shares[0], "wanted": physical[0]}
    flat = {name: [round(float(each), 6) for each in np.ravel(value)] for name, value in picture.items()}
    return {name: float(value) for name, value in zip(names, values, strict=True)} | flat


def _outputs(model: Transformer, tokens: np.ndarray) -> np.ndarray:
    """Computed in float64, so that a change under permutation that is only rounding is seen to be."""
    return model.evaluate(tokens.reshape(len(tokens), -1)).reshape(len(tokens), -1, 2)


@partial(jax.jit, static_argnames=("config", "task"))
def _attention(config: Config, tensors: Any, tokens: Any, task: str) -> Any:
    shares = jax.vmap(lambda x: trace_weights(config, tensors, x)[0][0][0])(tokens)
    return shares, jax.vmap(partial(physical_weights, task))(tokens)


def built(config: dict[str, Any]) -> list[Row]:
    """The heads of `gravity_models` on the same kind of draws; `size` is beta, or the key size."""
    points = config["points"]

    def draws(task: str) -> tuple[np.ndarray, np.ndarray]:
        tokens, _ = sample(task, points, jax.random.key(config["seed"] + 1), TESTED)
        return np.asarray(tokens, np.float64), _in_float64(task, np.asarray(tokens, np.float64))

    def row(task: str, size: float, outputs: np.ndarray, right: np.ndarray) -> Row:
        asked = queries(task, points)
        error = (outputs - right)[:, :asked] / float(unit(task, points))
        figures = {"mse": np.mean(error**2), "l1": np.mean(np.abs(error)), "largest": np.abs(error).max()}
        return {"kind": "built", "task": task, "size": size} | {name: float(v) for name, v in figures.items()}

    tokens, right = draws("centre")
    rows = [row("centre", 1, _outputs(centre_model(points), tokens), right)]
    tokens, right = draws("nearest")
    lifted = nearest_tokens(tokens)
    rows += [row("nearest", beta, _outputs(nearest_model(points, beta), lifted), right) for beta in BETAS]
    features = pull_features()
    tokens, right = draws("pull")
    lifted = features.lift(tokens)
    rows += [row("pull", m + 1, _outputs(pull_model(points, features, m), lifted), right) for m in PULL_RANKS]
    # Every point twice: the outputs of a softmax model stay, accelerations double.
    twice = _outputs(pull_model(2 * points, features, PULL_RANKS[-1]), np.concatenate([lifted, lifted], axis=1))
    once = _outputs(pull_model(points, features, PULL_RANKS[-1]), lifted)
    rows.append(row("pull", 0, twice[:, :points], once) | {"kind": "doubled"})
    tokens, right = draws("acceleration")
    rows.append(row("acceleration", 0, np.stack([acceleration_by_register(each) for each in tokens]), right))
    doubled = np.concatenate([tokens, tokens], axis=1)
    twice = _in_float64("acceleration", doubled)[:, :points]
    rows.append(row("acceleration", 0, twice, 2.0 * right) | {"kind": "doubled"})
    values = features.values
    rows += [
        {"kind": "eigenvalue", "task": "pull", "size": k + 1, "mse": 0.0, "l1": 0.0, "largest": float(abs(value))}
        for k, value in enumerate(values)
    ]
    return rows


def _in_float64(task: str, tokens: np.ndarray) -> np.ndarray:
    """What is asked at every point, to more digits than training has."""
    with jax.enable_x64(True):
        return np.asarray(jax.jit(jax.vmap(partial(wanted, task)))(jnp.asarray(tokens)))
