"""Numbers of claims as text: exact where that is short, else rounded in a stated direction, never to nearest.

A sentence shows a number as `exact_text`, `rounded_text` or `range_text` and in no other way. Standard library only.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from certiformer.errors import BadInput

DIGITS = 9  # of a number that is rounded
LONGEST = 20  # digits of an exact decimal that a sentence still shows
_PLAIN = range(-4, 16)  # powers of ten of the first digit that are written without an exponent
DECIMAL = re.compile(r"-?[0-9]+(/[1-9][0-9]*|(\.[0-9]+)?([eE][+-]?[0-9]{1,4})?)", re.ASCII)


def exact(text: str) -> Fraction:
    """An exact number of a certificate: `p`, `p/q` or a decimal, short enough to compute with.

    >>> exact("1e-3"), exact("2/3")
    (Fraction(1, 1000), Fraction(2, 3))
    """
    if len(text) > 4_000 or not DECIMAL.fullmatch(text):
        raise BadInput(f"{text[:40]!r} is not an exact number of a certificate")
    return Fraction(text)


def positive(text: str) -> Fraction:
    """An exact number of a certificate that is more than zero."""
    if not DECIMAL.fullmatch(text[:4_001]) or exact(text) <= 0:
        raise BadInput(f"epsilon or a bound must be a positive rational number such as 0.1 or 1/100, not {text[:40]!r}")
    return exact(text)


def decimal_text(value: Fraction | float, *, up: bool, digits: int = DIGITS) -> str:
    """`value` with `digits` significant digits, rounded up or down, never to nearest.

    >>> decimal_text(Fraction(1, 3), up=True), decimal_text(Fraction(1, 3), up=False, digits=3)
    ('0.333333334', '0.333')
    """
    return format(_rounded(Fraction(value), up, digits), "f")


def exact_text(value: Fraction | float) -> str:
    """`value` itself: a short decimal, else a multiple of a power of two with a remark on its size, else a fraction.

    >>> exact_text(0.125), exact_text(Fraction("1e-12")), exact_text(Fraction(1, 3))
    ('0.125', '1e-12', '1/3')
    >>> exact_text(0.1)
    '3602879701896397/2^55 (about 0.1)'
    """
    exact = Fraction(value)
    short = short_text(exact)
    if short is not None:
        return short
    top, bottom = exact.numerator, exact.denominator
    about = f" (about {_pointed(_rounded(exact, up=False, digits=6))})"
    if bottom == 1 << (bottom.bit_length() - 1) and bottom > 1:
        return f"{top}/2^{bottom.bit_length() - 1}{about}"
    power = (top & -top).bit_length() - 1
    return f"{top >> power}*2^{power}{about}" if bottom == 1 and power else str(exact)


def rounded_text(value: Fraction | float, *, up: bool) -> str:
    """`value` with nine digits at most, rounded up or down; the sentence around it says `at most` or `at least`.

    >>> rounded_text(Fraction(1, 8), up=True), rounded_text(Fraction(2, 3) / 10**7, up=True)
    ('0.125', '6.66666667e-8')
    """
    return _pointed(_rounded(Fraction(value), up, DIGITS))


def range_text(values: list[Fraction]) -> str:
    """The values as one range: a short decimal if there is one alone, else `between` two decimals around all of them.

    >>> range_text([Fraction(1, 8)]), range_text([Fraction(1, 3)])
    ('0.125', 'between 0.333333333 and 0.333333334')
    """
    least, most = min(values), max(values)
    short = short_text(least) if least == most else None
    return short or f"between {rounded_text(least, up=False)} and {rounded_text(most, up=True)}"


def json_number(text: str) -> float | str:
    """The float that JSON writes as exactly this number, or the text itself where there is none.

    >>> json_number("0.0987654321"), json_number("0.10000000000000000001")
    (0.0987654321, '0.10000000000000000001')
    """
    try:
        number = float(Fraction(text))
    except (ValueError, OverflowError, ZeroDivisionError):
        return text
    return number if Fraction(repr(number)) == Fraction(text) else text


def _rounded(exact: Fraction, up: bool, digits: int) -> Decimal:
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    # One correctly rounded division in the wanted direction.
    return context.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize(context)


def short_text(exact: Fraction) -> str | None:
    """The exact decimal of a number, if it has at most `LONGEST` digits."""
    context = Context(prec=LONGEST)
    quotient = context.divide(Decimal(exact.numerator), Decimal(exact.denominator)).normalize(context)
    return _pointed(quotient) if Fraction(quotient) == exact else None


def _pointed(number: Decimal) -> str:
    """A number without zeros at its end in plain digits, or with a power of ten instead of many zeros: 0.001, 1.5e-7."""
    if not number or number.adjusted() in _PLAIN:
        return format(number, "f")
    sign, digits, _ = number.as_tuple()
    first, rest = str(digits[0]), "".join(map(str, digits[1:]))
    return f"{'-' * sign}{first}{'.' * bool(rest)}{rest}e{number.adjusted()}"
