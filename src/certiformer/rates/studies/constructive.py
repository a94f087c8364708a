"""Error against size for every construction, against the smallest size that any could have.

A job builds one method for one target at all tolerances, or one grid sequence of the softmax partition of unity. The
slopes are of the measured errors in nonzero weights; the exponents are those of `constructions.law`. Lower bounds are for
classes of functions, a construction is for one target: `bit_bound.contradiction` is asked where the size of a
construction depends on nothing but the class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from certiformer.rates.constructions import (
    APPROXIMATING,
    PARTITIONED,
    POOLED,
    build_target,
    built,
    derivatives,
    grid_points,
    partition,
    pooled,
)
from certiformer.rates.constructive_report import report
from certiformer.rates.study import Result, Study
from certiformer.sweep.job import Job, Row

QUESTION = (
    "How fast does the error of every construction fall with its size, and how far is that from the least possible?"
)
TARGETS = {
    "kink": ("abs(x1 - 3/10)", 1),
    "sine": ("sin(2*pi*x1)", 1),
    "max": ("max(x1, x2**2)", 2),
    "sum": ("sin(3*x1) + sin(3*x2)", 2),
    "product": ("exp(x1*x2)", 2),
}
LARGER = "larger"  # the target of the pooled construction: max(x1, x2)
PARTITIONS = {"first kink": "kink", "first cone": "cone", "tangent sine": "sine", "ghosts sine": "sine"}


@dataclass(frozen=True)
class Options:
    """Flags of the study."""

    target: Literal["all", "kink", "sine", "max", "sum", "product"] = "all"
    """which of the five targets"""
    tolerances: tuple[float, ...] = (0.2, 0.1, 0.05, 0.025, 0.0125)
    """tolerances that the constructions are built for"""
    cells: tuple[int, ...] = (8, 16, 32, 64, 128)
    """cells per axis of the partition of unity in one variable; in two a quarter of it"""
    points: int = 16384
    """points of the grid on which errors are measured"""
    largest: int = 400_000
    """most weights of a transformer that is built"""
    seed: int = 0
    """seed of the intervals; nothing else is random"""


FULL: dict[str, Any] = {
    "tolerances": (0.2, 0.1, 0.05, 0.025, 0.0125, 0.006, 0.003, 0.0015, 0.0008),
    "cells": (8, 16, 32, 64, 128, 256, 512),
    "points": 263169,
    "largest": 4_000_000,
}


def jobs(options: Options) -> list[Job]:
    """One job for every target and method, for the pooled construction and for every partition of unity."""
    chosen = list(TARGETS) if options.target == "all" else [options.target]
    shared = {"points": options.points, "largest": options.largest, "seed": options.seed}
    lists = [
        {"target": target, "method": name, "sizes": list(options.tolerances), **shared}
        for target in chosen
        for name in APPROXIMATING
    ]
    if options.target in ("all", "max"):
        lists.append({"target": LARGER, "method": POOLED, "sizes": list(options.cells), **shared})
    for case, target in PARTITIONS.items():
        if options.target == "all" or target == options.target:
            sizes = list(options.cells) if PARTITIONED[target][1] == 1 else [max(2, n // 4) for n in options.cells]
            lists.append({"target": target, "method": case, "sizes": sizes, **shared})
    return [Job(f"{__name__}:run", config) for config in lists]


def run(config: dict[str, Any]) -> list[Row]:
    """One row for each size."""
    name, method, sizes = config["target"], config["method"], config["sizes"]
    if method == POOLED:
        points = grid_points(2, config["points"])
        rows = [pooled(latent, points) for latent in sizes]
        slopes, curvature, dimension = [1.0, 1.0], 0.0, 2
    elif method in PARTITIONS:
        dimension = PARTITIONED[name][1]
        points = grid_points(dimension, config["points"])
        rows = [partition(method, cells, points) for cells in sizes]
        slopes, curvature = derivatives(build_target(*PARTITIONED[name]))
    else:
        formula, dimension = TARGETS[name]
        target, points = build_target(formula, dimension), grid_points(dimension, config["points"])
        slopes, curvature = derivatives(target)
        rows = [built(target, method, tolerance, config["largest"], points) for tolerance in sizes]
    shared = {"target": name, "dimension": dimension, "slopes": slopes, "curvature": curvature}
    return [{**shared, **row} for row in rows]


def summary(rows: Sequence[Row], options: Options) -> Result:
    """Slopes by construction and target, bounds against measurements, and the distance to the lower bounds."""
    return report(rows, options, QUESTION, sum(len(job.config["sizes"]) for job in jobs(options)))


STUDY = Study("constructive", QUESTION, Options, FULL, jobs, summary)
