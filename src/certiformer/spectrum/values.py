"""Singular values in float64, and how far they may be from the true ones.

Two routes. The decomposition itself is accurate to a few roundings of the largest value, down to the smallest. The
Gram matrix is several times faster for tall tables and as good at the large end, but squares what is small: a value
below sqrt(u) times the largest is noise there. `singular_values` takes the Gram route for tables that are much longer
than wide, and for other matrices that are not small if their smallest value turns out to be above 10^-3 of the
largest: there an error n u |W|_F^2 of the squares is one of n u |W|_F^2 / (2 sigma), about 10^-9 of the largest.

The error bar. A backward stable algorithm returns the exact values of W + E, |E|_F <= p u |W|_F, with u = 2^-53 and p
a modest polynomial of the sides; by Weyl's inequality no value moves by more than |E|. Here p = 8 times the longer
side, which is far above what is observed; the Gram route adds n u |W|_F^2 to the squares. It is a statement about the
algorithm, not a proof for one matrix: bounds that are certified are computed from it upwards, and say so."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

UNIT = 2.0**-53
GRAM_FROM = 128  # the shorter side from which on the Gram matrix is tried
SAFE = 1e-6  # of the largest square, which the smallest has to exceed then
TALL = 8  # a table is tall when its longer side is so many times the shorter one
CHUNK = 1 << 24  # entries that are multiplied at once


def singular_values(w: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, " values"]:
    """All singular values, largest first.

    >>> singular_values(np.diag([1.0, 3.0, 2.0])).tolist()
    [3.0, 2.0, 1.0]
    """
    shorter, longer = sorted(w.shape)
    tall = longer > TALL * shorter
    if tall or shorter >= GRAM_FROM:
        squares = np.linalg.eigvalsh(gram(w))[::-1]
        if tall or squares[-1] > SAFE * squares[0]:
            return np.sqrt(np.maximum(squares, 0.0))
    return np.linalg.svd(np.asarray(w, np.float64), compute_uv=False)


def largest_value(w: Float[np.ndarray, "rows columns"]) -> float:
    """The largest singular value, by the Gram matrix: for comparisons, where the others are not needed.

    >>> largest_value(np.diag([1.0, 3.0, 2.0]))
    3.0
    """
    return float(np.sqrt(max(np.linalg.eigvalsh(gram(w)).max(initial=0.0), 0.0)))


def gram(w: Float[np.ndarray, "rows columns"]) -> Float[np.ndarray, "side side"]:
    """W^T W or W W^T, whichever is smaller, in float64, a part of the rows at a time."""
    tall = w if w.shape[0] >= w.shape[1] else w.T
    side = tall.shape[1]
    total, step = np.zeros((side, side)), max(1, CHUNK // max(side, 1))
    for start in range(0, tall.shape[0], step):
        part = np.asarray(tall[start : start + step], np.float64)
        total += part.T @ part
    return total


def value_error(frobenius: float, largest: float, shape: tuple[int, int]) -> float:
    """How far the largest singular value may be from the true one."""
    longer, shorter = max(shape), min(shape)
    bar = 8 * longer * UNIT * frobenius
    if (longer > TALL * shorter or shorter >= GRAM_FROM) and largest > 0:
        bar += longer * UNIT * frobenius**2 / largest
    return math.inf if not math.isfinite(bar) else bar
