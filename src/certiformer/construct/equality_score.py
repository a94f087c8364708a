"""Equality as an attention score: -(q - k)^2, written as one product and two squares.

    -scale (q - k)^2 = (2 scale q) k - scale k^2 - scale q^2

is 0 where the codes agree and at most -1 elsewhere as soon as different codes are at least scale^(-1/2) apart. One product
serves any number of codes, and with whole numbers everything is a whole number: a position finds position i - 1 with codes
i - 1 and j, a rank finds the token of that rank, a symbol its equal. The square of the query is the same for all keys, so
a softmax does not need it; it matters where the score of another key (the start of the sequence) is compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from certiformer.construct.table_units import Number


@dataclass(frozen=True)
class SquaredDifference:
    """factor * query * key - key_square - query_square, one number for each code."""

    factor: Number
    key_squares: tuple[Number, ...]
    query_squares: tuple[Number, ...]


def squared_difference(queries: Sequence[Number], keys: Sequence[Number], scale: Number = 1) -> SquaredDifference:
    """The parts of -scale (q - k)^2 for the given codes.

    >>> squared_difference([1, 2], [0, 1, 2])
    SquaredDifference(factor=2, key_squares=(0, 1, 4), query_squares=(1, 4))
    """
    return SquaredDifference(2 * scale, tuple(scale * k * k for k in keys), tuple(scale * q * q for q in queries))
