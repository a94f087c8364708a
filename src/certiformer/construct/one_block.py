"""What exact constructions in one block share: tables as hidden units, equality as a score, names of tensors.

A table is a sum of ReLU units: the piecewise linear function through given points, one unit for each change of slope.

Through (s_0, f_0), (s_1, f_1), ... with slopes m_j = (f_{j+1} - f_j) / (s_{j+1} - s_j),

    f(s) = f_0 + sum_j (m_j - m_{j-1}) relu(s - s_j)          with m_{-1} = 0,

flat before the first point. A knot t = p/q is written relu(q s - p) with weight (m_j - m_{j-1}) / q, so that numbers
that are integers stay integers. `downward` builds the mirror image, relu(p - q s) from the largest s on.

Everything that turns a finite set of numbers into other numbers uses it: the tables of a compiled program, the counts of
`counting`, `parity` and `majority`, the widths of `selector_width`. `piecewise_linear` and `fewest_pieces` solve other
problems: they choose the knots of a function that only has to come *near* given values, in floating point.

Equality is the attention score -(q - k)^2, written as one product and two squares.

    -scale (q - k)^2 = (2 scale q) k - scale k^2 - scale q^2

is 0 where the codes agree and at most -1 elsewhere as soon as different codes are at least scale^(-1/2) apart. One product
serves any number of codes, and with whole numbers everything is a whole number: a position finds position i - 1 with codes
i - 1 and j, a rank finds the token of that rank, a symbol its equal. The square of the query is the same for all keys, so
a softmax does not need it; it matters where the score of another key (the start of the sequence) is compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

HEAD, FFN = "blocks.0.attention.groups.0", "blocks.0.ffn"
MAX_WEIGHTS = 50_000_000

Tensors = dict[str, np.ndarray]


Number = int | Fraction
Unit = tuple[Number, Number]  # slope, bias of the ridge inside relu


def interpolated(
    points: Sequence[tuple[Number, Number]], downward: bool = False
) -> tuple[Number, list[tuple[Unit, Number]]]:
    """The value at the base point and (unit, factor) for the points, which have different first entries.

    >>> interpolated([(0, 0), (1, 1), (2, 0)])
    (0, [((1, 0), 1), ((1, -1), -2)])
    """
    sign = -1 if downward else 1
    ordered = [(-s, f) for s, f in points] if downward else list(points)
    if not all(a[0] < b[0] for a, b in zip(ordered, ordered[1:], strict=False)):
        ordered.sort()
    base, units, slope = ordered[0][1], [], 0
    for (s, f), (next_s, next_f) in zip(ordered, ordered[1:], strict=False):
        new: Number = 0
        if f != next_f:
            rise, run = next_f - f, next_s - s
            new = rise if run == 1 else plain(Fraction(rise) / run)
        if new != slope:
            p, q = s.numerator, s.denominator
            bend = new - slope
            units.append(((sign * q, -p), plain(bend if q == 1 else Fraction(bend) / q)))
            slope = new
    return base, units


def plain(number: Number) -> Number:
    """A whole fraction as an integer."""
    return number.numerator if number.denominator == 1 else number


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
