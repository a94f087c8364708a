"""The feed-forward half of memorisation: a piecewise linear function of one key whose rounded weights correct themselves.

g(s) = c + m s + sum_j d_j relu(s - t_j) is stored from left to right. Everything to the left of a value is already
stored, so the next d_j is chosen, in exact arithmetic, such that the *stored* g meets the next prescribed value; the
rounding of d_j costs 2^-53 |d_j| times the distance to that value, and the next unit corrects it. Errors do not add
up, however many units there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from certiformer.construct.fewest_pieces import Polyline, fewest_pieces
from certiformer.kernel import Refused

CLOSE = 1e-12  # keys nearer than this share of their range count as one
Vector = tuple[Fraction, ...]


@dataclass(frozen=True)
class Units:
    """g(s) = intercept + slope s + sum_j weights_j relu(s - thresholds_j), with values in R^outputs."""

    slope: Float[np.ndarray, " outputs"]
    intercept: Float[np.ndarray, " outputs"]
    thresholds: Float[np.ndarray, " units"]
    weights: Float[np.ndarray, "units outputs"]


def fit(
    keys: Sequence[Fraction], wanted: Sequence[Vector], epsilon: Fraction, exactly: bool
) -> tuple[Units, int | None]:
    """Units through `wanted` at `keys`, and how many would be the fewest within epsilon, if there is one output.

    `exactly` asks for interpolation at the keys, the most accurate; otherwise half of epsilon is spent on fewer units.
    Raises `Refused` when two keys with different wants cannot be told apart.
    """
    floats, values = np.array([float(k) for k in keys]), np.array([[float(y) for y in row] for row in wanted])
    eps, outputs = float(epsilon), values.shape[1]
    grouped = merged(floats, values - eps / 2, values + eps / 2)
    if exactly or grouped is None:
        return _at_keys(keys, wanted, Fraction(0) if exactly else epsilon / 2), None
    where, low, high = grouped
    lines = [fewest_pieces(where, low[:, o], high[:, o]) for o in range(outputs)]
    fewest = None
    if outputs == 1:
        wider = merged(floats, values - eps, values + eps)
        fewest = None if wider is None else len(fewest_pieces(wider[0], wider[1][:, 0], wider[2][:, 0]).knots)
    separate = sum(3 * len(line.knots) for line in lines)
    shared = _at_keys(keys, wanted, epsilon / 2) if outputs > 1 else None
    if shared is not None and (2 + outputs) * len(shared.thresholds) < separate:
        return shared, fewest
    return _between_keys(lines, float(where[0]), float(where[-1])), fewest


def merged(
    keys: np.ndarray, low: Float[np.ndarray, "keys outputs"], high: Float[np.ndarray, "keys outputs"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Sorted keys with their intervals; keys too close to tell apart share the common part, None when it is empty."""
    order = np.argsort(keys, kind="stable")
    keys, low, high = keys[order], low[order], high[order]
    first = np.concatenate([[True], np.diff(keys) > CLOSE * max(keys[-1] - keys[0], np.finfo(float).tiny)])
    starts = np.flatnonzero(first)
    low, high = np.maximum.reduceat(low, starts), np.minimum.reduceat(high, starts)
    return (keys[starts], low, high) if np.all(low <= high) else None


def _at_keys(keys: Sequence[Fraction], wanted: Sequence[Vector], tolerance: Fraction) -> Units:
    """Units at the keys themselves, shared by all outputs; none where the line so far is within `tolerance`."""
    pairs = sorted(dict(zip(keys, wanted, strict=True)).items())
    if len(pairs) < len(set(keys)) or any(dict(pairs)[k] != y for k, y in zip(keys, wanted, strict=True)):
        raise Refused("two rows with different outputs have the same key")
    stored = _Stored(pairs[0], pairs[1] if len(pairs) > 1 else pairs[0])
    for (here, _), (there, value) in zip(pairs[1:], pairs[2:], strict=False):
        if all(abs(a - b) <= tolerance for a, b in zip(stored.at(there), value, strict=True)):
            continue
        threshold = _at_least(here)
        if not threshold < there:
            raise Refused("two keys are too close for float64 to put a unit between them")
        stored.bend(threshold, there, value)
    return stored.units()


def _between_keys(lines: list[Polyline], first: float, last: float) -> Units:
    """The polylines of the outputs, each with its own units."""
    parts = []
    for line in lines:
        anchors = [(Fraction(first), (_value(line.lines[0], Fraction(first)),))]
        ends = [Fraction(k) for k in line.knots if k < last] + [Fraction(last)]
        for piece, end in zip(line.lines, ends, strict=False):
            if end > anchors[-1][0]:
                anchors.append((end, (_value(piece, end),)))
        stored = _Stored(anchors[0], anchors[1] if len(anchors) > 1 else anchors[0])
        for (here, _), (there, value) in zip(anchors[1:], anchors[2:], strict=False):
            stored.bend(here, there, value)
        parts.append(stored.units())
    count, total = len(parts), sum(len(p.thresholds) for p in parts)
    weights, place = np.zeros((total, count)), 0
    for output, part in enumerate(parts):
        weights[place : place + len(part.thresholds), output] = part.weights[:, 0]
        place += len(part.thresholds)
    return Units(
        np.concatenate([p.slope for p in parts]),
        np.concatenate([p.intercept for p in parts]),
        np.concatenate([p.thresholds for p in parts]),
        weights,
    )


def _value(line: tuple[float, float, float], x: Fraction) -> Fraction:
    slope, x0, y0 = (Fraction(float(number)) for number in line)
    return y0 + slope * (x - x0)


class _Stored:
    """g as stored so far: exact values of the float64 numbers already chosen."""

    def __init__(self, first: tuple[Fraction, Vector], second: tuple[Fraction, Vector]):
        (a, ya), (b, yb) = first, second
        step = b - a
        self.slope = [_float((v - u) / step) if step else 0.0 for u, v in zip(ya, yb, strict=True)]
        self.intercept = [_float(u - Fraction(m) * a) for u, m in zip(ya, self.slope, strict=True)]
        # On the piece after the last threshold g(s) = m s + c, exactly.
        self._m = [Fraction(m) for m in self.slope]
        self._c = [Fraction(c) for c in self.intercept]
        self._thresholds: list[float] = []
        self._weights: list[list[float]] = []

    def at(self, s: Fraction) -> list[Fraction]:
        return [m * s + c for m, c in zip(self._m, self._c, strict=True)]

    def bend(self, threshold: Fraction, there: Fraction, value: Vector) -> None:
        """Add a unit at `threshold` (a float64 number) so that g meets `value` at `there`."""
        step = there - threshold
        weights = [_float((y - g) / step) for y, g in zip(value, self.at(there), strict=True)]
        self._thresholds.append(float(threshold))
        self._weights.append(weights)
        for o, d in enumerate(map(Fraction, weights)):
            self._m[o] += d
            self._c[o] -= d * threshold

    def units(self) -> Units:
        weights = np.array(self._weights).reshape(len(self._thresholds), len(self.slope))
        return Units(np.array(self.slope), np.array(self.intercept), np.array(self._thresholds), weights)


def _float(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        raise Refused("the keys are so close that a weight would exceed what float64 carries") from None


def _at_least(value: Fraction) -> Fraction:
    """The smallest float64 number that is not below `value`."""
    near = float(value)
    return Fraction(near if Fraction(near) >= value else math.nextafter(near, math.inf))
