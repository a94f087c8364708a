"""Figures over a few independent runs: errors by seed for slopes, and means with Student's or a bootstrap interval."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats

from certiformer.sweep.job import Row

RESAMPLES = 2000
Table = list[list[float]]


def errors_by_seed(rows: Sequence[Row], key: str) -> tuple[list[float], Table, Table]:
    """x, and both errors by seed and x; the smaller one where two rows share seed and x.

    Only seeds with every x take part, so that a line of the table is one experiment; without any such seed, the first
    seed with the x that it has.

    >>> rows = [{"seed": s, "rank": m, "mse": m + s, "l1": 0.5} for s, m in [(0, 1), (0, 2), (1, 1)]]
    >>> errors_by_seed(rows, "rank")
    ([1.0, 2.0], [[1, 2]], [[0.5, 0.5]])
    """
    found: dict[tuple[int, float], Row] = {}
    for row in rows:
        place = (row["seed"], row[key])
        if place not in found or row["mse"] < found[place]["mse"]:
            found[place] = row
    xs, every = sorted({row[key] for row in rows}), sorted({row["seed"] for row in rows})
    seeds = [seed for seed in every if all((seed, x) in found for x in xs)]
    if not seeds:
        seeds = every[:1]
        xs = [x for x in xs if (seeds[0], x) in found]
    mse, l1 = ([[found[seed, x][name] for x in xs] for seed in seeds] for name in ("mse", "l1"))
    return [float(x) for x in xs], mse, l1


def mean_interval(values: Sequence[float], level: float = 0.95) -> tuple[float, tuple[float, float] | None]:
    """The mean and its interval; None from a single value, which says nothing about the spread.

    >>> mean, interval = mean_interval([1.0, 2.0, 3.0])
    >>> mean, [round(end, 3) for end in interval]
    (2.0, [-0.484, 4.484])
    """
    numbers = np.asarray(values, np.float64)
    mean = float(numbers.mean())
    if len(numbers) < 2:
        return mean, None
    half = float(stats.t.ppf((1 + level) / 2, len(numbers) - 1) * numbers.std(ddof=1) / np.sqrt(len(numbers)))
    return mean, (mean - half, mean + half)


def bootstrap_mean(values: Sequence[float], level: float = 0.95, seed: int = 0) -> tuple[float, tuple[float, float]]:
    """The mean and its bootstrap interval (percentiles), widened by sqrt(n / (n - 1)) as those of slopes are.

    It suits shares, which are no normal numbers: equal values have a point as interval.

    >>> bootstrap_mean([0.25, 0.25, 0.25])
    (0.25, (0.25, 0.25))
    """
    numbers = np.asarray(values, np.float64)
    mean = float(numbers.mean())
    if len(numbers) < 2 or np.ptp(numbers) == 0:
        return mean, (mean, mean)
    # The generator is made here, so that the same numbers always give the same interval.
    drawn = np.random.default_rng(seed).integers(len(numbers), size=(RESAMPLES, len(numbers)))
    means = mean + np.sqrt(len(numbers) / (len(numbers) - 1)) * (numbers[drawn].mean(axis=1) - mean)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return mean, (float(low), float(high))


def share_in_words(values: Sequence[float]) -> str:
    """Mean and bootstrap interval of shares, in percent and inside 0 to 100.

    >>> share_in_words([0.5, 0.5]), share_in_words([])
    ('50.0 [50.0, 50.0]', 'not measured')
    """
    if not values:
        return "not measured"
    mean, (low, high) = bootstrap_mean(values)
    return f"{100 * mean:.1f} [{100 * max(low, 0.0):.1f}, {100 * min(high, 1.0):.1f}]"


def in_words(values: Sequence[float]) -> str:
    """Mean and interval as text.

    >>> in_words([0.5, 0.5, 0.5])
    '0.5 [0.5, 0.5]'
    """
    mean, interval = mean_interval(values)
    return f"{mean:.3g}" + ("" if interval is None else f" [{interval[0]:.3g}, {interval[1]:.3g}]")
