"""Profiles of the Fejer-Korovkin operator in float64, and bent lines along them with given numbers of pieces.

The formulas are those of `axioms.cosine_ridges`; what is computed here only decides where knots go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from certiformer.axioms.cosine_ridges import SUB_PIECES, Direction, reach, ridges

Vector = Float[np.ndarray, " n"]

# (mean of sqrt |cos|)^2 = 0.5814: how much knots placed by curvature save against equal pieces on a single wave.
WAVE = 0.5814
SAMPLES_PER_WAVE = 32
# Knots follow sqrt |g''|, but never thinner than this share of its largest value.
THINNEST = 0.05


@dataclass(frozen=True)
class Bent:
    """A bent line along p . t: value and slope at the low end, then changes of slope at knots; `error` against g."""

    direction: Direction
    low: int
    value: float
    slope: float
    knots: Vector
    changes: Vector
    error: float


@dataclass(frozen=True)
class Profile:
    """g(s) = sum_g a_g cos(pi g s) along one primitive direction."""

    direction: Direction
    harmonics: Vector
    amplitudes: Vector

    @cached_property
    def size(self) -> float:
        return float(np.abs(self.amplitudes).sum())

    @cached_property
    def length(self) -> int:
        low, high = reach(self.direction)
        return high - low

    @cached_property
    def rough(self) -> float:
        """About J^2 times the error of J pieces, from the amplitudes alone."""
        return WAVE * (np.pi * self.length) ** 2 * float(np.abs(self.amplitudes) @ self.harmonics**2) / 16

    @cached_property
    def exact(self) -> float:
        """J^2 times the error of J pieces as J grows: (integral sqrt |g''|)^2 / 16."""
        points, density = self._density()
        return float(np.trapezoid(density, points)) ** 2 / 16

    def value(self, s: np.ndarray) -> np.ndarray:
        return np.cos(np.pi * np.multiply.outer(s, self.harmonics)) @ self.amplitudes

    def second(self, s: np.ndarray) -> np.ndarray:
        return np.cos(np.pi * np.multiply.outer(s, self.harmonics)) @ (-self.amplitudes * (np.pi * self.harmonics) ** 2)

    def _density(self) -> tuple[Vector, Vector]:
        low, high = reach(self.direction)
        points = np.linspace(low, high, int(SAMPLES_PER_WAVE * self.harmonics[-1] * self.length / 2) + 33)
        return points, np.sqrt(np.abs(self.second(points)))

    def bent(self, pieces: int) -> Bent:
        """A bent line with that many pieces: knots by curvature, every piece moved half way from chord to curve."""
        points, density = self._density()
        density = np.maximum(density, THINNEST * density.max())
        grown = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(points))])
        knots = np.interp(np.linspace(0.0, grown[-1], pieces + 1), grown, points)
        knots[0], knots[-1] = points[0], points[-1]
        curve, middle = self.value(knots), self.value((knots[1:] + knots[:-1]) / 2)
        lift = (middle - (curve[1:] + curve[:-1]) / 2) / 2
        # The first piece is a shifted chord, as the checker takes it; later knots take the mean of their two pieces.
        values = curve + np.concatenate([lift[:1], lift[:1], (lift[1:-1] + lift[2:]) / 2, lift[-1:]])[: pieces + 1]
        slopes = np.diff(values) / np.diff(knots)
        slopes[0] = (curve[1] - curve[0]) / (knots[1] - knots[0])
        error = self._error(knots, values)
        low = reach(self.direction)[0]
        return Bent(self.direction, low, float(values[0]), float(slopes[0]), knots[1:-1], np.diff(slopes), error)

    def _error(self, knots: Vector, values: Vector) -> float:
        """The checker's bound of the distance, up to rounding."""
        shares = np.arange(SUB_PIECES + 1) / SUB_PIECES
        width = np.diff(knots)
        points = knots[:-1, None] + width[:, None] * shares
        line = values[:-1, None] + np.diff(values)[:, None] * shares
        gaps = np.abs(line - self.value(points)).max(axis=1)
        scale = np.abs(self.amplitudes) * (np.pi * self.harmonics) ** 2
        local = np.abs(self.second((knots[1:] + knots[:-1]) / 2)) + width / 2 * (scale @ (np.pi * self.harmonics))
        rest = (width / SUB_PIECES) ** 2 / 8 * np.minimum(local, scale.sum())
        return float((gaps + rest).max())


def float_profiles(samples: Float[np.ndarray, ...], degrees: Sequence[int]) -> tuple[float, list[Profile]]:
    """The constant and the profiles of the operator with these samples at its nodes."""
    values = samples
    for axis, degree in enumerate(degrees):
        count = samples.shape[axis]
        a = np.sin((np.arange(degree + 1) + 1) * np.pi / (degree + 2))
        rho = np.correlate(a, a, "full")[degree:]
        k = np.arange(degree + 1)[:, None]
        matrix = np.where(k > 0, 2.0, 1.0) * (rho / rho[0])[:, None] / count
        matrix = matrix * np.cos(np.pi * k * (np.arange(count) + 0.5) / count)
        values = np.moveaxis(np.tensordot(matrix, values, (1, axis)), 0, axis)
    constant, found = ridges(values.ravel().tolist(), degrees)
    profiles = []
    for direction, terms in found.items():
        harmonics = sorted(terms)
        profiles.append(Profile(direction, np.array(harmonics, float), np.array([terms[g] for g in harmonics])))
    return constant, profiles  # type: ignore[return-value]


def share_out(profiles: list[Profile], tolerance: float, *, exactly: bool = False) -> dict[int, int]:
    """Pieces (at least 2) by index of profile, the others left out: about the fewest units within `tolerance`.

    For a price l of error, profile i takes the J with the least J - 1 + l c_i / J^2, or is left out for l size_i; the
    price is raised until the errors fit.
    """
    size = np.array([p.size for p in profiles])
    cost = np.array([p.rough for p in profiles])
    if exactly:
        kept = _priced(size, cost, tolerance / 4)[0]
        for i in np.flatnonzero(kept):
            cost[i] = profiles[i].exact
    pieces, _ = _priced(size, cost, tolerance)
    return {int(i): int(pieces[i]) for i in np.flatnonzero(pieces)}


def _priced(size: Vector, cost: Vector, tolerance: float) -> tuple[np.ndarray, float]:
    def at(price: float) -> tuple[np.ndarray, float]:
        pieces = np.maximum(2, np.round(np.cbrt(2 * price * cost)))
        used = price * size > pieces - 1 + price * cost / pieces**2
        return np.where(used, pieces, 0), float(np.where(used, cost / pieces**2, size).sum())

    low, high = -10.0, 60.0  # logarithms of the price
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if at(np.exp(middle))[1] <= tolerance else (middle, high)
    return at(np.exp(high))
