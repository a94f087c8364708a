"""Exact numbers as short decimal text, rounded in a stated direction."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction


def decimal_text(value: Fraction | float, *, up: bool, digits: int = 9) -> str:
    """`value` with `digits` significant digits, rounded up or down, never to nearest.

    >>> decimal_text(Fraction(1, 3), up=True), decimal_text(Fraction(1, 3), up=False, digits=3)
    ('0.333333334', '0.333')
    """
    exact = Fraction(value)
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    # One correctly rounded division in the wanted direction.
    quotient = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return format(quotient.normalize(context), "f")
