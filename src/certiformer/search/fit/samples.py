"""Where the error is looked at: the points of training, a denser set, and the exchange that moves peaks into training.

Everything here is on [-1, 1]^k with values divided by their half range. Nothing is a bound: peaks between points are
found by a local search from the worst points of the dense set, which may miss one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

import numpy as np
from jaxtyping import Float

from certiformer.kernel import Refused
from certiformer.search.fit.architecture import Activation
from certiformer.search.fit.train import errors_at

Values = Callable[[np.ndarray], np.ndarray]

# Points of training: points on each axis of a grid, and random ones. The grid has the extreme points of a Chebyshev
# polynomial, dense near the ends, where best approximations peak most.
TRAINING = {1: (301, 0), 2: (32, 0), 3: (9, 700), 4: (4, 1_200)}
DENSE = {1: (6_001, 0), 2: (150, 2_000), 3: (26, 8_000), 4: (9, 20_000)}
RANDOM_BEYOND = 3_000  # in more dimensions than the tables have
EXTRA = 128  # places for exchanged points
PEAKS = 48
PEAK_ROUNDS = 14


@dataclass
class Sample:
    """The training points of one problem, with places for peaks that are found later."""

    values_of: Values
    points: Float[np.ndarray, "points inputs"]
    values: Float[np.ndarray, " points"]
    counted: np.ndarray
    dense: Float[np.ndarray, "dense inputs"]
    dense_values: Float[np.ndarray, " dense"]
    added: int = field(default=0)

    @staticmethod
    def of(values_of: Values, inputs: int, seed: int) -> Sample:
        generator = np.random.default_rng(seed)
        base = _points(inputs, TRAINING, generator)
        points = np.concatenate([base, np.repeat(base[:1], EXTRA, axis=0)])
        dense = _points(inputs, DENSE, generator)
        values, dense_values = values_of(points), values_of(dense)
        if not (np.isfinite(values).all() and np.isfinite(dense_values).all()):
            raise Refused("the target is not finite at some sampled point of the box")
        return Sample(values_of, points, values, np.arange(len(points)) < len(base), dense, dense_values)

    def worst(self, activation: Activation, vector: np.ndarray) -> tuple[float, np.ndarray]:
        """The largest error that is found, and the peaks: where it is and where it is almost as large."""
        dense_errors = np.abs(np.asarray(errors_at(activation, vector, self.dense, self.dense_values)))
        if not np.isfinite(dense_errors).all():
            return np.inf, self.dense[:0]
        inputs = self.dense.shape[1]
        peaks = self.dense[np.argsort(-dense_errors, kind="stable")[: 8 * PEAKS : 8]]
        heights = np.full(len(peaks), -1.0)
        moves = np.concatenate([np.zeros((1, inputs)), np.eye(inputs), -np.eye(inputs)])
        step = 2.0 / len(self.dense) ** (1 / inputs)
        for _ in range(PEAK_ROUNDS):
            tried = np.clip(peaks[:, None] + step * moves, -1, 1)
            flat = tried.reshape(-1, inputs)
            errors = np.abs(np.asarray(errors_at(activation, vector, flat, self.values_of(flat))))
            errors = errors.reshape(len(peaks), -1)
            best = errors.argmax(1)
            peaks, heights = tried[np.arange(len(peaks)), best], errors.max(1)
            step = np.where(best.max() == 0, step / 3, step / 1.7)
        order = np.argsort(-heights, kind="stable")
        return max(float(dense_errors.max()), float(heights[order[0]])), peaks[order]

    def exchange(self, peaks: Float[np.ndarray, "peaks inputs"], count: int = 16) -> None:
        """Train on these peaks too; the oldest exchanged points make room."""
        base = len(self.points) - EXTRA
        new = peaks[:count]
        places = base + (self.added + np.arange(len(new))) % EXTRA
        self.points[places], self.values[places], self.counted[places] = new, self.values_of(new), True
        self.added += len(new)


def dense_points(inputs: int, seed: int) -> Float[np.ndarray, "points inputs"]:
    """The dense set by itself."""
    return _points(inputs, DENSE, np.random.default_rng(seed))


def _points(inputs: int, table: dict[int, tuple[int, int]], generator: np.random.Generator) -> np.ndarray:
    if inputs not in table:
        corners = generator.choice([-1.0, 1.0], (RANDOM_BEYOND // 8, inputs))
        return np.concatenate([corners, generator.uniform(-1, 1, (RANDOM_BEYOND, inputs))])
    number, random = table[inputs]
    line = -np.cos(np.pi * np.arange(number) / (number - 1))
    grid = np.array(list(product(line, repeat=inputs)))
    scattered = generator.uniform(-1, 1, (random, inputs))
    # A third of the random points lies on faces of the box.
    faces = np.arange(random // 3)
    scattered[faces, faces % inputs] = np.sign(scattered[faces, faces % inputs])
    return np.concatenate([grid, scattered])
