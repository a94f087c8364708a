"""Logistic regression by gradient descent with ReLU attention (Bai et al. 2023, arXiv 2306.04637, theorem 7).

The logistic function is replaced by a polygon, one head for each of its corners: a sum of few ReLU units.

p(s) = sum_m bends_m max(s - knots_m, 0) is 0 far left, constant far right, and p(-s) = 1 - p(s) up to the grid below. On
the right the logistic function is concave; a polygon whose corners lie `error` above it and whose edges dip `error` below
it has the fewest pieces. From a corner (k, logistic(k) + error) the next one is as far away as an edge allows; the last
one has the value 1. The first is where the edge through (0, 1/2) still stays within the error.

The slopes are rounded to a grid, so that the bends, their differences, are numbers of the stored type and add up to
exactly 0: otherwise p would run away far out. What the rounding does to the error is the checker's business
(`axioms.in_context_relu`); the corners are made for 7/8 of the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from certiformer.compiler.incontext.determined import require_box, require_determined, require_spectrum
from certiformer.compiler.incontext.relu_least_squares import one_strength, remarks
from certiformer.compiler.incontext.relu_steps import relu_learner
from certiformer.compiler.incontext.relu_steps import relu_network as build
from certiformer.compiler.incontext.relu_steps import relu_points as points
from certiformer.compiler.incontext.request import Request
from certiformer.errors import BadInput
from certiformer.kernel.meanings.relu_learner import ReluLearner

# The slopes are multiples of this: at most 1/4, so their differences are exact in the stored type.
GRIDS = {"float64": 2.0**-50, "float32": 2.0**-22, "bfloat16": 2.0**-8}
KNOT_GRIDS = {"float64": 2.0**-46, "float32": 2.0**-18, "bfloat16": 2.0**-4}


def logistic(s: float) -> float:
    return 1.0 / (1.0 + math.exp(-s)) if s >= 0 else math.exp(s) / (1.0 + math.exp(s))


def polygon(error: float, dtype: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The knots and the bends.

    >>> knots, bends = polygon(0.01, "float64")
    >>> len(knots), sum(bends), round(sum(b * max(0.5 - k, 0.0) for k, b in zip(knots, bends)), 3)
    (6, 0.0, 0.614)
    """
    if not 1e-6 <= error <= 0.1:
        raise BadInput(f"--error is between 1e-6 and 0.1, not {error:g}")
    aim, grid, knot_grid = 0.875 * error, GRIDS[dtype], KNOT_GRIDS[dtype]
    corners = [(0.0, 0.5)]
    while corners[-1][1] < 1.0:
        start, value = corners[-1]
        reach = _last(lambda t, start=start, value=value: _dip(start, value, t, aim) <= aim, start)
        corners.append((reach, min(1.0, logistic(reach) + aim)))
    right = [round(k / knot_grid) * knot_grid for k, _ in corners[1:]]
    heights = [v for _, v in corners]
    steep = [round((b - a) / (t - s) / grid) * grid for a, b, s, t in _edges(heights, [0.0, *right])]
    knots = [-k for k in reversed(right)] + right
    slopes = [0.0, *reversed(steep[1:]), steep[0], *steep[1:], 0.0]
    bends = [b - a for a, b in zip(slopes, slopes[1:], strict=False)]
    return tuple(knots), tuple(bends)


def _edges(heights: list[float], places: list[float]) -> list[tuple[float, float, float, float]]:
    return list(zip(heights, heights[1:], places, places[1:], strict=False))


def _dip(start: float, value: float, end: float, above: float) -> float:
    """How far the logistic function rises above the edge that ends at the corner over `end`."""
    slope = (min(1.0, logistic(end) + above) - value) / (end - start)
    if not 0.0 < slope < 0.25:
        return logistic(end) - value if slope <= 0 else 0.0
    top = (1.0 + math.sqrt(1.0 - 4.0 * slope)) / 2.0
    where = min(max(math.log(top / (1.0 - top)), start), end)
    return logistic(where) - (value + slope * (where - start))


def _last(holds: Callable[[float], bool], start: float) -> float:
    """About the largest argument up to which a monotone condition holds."""
    width = 1e-3
    while holds(start + width) and width < 64.0:
        width *= 2.0
    low, high = width / 2.0, width
    for _ in range(60):
        middle = (low + high) / 2.0
        low, high = (middle, high) if holds(start + middle) else (low, middle)
    return start + low


__all__ = ["build", "describe", "facts", "points", "refuse", "remarks"]
ERROR = 1e-3  # of the polygon: 20 heads


def describe(request: Request) -> ReluLearner:
    """The description that the flags ask for; without --strength there is no penalty.

    >>> learner = describe(Request(learner="logistic", features=2, rows=8, strength="0.5", layers=9, step=1.0))
    >>> learner.algorithm, len(learner.knots)
    ('gradient steps of size 1 for logistic regression with a ridge of strength 0.5', 20)
    """
    request.refuse("schedule", "attention", "looped", "margin", "validation")
    knots, bends = polygon(ERROR if request.error is None else request.error, request.dtype)
    if request.label_bound != 1.0:
        raise BadInput("the labels of logistic regression are 0 and 1; leave out --label-bound")
    strength = one_strength(request, needed=False)
    return relu_learner(request, "relu-logistic", strength=strength, knots=knots, bends=bends)


def refuse(learner: ReluLearner, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> None:
    """One sentence where the context cannot be learned from, or where the bounds of the claim do not hold."""
    for row, label in enumerate(y, 1):
        if label not in (0.0, 1.0):
            raise BadInput(f"the labels of logistic regression are 0 and 1, but row {row} has {label:g}")
    require_box(learner, x, y, queries)
    require_determined(x, learner.decay)
    require_spectrum(learner.spectrum, learner.everywhere, x)


def facts(learner: ReluLearner, x: np.ndarray, y: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
    """The weights that were learned, and for every query its score and the likelier label."""
    scores = [float(s) for s in outputs[:, 1]]
    weights = [float(w) for w in outputs[0, -learner.features :]]
    return {"weights": weights, "scores": scores, "labels": [int(s > 0) for s in scores]}
