"""Numbers as they are: exact rationals of what was given, and balls around them."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, fmpq

from certiformer.errors import BadInput

Real = int | float | Fraction


def exact(number: Real) -> Fraction:
    """The number itself, without rounding; `BadInput` for NaN and infinities.

    >>> exact(0.1) == Fraction(1, 10)
    False
    """
    if not math.isfinite(number):
        raise BadInput(f"this must be a finite number, not {number!r}")
    return Fraction(number)


def ball(number: Real) -> arb:
    """A ball around the exact number."""
    fraction = exact(number)
    return arb(fmpq(fraction.numerator, fraction.denominator))
