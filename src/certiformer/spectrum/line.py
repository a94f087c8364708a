"""A straight line by least squares, with the interval of its slope by resampling the residuals (bootstrap, percentiles)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

RESAMPLES = 500
SHARES = np.linspace(0, 1, RESAMPLES)  # of the resamples that are below the first, the second, ...


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
    middle = float(x.sum()) / len(x), float(y.sum()) / len(y)
    centred, rises = x - middle[0], y - middle[1]
    spread = float(centred @ centred)
    slope = float(centred @ y) / spread
    residuals = rises - slope * centred
    # Residuals of a fit with two parameters are too small by this factor.
    widened = residuals * math.sqrt(len(x) / (len(x) - 2))
    slopes = np.sort(slope + _moves(centred.tobytes(), seed) @ widened / spread)
    low, high = np.interp([(1 - level) / 2, (1 + level) / 2], SHARES, slopes)
    total = float(rises @ rises)
    straight = 1.0 if total == 0 else 1 - float(residuals @ residuals) / total
    return Line(slope, (float(low), float(high)), middle[1] - slope * middle[0], straight)


@lru_cache(maxsize=4)
def _moves(centred: bytes, seed: int) -> Float[np.ndarray, "resamples points"]:
    """How much each residual moves the slope of each resample, times the spread: the sum of the places that it is drawn
    for. The heads of a model have the same places again and again."""
    places = np.frombuffer(centred)
    drawn = np.random.default_rng(seed).integers(len(places), size=(RESAMPLES, len(places)))
    cells = drawn + len(places) * np.arange(RESAMPLES)[:, None]
    return np.bincount(cells.ravel(), np.tile(places, RESAMPLES), drawn.size).reshape(drawn.shape)
