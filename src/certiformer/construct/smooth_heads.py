r"""Heads at several temperatures over one grid serve every function whose derivatives are bounded, with one grid for all.

The theorem `axioms.temperatures` bounds the error for one function by its derivatives. Bounds that hold for a whole
class make it a statement about the class: how many registers are enough.

Statement
---------
Let f be s times continuously differentiable on [0,1]^D with |f^(a)|/a! <= F_a for all multi-indices |a| <= s, where
F_a does not change with the order of the entries of a. Take m <= s, k heads, sharpness b, a margin of r cells, and N
cells an axis. Then

    |T - f| <= sum_{1 <= j <= m} c_j N^-j,   c_j = sum_{|a| = j} F_a M_a (j < m),   c_m = sum_{|a| = m} F_a A_a,

with the constants M_a and A_a of that theorem. T has (N + 2 r)^D registers, of which one number each depends on f, and

    (N + 2 r)^D (D + 2) + D + 2 + k (3 D + 5)

nonzero weights. If |f| <= F_0, too, then for every eta > 0 finitely many of these T, 2^B, come within that bound plus
(2^k - 1) eta/2 of every f, with B <= (N + 2 r)^D log2(2 V/eta + 2), V = sum_{|a| < m} F_a (r/N)^|a|.

Two classes are asked about: F_a = L/a! (*smooth*, all derivatives up to order s at most L) and F_a = M R^-|a| for all a
(*analytic*, convergence radius at least R at every point).

Source
------
nadaraya1964, watson1964 for the estimator, petrov2024 for attention over prefix tokens; the bound is that of
`axioms.temperatures`.

Differs from the source in
--------------------------
One grid for the class; the sum over monomials is taken over partitions, so that it does not grow with D.

Proof
-----
The bound is that of the theorem with delta = 1/N on every axis and F_a for |f^(a)|/a!; M_a and A_a do not change with
the order of the entries of a, because all axes are alike, so that one representative for each partition is enough.
The values of the registers are Taylor polynomials of degree m - 1 at points of the box, at a distance of at most r/N
on each axis: |v| <= V. Rounding them to multiples of eta moves every head by eta/2 at most and their combination by
sum_i C(k, i) eta/2. QED.

Assumptions
-----------
- smooth: **trusted** the derivatives are bounded as the class says; `build` encloses those of a target.

Certified
---------
`bound` is an exact rational above the right-hand side; `fewest` has the fewest registers among the tried k, m, b, r.

Not certified
-------------
The rounding of centres and values to floats: it is charged when a transformer was built, by `axioms.temperatures`.

Example
-------
All derivatives up to order 4 at most 1, two variables, epsilon 0.001:

>>> chosen = fewest(smooth(Fraction(1)), dimension=2, highest=4, epsilon=Fraction(1, 1000))
>>> chosen.heads, chosen.order, chosen.cells, chosen.margin, chosen.registers
(2, 4, 7, 4, 225)

Tests
-----
`tests/theorems/test_smooth_heads.py`
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from flint import arb

from certiformer.axioms.temperature_moments import head_moments, output_weights
from certiformer.construct.temperature_search import MARGINS, MOST_HEADS, SHARPNESS
from certiformer.expressivity.logarithms import log2_above
from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, decimal, working_precision

THEOREM = {
    "id": "construct.smooth_heads",
    "title": "Heads at several temperatures over one grid serve every function whose derivatives are bounded",
    "kind": "upper bound",
    "sources": ("nadaraya1964", "watson1964", "petrov2024"),
    "verb": "size",
    "assumptions": (("smooth", "The derivatives are bounded as the class says.", "trusted"),),
    "uses": ("axioms.temperatures",),
}

Bounds = Callable[[tuple[int, ...]], Fraction]  # F_a for the positive entries of a


def smooth(constant: Fraction) -> Bounds:
    """F_a = L/a!."""
    return lambda parts: constant / math.prod(math.factorial(part) for part in parts)


def analytic(constant: Fraction, radius: Fraction) -> Bounds:
    """F_a = M R^-|a|."""
    return lambda parts: constant / radius ** sum(parts)


@dataclass(frozen=True)
class Heads:
    """One choice: k heads, the order m, sharpness and margin, N cells an axis in D dimensions, and c_1, ..., c_m."""

    heads: int
    order: int
    sharpness: Fraction
    margin: int
    cells: int
    dimension: int
    terms: tuple[Fraction, ...]

    @property
    def registers(self) -> int:
        return (self.cells + 2 * self.margin) ** self.dimension

    @property
    def weights(self) -> int:
        """The nonzero weights, with one output."""
        d = self.dimension
        return self.registers * (d + 2) + d + 2 + self.heads * (3 * d + 5)


def bound(terms: tuple[Fraction, ...], cells: int) -> Fraction:
    """sum_j c_j N^-j."""
    return sum((c / cells**j for j, c in enumerate(terms, 1)), Fraction(0))


def fewest(bounds: Bounds, dimension: int, highest: int, epsilon: Fraction) -> Heads:
    """The choice with the fewest registers; `highest` is the largest order of derivatives."""
    best: Heads | None = None
    for heads in range(1, MOST_HEADS + 1):
        for order in sorted({2 * heads - 1, 2 * heads, 2 * heads + 2, highest}):
            if order > highest:
                continue
            for sharpness in SHARPNESS:
                softest = math.ceil(math.sqrt((order + 1.001) * heads / (2 * float(sharpness))) - 0.5)
                for margin in range(max(1, softest), max(1, softest) + MARGINS):
                    most = None if best is None else best.cells + 2 * (best.margin - margin) - 1
                    if most is not None and most < 1:
                        continue
                    terms = _terms(bounds, heads, order, sharpness, margin, dimension)
                    cells = None if terms is None else _cells(terms, epsilon, most)
                    if terms is not None and cells is not None:
                        best = Heads(heads, order, sharpness, margin, cells, dimension, terms)
    if best is None:
        raise Refused("no grid of the theorem about temperatures is known for this class")
    return best


def described_bits(chosen: Heads, bounds: Bounds, epsilon: Fraction) -> int:
    """B for the best of some finer grids, rounded up."""
    counts = []
    for finer in range(1, 24):
        cells = chosen.cells + -(-chosen.cells // finer)
        room = epsilon - bound(chosen.terms, cells)
        if room <= 0:
            continue
        eta = 2 * room / (2**chosen.heads - 1)
        largest = _largest_value(bounds, chosen.dimension, chosen.order, Fraction(chosen.margin, cells))
        levels = math.ceil(2 * largest / eta) + 2
        counts.append(math.ceil((cells + 2 * chosen.margin) ** chosen.dimension * log2_above(levels)))
    return min(counts)


def _cells(terms: tuple[Fraction, ...], epsilon: Fraction, most: int | None) -> int | None:
    """The least N whose bound is at most epsilon, None if it is more than `most`."""
    if most is not None and bound(terms, most) > epsilon:
        return None
    high = most or 1
    while bound(terms, high) > epsilon:
        high *= 2
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if bound(terms, middle) <= epsilon else (middle, high)
    return high


def _terms(
    bounds: Bounds, heads: int, order: int, sharpness: Fraction, margin: int, dimension: int
) -> tuple[Fraction, ...] | None:
    constants = _constants(heads, order, sharpness, margin, dimension)
    if constants is None:
        return None
    terms = [Fraction(0)] * order
    for parts, constant in constants:
        terms[sum(parts) - 1] += bounds(parts) * constant
    return tuple(terms)


@cache
def _constants(
    heads: int, order: int, sharpness: Fraction, margin: int, dimension: int
) -> tuple[tuple[tuple[int, ...], Fraction], ...] | None:
    """For every partition of 1, ..., m the constant M_a or A_a times how many multi-indices a have these entries."""
    working_precision()
    try:
        single = [head_moments(sharpness / i, margin, order) for i in range(1, heads + 1)]
    except Refused:
        return None
    lines = []
    for size in range(1, order + 1):
        for parts in _partitions(size, size, dimension):
            total: arb = ZERO
            for alpha, moments in zip(output_weights(heads), single, strict=True):
                factor: arb = ONE * (abs(alpha) if size == order else alpha)
                for part in parts:
                    factor = factor * (moments.absolute if size == order else moments.signed)[part]
                total = total + factor
            lines.append((parts, _arrangements(parts, dimension) * Fraction(decimal(total.abs_upper(), up=True))))
    return tuple(lines)


def _largest_value(bounds: Bounds, dimension: int, order: int, reach: Fraction) -> Fraction:
    """V."""
    parts = [parts for size in range(1, order) for parts in _partitions(size, size, dimension)]
    return bounds(()) + sum(_arrangements(p, dimension) * bounds(p) * reach ** sum(p) for p in parts)


def _partitions(total: int, largest: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ways to write `total` as a sum of at most `parts` whole numbers up to `largest`, falling."""
    if total == 0:
        yield ()
        return
    if parts:
        for first in range(min(total, largest), 0, -1):
            for rest in _partitions(total - first, first, parts - 1):
                yield (first, *rest)


def _arrangements(parts: tuple[int, ...], dimension: int) -> int:
    """How many multi-indices of D entries have these positive ones."""
    repeated = math.prod(math.factorial(count) for count in Counter(parts).values())
    return math.perm(dimension, len(parts)) // repeated
