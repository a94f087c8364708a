"""Index tables of polynomials in D variables up to total degree k, computed once per (D, k).

Multi-indices are ordered by total degree, then lexicographically with the first variable first, so the monomials of
degree at most m are a prefix: a polynomial of degree m < k is stored by its first `size(m)` coefficients alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations_with_replacement

import numpy as np

from certiformer.errors import BadInput

MAX_ORDER = 16
MAX_COEFFICIENTS = 5_000


@dataclass(frozen=True)
class Space:
    """Polynomials in `dimension` variables, truncated after total degree `order`."""

    dimension: int
    order: int

    def __post_init__(self) -> None:
        if self.dimension < 1 or not 0 <= self.order <= MAX_ORDER or self.size(self.order) > MAX_COEFFICIENTS:
            raise BadInput(
                f"a Taylor form of order {self.order} in {self.dimension} variables is out of reach "
                f"(orders 0 to {MAX_ORDER}, at most {MAX_COEFFICIENTS} coefficients); choose a lower order"
            )

    def size(self, degree: int) -> int:
        """The number of monomials of total degree at most `degree`.

        >>> Space(2, 4).size(4), Space(3, 2).size(1)
        (15, 4)
        """
        return math.comb(self.dimension + degree, degree)

    def degree_of(self, coefficients: int) -> int:
        """The degree of a polynomial stored by that many coefficients."""
        return _degree_of(self.dimension, coefficients)

    def exponents(self, degree: int) -> np.ndarray:
        """The exponents of all monomials up to `degree`, one row each."""
        return _exponents(self.dimension, degree)


@cache
def _degree_of(dimension: int, coefficients: int) -> int:
    degree = 0
    while math.comb(dimension + degree, degree) < coefficients:
        degree += 1
    if math.comb(dimension + degree, degree) != coefficients:
        raise ValueError(f"{coefficients} coefficients are no full set of monomials in {dimension} variables")
    return degree


@cache
def _exponents(dimension: int, degree: int) -> np.ndarray:
    """Row per monomial; a multiset of variables of each size, in lexicographic order."""
    rows = [
        [choice.count(i) for i in range(dimension)]
        for total in range(degree + 1)
        for choice in combinations_with_replacement(range(dimension), total)
    ]
    return np.array(rows, dtype=int).reshape(-1, dimension)


@cache
def even_mask(dimension: int, degree: int) -> np.ndarray:
    """Which monomials have only even exponents (their range on [-1, 1]^D is [0, 1])."""
    return (_exponents(dimension, degree) % 2 == 0).all(axis=1)


@cache
def total_degrees(dimension: int, degree: int) -> np.ndarray:
    return _exponents(dimension, degree).sum(axis=1)


@cache
def difference_table(dimension: int, degree_a: int, degree_b: int) -> np.ndarray:
    """Entry [c, b]: the position of the multi-index c - b among those of degree <= degree_a, or their number if none.

    c runs over degree <= degree_a + degree_b, b over degree <= degree_b: row c of a product is sum_b A[c-b] B[b].
    """
    position = {tuple(row): i for i, row in enumerate(_exponents(dimension, degree_a).tolist())}
    sums = _exponents(dimension, degree_a + degree_b)
    rights = _exponents(dimension, degree_b)
    none = len(position)
    return np.array([[position.get(tuple(c - b), none) for b in rights] for c in sums], dtype=np.int32)


@cache
def multinomials(dimension: int, degree: int) -> np.ndarray:
    """|a|! / a! for every multi-index a: the coefficients of (g_1 e_1 + ... + g_D e_D)^|a|."""
    return np.array(
        [
            math.factorial(int(row.sum())) / math.prod(math.factorial(int(m)) for m in row)
            for row in _exponents(dimension, degree)
        ]
    )
