"""How far a sum of ReLU units is from the logistic function, on the whole line.

p(s) = sum_m b_m max(s - k_m, 0) with knots k_1 < ... < k_M is 0 up to k_1, has slope c_m = b_1 + ... + b_m on [k_m,
k_(m+1)], and is constant from k_M on if c_M = 0, which is checked exactly. The logistic function f rises from 0 to 1,
so on the first and the last piece the distance is largest at an end: f(k_1), and |p(k_M) - f(k_M)| or |p(k_M) - 1|.
Inside a piece with slope c the distance f - p is largest at an end or where f' = f (1 - f) = c, that is f = (1 +-
sqrt(1 - 4 c)) / 2, which is the point s = log(f / (1 - f)), if there is one and it is inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from certiformer.kernel.balls import ONE, ZERO, ball, larger
from certiformer.kernel.refusal import Refused


def logistic(s: arb) -> arb:
    return ONE / (ONE + (-s).exp())


def polygon_error(knots: Sequence[float], bends: Sequence[float]) -> arb:
    """An upper bound of the distance.

    >>> from certiformer.kernel.balls import working_precision
    >>> working_precision()
    >>> round(float(polygon_error([-2.0, 2.0], [0.25, -0.25])), 4)
    0.1192
    """
    places, slopes, value = [Fraction(k) for k in knots], [Fraction(b) for b in bends], Fraction(0)
    if sum(slopes) != 0:
        raise Refused(
            "the bends of the logistic polygon do not add up to 0, so it runs away from the logistic function"
        )
    worst, slope = ZERO, Fraction(0)
    for place, bend, following in zip(places, slopes, places[1:], strict=False):
        slope += bend
        start, end = ball(place), ball(following)
        for s in (start, *_touching(ball(slope), start, end)):
            worst = larger(worst, abs(logistic(s) - ball(value) - ball(slope) * (s - start)).upper())
        value += slope * (following - place)
    last = ball(value)
    worst = larger(worst, abs(last - ONE).upper())
    worst = larger(worst, abs(last - logistic(ball(places[-1]))).upper())
    if not worst.is_finite():
        raise Refused("the logistic polygon has no error bound")
    return worst.upper()


def _touching(slope: arb, start: arb, end: arb) -> list[arb]:
    """The points of a piece where the slope of the logistic function is `slope`; more points than those do no harm."""
    rest = ONE - 4 * slope
    if not slope > 0 or rest < 0:
        return []
    root = rest.nonnegative_part().sqrt()
    points = []
    for share in ((ONE + root) / 2, (ONE - root) / 2):
        s = (share / (ONE - share)).log()
        if not (s < start or s > end):
            points.append(s)
    return points
