"""Tables as sums of ReLU units: the piecewise linear function through given points, one unit for each change of slope.

Through (s_0, f_0), (s_1, f_1), ... with slopes m_j = (f_{j+1} - f_j) / (s_{j+1} - s_j),

    f(s) = f_0 + sum_j (m_j - m_{j-1}) relu(s - s_j)          with m_{-1} = 0,

flat before the first point. A knot t = p/q is written relu(q s - p) with weight (m_j - m_{j-1}) / q, so that numbers
that are integers stay integers. `downward` builds the mirror image, relu(p - q s) from the largest s on.

Everything that turns a finite set of numbers into other numbers uses it: the tables of a compiled program, the counts of
`counting`, `parity` and `majority`, the widths of `selector_width`. `piecewise_linear` and `fewest_pieces` solve other
problems: they choose the knots of a function that only has to come *near* given values, in floating point.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

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
