"""Logarithms to base 2 of whole numbers as fractions that are certainly below or above them."""

from __future__ import annotations

from fractions import Fraction

from flint import arb, fmpz

from certiformer.errors import BadInput
from certiformer.kernel.balls import working_precision

SCALE = 1 << 40  # fractions have at most this denominator: twelve digits


def log2_below(number: int) -> Fraction:
    """A fraction below log2(number), or equal for a power of two.

    >>> log2_below(8), float(log2_below(3))
    (Fraction(3, 1), 1.584962500720...)
    """
    return _log2(number)[0]


def log2_above(number: int) -> Fraction:
    """A fraction above log2(number), or equal for a power of two."""
    return _log2(number)[1]


def _log2(number: int) -> tuple[Fraction, Fraction]:
    if number < 1:
        raise BadInput(f"a logarithm is taken of a number of at least 1, not of {number}")
    exponent = number.bit_length() - 1
    if number == 1 << exponent:
        return Fraction(exponent), Fraction(exponent)
    working_precision()
    # Of the leading bits alone: the next whole number is used above.
    shift = max(0, exponent - 64)
    low, high = arb(fmpz(number >> shift)), arb(fmpz((number >> shift) + (shift > 0)))
    two = arb.const_log2()
    below, above = (low.log() / two * SCALE).floor().lower(), (high.log() / two * SCALE).ceil().upper()
    return _whole(below) / SCALE + shift, _whole(above) / SCALE + shift


def _whole(number: arb) -> Fraction:
    mantissa, power = (int(part) for part in number.man_exp())
    return Fraction(mantissa) * Fraction(2) ** power
