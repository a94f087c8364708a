"""The cheapest (heads, order, sharpness, margin, cells) that the theorem about temperatures allows.

The a-priori bound is a sum over monomials of (Taylor bound) * (constant) * spacing^monomial, evaluated here in floats, fast
enough to try hundreds of grids; the constructions evaluate the chosen one in balls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from certiformer.axioms.grid import Grid
from certiformer.axioms.temperatures import Temperatures
from certiformer.kernel import Refused
from certiformer.kernel.taylor import table

MAX_NONZERO = 200_000
SHARPNESS = [Fraction(n, 20) for n in (36, 30, 26, 22, 19, 17, 15, 13, 12, 11, 10, 9, 8, 7, 6)]
MARGINS = 7  # margins tried above the smallest one that the theorem allows
MOST_HEADS = 4


def cheapest(
    taylor: Float[np.ndarray, "outputs monomials"],
    lengths: Float[np.ndarray, " inputs"],
    highest: int,
    limit: float,
    cost: Callable[[int, int], int],
) -> tuple[Temperatures, float]:
    """The choice of least `cost(registers, heads)` whose bound stays below `limit`, and what its rounding may cost.

    `taylor` holds bounds of |f^(a)|/a! for all monomials of degree <= `highest`; `lengths` are the sides of the box.
    """
    best, fewest = None, MAX_NONZERO + 1
    for heads, order in [(k, m) for k in range(1, MOST_HEADS + 1) for m in (2 * k, 2 * k + 2) if m <= highest]:
        search = _Search(taylor, lengths, heads, order)
        for sharpness, margin in search.choices():
            if cost((1 + 2 * margin) ** len(lengths), heads) >= fewest:
                continue
            cells = search.fewest_cells(sharpness, margin, limit, lambda n, k=heads, most=fewest: cost(n, k) < most)
            if cells is not None:
                chosen = Temperatures(Grid(cells, margin, sharpness), heads, order)
                best, fewest = (chosen, search.rounding(chosen.grid)), cost(chosen.grid.size, heads)
    if best is None:
        raise Refused("no grid of the theorem about temperatures reaches this epsilon with a sensible size")
    return best


class _Search:
    """The bound for one number of heads and one order."""

    def __init__(self, taylor: np.ndarray, lengths: np.ndarray, heads: int, order: int):
        self.lengths, self.heads, self.order = lengths, heads, order
        tab = table(len(lengths), order)
        self.exponents, self.taylor = np.array(tab.monomials[: tab.size], float), taylor[:, : tab.size]
        # Cells per axis in proportion to length * (share of the axis in the leading derivatives)^(1/2k).
        leading = self.exponents.sum(1) == 2 * heads
        share = (self.taylor[:, leading] @ self.exponents[leading]).max(0) / (2 * heads)
        shape = self.lengths * np.where(np.isfinite(share), share, 1.0) ** (0.5 / heads)
        self.shape = np.maximum(shape / max(shape.max(), 1e-300), 1e-6).tolist()

    def choices(self) -> list[tuple[Fraction, int]]:
        """Sharpness and margin pairs; the softest head decides the smallest margin (2 s (r + 1/2)^2 > order + 1)."""
        pairs = []
        for sharpness in SHARPNESS:
            low = math.ceil(math.sqrt((self.order + 1.001) * self.heads / (2 * float(sharpness))) - 0.5)
            pairs += [(sharpness, max(low, 1) + extra) for extra in range(MARGINS)]
        return pairs

    def bound(self, constants: np.ndarray, cells: tuple[int, ...]) -> float:
        scale = np.prod((self.lengths / np.array(cells)) ** self.exponents, axis=1)
        return float((self.taylor @ (constants * scale)).max())

    def rounding(self, grid: Grid) -> float:
        """About what rounding the weights to float64 costs: scores of size b (N/2 + r)^2 carry errors of some 2^-52 of it.

        The spread of the values is that over the box plus that of their continuation into the margin; the heads' output
        weights sum to less than 2^k in size. An estimate for planning; the checker encloses the true distance.
        """
        scores = sum(float(grid.sharpness) * (n / 2 + grid.margin) ** 2 for n in grid.cells)
        first = self.exponents.sum(1) == 1
        spread = (self.taylor[:, first] @ (self.exponents[first] @ self.lengths)).max()
        beyond = np.array([0.0 if degree == 0 else float(grid.margin) ** degree for degree in self.exponents.sum(1)])
        return float(2**self.heads * (spread + self.bound(beyond, grid.cells)) * min(1.0, scores * 2.0**-50))

    def fewest_cells(
        self, sharpness: Fraction, margin: int, limit: float, cheap: Callable[[int], bool]
    ) -> tuple[int, ...] | None:
        """Cells in proportion to the shape, as few as keep the bound below the limit; None if that is not cheap enough."""
        probe = Temperatures(Grid((1,) * len(self.lengths), margin, sharpness), self.heads, self.order)
        try:
            constants = np.array([float(c) for c in probe.constants(len(self.lengths))])
        except Refused:
            return None

        def fits(cells: tuple[int, ...]) -> bool:
            return self.bound(constants, cells) <= limit

        def good(cells: tuple[int, ...]) -> bool:
            return self.bound(constants, cells) + self.rounding(Grid(cells, margin, sharpness)) <= limit

        def at(scale: int) -> tuple[int, ...]:
            return tuple(max(1, math.ceil(scale * s - 1e-9)) for s in self.shape)

        def small(cells: tuple[int, ...], spare: int = 0) -> bool:
            return cheap(math.prod(max(1, n - spare) + 2 * margin for n in cells))

        # One cell less on every axis, because the proportional choice is rounded up and trimmed at the end.
        if not small(at(1), spare=1):
            return None
        largest = 1
        while small(at(2 * largest), spare=1):
            largest *= 2
        largest = _bisect(largest, 2 * largest, lambda scale: not small(at(scale), spare=1)) - 1
        if not fits(at(largest)):
            return None
        # The bound falls with the cells, the cost of rounding grows: start where the bound alone fits and look upwards.
        start = _bisect(0, largest, lambda scale: fits(at(scale)))
        tries = (at(start + start * percent // 100) for percent in range(0, 45, 3))
        found = next((cells for cells in tries if good(cells)), None)
        if found is None:
            return None
        best = list(found)
        for axis in sorted(range(len(best)), key=lambda i: -best[i]):
            while best[axis] > 1 and good((*best[:axis], best[axis] - 1, *best[axis + 1 :])):
                best[axis] -= 1
        return tuple(best) if small(tuple(best)) else None


def _bisect(low: int, high: int, true: Callable[[int], bool]) -> int:
    """The smallest number in (low, high] for which a monotone property holds, which it does for `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle, high)
    return high
