"""Samples of a curve, close enough that chords between them stay within a given distance, and denser where it bends.

Cells are halved while the curve leaves their chord by more than the given distance at a quarter, half or three quarters
of the cell. A sample count per cell of curvature c is then sqrt(c / (8 distance)): for a distance of 5e-4 of the
tolerance of a piecewise linear fit, some 60 samples per piece. Halving ends at a bend after a few dozen steps; a cell that
is as short as rounding allows and still far from its chord is a jump.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Curve = Callable[[Float[np.ndarray, " points"]], Float[np.ndarray, " points"]]

FIRST_CELLS = 256
LARGEST_SAMPLES = 4_000_000
QUARTERS = np.array([0.25, 0.5, 0.75])


@dataclass(frozen=True)
class Samples:
    """Points in increasing order, both ends included, and the values there; `checks` are further points inside cells."""

    points: Float[np.ndarray, " points"]
    values: Float[np.ndarray, " points"]
    checks: Float[np.ndarray, " checks"]
    check_values: Float[np.ndarray, " checks"]

    @property
    def rounding(self) -> float:
        """About the error of the samples themselves: a few units in the last place of the largest value."""
        return 2.0**-50 * float(np.abs(self.values).max())

    def distance(self, function: Curve) -> float:
        """The largest distance of `function` to the curve over all points."""
        return float(
            max(
                np.abs(function(self.points) - self.values).max(),
                np.abs(function(self.checks) - self.check_values).max(),
            )
        )


def sample(curve: Curve, low: float, high: float, distance: float, kinks: Sequence[float] = ()) -> Samples:
    """Samples whose chords are within `distance` of the curve; the given kinks that lie inside are among them.

    >>> len(sample(np.square, -1.0, 1.0, 1e-6).points), len(sample(np.square, -1.0, 1.0, 1e-8).points)
    (1025, 16385)
    """
    if not (np.isfinite(low) and np.isfinite(high) and low < high and distance > 0):
        raise ValueError(f"a curve is sampled on a proper interval, not [{low}, {high}], to within {distance}")
    start = np.union1d(np.linspace(low, high, FIRST_CELLS + 1), [k for k in kinks if low < k < high])
    points, values = start, _values(curve, start)
    left, right = np.stack([points[:-1], values[:-1]]), np.stack([points[1:], values[1:]])
    all_points, all_values, checks, check_values = [points], [values], [], []
    shortest = 2.0**-50 * max(abs(low), abs(high), high - low)
    count = len(points)
    while left.shape[1]:
        inside = left[0] + (right[0] - left[0]) * QUARTERS[:, None]
        found = _values(curve, inside.ravel()).reshape(inside.shape)
        chord = left[1] + (right[1] - left[1]) * QUARTERS[:, None]
        far = np.abs(found - chord).max(0) > distance
        short = far & (right[0] - left[0] <= 4 * shortest)
        if np.any(short & (np.abs(right[1] - left[1]) > 64 * distance)):
            raise ValueError("the curve jumps: no continuous function comes close to it")
        far &= ~short
        checks.append(inside[:, ~far].ravel())
        check_values.append(found[:, ~far].ravel())
        count += int(far.sum())
        if count > LARGEST_SAMPLES:
            raise ValueError(f"the curve needs more than {LARGEST_SAMPLES:,} samples")
        middle = np.stack([inside[1, far], found[1, far]])
        all_points.append(middle[0])
        all_values.append(middle[1])
        left, right = (
            np.concatenate([left[:, far], middle], axis=1),
            np.concatenate([middle, right[:, far]], axis=1),
        )
    points, values = np.concatenate(all_points), np.concatenate(all_values)
    order = np.argsort(points, kind="stable")
    return Samples(points[order], values[order], np.concatenate(checks), np.concatenate(check_values))


def _values(curve: Curve, points: np.ndarray) -> np.ndarray:
    values = np.asarray(curve(points), dtype=np.float64)
    if not np.all(np.isfinite(values)):
        at = points[~np.isfinite(values)][0]
        raise ValueError(f"the curve has no finite value at {at:.6g}")
    return values
