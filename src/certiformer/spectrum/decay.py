"""How fast singular values fall: sigma_k ~ c k^-alpha, by least squares on a window of logarithms, with an interval.

The interval is that of resampling the residuals of the line (bootstrap, percentiles), so it tells how straight the
logarithms are, not how close a finite matrix is to an operator. Values below a floor are rounding and never enter the
window.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput

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


FEWEST = 4  # points of a line whose slope has an interval


@dataclass(frozen=True)
class Decay:
    """alpha and its interval; the window of k, from 1, both ends in; the constant max k^alpha sigma_k over it; and R^2."""

    alpha: float
    interval: tuple[float, float]
    window: tuple[int, int]
    constant: float
    straightness: float


def decay_exponent(
    values: Float[np.ndarray, " values"],
    window: tuple[int, int] | None = None,
    floor: float = 1e-13,
    level: float = 0.95,
    seed: int = 0,
) -> Decay:
    """The exponent of the values in the window (default: from the second to the last one above `floor` times the largest).

    >>> found = decay_exponent(np.arange(1.0, 65.0) ** -1.5)
    >>> round(found.alpha, 9), found.window
    (1.5, (2, 64))
    """
    values = np.asarray(values, np.float64)
    usable = int((values > floor * values.max(initial=0.0)).sum())
    first, last = (2, usable) if window is None else window
    if not 1 <= first <= last:
        raise BadInput(f"a window of singular values goes from k >= 1 to a larger k, not from {first} to {last}")
    last = min(last, usable)
    if last - first + 1 < FEWEST:
        raise BadInput(
            f"a slope with an interval needs {FEWEST} singular values above {floor:g} of the largest, the window has"
            f" {max(0, last - first + 1)}"
        )
    return _decays(values[None, first - 1 : last], first, level, seed)[0]


def decay_exponents(values: Float[np.ndarray, "matrices values"], floor: float = 1e-13) -> list[Decay | None]:
    """The exponents of several matrices, each in its widest window; none where too few values are above the floor.

    >>> first, second = decay_exponents(np.array([[1.0, 0.5, 0.25, 0.125, 0.0625], [1.0, 0.5, 0.0, 0.0, 0.0]]))
    >>> first.window, second
    ((2, 5), None)
    """
    usable = (values > floor * values.max(1, initial=0.0)[:, None]).sum(1)
    found: list[Decay | None] = [None] * len(values)
    for last in set(usable.tolist()):
        if last >= FEWEST + 1:
            (alike,) = np.nonzero(usable == last)
            for place, decay in zip(alike.tolist(), _decays(values[alike, 1:last], 2), strict=True):
                found[place] = decay
    return found


def _decays(
    inside: Float[np.ndarray, "matrices window"], first: int, level: float = 0.95, seed: int = 0
) -> list[Decay]:
    """The exponents of values that all are in a window which begins at k = `first`."""
    last = first + inside.shape[1] - 1
    k = np.arange(first, last + 1, dtype=np.float64)
    lines = fit_lines(np.log(k), np.log(inside), level, seed)
    slopes = np.array([line.slope for line in lines])
    constants = (k ** -slopes[:, None] * inside).max(1).tolist()
    return [
        Decay(-line.slope, (-line.interval[1], -line.interval[0]), (first, last), constant, line.straightness)
        for line, constant in zip(lines, constants, strict=True)
    ]
