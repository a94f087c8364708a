"""Tables as sums of ReLU units: the piecewise linear function through given points, one unit for each change of slope.

Through (s_0, f_0), (s_1, f_1), ... with slopes m_j = (f_{j+1} - f_j) / (s_{j+1} - s_j),

    f(s) = f_0 + sum_j (m_j - m_{j-1}) relu(s - s_j)          with m_{-1} = 0,

flat before the first point. A knot t = p/q is written relu(q s - p) with weight (m_j - m_{j-1}) / q, so that numbers
that are integers stay integers. `downward` builds the mirror image, relu(p - q s) from the largest s on: for r =
1/(1+w) all terms of an increasing convex function of w then have one sign, knots are 1 - (j+1) r, and the weights are
integers:

    m_j = -(f(j+1) - f(j)) (j+1) (j+2),     weight at j = (j+2) (f(j+1) - f(j)) - j (f(j) - f(j-1));

w itself is the sum of 2 relu(1 - (j+1) r) over j = 0, 1, ....
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from certiformer.compiler.linear_form import Number

Unit = tuple[Number, Number]  # slope, bias of the ridge inside relu


def interpolated(
    points: Sequence[tuple[Number, Number]], downward: bool = False
) -> tuple[Number, list[tuple[Unit, Number]]]:
    """The value at the base point and (unit, factor) for the points, which have different first entries.

    >>> interpolated([(0, 0), (1, 1), (2, 0)])
    (0, [((1, 0), 1), ((1, -1), -2)])
    >>> interpolated([(Fraction(1, w + 1), w) for w in range(4)], downward=True)
    (0, [((-1, 1), 2), ((-2, 1), 2), ((-3, 1), 2)])
    """
    sign = -1 if downward else 1
    ordered = sorted((sign * s, f) for s, f in points)
    base, units, slope = ordered[0][1], [], Fraction(0)
    for (s, f), (next_s, next_f) in zip(ordered, ordered[1:], strict=False):
        if f == next_f:
            new: Number = 0
        else:
            new = Fraction(next_f - f) / (next_s - s)
        if new != slope:
            p, q = s.numerator, s.denominator
            units.append(((sign * q, -p), _plain((new - slope) / Fraction(q))))
            slope = new
    return base, units


def _plain(number: Fraction) -> Number:
    return number.numerator if number.denominator == 1 else number
