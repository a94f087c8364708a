"""A polygon around the logistic function, as a sum of few ReLU units.

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

from certiformer.errors import BadInput

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
