"""What weights are compared with: random ones of the same size, and copies whose columns are shuffled.

Only the largest singular value of a control is needed, and only to compare: it is computed from float32, by small Gram
matrices or by Lanczos steps, which keep three digits or more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from numpy.lib.stride_tricks import sliding_window_view

from certiformer.spectrum import largest_by_lanczos, product_values

CHUNK = 1 << 16  # numbers that are drawn for the Gaussian controls of a layer
LONG = 4096  # rows of a table that are shuffled at most; of a longer one so many are drawn
FEW_STEPS = 24  # of Lanczos, for comparisons: within 0.2 % on Gaussian matrices of 11,008 x 4,096
RESIDUAL = 1e-2  # of a control's norm, at which the steps end: the norm itself is right to 10^-4 then, as a rule

Heads = Float[np.ndarray, "heads width size"]


def largest_of_products(pairs: Sequence[tuple[Heads, Heads]]) -> list[Float[np.ndarray, " heads"]]:
    """The largest singular value of left right^T for every pair and head: the root of that of (A^T A)(B^T B). An error of
    n u |A|^2 |B|^2 in the square is one of n u (|A| |B| / sigma)^2 of the value: eleven digits where sigma is a tenth of
    |A| |B|. All pairs go through one decomposition: NumPy lets other threads go on only where there are more than 500
    rows in all.

    >>> a = np.array([[[1.0], [2.0], [2.0]]])
    >>> [largest.round(12).tolist() for largest in largest_of_products([(a, a), (a, 2 * a)])]
    [[9.0], [18.0]]
    """
    left, right = (
        np.concatenate([np.matmul(w.swapaxes(1, 2), w) for w in side]).astype(np.float64, copy=False)
        for side in zip(*pairs, strict=True)
    )
    try:
        lower = np.linalg.cholesky(left)
    except np.linalg.LinAlgError:  # a head that does not use all its directions
        return [product_values(*pair)[:, 0] for pair in pairs]
    core = np.matmul(np.matmul(lower.swapaxes(1, 2), right), lower)
    largest = np.sqrt(np.maximum(np.linalg.eigvalsh(core)[:, -1], 0.0))
    return np.split(largest, np.cumsum([len(pair[0]) for pair in pairs])[:-1])


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


def gaussian_norm(frobenius: float, shape: tuple[int, int]) -> float:
    """The spectral norm of a Gaussian matrix with this Frobenius norm: known well enough without drawing it, within a few
    percent, from above.

    >>> gaussian_norm(60.0, (36, 100))
    16.0
    """
    return frobenius * (shape[0] ** -0.5 + shape[1] ** -0.5) if min(shape) else 0.0


def shuffled_heads(w: Heads, rng: np.random.Generator) -> Heads:
    """Every head with the entries of each of its columns in another order; all heads stand side by side for that."""
    heads, width, size = w.shape
    return shuffled(w.swapaxes(1, 2).reshape(heads * size, width), rng).reshape(heads, size, width).swapaxes(1, 2)


def shuffled(columns: Float[np.ndarray, "columns rows"], rng: np.random.Generator) -> Float[np.ndarray, "columns rows"]:
    """The columns with their entries in another order: all rows are permuted, then each column is turned round by a number
    of its own. That is several times faster than drawing a permutation for each column. Spectral norms are the same within
    1 % on trained maps, but on a square matrix of rank one, which becomes a circulant, 12 % larger."""
    count, rows = columns.shape
    order = rng.permutation(rows)
    twice = np.empty((count, 2, rows), columns.dtype)
    # Whole rows are moved where they are in one piece.
    twice[:, 0] = columns.T[order].T if columns.T.flags.c_contiguous else np.take(columns, order, axis=1)
    twice[:, 1] = twice[:, 0]
    # A column that is turned is a window of the column written twice.
    windows = sliding_window_view(twice.reshape(count, 2 * rows), rows, axis=1)
    return windows[np.arange(count), rng.integers(rows, size=count)]


def spectral_to_compare(array: Float[np.ndarray, "rows columns"]) -> float:
    """The spectral norm to a few digits, in float32, which holds what float16, bfloat16 and float32 files hold exactly.

    >>> round(spectral_to_compare(np.diag([3.0, 2.0, 1.0])), 4)
    3.0
    """
    return largest_by_lanczos(np.asarray(array, np.float32), FEW_STEPS, tolerance=RESIDUAL)[0]


def shuffled_norm(array: Float[np.ndarray, "rows columns"], rng: np.random.Generator) -> float:
    """The spectral norm of a shuffled copy.

    Of a long table it is extrapolated from `LONG` rows and from a quarter of them: the norm of n random rows of width d is
    s (sqrt(n) + sqrt(d)), and m sqrt(n) where their mean m is most of it, so it is a line in sqrt(n). On random tables of
    30,522 x 384, with means between 0 and 0.2 of the deviation, it is within 4 % of that of the whole table."""
    rows = len(array)
    if rows <= LONG:
        return spectral_to_compare(shuffled(array.T, rng))
    copy = shuffled(array[rng.choice(rows, LONG, replace=False)].T, rng)
    norm, smaller = spectral_to_compare(copy), spectral_to_compare(np.ascontiguousarray(copy[:, : LONG // 4]))
    return norm + (norm - smaller) * (math.sqrt(rows / LONG) - 1) / 0.5  # a quarter of the rows: half of the root


def root_mean_square(w: np.ndarray) -> float:
    """sqrt of the mean of the squares.

    >>> root_mean_square(np.array([3.0, 4.0])) == 12.5 ** 0.5
    True
    """
    flat = np.ravel(w, order="K")  # the order in memory: nothing is copied
    return math.sqrt(float(flat @ flat) / w.size) if w.size else 0.0
