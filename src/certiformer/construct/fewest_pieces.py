"""The continuous piecewise linear function with the fewest pieces through given intervals.

Keys k_1 < ... < k_M carry intervals [lo_i, hi_i]; between the keys the function is free, and so are its knots. The
greedy below is optimal (Imai and Iri 1986; Hakimi and Schmeichel 1991; the single-line part is O'Rourke 1981).
Derivation:

*One line.* The lines through the first m intervals form a convex set. Let up be the line through (k_a, lo_a) and
(k_b, hi_b), a < b, with the largest slope. Any other such line g has g(k_a) >= up(k_a) and g(k_b) <= up(k_b), so g <=
up beyond k_b: up is the highest line at every later key, and `down`, from some hi_a to a later lo_b, the lowest.

*The next piece.* Suppose interval m + 1 lies above `up`. Every function that reaches it with two pieces crosses up at
some x in [k_b, k_{m+1}], so its first piece may be replaced by up. The second piece g, above up after the crossing,
must satisfy g <= hi_i at the keys i = b, ..., m (before the crossing it lies below up, which is in the interval) and
both bounds from m + 1 on. So the second piece is again a line through intervals, the first of which have no lower
end; the argument repeats. The case below is the mirror.

A function with P pieces costs P - 1 hidden units: the first piece is the affine part of the read-out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Line = tuple[float, float, float]  # slope and a point on the line


@dataclass(frozen=True)
class Polyline:
    """A continuous piecewise linear function: its knots, and the line to the left of each and right of the last."""

    knots: list[float]
    lines: list[Line]


def fewest_pieces(
    keys: Float[np.ndarray, " keys"], low: Float[np.ndarray, " keys"], high: Float[np.ndarray, " keys"]
) -> Polyline:
    """The greedy of the module docstring, in float64 (whoever uses it checks the result).

    >>> keys = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    >>> values = np.array([0.0, 1.0, 2.0, 1.0, 0.0])
    >>> found = fewest_pieces(keys, values - 1e-9, values + 1e-9)
    >>> len(found.lines), round(float(found.knots[0]), 6)
    (2, 2.0)
    """
    knots: list[float] = []
    lines: list[Line] = []
    start, full, sign = 0, 0, 0
    while True:
        stop, line, pivot, side = _longest(keys, low, high, start, full, sign)
        if lines:
            knots.append(_crossing(lines[-1], line, keys[start], keys[full]))
        lines.append(line)
        if stop == len(keys):
            return Polyline(knots, lines)
        start, full, sign = pivot, stop, side


def _longest(
    keys: np.ndarray, low: np.ndarray, high: np.ndarray, start: int, full: int, sign: int
) -> tuple[int, Line, int, int]:
    """The longest line from `start` on; intervals before `full` keep one end only (`sign` 1: upper, -1: lower).

    Returns the first key that is not reached (or the number of keys), the extreme line towards it, the key where that
    line touches its interval last, and the side on which the missed interval lies.
    """
    up: Line = (math.inf, keys[start], math.inf)
    down: Line = (-math.inf, keys[start], -math.inf)
    up_pivot = down_pivot = start
    lows, highs = low[start : len(keys)].copy(), high[start : len(keys)].copy()
    if sign > 0:
        lows[: full - start] = -math.inf
    elif sign < 0:
        highs[: full - start] = math.inf
    xs = keys[start:]
    for i in range(1, len(xs)):
        x = xs[i]
        if lows[i] > _at(up, x):
            return start + i, up, up_pivot, 1
        if highs[i] < _at(down, x):
            return start + i, down, down_pivot, -1
        steps = x - xs[:i]
        if highs[i] < _at(up, x):
            slope = float(np.min((highs[i] - lows[:i]) / steps))
            if slope < math.inf:
                up, up_pivot = (slope, x, highs[i]), start + i
        if lows[i] > _at(down, x):
            slope = float(np.max((lows[i] - highs[:i]) / steps))
            if slope > -math.inf:
                down, down_pivot = (slope, x, lows[i]), start + i
    return len(keys), _between(up, down, xs, lows, highs), start, 0


def _at(line: Line, x: float) -> float:
    slope, x0, y0 = line
    if math.isinf(slope):
        return slope  # no line limits this side yet
    return y0 + slope * (x - x0)


def _between(up: Line, down: Line, xs: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> Line:
    """A line in the middle of all that fit: the lines form a convex set, so the mean of two of them fits."""
    finite = [line for line in (up, down) if math.isfinite(line[0])]
    if not finite:  # a single interval, or only one-sided ones
        y = (lows[-1] + highs[-1]) / 2
        return (0.0, xs[-1], y)
    slope = sum(line[0] for line in finite) / len(finite)
    middle = float(xs[-1])
    return (slope, middle, sum(_at(line, middle) for line in finite) / len(finite))


def _crossing(left: Line, right: Line, first: float, last: float) -> float:
    """Where two lines meet; they do between the two keys, up to rounding."""
    if left[0] == right[0]:
        return last
    x = last + (_at(right, last) - _at(left, last)) / (left[0] - right[0])
    return min(max(x, first), last)
