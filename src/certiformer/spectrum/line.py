"""A straight line by least squares, with the interval of its slope by resampling the residuals (bootstrap, percentiles)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

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
    return fit_lines(x, np.asarray(y)[None], level, seed)[0]


def fit_lines(
    x: Float[np.ndarray, " points"], y: Float[np.ndarray, "lines points"], level: float = 0.95, seed: int = 0
) -> list[Line]:
    """The lines through three points or more each, which all stand at the same places."""
    middle, middles = float(x.sum()) / len(x), y.sum(1) / len(x)
    centred, rises = x - middle, y - middles[:, None]
    spread = float(centred @ centred)
    slopes = y @ centred / spread
    residuals = rises - slopes[:, None] * centred
    # Residuals of a fit with two parameters are too small by this factor.
    widened = residuals * math.sqrt(len(x) / (len(x) - 2))
    resampled = slopes[:, None] + widened @ _moves(centred.tobytes(), seed).T / spread
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2], axis=1).tolist()
    totals, left = ((each * each).sum(1) for each in (rises, residuals))
    straight = np.where(totals == 0, 1.0, 1 - left / np.where(totals == 0, 1.0, totals)).tolist()
    intercepts = (middles - slopes * middle).tolist()
    return [
        Line(*each) for each in zip(slopes.tolist(), zip(low, high, strict=True), intercepts, straight, strict=True)
    ]


@lru_cache(maxsize=4)
def _moves(centred: bytes, seed: int) -> Float[np.ndarray, "resamples points"]:
    """How much each residual moves the slope of each resample, times the spread: the sum of the places that it is drawn
    for. The heads of a model have the same places again and again."""
    places = np.frombuffer(centred)
    drawn = np.random.default_rng(seed).integers(len(places), size=(RESAMPLES, len(places)))
    return np.stack([np.bincount(each, places, len(places)) for each in drawn])
