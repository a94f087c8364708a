"""Norms of a matrix that acts as y = W x, the layout (out, in); each is called by its formula.

| name | formula | what it is |
|---|---|---|
| `spectral` | largest singular value | the l2 operator norm |
| `frobenius` | sqrt(sum W_ij^2) | |
| `l11` | sum |W_ij| | does not depend on the orientation |
| `l21_columns` | sum over j of |W[:, j]|_2 | the (2,1) norm of Trauger and Tewari 2024 |
| `l21_rows` | sum over i of |W[i, :]|_2 | the (2,1) norm of W^T, as in the proof of Edelman et al. 2022 |
| `largest_row_l1` | max over i of |W[i, :]|_1 | the operator norm from l_inf to l_inf |
| `largest_column_l1` | max over j of |W[:, j]|_1 | the operator norm from l1 to l1 |
| `largest_row_l2` | max over i of |W[i, :]|_2 | the operator norm from l2 to l_inf |

No norm is ever squared, and no logarithm taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.spectrum.one_pass import Sums, sums
from certiformer.spectrum.values import by_gram, singular_values, value_error

HARMLESS = (1e-100, 1e100)  # squares of the largest entry within, and their sums, neither overflow nor vanish


@dataclass(frozen=True)
class Norms:
    """The norms of the table above; `spectral_error` is the error bar of the spectral norm, the other norms err by at most
    (number of entries) 2^-52 of themselves."""

    spectral: float
    spectral_error: float
    frobenius: float
    l11: float
    l21_columns: float
    l21_rows: float
    largest_row_l1: float
    largest_column_l1: float
    largest_row_l2: float


def norms(w: Float[np.ndarray, "rows columns"]) -> Norms:
    """All norms.

    >>> found = norms(np.array([[3.0, 4.0], [0.0, 0.0]]))
    >>> round(found.spectral, 9), found.l11, found.l21_rows, found.l21_columns
    (5.0, 7.0, 5.0, 7.0)
    """
    return decomposed([(w, sums(w, by_gram(w.shape)))])[0][0]


Decomposed = tuple[Norms, Float[np.ndarray, " values"]]


def decomposed(matrices: Sequence[tuple[Float[np.ndarray, "rows columns"], Sums]]) -> list[Decomposed]:
    """All norms and all singular values of matrices whose sums are known; NaN where an entry is not finite.

    Gram matrices of one size are decomposed together: NumPy lets other threads go on only where there are more than 500
    rows in all.
    """
    sides = {len(found.gram) for _, found in matrices} - {0}
    squares: dict[int, Iterator[np.ndarray]] = {}
    for side in sides:
        grams = np.stack([found.gram for _, found in matrices if len(found.gram) == side])
        if not np.isfinite(grams).all():  # what overflows is brought to another size below
            grams = np.nan_to_num(grams, nan=0.0, posinf=0.0, neginf=0.0)
        squares[side] = iter(np.linalg.eigvalsh(grams))
    return [
        _decomposed(w, found, next(squares[len(found.gram)], None) if len(found.gram) else None)
        for w, found in matrices
    ]


def _decomposed(w: np.ndarray, found: Sums, squares: np.ndarray | None) -> Decomposed:
    if not math.isfinite(found.largest):
        return Norms(*[math.nan] * 9), np.full(min(w.shape), math.nan)
    if w.size == 0 or found.largest == 0:
        return Norms(*[0.0] * 9), np.zeros(min(w.shape))
    if not HARMLESS[0] < found.largest < HARMLESS[1]:
        # A common factor, a power of two, keeps squares of very large and very small entries from overflowing.
        factor = float(np.exp2(np.clip(np.floor(np.log2(found.largest)), -1000, 1000)))
        scaled = np.asarray(w, np.float64) / factor
        small, values = decomposed([(scaled, sums(scaled, by_gram(w.shape)))])[0]
        return Norms(*(each * factor for each in vars(small).values())), values * factor
    values = singular_values(w, squares)
    largest = float(values.max())
    return norms_of(found, largest, value_error(found.frobenius, largest, w.shape)), values


def norms_of(found: Sums, spectral: float, spectral_error: float) -> Norms:
    """All norms from the sums and from what is known of the largest singular value."""
    return Norms(
        spectral,
        spectral_error,
        found.frobenius,
        float(found.row_sizes.sum()),
        float(np.sqrt(found.column_squares).sum()),
        float(np.sqrt(found.row_squares).sum()),
        float(found.row_sizes.max(initial=0.0)),
        float(found.column_sizes.max(initial=0.0)),
        float(np.sqrt(found.row_squares.max(initial=0.0))),
    )
