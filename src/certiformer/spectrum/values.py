"""Singular values in float64, and how far they may be from the true ones.

Two routes. The decomposition itself is accurate to a few roundings of the largest value, down to the smallest. The
Gram matrix is several times faster for tall tables and as good at the large end, but squares what is small: a value
below sqrt(u) times the largest is noise there. `singular_values` takes the Gram route for tables that are much longer
than wide, and for other matrices that are not small if their smallest value turns out to be above 10^-3 of the
largest: there an error n u |W|_F^2 of the squares is one of n u |W|_F^2 / (2 sigma), about 10^-9 of the largest.

The error bar. A backward stable algorithm returns the exact values of W + E, |E|_F <= p u |W|_F, with u = 2^-53 and p
a modest polynomial of the sides; by Weyl's inequality no value moves by more than |E|. Here p = 8 times the longer
side, which is far above what is observed; the Gram route adds n u |W|_F^2 to the squares. It is a statement about the
algorithm, not a proof for one matrix: bounds that are certified are computed from it upwards, and say so.

How many directions a matrix uses: four ranks that mean four things.

| name | formula |
|---|---|
| `stable` | |W|_F^2 / |W|^2, between 1 and the rank |
| `effective` | exp of the entropy of sigma_i / sum sigma (Roy and Vetterli 2007) |
| `participation` | (sum sigma_i^2)^2 / sum sigma_i^4 |
| `numerical` | how many sigma_i exceed `tolerance` times the largest |
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.spectrum.one_pass import sums

UNIT = 2.0**-53
GRAM_FROM = 128  # the shorter side from which on the Gram matrix is tried
LONGER = 1.25  # times the shorter side: there a random matrix has no value below 1/18 of the largest, a square one has
SAFE = 1e-6  # of the largest square, which the smallest has to exceed then
TALL = 8  # a table is tall when its longer side is so many times the shorter one


def by_gram(shape: tuple[int, ...]) -> bool:
    """Whether the Gram matrix of a matrix of this shape is tried.

    >>> by_gram((30_000, 64)), by_gram((384, 1536)), by_gram((400, 384)), by_gram((90, 40))
    (True, True, False, False)
    """
    return _is_tall(shape) or (min(shape) >= GRAM_FROM and max(shape) >= LONGER * min(shape))


def singular_values(
    w: Float[np.ndarray, "rows columns"], squares: Float[np.ndarray, " side"] | None = None
) -> Float[np.ndarray, " values"]:
    """All singular values, largest first; eigenvalues of the Gram matrix that are known already may be given.

    >>> singular_values(np.diag([1.0, 3.0, 2.0])).round(9).tolist()
    [3.0, 2.0, 1.0]
    """
    if by_gram(w.shape):
        known = (np.linalg.eigvalsh(sums(w).gram) if squares is None else squares)[::-1]
        if _is_tall(w.shape) or known[-1] > SAFE * known[0]:
            return np.sqrt(np.maximum(known, 0.0))
    return np.linalg.svd(np.asarray(w, np.float64), compute_uv=False)


def value_error(frobenius: float, largest: float, shape: tuple[int, int]) -> float:
    """How far the largest singular value may be from the true one."""
    longer = max(shape)
    bar = 8 * longer * UNIT * frobenius
    if by_gram(shape) and largest > 0:
        bar += longer * UNIT * frobenius**2 / largest
    return math.inf if not math.isfinite(bar) else bar


def _is_tall(shape: tuple[int, ...]) -> bool:
    return max(shape) > TALL * min(shape)


@dataclass(frozen=True)
class Ranks:
    """The ranks of the table above, and the tolerance of the last one."""

    stable: float
    effective: float
    participation: float
    numerical: int
    tolerance: float


def ranks(values: Float[np.ndarray, " values"], side: int, tolerance: float | None = None) -> Ranks:
    """The ranks from the singular values; `side` is the longer side, which the default tolerance 4 side 2^-53 grows with.

    >>> found = ranks(np.array([2.0, 2.0, 0.0]), side=3)
    >>> found.numerical, [round(value, 9) for value in (found.stable, found.effective, found.participation)]
    (2, [2.0, 2.0, 2.0])
    """
    return ranks_of_each(np.asarray(values)[None], side, tolerance)[0]


def ranks_of_each(
    values: Float[np.ndarray, "matrices values"], side: int, tolerance: float | None = None
) -> list[Ranks]:
    """The ranks of several matrices; NaN where a value is not finite, 0 where all are zero."""
    limit = 4 * side * UNIT if tolerance is None else tolerance
    values = np.asarray(values, np.float64)
    largest = values.max(1, initial=0.0)
    odd = ~np.isfinite(values).all(1) | (largest == 0)
    unit = np.where(odd[:, None], 1.0, values) / np.where(odd, 1.0, largest)[:, None]
    shares = unit / unit.sum(1, keepdims=True)
    effective = np.exp(-(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(1))
    squares = unit**2
    stable = squares.sum(1)
    participation = stable**2 / (squares**2).sum(1)
    numerical = (unit > limit).sum(1)
    nothing = np.where(largest == 0, 0.0, np.nan)
    found = (np.where(odd, nothing, each).tolist() for each in (stable, effective, participation))
    counts = np.where(odd, 0, numerical).tolist()
    return [Ranks(a, b, c, count, limit) for a, b, c, count in zip(*found, counts, strict=True)]
