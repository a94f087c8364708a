"""How many directions a matrix uses: four ranks that mean four things.

| name | formula |
|---|---|
| `stable` | |W|_F^2 / |W|^2, between 1 and the rank |
| `effective` | exp of the entropy of sigma_i / sum sigma (Roy and Vetterli 2007) |
| `participation` | (sum sigma_i^2)^2 / sum sigma_i^4 |
| `numerical` | how many sigma_i exceed `tolerance` times the largest |
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.spectrum.values import UNIT


@dataclass(frozen=True)
class Ranks:
    """The ranks of the table above, and the tolerance of the last one."""

    stable: float
    effective: float
    participation: float
    numerical: int
    tolerance: float


def ranks(values: Float[np.ndarray, " values"], side: int, tolerance: float | None = None) -> Ranks:
    """The ranks from the singular values; `side` is the longer side, which the default tolerance 4 side 2^-53 grows with.

    >>> found = ranks(np.array([2.0, 2.0, 0.0]), side=3)
    >>> found.numerical, [round(value, 9) for value in (found.stable, found.effective, found.participation)]
    (2, [2.0, 2.0, 2.0])
    """
    return ranks_of_each(np.asarray(values)[None], side, tolerance)[0]


def ranks_of_each(
    values: Float[np.ndarray, "matrices values"], side: int, tolerance: float | None = None
) -> list[Ranks]:
    """The ranks of several matrices; NaN where a value is not finite, 0 where all are zero."""
    limit = 4 * side * UNIT if tolerance is None else tolerance
    values = np.asarray(values, np.float64)
    largest = values.max(1, initial=0.0)
    odd = ~np.isfinite(values).all(1) | (largest == 0)
    unit = np.where(odd[:, None], 1.0, values) / np.where(odd, 1.0, largest)[:, None]
    shares = unit / unit.sum(1, keepdims=True)
    effective = np.exp(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(1))
    squares = unit**2
    stable = squares.sum(1)
    participation = stable**2 / (squares**2).sum(1)
    numerical = (unit > limit).sum(1)
    nothing = np.where(largest == 0, 0.0, np.nan)
    found = (np.where(odd, nothing, each).tolist() for each in (stable, effective, participation))
    counts = np.where(odd, 0, numerical).tolist()
    return [Ranks(a, b, c, count, limit) for a, b, c, count in zip(*found, counts, strict=True)]
