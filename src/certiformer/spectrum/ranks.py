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

    >>> ranks(np.array([2.0, 2.0, 0.0]), side=3)
    Ranks(stable=2.0, effective=2.0, participation=2.0, numerical=2, tolerance=1.3322676295501878e-15)
    """
    limit = 4 * side * UNIT if tolerance is None else tolerance
    values = np.asarray(values, np.float64)
    largest = values.max(initial=0.0)
    if not np.isfinite(values).all():
        return Ranks(float("nan"), float("nan"), float("nan"), 0, limit)
    if largest == 0:
        return Ranks(0.0, 0.0, 0.0, 0, limit)
    unit = values / largest
    shares = unit[unit > 0] / unit.sum()
    squares = unit**2
    return Ranks(
        stable=float(squares.sum()),
        effective=float(np.exp(-(shares * np.log(shares)).sum())),
        participation=float(squares.sum() ** 2 / (squares**2).sum()),
        numerical=int((unit > limit).sum()),
        tolerance=limit,
    )
