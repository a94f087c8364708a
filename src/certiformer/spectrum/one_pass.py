"""What one pass over a matrix adds up: its Gram matrix, and the sums of sizes and of squares along both sides.

Tables of words are the largest matrices there are, and most of their time is moving numbers. So every part of the rows is
brought into float64 once, is used for everything while it is near, and is dropped: a table of any length takes a few
megabytes. Sums are those of float64 whatever the type of the matrix, in an order that is not said: each errs by at most
(number of entries) 2^-52 of the sum of the sizes of what is added."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

# Entries that are in float64 at once, 8 MB: less makes short products of the Gram matrix, more leaves the cache. A table of
# 30,522 x 384 takes 129 ms of one core with a million, 142 with a tenth of it and 140 with three times as many.
PART = 1 << 20


@dataclass(frozen=True, eq=False)
class Sums:
    """`largest` is max |W_ij|, and NaN where an entry is NaN; `gram` is W^T W or W W^T, whichever is smaller, and
    empty where it was not wanted."""

    largest: float
    row_sizes: Float[np.ndarray, " rows"]
    column_sizes: Float[np.ndarray, " columns"]
    row_squares: Float[np.ndarray, " rows"]
    column_squares: Float[np.ndarray, " columns"]
    gram: Float[np.ndarray, "side side"]

    @property
    def frobenius(self) -> float:
        return float(np.sqrt(self.row_squares.sum()))

    @property
    def turned(self) -> Sums:
        """The sums of the transposed matrix."""
        rows, columns = (self.row_sizes, self.row_squares), (self.column_sizes, self.column_squares)
        return Sums(self.largest, columns[0], rows[0], columns[1], rows[1], self.gram)


def sums(w: Float[np.ndarray, "rows columns"], gram: bool = True) -> Sums:
    """The sums of a matrix; entries that are not finite show in `largest`, and so does why a square has overflowed.

    >>> found = sums(np.array([[3.0, -4.0], [0.0, 0.0], [0.0, 1.0]]))
    >>> found.largest, found.row_sizes.tolist(), found.column_squares.tolist(), found.gram.tolist()
    (4.0, [7.0, 0.0, 1.0], [9.0, 17.0], [[9.0, -12.0], [-12.0, 17.0]])
    """
    if w.shape[0] < w.shape[1]:
        return sums(w.T, gram).turned
    with np.errstate(over="ignore", invalid="ignore"):
        return _sums_of_rows(w, gram)


def _sums_of_rows(w: Float[np.ndarray, "rows side"], gram: bool) -> Sums:
    rows, side = w.shape
    product = np.zeros((side, side) if gram else (0, 0))
    row_sizes, row_squares, column_sizes, column_squares = (np.zeros(n) for n in (rows, rows, side, side))
    step = max(1, PART // max(side, 1))
    across, along, largest = np.ones(side), np.ones(min(step, rows)), 0.0
    # The same memory for every part: fresh pages would cost as much as the sums.
    order = "C" if w.flags.c_contiguous else "F"
    own, own_sizes = (np.empty((min(step, rows), side), order=order) for _ in range(2))
    for start in range(0, rows, step):
        count = min(step, rows - start)
        part, sizes, place = own[:count], own_sizes[:count], slice(start, start + count)
        part[...] = w[place]
        np.abs(part, out=sizes)
        largest = np.maximum(largest, sizes.max(initial=0.0))
        row_sizes[place] = sizes @ across
        column_sizes += along[:count] @ sizes
        squares = np.multiply(sizes, sizes, out=sizes)
        row_squares[place] = squares @ across
        if gram:
            product += part.T @ part
        else:
            column_squares += along[:count] @ squares
    if gram:
        column_squares = np.diagonal(product).copy()
    return Sums(float(largest), row_sizes, column_sizes, row_squares, column_squares, product)
