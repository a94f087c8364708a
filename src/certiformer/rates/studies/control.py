"""Norms, ranks, decay and sparse attention under control: what each does to the test error, the bounds and the time.

Each control is one change of the same training: constraints (`train.constraints`), decoupled weight decay, another
attention. Members share their seeds, their samples and their noise, so that differences are taken pair by pair. The
sample is small and its answers are noisy: there is something to be gained. Three tasks: see `control_models`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.bounds import normed_stack, stack_by_count
from certiformer.bounds.numbers import log10_above
from certiformer.rates.control_models import NOISE, TASKS, norms_of, outputs, sample, start
from certiformer.rates.over_seeds import in_words, mean_interval
from certiformer.rates.study import Result, Study, Table
from certiformer.sweep.job import Job, Row
from certiformer.train import Optimiser, Problem, stack, train
from certiformer.train.constraints import parse_constraint

HERE = "certiformer.rates.studies.control"
QUESTION = "What do control of norms and ranks, weight decay and sparse attention do to test error, bounds and time?"
TESTED = 4096
RECORD = 50
CAP = 16.0  # where the cross entropy of the bounds is clipped; squared errors likewise
# What is changed: constraints, weight decay, attention.
CONTROLS: dict[str, tuple[tuple[str, ...], float, str]] = {
    "none": ((), 0.0, "softmax"),
    "weight decay": ((), 0.1, "softmax"),
    "qk": (("qk<=1",), 0.0, "softmax"),
    "ov": (("ov<=1",), 0.0, "softmax"),
    "ffn": (("ffn<=1",), 0.0, "softmax"),
    "all spectral": (("qk<=1", "ov<=1", "ffn<=1", "gain<=1", "rows<=1"), 0.0, "softmax"),
    "frobenius": (("frobenius<=1.5",), 0.0, "softmax"),
    "l21": (("l21<=4",), 0.0, "softmax"),
    "rank 1": (("rank<=1",), 0.0, "softmax"),
    "distance": ((), 0.0, "distance"),
    "top-k": ((), 0.0, "top-k"),
}
LIMITS = [
    "The bounds take the norms as they are after training, without paying for their cells, and without the confidence"
    " term: they compare controls, they certify nothing.",
    "They are bounds for a clipped loss that is 2-Lipschitz in the outputs, also where a squared error is minimised.",
    "Distance and top-k attention are outside of the theorems behind the bounds; they get none.",
    "One small model, one rate, and one value for every constraint.",
    "The time is that of the first run with its compilation left out, on a machine that may be busy.",
]


@dataclass(frozen=True)
class Options:
    """What is trained."""

    controls: tuple[str, ...] = tuple(CONTROLS)
    """Which changes; `none` is what they are compared with."""
    tasks: tuple[str, ...] = TASKS
    """Which tasks."""
    samples: int = 256
    """Sequences that are learned from."""
    seeds: int = 5
    """Independent runs of every change."""
    steps: int = 800
    """Steps of Adam."""
    batch: int = 32
    """Sequences of one step."""
    rate: float = 0.005
    """The first learning rate; it falls to zero along a cosine."""
    seed: int = 0
    """The first seed."""


def jobs(options: Options) -> list[Job]:
    """One job for every task and control."""
    shared = {name: getattr(options, name) for name in ("samples", "seeds", "steps", "batch", "rate", "seed")}
    return [
        Job(f"{HERE}:run", {"task": task, "control": control, **shared})
        for task in options.tasks
        for control in options.controls
    ]


def run(config: dict[str, Any]) -> list[Row]:
    """Train all seeds of one control on one task."""
    task, control = config["task"], config["control"]
    constraints, decay, attention = CONTROLS[control]
    seeds = np.arange(config["seed"], config["seed"] + config["seeds"])
    data = [sample(task, config["samples"], int(seed) + 1000, NOISE) for seed in seeds]
    member = tuple(np.stack(parts) for parts in zip(*data, strict=True))
    batch = config["batch"]

    def draw(key: jax.Array, member: Any, shared: Any) -> tuple[jax.Array, jax.Array]:
        chosen = jax.random.randint(key, (batch,), 0, config["samples"])
        return member[0][chosen], _answer(task, member[1][chosen])

    problem = Problem(outputs(attention), draw, loss="cross-entropy" if task == "next item" else "squared")
    held = {"optimiser": Optimiser(rate=config["rate"], schedule="cosine", weight_decay=decay), "record": RECORD}
    held |= {"member": member, "seeds": seeds, "constraints": tuple(map(parse_constraint, constraints))}
    first = stack([start(task, attention, int(seed)) for seed in seeds])
    held["steps"] = config["steps"]
    # Members that are not finite stop before their first step: this compiles the program and no more.
    train(problem, {name: w * np.nan for name, w in first.items()}, **held)
    began = time.perf_counter()
    trained = train(problem, first, **held)
    seconds = (time.perf_counter() - began) / len(seeds)
    tested = sample(task, TESTED, 7, 0.0)
    return [
        _row(task, control, attention, config, trained, number, data[number], tested, seconds)
        for number in range(len(seeds))
    ]


def _answer(task: str, y: jax.Array) -> jax.Array:
    return jnp.argmax(y, -1) if task == "next item" else y


def _row(task, control, attention, config, trained, number, learned, tested, seconds) -> Row:
    weights = {name: np.asarray(tensor)[number] for name, tensor in trained.params.items()}
    errors = [_error(task, attention, weights, *pair) for pair in (tested, learned)]
    row = {
        "task": task,
        "control": control,
        "seed": config["seed"] + number,
        "test_error": errors[0],
        "train_error": errors[1],
        "seconds": seconds,
        "diverged": bool(trained.diverged[number]),
        "log10_norms": math.nan,
        "log10_ranks": math.nan,
        "proved": max((kept.proved / kept.largest for kept in trained.kept[number]), default=math.nan)
        if trained.kept
        else math.nan,
    }
    if attention == "softmax":
        norms = norms_of(weights)
        row["log10_norms"] = log10_above(2 * normed_stack.complexity(norms, CAP, config["samples"]))
        row["log10_ranks"] = log10_above(2 * stack_by_count.complexity(norms, CAP, config["samples"], "ranks"))
    return {name: None if value != value else value for name, value in row.items()}


def _error(task: str, attention: str, weights: dict[str, np.ndarray], x: np.ndarray, y: np.ndarray) -> float:
    """The mean squared error, or the cross entropy in nats."""
    scores = np.asarray(
        outputs(attention)({name: jnp.asarray(w) for name, w in weights.items()}, jnp.asarray(x)), float
    )
    if task != "next item":
        return float(np.mean((scores - y) ** 2))
    shifted = scores - scores.max(1, keepdims=True)
    return float(np.mean(np.log(np.exp(shifted).sum(1)) - (shifted * y).sum(1)))


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Every control against none, seed by seed."""
    kept = [row for row in rows if not row["diverged"]]
    tables, findings = [], []
    for task in options.tasks:
        lines = []
        for control in options.controls:
            mine = {row["seed"]: row for row in kept if (row["task"], row["control"]) == (task, control)}
            base = {row["seed"]: row for row in kept if (row["task"], row["control"]) == (task, "none")}
            if not mine:
                continue
            shared = sorted(mine.keys() & base.keys())
            ratios = [math.log(mine[s]["test_error"] / base[s]["test_error"]) for s in shared]
            falls = [
                mine[s]["log10_norms"] - base[s]["log10_norms"] for s in shared if mine[s]["log10_norms"] is not None
            ]
            times = [mine[s]["seconds"] / base[s]["seconds"] for s in shared]
            values = [in_words([row[name] for row in mine.values()]) for name in ("test_error", "train_error")]
            bounds = [
                in_words([row[name] for row in mine.values()]) if mine[min(mine)][name] is not None else "none"
                for name in ("log10_norms", "log10_ranks")
            ]
            proved = next((row["proved"] for row in mine.values()), None)
            lines.append(
                [
                    control,
                    *values,
                    *bounds,
                    times[0] if times else None,
                    "yes" if proved is not None and proved <= 1 else "",
                ]
            )
            if control != "none" and len(ratios) > 1:
                findings.append(_finding(task, control, ratios, falls))
        headings = [
            "control",
            "test error",
            "training error",
            "log10 bound, norms",
            "log10 bound, ranks",
            "time",
            "proved",
        ]
        tables.append(Table(f"{task}: means over seeds with Student's 95 percent intervals", headings, lines))
    limits = list(LIMITS)
    expected = len(options.tasks) * len(options.controls) * options.seeds
    if len(rows) < expected:
        limits.append(f"Only {len(rows)} of {expected} runs are finished.")
    if len(kept) < len(rows):
        limits.append(f"{len(rows) - len(kept)} of {len(rows)} runs diverged and are left out.")
    return Result("control", QUESTION, vars(options), [], tables, [], findings, limits)


def _finding(task: str, control: str, ratios: list[float], falls: list[float]) -> str:
    mean, interval = mean_interval(ratios)
    low, high = interval or (mean, mean)
    verdict = (
        "smaller" if high < 0 else "LARGER" if low > 0 else "neither larger nor smaller, as far as these seeds tell"
    )
    sentence = (
        f"On {task}, {control} multiplies the test error by {math.exp(mean):.3g}"
        f" [{math.exp(low):.3g}, {math.exp(high):.3g}]: {verdict}"
    )
    return f"{sentence}; the bound by norms changes by 10^({in_words(falls)})." if falls else f"{sentence}."


STUDY = Study(
    name="control",
    question=QUESTION,
    options=Options,
    full={"samples": 2048, "seeds": 20, "steps": 10_000},
    jobs=jobs,
    summary=summary,
)
