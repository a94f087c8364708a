"""Slopes of errors on logarithmic axes, error ~ c x^slope, with an interval; and which exponents the interval excludes.

Two sources of doubt, and the interval speaks of one of them at a time. With three or more replicates (rows of `errors`:
seeds, restarts, independent samples) the replicates are resampled: the interval is the noise of the measurement. With
fewer the residuals of the line are resampled: the interval is how straight the logarithms are. The percentile interval of
r replicates is narrower than the truth by about sqrt((r - 1) / r); the resampled slopes are widened by its inverse.

A logarithm needs a positive finite error. A point that is not so in half of the replicates or more is left out, then so is
a replicate that is not so at a point left; `note` names both. Fewer than three points make no slope: that is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.rates.study import Series
from certiformer.spectrum.decay import RESAMPLES, fit_line

FEWEST = 3  # points of a line: through two there is always one, and it says nothing
ROUNDING = 1e-9  # of slopes of exact power laws, whose interval is a point
REPLICATES = 3  # from which on they are resampled
Points = Sequence[float] | Float[np.ndarray, " points"]
Errors = Sequence[float] | Sequence[Sequence[float]] | Float[np.ndarray, "*replicates points"]
Combined = Literal["mean", "median", "best"]
COMBINE = {"mean": np.mean, "median": np.median, "best": np.min}


@dataclass(frozen=True)
class Slope:
    """The slope, its interval, the first and the last x that took part, R^2 of the line, and what was left out."""

    value: float
    interval: tuple[float, float]
    window: tuple[float, float]
    straightness: float
    note: str = ""


def fit_slope(
    x: Points,
    errors: Errors,
    replicates: Combined = "mean",
    level: float = 0.95,
    seed: int = 0,
) -> Slope:
    """The slope of log error against log x; `replicates` says what stands for all of them at one point.

    `best` is for restarts: the smallest error of a set of restarts, as a function of the set.

    >>> fit = fit_slope([2, 4, 8, 16], [0.25, 0.0625, 0.015625, 0.00390625])
    >>> round(fit.value, 9), fit.window, round(fit.straightness, 9)
    (-2.0, (2.0, 16.0), 1.0)
    >>> fit_slope([2, 4], [0.2, 0.1])
    Traceback (most recent call last):
        ...
    certiformer.errors.BadInput: a slope needs 3 points with a positive finite error, and there are 2
    """
    x, table, note = _usable(np.asarray(x, np.float64), np.atleast_2d(np.asarray(errors, np.float64)))
    combine = COMBINE[replicates]
    logs = np.log(x)
    line = fit_line(logs, np.log(combine(table, axis=0)), level, seed)
    low, high = line.interval
    rows = len(table)
    if rows >= REPLICATES:
        chosen = np.random.default_rng(seed).integers(rows, size=(RESAMPLES, rows))
        resampled = np.log(combine(table[chosen], axis=1))
        centred = logs - logs.mean()
        slopes = line.slope + (resampled @ centred / (centred @ centred) - line.slope) * np.sqrt(rows / (rows - 1))
        low, high = np.quantile(slopes, [(1 - level) / 2, (1 + level) / 2])
    return Slope(line.slope, (float(low), float(high)), (float(x.min()), float(x.max())), line.straightness, note)


def _usable(x: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray, str]:
    """The points and replicates with logarithms, and what was left out."""
    if table.ndim != 2 or x.ndim != 1 or table.shape[1] != len(x):
        raise BadInput(f"a slope needs one error per x in every replicate, not shapes {x.shape} and {table.shape}")
    unfit = ~(np.isfinite(x) & (x > 0))
    if unfit.any():
        raise BadInput(f"a slope on logarithmic axes needs positive finite x, not {_names(x[unfit])}")
    bad = ~(np.isfinite(table) & (table > 0))
    lost = 2 * bad.sum(axis=0) >= max(1, len(table))
    kept = ~bad[:, ~lost].any(axis=1)
    parts = []
    if lost.any():
        parts.append(f"left out x = {_names(x[lost])}, where the error is zero, negative or not finite")
    if not kept.all():
        parts.append(f"left out {int((~kept).sum())} of {len(table)} replicates with such an error elsewhere")
    note = "; ".join(parts)
    points = len(np.unique(x[~lost]))
    if points < FEWEST or not kept.any():
        left = points if kept.any() else 0
        raise BadInput(
            f"a slope needs {FEWEST} points with a positive finite error, and there are {left}"
            + (note and f" ({note})")
        )
    return x[~lost], table[kept][:, ~lost], note


def _names(values: np.ndarray) -> str:
    return ", ".join(f"{value:g}" for value in values[:8]) + (", ..." if len(values) > 8 else "")


def excluded(theory: Mapping[str, float], mse: Slope | None, l1: Slope | None = None) -> list[str]:
    """The names whose exponent is outside the interval of the slope it speaks of: that of the L1 error for names that end
    in `_l1`, that of the mean squared error for the others. A slope that was not fitted excludes nothing.

    >>> excluded({"paper": -1.0, "other": -3.0}, Slope(-1.1, (-1.2, -0.9), (2.0, 8.0), 1.0))
    ['other']
    """
    found = []
    for name, exponent in theory.items():
        slope = l1 if name.endswith("_l1") else mse
        if slope is not None and not slope.interval[0] - ROUNDING <= exponent <= slope.interval[1] + ROUNDING:
            found.append(name)
    return found


def fitted_series(
    name: str,
    x_label: str,
    x: Points,
    mse: Errors,
    l1: Errors,
    theory: Mapping[str, float] | None = None,
    replicates: Combined = "mean",
    window: tuple[float, float] | None = None,
    seed: int = 0,
    note: str = "",
) -> Series:
    """A line of a picture with the slopes of both errors on `window` (both ends in; default: all points).

    Slopes that cannot be fitted are None, with the reason in the note. The errors shown are the combined ones.
    """
    x = np.asarray(x, np.float64)
    tables = [np.atleast_2d(np.asarray(each, np.float64)) for each in (mse, l1)]
    inside = np.ones(len(x), bool) if window is None else (x >= window[0]) & (x <= window[1])
    slopes, notes = [], [note] if note else []
    for label, table in zip(("MSE", "L1"), tables, strict=True):
        try:
            slopes.append(fit_slope(x[inside], table[:, inside], replicates, seed=seed))
            reason = slopes[-1].note
        except BadInput as refused:
            slopes.append(None)
            reason = str(refused)
        if reason:
            notes.append(f"{label}: {reason}")
    first, second = slopes
    fitted = first or second
    shown = [COMBINE[replicates](table, axis=0) for table in tables]
    return Series(
        name=name,
        x=[float(each) for each in x],
        x_label=x_label,
        error_mse=[float(each) for each in shown[0]],
        error_l1=[float(each) for each in shown[1]],
        slope_mse=first and first.value,
        slope_interval=first and first.interval,
        slope_l1=second and second.value,
        slope_l1_interval=second and second.interval,
        theory=dict(theory or {}),
        excluded=excluded(theory or {}, first, second),
        window=fitted and fitted.window,
        note="; ".join(notes),
    )
