"""Linear attention that learns to regress in its context, against the weights that a theorem builds.

Kinds of job, each with all its seeds: `context` (one layer, contexts of one length), `stacked` and `looped` (more layers),
`skewed` (features of different size, where a preconditioner pays), `next-token` (sequences, a loss at every place). The
constructed weights have few numbers: for one layer the best ones are known, for more they are tuned by the same loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from jaxtyping import Array

from certiformer.model.config import Config
from certiformer.rates.incontext_models import (
    alignment,
    constructed,
    constructed_next,
    constructed_outputs,
    mean_cosine,
    next_token_config,
    outputs,
    predictions,
    random_start,
    regression_config,
    sensitivities,
)
from certiformer.rates.incontext_report import report
from certiformer.rates.incontext_tasks import (
    Dynamics,
    Regression,
    least_squares_predictions,
    next_predictions,
    ridge_predictions,
)
from certiformer.rates.study import Result, Study
from certiformer.sweep.job import Job, Row
from certiformer.train import Optimiser, Problem, best_of, stack, train

QUESTION = "Does training find the in-context learner that the theorem builds?"
TUNING_STEPS, TUNING_RATE, RECORD = 400, 0.02, 100
TEST_SEED = 2**31 - 1  # of the contexts that errors are measured on: no member trains on them


@dataclass(frozen=True)
class Options:
    """Flags of the study."""

    features: int = 4
    """numbers of a row"""
    contexts: tuple[int, ...] = (5, 10, 20, 40, 80)
    """rows of the contexts of one layer"""
    rows: int = 20
    """rows of a context where the depth varies"""
    layers: tuple[int, ...] = (1, 2, 3)
    """layers, stacked and looped"""
    length: int = 16
    """states of a sequence, for the next-token loss"""
    noise: float = 0.5
    """deviation of the labels"""
    spread: float = 10.0
    """how much larger the largest variance of the skewed features is than the smallest"""
    seeds: int = 3
    """repetitions that make the intervals"""
    restarts: int = 3
    """starts of each repetition; the one with the smallest training loss counts"""
    steps: int = 1500
    """steps of Adam"""
    batch: int = 64
    """contexts of a step"""
    rate: float = 0.005
    """learning rate, falling to zero"""
    test: int = 4096
    """contexts that errors are measured on"""
    seed: int = 0
    """seed of weights, data and intervals"""


FULL: dict[str, Any] = {
    "features": 8,
    "contexts": (5, 10, 20, 40, 80, 160),
    "rows": 32,
    "layers": (1, 2, 3, 4, 5),
    "length": 32,
    "seeds": 5,
    "restarts": 4,
    "steps": 10_000,
    "batch": 256,
    "rate": 0.003,
    "test": 16_384,
}


def jobs(options: Options) -> list[Job]:
    """One job for every context length, depth, and task."""
    names = ("features", "noise", "seeds", "restarts", "steps", "batch", "rate", "test", "seed")
    shared = {name: getattr(options, name) for name in names}
    cases: list[dict[str, Any]] = [
        {"kind": "context", "rows": rows, "layers": 1, "spread": 1.0} for rows in options.contexts
    ]
    cases.append({"kind": "skewed", "rows": options.rows, "layers": 1, "spread": options.spread})
    for kind in ("stacked", "looped"):
        # One layer is the same as the context of that many rows, and looped the same as stacked.
        again = 1 if kind == "looped" or options.rows in options.contexts else 0
        depths = [layers for layers in options.layers if layers > again]
        cases += [{"kind": kind, "rows": options.rows, "layers": layers, "spread": 1.0} for layers in depths]
    cases += [{"kind": "next-token", "rows": options.length, "layers": layers, "spread": 1.0} for layers in (1, 2)]
    return [Job(f"{__name__}:run", {**case, **shared}) for case in cases]


def run(config: dict[str, Any]) -> list[Row]:
    """One row for every seed."""
    return _next_token(config) if config["kind"] == "next-token" else _regression(config)


def _regression(config: dict[str, Any]) -> list[Row]:
    d, layers = config["features"], config["layers"]
    spectrum = tuple(np.geomspace(1.0, 1.0 / config["spread"], d).tolist())
    task = Regression(config["rows"], spectrum, config["noise"])
    model = regression_config(d, task.rows, layers, config["kind"] == "looped")
    x, y = sample(task, TEST_SEED, config["test"])
    wanted = np.asarray(y, np.float64)
    built = _built(model, task, config)
    nearest = "gd++" if layers > 1 else "preconditioned"
    oracle = ridge_predictions(np.asarray(x), config["noise"])
    made = {name: np.asarray(predictions(model, tensors, x), np.float64) for name, tensors in built.items()}
    slopes = sensitivities(model, built[nearest], x)
    theory = {"theory_gd": task.plain_error(), "theory_layer": task.least_error()} if layers == 1 else {}
    shared = {
        **_named(config),
        **_shared_errors({**made, "ridge": oracle}, wanted),
        "error_least_squares": _mse(least_squares_predictions(np.asarray(x)), wanted),
        "theory_gd": theory.get("theory_gd", 0.0),
        "theory_layer": theory.get("theory_layer", 0.0),
    }
    used = slice(0, d) if layers == 1 else slice(None), slice(None) if config["kind"] == "looped" else slice(d, d + 1)
    rows = []
    for seed, params, loss, diverged in _trained(model, task.draw, config):
        found = np.asarray(predictions(model, params, x), np.float64)
        measured = {
            **_errors(found, wanted),
            "distance_gd": _mse(found, made["gd"]) / _mse(made["gd"], 0.0),
            "distance_best": _mse(found, made[nearest]) / _mse(made[nearest], 0.0),
            "distance_ridge": _mse(found, oracle) / _mse(oracle, 0.0),
            "sensitivity": mean_cosine(sensitivities(model, params, x), slopes),
            "alignment": alignment(params, built[nearest], len(model.blocks), used),
            "by_place": [],
            "by_place_constructed": [],
            "by_place_oracle": [],
        }
        rows.append({**shared, "seed": seed, "loss": loss, "diverged": diverged, **measured})
    return rows


def _next_token(config: dict[str, Any]) -> list[Row]:
    d, layers, length = config["features"], config["layers"], config["rows"]
    task, model = Dynamics(length, d), next_token_config(d, length, layers)
    x, y = sample(task, TEST_SEED, config["test"])
    wanted = np.asarray(y, np.float64)
    single = next_token_config(d, length, 1)
    # Predictions are proportional to the step, so the best one is a quotient; found on other sequences than the error is.
    other, later = sample(task, TEST_SEED - 1, config["test"])
    unit = np.asarray(predictions(single, constructed_next(single, 1.0), other), np.float64)
    tensors = constructed_next(single, float((unit * np.asarray(later)).sum() / (unit**2).sum()))
    made = np.asarray(predictions(single, tensors, x), np.float64)
    oracle = next_predictions(np.asarray(x)).reshape(len(wanted), -1)
    shared = {
        **_named(config),
        **_shared_errors({"gd": made, "ridge": oracle}, wanted),
        "error_least_squares": _mse(oracle, wanted),
        "theory_gd": 0.0,
        "theory_layer": 0.0,
        "by_place_constructed": _by_place(made, wanted, d),
        "by_place_oracle": _by_place(oracle, wanted, d),
    }
    rows = []
    for seed, params, loss, diverged in _trained(model, task.draw, config):
        found = np.asarray(predictions(model, params, x), np.float64)
        # What one layer sees of the zero part of a token, and writes beside the part that is read, changes nothing.
        used = alignment(params, tensors, 1, (slice(0, 2 * d), slice(2 * d, 3 * d))) if layers == 1 else []
        distance = _mse(found, made) / _mse(made, 0.0)
        measured = {
            **_errors(found, wanted),
            "distance_gd": distance,
            "distance_best": distance,
            "distance_ridge": _mse(found, oracle) / _mse(oracle, 0.0),
            "sensitivity": mean_cosine(found, made),
            "alignment": used,
            "by_place": _by_place(found, wanted, d),
        }
        rows.append({**shared, "seed": seed, "loss": loss, "diverged": diverged, **measured})
    return rows


@partial(jax.jit, static_argnames=("task", "count"))
def sample(task: Regression | Dynamics, seed: int, count: int) -> tuple[Array, Array]:
    """Contexts with what should be predicted, compiled."""
    return task.draw(jax.random.key(seed), count)


def _named(config: dict[str, Any]) -> dict[str, Any]:
    return {name: config[name] for name in ("kind", "rows", "layers", "spread")}


def _trained(model: Config, draw: Any, config: dict[str, Any]) -> list[tuple[int, dict[str, Array], float, int]]:
    """For every seed its number, the weights of the best restart, their training loss, and how many restarts diverged."""
    seeds, restarts = config["seeds"], config["restarts"]
    numbers = np.arange(seeds * restarts) + 1000 * config["seed"]
    start = stack([random_start(model, int(number)) for number in numbers])
    optimiser = Optimiser("adam", config["rate"], "warmup-cosine")
    problem = Problem(partial(outputs, model), partial(_draw, draw, config["batch"]))
    done = train(problem, start, seeds=numbers, optimiser=optimiser, steps=config["steps"], record=RECORD)
    diverged = done.diverged.reshape(seeds, restarts).sum(1)
    best = best_of(done, restarts)
    return [
        (s, {name: t[s] for name, t in best.params.items()}, float(best.scores[s]), int(diverged[s]))
        for s in range(seeds)
    ]


def _draw(draw: Any, batch: int, key: Array, member: Any, shared: Any) -> tuple[Array, Array]:
    return draw(key, batch)


def _built(model: Config, task: Regression, config: dict[str, Any]) -> dict[str, dict[str, Array]]:
    """Constructed weights: gradient descent and the nearest construction to a trained model, by name."""
    ones = np.ones(task.features, np.float32)
    if config["layers"] == 1:
        best = {"gd": task.plain_step() * ones, "preconditioned": task.steps()}
        plain = {"whiten": np.zeros(1), "steps": np.ones(1)}
        return {name: constructed(model, task.rows, {"precondition": p, **plain}) for name, p in best.items()}
    blocks = len(model.blocks)
    start = {"steps": np.full((2, blocks), 0.5, np.float32), "whiten": np.zeros((2, blocks), np.float32)}
    # The first member is gradient descent: its whitening stays zero.
    free = {
        "steps": np.ones((2, blocks), np.float32),
        "whiten": np.repeat([[0], [1]], blocks, axis=1).astype(np.float32),
    }
    draw = partial(_draw, task.draw, 4 * config["batch"])
    problem = Problem(partial(constructed_outputs, model, task.rows), draw)
    optimiser, seeds = Optimiser("adam", TUNING_RATE, "cosine"), np.full(2, config["seed"])
    done = train(problem, start, seeds=seeds, optimiser=optimiser, steps=TUNING_STEPS, record=RECORD, free=free)
    settings = [{"precondition": ones, **{name: v[k] for name, v in done.params.items()}} for k in range(2)]
    return {n: constructed(model, task.rows, each) for n, each in zip(("gd", "gd++"), settings, strict=True)}


def _mse(a: np.ndarray, b: np.ndarray | float) -> float:
    return float(((a - b) ** 2).mean())


def _errors(found: np.ndarray, wanted: np.ndarray) -> dict[str, float]:
    return {"error_mse": _mse(found, wanted), "error_l1": float(np.abs(found - wanted).mean())}


def _shared_errors(predictions: dict[str, np.ndarray], wanted: np.ndarray) -> dict[str, float]:
    """The error of every construction and oracle; 0 stands for one that this job does not have."""
    names = ("gd", "gd++", "preconditioned", "ridge")
    return {f"error_{name}": _mse(predictions[name], wanted) if name in predictions else 0.0 for name in names}


def _by_place(found: np.ndarray, wanted: np.ndarray, features: int) -> list[float]:
    """The mean squared error at every place of the sequence."""
    return ((found - wanted) ** 2).reshape(len(wanted), -1, features).mean((0, 2)).tolist()


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Errors against context length and depth, and how much of the construction is found in the trained weights."""
    return report(rows, options, QUESTION, sum(job.config["seeds"] for job in jobs(options)))


STUDY = Study("incontext", QUESTION, Options, FULL, jobs, summary)
