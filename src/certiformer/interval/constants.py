"""Exact constants as intervals: rationals, pi and e, rounded outward with exact rational comparison."""

from __future__ import annotations

import math
from fractions import Fraction

from certiformer.interval.arithmetic import Interval, point
from certiformer.interval.padding import LARGEST

# 40 digits: far below the rounding of a double, so that the neighbours chosen below are the right ones.
NAMED = {
    "pi": (
        Fraction("3.1415926535897932384626433832795028841971"),
        Fraction("3.1415926535897932384626433832795028841972"),
    ),
    "e": (
        Fraction("2.7182818284590452353602874713526624977572"),
        Fraction("2.7182818284590452353602874713526624977573"),
    ),
}


def enclose_rational(low: Fraction, high: Fraction) -> Interval:
    """Doubles around [low, high]; a number below the normal range gets a zero or normal end (denormals are flushed)."""
    return Interval(point(_below(low)).lo, point(-_below(-high)).hi)


def enclose_constant(text: str) -> Interval:
    """The interval of a constant of a target program: `"p"`, `"p/q"`, `"pi"` or `"e"`.

    >>> tenth = enclose_constant("1/10")
    >>> Fraction(float(tenth.lo)) < Fraction(1, 10) < Fraction(float(tenth.hi))
    True
    >>> enclose_constant("3/4")
    Interval(lo=Array(0.75, dtype=float64), hi=Array(0.75, dtype=float64))
    """
    if text in NAMED:
        return enclose_rational(*NAMED[text])
    return enclose_rational(Fraction(text), Fraction(text))


def _below(x: Fraction) -> float:
    """The largest double <= x that is zero or normal, or -inf."""
    try:
        value = float(x)
    except OverflowError:
        return LARGEST if x > 0 else -math.inf
    if math.isinf(value):
        return LARGEST if x > 0 else -math.inf
    if Fraction(value) > x:
        value = math.nextafter(value, -math.inf)
    if 0 < abs(value) < 2.3e-308:
        return 0.0 if value > 0 else -2.3e-308
    return value
