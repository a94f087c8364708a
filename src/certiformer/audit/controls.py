"""What weights are compared with: random ones of the same size, and copies whose columns are shuffled.

Only the largest singular value of a control is needed, and only to compare: it is computed from Gram matrices, which keep
about eight digits."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from certiformer.spectrum import product_values

CHUNK = 1 << 21  # numbers that are drawn for the Gaussian controls of a layer
LONG = 4096  # rows of a table that are shuffled; of a longer one so many are drawn

Heads = Float[np.ndarray, "heads width size"]


def largest_of_products(left: Heads, right: Heads) -> Float[np.ndarray, " heads"]:
    """The largest singular value of left right^T for every head: the root of that of (A^T A)(B^T B).

    >>> a = np.array([[[1.0], [2.0], [2.0]]])
    >>> largest_of_products(a, a).round(12).tolist()
    [9.0]
    """
    grams = [np.matmul(w.swapaxes(1, 2), w) for w in (left, right)]
    try:
        lower = np.linalg.cholesky(grams[0])
    except np.linalg.LinAlgError:  # a head that does not use all its directions
        return product_values(left, right)[:, 0]
    core = np.matmul(np.matmul(lower.swapaxes(1, 2), grams[1]), lower)
    return np.sqrt(np.maximum(np.linalg.eigvalsh(core)[:, -1], 0.0))


def gaussian_products(left: Heads, right: Heads) -> Float[np.ndarray, " heads"]:
    """The spectral norms of random products with the sizes and the mean squares of these, a draw for each head; of many
    large heads only the first few are drawn, and layers of one size share their draws."""
    drawn = min(len(left), max(4, CHUNK // max(left[0].size, 1)))
    random = np.array(_unit_products(drawn, left.shape[1], right.shape[1], left.shape[2]))
    return np.resize(random, len(left)) * root_mean_square(left) * root_mean_square(right)


@lru_cache(maxsize=64)
def _unit_products(count: int, rows: int, columns: int, size: int) -> tuple[float, ...]:
    rng = np.random.default_rng(0)
    left, right = (rng.normal(size=(count, side, size)) for side in (rows, columns))
    return tuple(map(float, product_values(left, right)[:, 0]))


def shuffled_heads(w: Heads, rng: np.random.Generator) -> Heads:
    """Every head with the entries of each of its columns in another order."""
    return np.stack([shuffled(head, rng).T for head in w])


def shuffled(array: Float[np.ndarray, "rows columns"], rng: np.random.Generator) -> Float[np.ndarray, "columns rows"]:
    """The transposed matrix with the entries of each column in another order: all rows are permuted, then each column is
    turned round by a number of its own. That is several times faster than drawing a permutation for each column."""
    return _turned(array[rng.permutation(len(array))], rng)


def shuffled_sample(array: Float[np.ndarray, "rows columns"], rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """The same for a sample of the rows of a long table, and the factor sqrt(rows / sample) for its spectral norm."""
    rows = len(array)
    if rows <= LONG:
        return shuffled(array, rng), 1.0
    return _turned(array[rng.choice(rows, LONG, replace=False)], rng), math.sqrt(rows / LONG)


def _turned(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turned = np.ascontiguousarray(array.T)
    for column, by in zip(turned, rng.integers(len(array), size=len(turned)), strict=True):
        column[:] = np.concatenate((column[by:], column[:by]))
    return turned


def root_mean_square(w: np.ndarray) -> float:
    """sqrt of the mean of the squares.

    >>> root_mean_square(np.array([3.0, 4.0])) == 12.5 ** 0.5
    True
    """
    flat = np.ravel(w)
    return math.sqrt(float(flat @ flat) / w.size) if w.size else 0.0
