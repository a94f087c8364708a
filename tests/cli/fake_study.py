"""A study without training: jobs are power laws. A job with a negative size raises."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from certiformer.rates.study import Result, Series, Study
from certiformer.sweep.job import Job, Row


@dataclass(frozen=True)
class Options:
    """The flags of the study."""

    mh: tuple[int, ...] = (1, 2, 4)
    """sizes"""
    alpha: tuple[float, ...] = (1.0,)
    """exponents"""
    target_rank: tuple[float, ...] = (2.0, float("inf"))
    """ranks"""
    layers: Literal["1", "2"] = "1"
    """how many"""
    masked: bool = False
    """whether"""
    seed: int = 0
    """the seed"""


def run(config: dict[str, Any]) -> list[Row]:
    if config["m"] < 0:
        raise ValueError(f"a size of {config['m']}")
    if config["m"] == 999:
        raise KeyboardInterrupt
    return [{"m": config["m"], "alpha": alpha, "mse": config["m"] ** -alpha} for alpha in config["alpha"]]


def jobs(options: Options) -> list[Job]:
    return [Job("cli.fake_study:run", {"m": m, "alpha": list(options.alpha), "seed": options.seed}) for m in options.mh]


def summary(rows: Sequence[Row], options: Options) -> Result:
    lines = []
    for alpha in options.alpha:
        mine = [row for row in rows if row["alpha"] == alpha]
        xs, errors = [float(row["m"]) for row in mine], [row["mse"] for row in mine]
        fitted = {"slope_mse": -alpha, "slope_interval": (-alpha - 0.1, -alpha + 0.1)} if len(mine) > 2 else {}
        theory = {"paper": -alpha, "founding_note": -9.0}
        out = ["founding_note"] if fitted else []
        lines.append(Series(f"alpha {alpha:g}", xs, "m_h", errors, errors, theory=theory, excluded=out, **fitted))
    found = [f"{len(rows)} rows were measured."]
    return Result("fake", STUDY.question, asdict(options), lines, findings=found, limits=["Nothing was trained."])


STUDY = Study("fake", "Do made-up numbers fall?", Options, {"mh": (1, 2, 4, 8), "alpha": (1.0, 2.0)}, jobs, summary)
