"""Products of stored weights in float64 NumPy with an error bound for each entry.

Composite matrices (query times key, value times output times read-out) are computed once per model, before any box. The
claim is about the stored weights, so the rounding of these products is carried along and charged to every enclosure.
NumPy's sums may run in any order and with fused operations: an n-term sum of products is off by at most
n 2^-53 / (1 - n 2^-53) times the sum of magnitudes; (n + 8) 2^-50 of it is charged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from certiformer.interval.padding import TINY, UNIT


class Approximate(NamedTuple):
    """Real numbers within `error` of the doubles `value`, entry by entry."""

    value: Float[np.ndarray, "*_"]
    error: Float[np.ndarray, "*_"]

    def __matmul__(self, other: Approximate) -> Approximate:
        value = self.value @ other.value
        size_a, size_b = np.abs(self.value), np.abs(other.value)
        terms = self.value.shape[-1]
        error = self.error @ (size_b + other.error) + size_a @ other.error + (terms + 8) * UNIT * (size_a @ size_b)
        return Approximate(value, error * (1 + (terms + 8) * UNIT) + TINY)

    def plus(self, other: Approximate) -> Approximate:
        value = self.value + other.value
        error = self.error + other.error + UNIT * (np.abs(self.value) + np.abs(other.value))
        return Approximate(value, error * (1 + UNIT) + TINY)

    def times(self, other: Approximate) -> Approximate:
        """The elementwise product."""
        value = self.value * other.value
        size_a, size_b = np.abs(self.value), np.abs(other.value)
        error = self.error * (size_b + other.error) + size_a * other.error + UNIT * size_a * size_b
        return Approximate(value, error * (1 + 8 * UNIT) + TINY)

    def at(self, index) -> Approximate:
        return Approximate(self.value[index], self.error[index])

    @property
    def transposed(self) -> Approximate:
        return Approximate(np.swapaxes(self.value, -1, -2), np.swapaxes(self.error, -1, -2))


def exact(value: np.ndarray) -> Approximate:
    """Stored numbers (float64, float32 and bfloat16 are all exact as doubles)."""
    array = np.asarray(value).astype(np.float64)
    return Approximate(array, np.zeros_like(array))


def rounded(value: np.ndarray | float, units: float = 4.0) -> Approximate:
    """Numbers computed with a relative error of at most `units` 2^-52."""
    array = np.asarray(value, dtype=np.float64)
    return Approximate(array, np.abs(array) * units * 2.0**-52)
