"""A straight line by least squares, with the interval of its slope by resampling the residuals (bootstrap, percentiles)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

RESAMPLES = 500


@dataclass(frozen=True)
class Line:
    """The slope, its interval, the value at x = 0, and R^2."""

    slope: float
    interval: tuple[float, float]
    intercept: float
    straightness: float


def fit_line(
    x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], level: float = 0.95, seed: int = 0
) -> Line:
    """The line through three points or more.

    >>> fit_line(np.arange(4.0), 1 + 2 * np.arange(4.0))
    Line(slope=2.0, interval=(2.0, 2.0), intercept=1.0, straightness=1.0)
    """
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread
    residuals = y - y.mean() - slope * centred
    # Residuals of a fit with two parameters are too small by this factor.
    widened = residuals * np.sqrt(len(x) / (len(x) - 2))
    draws = np.random.default_rng(seed).choice(widened, size=(RESAMPLES, len(x)))
    slopes = slope + draws @ centred / spread
    low, high = np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2])
    total = float(((y - y.mean()) ** 2).sum())
    straight = 1.0 if total == 0 else 1 - float(residuals @ residuals) / total
    return Line(slope, (float(low), float(high)), float(y.mean() - slope * x.mean()), straight)
