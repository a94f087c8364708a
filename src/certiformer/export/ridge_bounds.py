"""Functions of one linear form: what ReLU units that read multiples of the same form can write.

A compiled table is such a function, sum_j a_j relu(c_j s + b_j): it is far from the sum of its terms' bounds, as they
cancel, but it is piecewise linear in s, so that its extremes on an interval are found at the kinks and ends. When the
units read the very coordinate that they write, the residual connection is one more term, s itself: so a coordinate that
is cleared is known to be cleared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " _"]


def ridge_forms(up: Float[np.ndarray, "width units"]) -> list[tuple[Vector, Vector, np.ndarray]]:
    """Units by what they read: a form whose first entry is 1, the multiple of it that each unit reads, their numbers.

    >>> for form, scales, members in ridge_forms(np.array([[1.0, -2.0, 0.0], [3.0, -6.0, 1.0]])):
    ...     print(form, scales, members)
    [1. 3.] [ 1. -2.] [0 1]
    [0. 1.] [1.] [2]
    """
    groups: dict[bytes, tuple[Vector, list[float], list[int]]] = {}
    for unit in range(up.shape[1]):
        column = up[:, unit]
        nonzero = np.flatnonzero(column)
        scale = float(column[nonzero[0]]) if len(nonzero) else 1.0
        form = column / scale + 0.0
        # A quotient that was rounded would be another form, off by what was rounded.
        if not np.array_equal(form * scale, column):
            scale, form = 1.0, column
        _, scales, members = groups.setdefault(form.tobytes(), (form, [], []))
        scales.append(scale)
        members.append(unit)
    return [(form, np.array(scales), np.array(members)) for form, scales, members in groups.values()]


@dataclass(frozen=True)
class RidgeRange:
    """The ends of what is written (of real numbers, and in a run), and how far a run may be from the real number."""

    low: Float[np.ndarray, "2 _"]
    high: Float[np.ndarray, "2 _"]
    error: Vector


def ridge_range(
    ends: list[tuple[float, float]],
    off: tuple[float, float, float],
    wobble: float,
    scales: Vector,
    biases: Vector,
    down: Float[np.ndarray, "units writes"],
    along: Vector,
) -> RidgeRange:
    """The range and error of sum_j down_j relu(scale_j s + bias_j) + along s.

    The error of s is known in two ways. A piece of the function with slope a that reaches up to |s| = t adds at most
    |a| error, and at most |a| (floor + relative t) / (1 - relative): s itself is at most e = floor + relative |s| from a
    point of the piece, so |s| <= t + e.

    **Arguments:**

    - `ends`: the interval of s as a real number, and in a run.
    - `off`: error, floor and relative error of s.
    - `wobble`: what the units see beyond the error of s; the residual connection does not.
    """
    error, floor, relative = off
    (low, high), (run_low, run_high) = ends
    run = (run_low - wobble, run_high + wobble)
    kinks = -biases / scales
    outer = (min(low, run[0]), max(high, run[1]))
    inside = kinks[(kinks > outer[0]) & (kinks < outer[1])]
    points = np.unique(np.concatenate([inside, [low, high, *run]]))
    points = np.repeat(points, 2) if len(points) == 1 else points
    values = np.maximum(np.outer(points, scales) + biases, 0.0) @ down + np.outer(points, along)
    extremes = [values[(points >= a) & (points <= b)] for a, b in ((low, high), run)]
    middles, far = (points[1:] + points[:-1]) / 2.0, np.maximum(np.abs(points[1:]), np.abs(points[:-1]))
    slopes = ((np.outer(middles, scales) + biases > 0) * scales) @ down
    reach = np.full_like(far, error)
    if relative < 0.5:
        reach = np.minimum(reach, (floor + relative * far) / (1.0 - relative))
    total = (np.abs(slopes + along) * reach[:, None]).max(0) + np.abs(slopes).max(0) * wobble
    lows = np.stack([part.min(0) for part in extremes])
    highs = np.stack([part.max(0) for part in extremes])
    # In a run the wobble moved the units' reading only.
    moved = np.stack([np.zeros_like(along), along * wobble])
    return RidgeRange(lows - moved, highs + moved, total)
