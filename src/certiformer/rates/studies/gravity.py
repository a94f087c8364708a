"""Point masses: does attention find the physical weights, and what can a softmax head not represent?

Built heads (`gravity_models`) show what is exact: the centre of gravity, the nearest point in the limit, the pull by
eigenfunctions. Trained ones have one head of rank m_h between two feed-forward layers; their attention is compared with
the weights of physics, and their outputs before and after the points change places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from certiformer.model.config import Config
from certiformer.rates.gravity_measure import compared_with_physics
from certiformer.rates.gravity_models import trained_config
from certiformer.rates.gravity_summary import QUESTION, summary
from certiformer.rates.point_masses import TASKS, queries, sample, unit
from certiformer.rates.rank_limits import rank_limited_starts
from certiformer.rates.study import Study
from certiformer.sweep.job import Job, Row
from certiformer.train import Optimiser, Problem, train, transformer_outputs

HERE = "certiformer.rates.studies.gravity"


@dataclass(frozen=True)
class Options:
    """Every (task, seed) trains one model per rank, and one of the largest rank with positions."""

    points: int = 12
    """Number of points; the nearest-point task splits them into two sets."""
    ranks: tuple[int, ...] = (1, 2, 3, 4, 6)
    """Ranks m_h of the coupling."""
    seeds: int = 3
    """Independent runs."""
    steps: int = 2000
    """Steps of Adam."""
    batch: int = 32
    """Configurations per step."""
    width: int = 32
    """Width of the stream, which is the value size too."""
    hidden: int = 64
    """Hidden units of each feed-forward layer."""
    rate: float = 3e-3
    """Learning rate at the start; it falls to 0 as a cosine."""
    seed: int = 0
    """Where all randomness starts."""


def jobs(options: Options) -> list[Job]:
    """One job for the built heads, one per task, seed and positions for the trained ones."""
    shape = {key: value for key, value in asdict(options).items() if key not in ("seeds", "seed", "ranks")}
    built = Job("certiformer.rates.gravity_measure:built", {"points": options.points, "seed": options.seed})
    trained = [
        Job(
            f"{HERE}:run",
            {
                **shape,
                "task": task,
                "positions": positions,
                "ranks": [max(options.ranks)] if positions else list(options.ranks),
                "seed": options.seed + 1000 * repeat,
            },
        )
        for task in TASKS
        for positions in (False, True)
        for repeat in range(options.seeds)
    ]
    return [built, *trained]


@cache
def problem(config: Config, task: str, batch: int) -> Problem:
    """Outputs at the points that are asked, in units of the spread of what is asked."""
    points = config.tokens
    asked, outputs = queries(task, points), transformer_outputs(config)

    def apply(params: Any, x: Any) -> Any:
        return outputs(params, x).reshape(x.shape[0], points, 2)[:, :asked]

    def draw(key: Any, member: Any, shared: Any) -> Any:
        tokens, right = sample(task, points, key, batch)
        return tokens, right / shared

    return Problem(apply, draw)


def run(config: dict[str, Any]) -> list[Row]:
    """Train one member per rank, and compare each with physics."""
    task, points, ranks = config["task"], config["points"], config["ranks"]
    model = trained_config(points, max(ranks), config["width"], config["hidden"], config["positions"])
    learned = problem(model, task, config["batch"])
    seeds = [config["seed"]] * len(ranks)
    start, free = rank_limited_starts(model, ranks, seeds)
    scale = unit(task, points)
    optimiser = Optimiser(rate=config["rate"], schedule="cosine")
    trained = train(
        learned, start, seeds=np.array(seeds), optimiser=optimiser, steps=config["steps"], shared=scale, free=free
    )
    rows = []
    for member, rank in enumerate(ranks):
        tensors = {name: np.asarray(stacked[member]) for name, stacked in trained.params.items()}
        row = {"kind": "trained", "task": task, "positions": config["positions"], "rank": rank, "seed": config["seed"]}
        row["diverged"] = bool(trained.diverged[member])
        rows.append(row | compared_with_physics(model, tensors, task, float(scale), row["diverged"]))
    return rows


def _summary(rows: Sequence[Row], options: Options) -> Any:
    return summary(rows, asdict(options))


STUDY = Study(
    name="gravity",
    question=QUESTION,
    options=Options,
    full={"ranks": (1, 2, 3, 4, 6, 8, 12), "seeds": 8, "steps": 20_000, "batch": 64, "width": 64, "hidden": 128},
    jobs=jobs,
    summary=_summary,
)
