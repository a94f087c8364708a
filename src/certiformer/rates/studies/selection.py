"""Input-dependent features: which tokens matter is written in the tokens (`selection_tasks`).

The mean of a token's own class: built with key size 2, and trained against the rank of the coupling. A smooth function of
the most important values: trained with one attention layer and with two, of equal size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.model.config import Config
from certiformer.model.transformer import Transformer
from certiformer.rates.rank_limits import rank_limited_starts
from certiformer.rates.selection_summary import QUESTION, summary
from certiformer.rates.selection_tasks import average_model, ranked_config, sample, trained_config, unit, wanted
from certiformer.rates.study import Study
from certiformer.sweep.job import Job, Row
from certiformer.train import Optimiser, Problem, train, transformer_outputs

HERE = "certiformer.rates.studies.selection"
TESTED = 4096  # inputs behind every error
BETAS = (2.0, 4.0, 8.0, 16.0)
AVERAGE_WIDTH = 16  # of the models whose rank is varied; hidden layers are twice as wide
KEY = 8  # key size of the models whose depth is varied


@dataclass(frozen=True)
class Options:
    """The sizes of the paper's example are tau = 8 tokens of d = 2 numbers and k = 3."""

    tokens: int = 8
    """Number of tokens tau."""
    classes: int = 3
    """Number of classes k of the average by selection."""
    ranks: tuple[int, ...] = (1, 2, 3, 4)
    """Ranks m_h of the coupling, for the average."""
    widths: tuple[int, ...] = (8, 16, 32)
    """Widths of the models with one and two attention layers."""
    seeds: int = 3
    """Independent runs."""
    steps: int = 4000
    """Steps of Adam."""
    batch: int = 64
    """Inputs per step."""
    rate: float = 3e-3
    """Largest learning rate."""
    schedule: Literal["cosine", "warmup-cosine"] = "cosine"
    """How the rate falls to 0; with a warmup it rises over the first tenth of the steps."""
    seed: int = 0
    """Where all randomness starts."""


def jobs(options: Options) -> list[Job]:
    """One job for the built head, one per seed for the ranks, one per width and depth for the importance task."""
    task = {"tokens": options.tokens, "classes": options.classes, "seed": options.seed}
    recipe = {"rate": options.rate, "schedule": options.schedule}
    shape = {**task, **recipe, "steps": options.steps, "batch": options.batch}
    seeds = [options.seed + 1000 * repeat for repeat in range(options.seeds)]
    ranks = list(options.ranks)
    averages = [{"task": "average", "layers": 1, "width": AVERAGE_WIDTH, "ranks": ranks, "seeds": [s]} for s in seeds]
    ranked = [
        {"task": "ranked", "layers": layers, "width": width, "ranks": [KEY], "seeds": seeds}
        for width in options.widths
        for layers in (1, 2)
    ]
    built = Job(f"{HERE}:built", task)
    return [built, *(Job(f"{HERE}:run", {**shape, **part}) for part in averages + ranked)]


def built(config: dict[str, Any]) -> list[Row]:
    """The head that selects classes with coupling -beta (c_t - c_s)^2."""
    tokens = config["tokens"]
    drawn, _ = sample("average", tokens, config["classes"], jax.random.key(config["seed"] + 1), TESTED)
    drawn = np.asarray(drawn, np.float64)
    with jax.enable_x64(True):
        right = np.asarray(jax.jit(jax.vmap(partial(wanted, "average")))(jnp.asarray(drawn)))
    lifted = np.concatenate([drawn, drawn[..., 1:] ** 2], axis=-1).reshape(TESTED, -1)
    scale = float(unit("average", tokens, config["classes"]))
    rows = []
    for beta in BETAS:
        error = (average_model(tokens, beta).evaluate(lifted) - right) / scale
        figures = {"mse": np.mean(error**2), "l1": np.mean(np.abs(error)), "largest": np.abs(error).max()}
        rows.append({"kind": "built", "task": "average", "size": beta} | {n: float(v) for n, v in figures.items()})
    return rows


@cache
def problem(config: Config, task: str, classes: int, batch: int) -> Problem:
    """Fresh inputs at every step; answers in units of their spread."""

    def draw(key: Any, member: Any, shared: Any) -> Any:
        drawn, right = sample(task, config.tokens, classes, key, batch)
        return drawn, right / shared

    return Problem(transformer_outputs(config), draw)


def run(config: dict[str, Any]) -> list[Row]:
    """Train one member per rank and seed."""
    task, tokens, classes, width = config["task"], config["tokens"], config["classes"], config["width"]
    if task == "average":
        model = trained_config(task, tokens, config["layers"], 1, width, max(config["ranks"]), 2 * width)
    else:
        model = ranked_config(tokens, config["layers"], width, max(config["ranks"]))
    members = [(rank, seed) for rank in config["ranks"] for seed in config["seeds"]]
    ranks, seeds = [rank for rank, _ in members], [seed for _, seed in members]
    start, free = rank_limited_starts(model, ranks, seeds)
    scale = unit(task, tokens, classes)
    trained = train(
        problem(model, task, classes, config["batch"]),
        start,
        seeds=np.array(seeds),
        optimiser=Optimiser(rate=config["rate"], schedule=config["schedule"]),
        steps=config["steps"],
        shared=scale,
        free=free,
    )
    drawn, right = sample(task, tokens, classes, jax.random.key(987_654), TESTED)
    right = np.asarray(right, np.float64) / float(scale)
    inputs = np.asarray(drawn).reshape(TESTED, -1)
    rows = []
    for place, (rank, seed) in enumerate(members):
        diverged = bool(trained.diverged[place])
        row = {"kind": "trained", "task": task, "layers": config["layers"], "width": width, "rank": rank, "seed": seed}
        tensors = {name: np.asarray(stacked[place]) for name, stacked in trained.params.items()}
        row["parameters"] = int(sum(np.sum(np.asarray(each[place])) for each in free.values()))
        error = None if diverged else Transformer(model, tensors).evaluate(inputs, "float32").astype(float) - right
        row |= {
            "diverged": diverged,
            "mse": None if error is None else float(np.mean(error**2)),
            "l1": None if error is None else float(np.mean(np.abs(error))),
        }
        rows.append(row)
    return rows


def _summary(rows: Sequence[Row], options: Options) -> Any:
    return summary(rows, asdict(options))


STUDY = Study(
    name="selection",
    question=QUESTION,
    options=Options,
    full={
        "ranks": (1, 2, 3, 4, 6, 8),
        "widths": (8, 16, 32, 64),
        "seeds": 8,
        "steps": 40_000,
        "schedule": "warmup-cosine",
    },
    jobs=jobs,
    summary=_summary,
)
