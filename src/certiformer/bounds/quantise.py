"""Weights as a few levels around a start that was fixed before the data: what `code_length` writes.

A model is theta = start + scale * w. Only w is coded; start and scale are free because they do not depend on the data:

- *from nothing*: start 0;
- *from the initial weights*: start is what a seed gives;
- *from an earlier checkpoint*: start is a model trained on other data, and only what was learned since is paid for;
- *in a subspace*: w = P u with a seeded matrix P of signs, and only the d numbers u are coded, d far below the number
  of weights (`Subspace`).

Levels are found by `uniform_levels` or `clustered_levels` (one-dimensional k-means); either is allowed to look at the
weights, as the levels are part of the file. Random signs come from `seeded_words`, whole-number arithmetic that gives the
same bits on every machine and with every release of NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, UInt64

from certiformer.bounds.numbers import require_positive
from certiformer.errors import BadInput

Vector = Float[np.ndarray, " weights"]


def seeded_words(seed: int, count: int) -> UInt64[np.ndarray, " count"]:
    """The first `count` words of the generator SplitMix64 with this seed.

    >>> [hex(word) for word in seeded_words(1234567, 2).tolist()]
    ['0x599ed017fb08fc85', '0x2c73f08458540fa5']
    """
    state = np.uint64(seed % 2**64) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


def seeded_signs(seed: int, count: int) -> Float[np.ndarray, " count"]:
    """So many signs, 64 from each word.

    >>> seeded_signs(7, 6).tolist()
    [-1.0, -1.0, -1.0, 1.0, -1.0, 1.0]
    """
    words = seeded_words(seed, -(-count // 64)).astype("<u8")
    return 1.0 - 2.0 * np.unpackbits(words.view(np.uint8), bitorder="little")[:count]


@dataclass(frozen=True, eq=False)
class Whole:
    """theta = start + scale * w: every weight is coded, in units that were fixed before the data."""

    start: Vector
    scale: Vector

    @property
    def dimension(self) -> int:
        return len(self.start)

    def restore(self, code: Float[np.ndarray, " d"]) -> Vector:
        return self.start + self.scale * code

    def coordinates(self, weights: Vector) -> Float[np.ndarray, " d"]:
        """The w of given weights."""
        return (weights - self.start) / self.scale


@dataclass(frozen=True, eq=False)
class Subspace:
    """theta = start + scale * (P u) with P a seeded matrix of signs over sqrt(dimension)."""

    start: Vector
    scale: Vector
    dimension: int
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive(dimension_of_the_subspace=self.dimension)

    @property
    def directions(self) -> Float[np.ndarray, "weights d"]:
        signs = seeded_signs(self.seed, len(self.start) * self.dimension)
        return signs.reshape(len(self.start), self.dimension) / np.sqrt(self.dimension)

    def restore(self, code: Float[np.ndarray, " d"]) -> Vector:
        return self.start + self.scale * (self.directions @ code)


@dataclass(frozen=True)
class Quantised:
    """Each number as the number of its level; `levels` rise and are numbers of half precision."""

    symbols: Int[np.ndarray, " d"]
    levels: Float[np.ndarray, " K"]

    @property
    def values(self) -> Float[np.ndarray, " d"]:
        return self.levels[self.symbols]


def nearest_level(values: Float[np.ndarray, " d"], levels: Float[np.ndarray, " K"]) -> Quantised:
    """Every number at the nearest of these levels."""
    with np.errstate(over="ignore"):
        half = np.sort(np.asarray(levels).astype(np.float16).astype(np.float64))
    if not (np.isfinite(half).all() and np.isfinite(values).all()):
        raise BadInput("weights that are quantised are finite, and their levels at most 65504")
    return Quantised(np.searchsorted((half[1:] + half[:-1]) / 2, values), half)


def uniform_levels(values: Float[np.ndarray, " d"], count: int) -> Float[np.ndarray, " K"]:
    """So many equally spaced levels from the smallest number to the largest.

    >>> uniform_levels(np.array([0.0, 1.0, 4.0]), 3).tolist()
    [0.0, 2.0, 4.0]
    """
    require_positive(number_of_levels=count)
    return np.linspace(values.min(), values.max(), count)


def clustered_levels(values: Float[np.ndarray, " d"], count: int, rounds: int = 50) -> Float[np.ndarray, " K"]:
    """So many levels by k-means on the line, from quantiles; levels that lose all their numbers stay where they are.

    >>> clustered_levels(np.array([0.0, 0.1, 0.9, 1.1]), 2).tolist()
    [0.05, 1.0]
    """
    require_positive(number_of_levels=count)
    ordered = np.sort(values)
    levels = np.quantile(ordered, (np.arange(count) + 0.5) / count)
    for _ in range(rounds):
        ends = np.concatenate(([0], np.searchsorted(ordered, (levels[1:] + levels[:-1]) / 2), [len(ordered)]))
        sums, sizes = np.add.reduceat(np.append(ordered, 0.0), ends[:-1]), np.diff(ends)
        # reduceat of an empty stretch is the next number, hence the mask.
        moved = np.where(sizes > 0, sums / np.maximum(sizes, 1), levels)
        if (moved == levels).all():
            break
        levels = moved
    return levels
