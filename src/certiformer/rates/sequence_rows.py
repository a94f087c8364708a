"""Reading the rows of comparisons: which seeds have which error, and who wins."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from certiformer.sweep.job import Row

FEWEST_SEEDS = 3  # for a sentence: below it nothing is claimed


def select(rows: Iterable[Row], **where: Any) -> list[Row]:
    """The rows with these values, in the order of their seeds."""
    found = [row for row in rows if all(row.get(name) == value for name, value in where.items())]
    return sorted(found, key=lambda row: row.get("seed", 0))


def errors(rows: Sequence[Row], name: str = "mse", **where: Any) -> list[float]:
    """The finite errors of these rows."""
    return [float(row[name]) for row in select(rows, **where) if row[name] is not None and np.isfinite(row[name])]


def shown(values: Sequence[float]) -> str:
    """Median with the smallest and the largest.

    >>> shown([1e-5, 3e-5, 2e-5])
    '2.00e-05 (1.00e-05 to 3.00e-05)'
    >>> shown([])
    'not measured'
    """
    if not values:
        return "not measured"
    return f"{np.median(values):.2e} ({min(values):.2e} to {max(values):.2e})"


def contest(rows: Sequence[Row], first: dict[str, Any], second: dict[str, Any]) -> tuple[int, int]:
    """In how many seeds the first error is smaller, of how many that both have."""
    by_seed = [
        {row["seed"]: float(row["mse"]) for row in select(rows, **which) if np.isfinite(row["mse"])}
        for which in (first, second)
    ]
    both = sorted(set(by_seed[0]) & set(by_seed[1]))
    return sum(by_seed[0][seed] < by_seed[1][seed] for seed in both), len(both)


def winner(rows: Sequence[Row], names: tuple[str, str], first: dict[str, Any], second: dict[str, Any]) -> str:
    """A sentence part that says who wins in how many seeds, or that nobody does."""
    won, seeds = contest(rows, first, second)
    if seeds < FEWEST_SEEDS:
        few = "1 seed is" if seeds == 1 else f"{seeds} seeds are"
        return f"{names[0]} against {names[1]}: {few} too few for a statement"
    if won in (0, seeds):
        better, worse = names if won else names[::-1]
        return f"{better} beats {worse} in {seeds} of {seeds} seeds"
    return f"neither wins ({names[0]} in {won} of {seeds} seeds, {names[1]} in {seeds - won})"


def missing(wanted: int, found: int) -> list[str]:
    """What to say in the limits when rows are missing."""
    return [] if found >= wanted else [f"{wanted - found} of {wanted} rows are missing: their jobs have not finished."]


def crossing(x: Sequence[float], first: Sequence[float], second: Sequence[float]) -> float | None:
    """Where two errors are equal first, their logarithms joined by straight lines between the points; None: nowhere.

    >>> crossing([0.0, 1.0], [1.0, 100.0], [10.0, 10.0])
    0.5
    """
    gap = np.log(np.asarray(first, np.float64)) - np.log(np.asarray(second, np.float64))
    for i in range(len(gap) - 1):
        if np.isfinite(gap[i : i + 2]).all() and gap[i] * gap[i + 1] <= 0 and gap[i] != gap[i + 1]:
            return float(x[i] + (x[i + 1] - x[i]) * gap[i] / (gap[i] - gap[i + 1]))
    return None
