"""From rows of models to series, factors with intervals, and sentences.

Models that differ in size but share their seed are compared pair by pair: the logarithm of the ratio of two errors,
averaged over seeds with Student's interval, is a factor with an interval. "Smaller" and "larger" are said only where that
interval leaves out 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from certiformer.rates.over_seeds import mean_interval
from certiformer.rates.slopes import Combined, fitted_series
from certiformer.rates.study import Series, Table
from certiformer.sweep.job import Job, Row

TARGETS = {"sines": "sin(x1)+sin(x2)", "graph": "the target of Jiang and Li's form"}
FEWEST_SEEDS = 3  # for a sentence with an interval


def chosen(rows: Iterable[Row], **wanted: Any) -> list[Row]:
    """The rows with these entries that did not diverge and have finite errors."""
    return [
        row
        for row in rows
        if all(row[name] == value for name, value in wanted.items())
        and not row["diverged"]
        and math.isfinite(row["test_mse"])
    ]


def by_size(rows: Sequence[Row], column: str) -> tuple[list[float], np.ndarray]:
    """Sizes, and errors of every seed that has all of them; the means of what there is when no seed has."""
    sizes = sorted({row["x"] for row in rows})
    known = {(row["seed"], row["x"]): row[column] for row in rows}
    seeds = [s for s in sorted({row["seed"] for row in rows}) if all((s, x) in known for x in sizes)]
    if seeds:
        return sizes, np.array([[known[s, x] for x in sizes] for s in seeds], np.float64)
    return sizes, np.array([[np.mean([row[column] for row in rows if row["x"] == x]) for x in sizes]], np.float64)


def series_of(
    rows: Sequence[Row],
    name: str,
    x_label: str,
    *,
    sample: str = "test",
    theory: dict[str, float] | None = None,
    replicates: Combined = "median",
    seed: int = 0,
) -> list[Series]:
    """The line of these rows as a list of one, or of none without rows."""
    if not rows:
        return []
    x, mse = by_size(rows, f"{sample}_mse")
    _, l1 = by_size(rows, f"{sample}_l1")
    note = "" if len(mse) >= FEWEST_SEEDS or rows[0]["kind"] != "trained" else f"{len(mse)} complete seeds"
    return [fitted_series(name, x_label, x, mse, l1, theory, replicates, seed=seed, note=note)]


@dataclass(frozen=True)
class Factor:
    """How many times larger the first error is than the second, over `seeds` pairs; no interval from one pair."""

    value: float
    interval: tuple[float, float] | None
    seeds: int

    @property
    def verdict(self) -> str:
        """`larger`, `smaller` or `not distinguishable`, from at least three pairs."""
        if self.interval is None or self.seeds < FEWEST_SEEDS or self.interval[0] <= 1.0 <= self.interval[1]:
            return "not distinguishable"
        return "larger" if self.interval[0] > 1.0 else "smaller"

    def __str__(self) -> str:
        if self.interval is None:
            return f"{self.value:.3g} (one pair, no interval)"
        return f"{self.value:.3g} [{self.interval[0]:.3g}, {self.interval[1]:.3g}] over {self.seeds} seeds"


def factor(first: Sequence[Row], second: Sequence[Row], column: str = "test_mse", pair: str = "seed") -> Factor | None:
    """The factor of two sets of rows paired by an entry; None without pairs.

    >>> rows = [{"seed": s, "test_mse": e} for s, e in enumerate([2.0, 4.0, 8.0])]
    >>> halves = [{**row, "test_mse": row["test_mse"] / 2} for row in rows]
    >>> str(factor(rows, halves)), factor(rows, halves).verdict
    ('2 [2, 2] over 3 seeds', 'larger')
    """
    known = {row[pair]: row[column] for row in second}
    pairs = [(row[column], known[row[pair]]) for row in first if row[pair] in known]
    logs = [math.log(a / b) for a, b in pairs if a > 0 and b > 0]
    if not logs:
        return None
    mean, interval = mean_interval(logs)
    ends = None if interval is None else (math.exp(interval[0]), math.exp(interval[1]))
    return Factor(math.exp(mean), ends, len(logs))


def median(rows: Sequence[Row], column: str) -> float:
    """The median of a column; NaN without rows."""
    return float(np.median([row[column] for row in rows])) if rows else math.nan


def bound_sentence(rows: Sequence[Row]) -> list[str]:
    """Whether the measured largest errors of the built models lie below their proved bounds."""
    proved = [row for row in rows if row["bound"] is not None and math.isfinite(row["test_sup"])]
    if not proved:
        return []
    above = [row for row in proved if row["test_sup"] > row["bound"]]
    if above:
        worst = max(above, key=lambda row: row["test_sup"] / row["bound"])
        return [
            f"{len(above)} of {len(proved)} built models exceed their proved bound, the worst with {worst['test_sup']:.3g}"
            f" against {worst['bound']:.3g}: a proof or its implementation is wrong."
        ]
    tight = [row["bound"] / row["test_sup"] for row in proved if row["test_sup"] > 0]
    loose = f", {min(tight):.3g} to {max(tight):.3g} times below" if tight else ""
    return [f"The largest error found of each of the {len(proved)} built models lies below its proved bound{loose}."]


def limits_of(rows: Sequence[Row], jobs: Sequence[Job]) -> list[str]:
    """What is missing: models without a row, and models that diverged."""
    expected, diverged = sum(len(job.config["members"]) for job in jobs), sum(bool(row["diverged"]) for row in rows)
    found = []
    if len(rows) < expected:
        found.append(f"{expected - len(rows)} of {expected} models are missing: their jobs are not finished.")
    if diverged:
        found.append(f"{diverged} of {len(rows)} models diverged and are left out.")
    return found


def size_table(rows: Sequence[Row], caption: str, x_label: str) -> Table:
    """One line for every target, kind, group and size: parameters, medians over seeds, the range, and the bound."""
    headings = ["target", "kind", "group", x_label, "parameters", "seeds", "train MSE", "test MSE", "test MSE range"]
    headings += ["test L1", "largest error", "proved bound"]
    lines = []
    keys = dict.fromkeys((row["target"], row["kind"], row["group"], row["x"]) for row in rows)
    for target, kind, group, x in keys:
        mine = chosen(rows, target=target, kind=kind, group=group, x=x)
        if mine:
            errors = [row["test_mse"] for row in mine]
            bound = mine[0]["bound"]
            lines.append(
                [target, kind, group, f"{x:g}", mine[0]["parameters"], len(mine)]
                + [f"{median(mine, 'train_mse'):.3g}", f"{median(mine, 'test_mse'):.3g}"]
                + [f"{min(errors):.2g} to {max(errors):.2g}" if len(errors) > 1 else ""]
                + [f"{median(mine, 'test_l1'):.3g}", f"{median(mine, 'test_sup'):.3g}"]
                + ["" if bound is None else f"{bound:.3g}"]
            )
    return Table(caption, headings, lines)
