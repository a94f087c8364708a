"""Numbers of bounds: every formula is evaluated in balls, and what is printed is the upper end, rounded up.

A bound that was rounded down would not be one. Weights and counts come in as floats and integers, which are exact.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from flint import arb, fmpq

from certiformer.errors import BadInput

Number = float | int | Fraction | arb
LARGEST = arb(sys.float_info.max)


def ball(value: Number) -> arb:
    """The ball of an exact number.

    >>> ball(Fraction(1, 3)) * 3 == 1, bool(abs(ball(Fraction(1, 3)) * 3 - 1) < 1e-12)
    (False, True)
    """
    if isinstance(value, Fraction):
        return arb(fmpq(value.numerator, value.denominator))
    return value if isinstance(value, arb) else arb(value)


def above(value: arb) -> float:
    """The smallest float that is certainly not below the number; infinity where there is none.

    >>> above(ball(Fraction(3, 10))), above(arb(1)), above(arb(10) ** 400)
    (0.30000000000000004, 1.0, inf)
    """
    if not value.is_finite():
        return math.inf
    top = value.upper()
    if top > LARGEST:
        return math.inf
    nearest = float(top)
    return nearest if arb(nearest) >= top else math.nextafter(nearest, math.inf)


def log10_above(value: arb) -> float:
    """An upper bound of the decimal logarithm, also where the number itself is above all floats.

    >>> round(log10_above(arb(10) ** 400), 9), log10_above(arb(0))
    (400.0, -inf)
    """
    top = value.upper()
    return above(top.log() / arb(10).log()) if top > 0 else -math.inf


def require_positive(**numbers: float | int) -> None:
    """Refuse a number that is not finite and positive, by its name."""
    for name, value in numbers.items():
        if not (math.isfinite(value) and value > 0):
            raise BadInput(f"{name.replace('_', ' ')} is a positive number, not {value}")


def require_probability(delta: float) -> None:
    """Refuse a probability of failure outside (0, 1)."""
    if not 0 < delta < 1:
        raise BadInput(f"the probability of failure is between 0 and 1, not {delta}")
