"""Directions and polynomial profiles on a box: the coordinates in which a target is fitted by a sum of ridges.

The box is moved to (about) [-1, 1]^D by z_j = (x_j - middle_j) / half_j with *rational* middles and halves, so that every
direction a . z with whole numbers a is an exact rational combination of the variables whatever the ends of the box are.
A profile is a polynomial of t = a . z / |a|_1 in [-1, 1], in the Chebyshev basis T_2, ..., T_k; the powers 0 and 1 of all
directions together are one affine function.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import gcd

import numpy as np
from jaxtyping import Float, Int

HALF_DENOMINATOR, MIDDLE_DENOMINATOR = 64, 2**20


@dataclass(frozen=True)
class Frame:
    """Rational middles and halves of a box; the halves cover it."""

    middle: tuple[Fraction, ...]
    half: tuple[Fraction, ...]

    @staticmethod
    def of(low: Float[np.ndarray, " axes"], high: Float[np.ndarray, " axes"]) -> Frame:
        """The frame of a box; halves are rounded up to few digits, so that directions have small entries.

        >>> Frame.of(np.array([0.0]), np.array([2 * np.pi])).half
        (Fraction(13, 4),)
        """
        middle, half = [], []
        for a, b in zip(np.asarray(low, float), np.asarray(high, float), strict=True):
            length = Fraction(float(b - a)) / 2
            unit = Fraction(2) ** (int(np.floor(np.log2(float(length)))) - 4)  # 1/16 to 1/32 of the length
            exact = length.limit_denominator(HALF_DENOMINATOR)
            half.append(exact if exact == length else -(-length // unit) * unit)
            centre = Fraction(float(a + b)) / 2
            middle.append((centre / length).limit_denominator(MIDDLE_DENOMINATOR) * length if centre else centre)
        return Frame(tuple(middle), tuple(half))

    def scaled(self, x: Float[np.ndarray, "points axes"]) -> Float[np.ndarray, "points axes"]:
        return (x - np.array([float(m) for m in self.middle])) / np.array([float(h) for h in self.half])


def primitive_directions(dimension: int, size: int) -> Int[np.ndarray, "directions axes"]:
    """Whole-number vectors without a common divisor and with entries up to `size`, one of each pair a, -a.

    >>> primitive_directions(2, 1).tolist()
    [[0, 1], [1, -1], [1, 0], [1, 1]]
    """
    found = [
        entries
        for entries in product(range(-size, size + 1), repeat=dimension)
        if next((e for e in entries if e), 0) > 0 and gcd(*entries) == 1
    ]
    return np.array(found, dtype=np.int64)


def profile_values(
    z: Float[np.ndarray, "points axes"], directions: Int[np.ndarray, "directions axes"], degree: int
) -> Float[np.ndarray, "points directions powers"]:
    """T_2, ..., T_degree of a . z / |a|_1 for every direction a."""
    t = z @ directions.T / np.abs(directions).sum(1)
    values = [np.ones_like(t), t]
    for _ in range(degree - 1):
        values.append(2 * t * values[-1] - values[-2])
    return np.stack(values[2:], axis=-1)


def polynomials(z: Float[np.ndarray, "points axes"], degree: int) -> Float[np.ndarray, "points monomials"]:
    """Products of Chebyshev polynomials of total degree at most `degree`, the affine ones first."""
    dimension = z.shape[1]
    powers = [p for p in product(range(degree + 1), repeat=dimension) if sum(p) <= degree]
    powers = np.array(sorted(powers, key=lambda p: (sum(p) > 1, p)))
    axes = np.concatenate([np.ones_like(z)[..., None], z[..., None], profile_values_of_axes(z, degree)], axis=-1)
    result = np.ones((len(z), len(powers)))
    for axis in range(dimension):
        result *= axes[:, axis, powers[:, axis]]
    return result


def profile_values_of_axes(z: Float[np.ndarray, "points axes"], degree: int) -> Float[np.ndarray, "points axes powers"]:
    return profile_values(z, np.eye(z.shape[1], dtype=np.int64), max(degree, 2))


_NODES = np.cos(np.pi * (np.arange(2048) + 0.5) / 2048)


def bending(coefficients: Float[np.ndarray, "directions powers"]) -> Float[np.ndarray, " directions"]:
    """c = (1/4) integral sqrt(|g''|) of the profiles sum_j coefficients_j T_j: c / sqrt(tau) pieces reach tau.

    >>> float(bending(np.array([[0.5]]))[0].round(6))  # g = t^2 - 1/2: (1/4) 2 sqrt(2)
    0.707107
    """
    powers = coefficients.shape[1]
    second = [np.polynomial.chebyshev.chebder(np.eye(powers + 2)[j], 2) for j in range(2, powers + 2)]
    values = np.stack([np.polynomial.chebyshev.chebval(_NODES, c) for c in second], axis=1) @ coefficients.T
    return np.pi / 4 * np.mean(np.sqrt(np.abs(values)) * np.sqrt(1 - _NODES**2)[:, None], axis=0)


def predicted_size(coefficients: Float[np.ndarray, "directions powers"]) -> float:
    """(sum c_i^(2/3))^(3/2): over sqrt(tau), the pieces that all profiles need together (`construct.share_tolerance`)."""
    return float((bending(coefficients) ** (2 / 3)).sum() ** 1.5)
