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

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.spectrum.values import singular_values, value_error

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


def norms(w: Float[np.ndarray, "rows columns"], values: Float[np.ndarray, " values"] | None = None) -> Norms:
    """All norms; singular values that are known already may be given.

    >>> found = norms(np.array([[3.0, 4.0], [0.0, 0.0]]))
    >>> found.spectral, found.l11, found.l21_rows, found.l21_columns
    (5.0, 7.0, 5.0, 7.0)
    """
    w = np.asarray(w, np.float64)
    if not np.isfinite(w).all():
        return Norms(*[float("nan")] * 9)
    if w.size == 0:
        return Norms(*[0.0] * 9)
    # A common factor keeps squares of very large and very small entries from overflowing.
    sizes = np.abs(w)
    scale = float(sizes.max()) or 1.0
    exponent = 0.0 if HARMLESS[0] < scale < HARMLESS[1] else np.floor(np.log2(scale))
    factor = float(np.exp2(np.clip(exponent, -1000, 1000)))
    scaled, sizes = (w, sizes) if factor == 1 else (w / factor, sizes / factor)
    largest = float((singular_values(scaled) if values is None else np.asarray(values) / factor).max(initial=0.0))
    # Sums of products without an array of the products: tables are the largest matrices there are.
    row_squares, column_squares = np.einsum("ij,ij->i", scaled, scaled), np.einsum("ij,ij->j", scaled, scaled)
    frobenius = float(np.sqrt(row_squares.sum()))
    found = (
        largest,
        value_error(frobenius, largest, (w.shape[0], w.shape[1])),
        frobenius,
        float(sizes.sum()),
        float(np.sqrt(column_squares).sum()),
        float(np.sqrt(row_squares).sum()),
        float(sizes.sum(1).max()),
        float(sizes.sum(0).max()),
        float(np.sqrt(row_squares.max())),
    )
    return Norms(*(each * factor for each in found))
