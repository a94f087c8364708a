"""Numbers as a reader wants them: few digits, rounded in the direction that keeps a bound true."""

from __future__ import annotations

from fractions import Fraction

from certiformer.kernel.programs import decimal_text

DIGITS = 4
SMALLEST = Fraction(1, 10**4)  # below, and from 10^6 on, powers of ten are easier to read


def bound_text(text: str | None, *, up: bool) -> str:
    """A bound with four significant digits, rounded up or down, never to nearest.

    >>> bound_text("0.0987654321", up=True), bound_text("0.000012345678", up=False), bound_text(None, up=True)
    ('0.09877', '1.234e-5', 'unknown')
    """
    if text is None:
        return "unknown"
    value = Fraction(text)
    if value == 0 or SMALLEST <= abs(value) < 10**6:
        return decimal_text(value, up=up, digits=DIGITS)
    exponent = len(str(int(abs(value)))) - 1 if abs(value) >= 1 else -_leading_zeros(abs(value))
    return f"{decimal_text(value / Fraction(10) ** exponent, up=up, digits=DIGITS)}e{exponent}"


def _leading_zeros(value: Fraction) -> int:
    """k such that 1 <= value * 10^k < 10, for a value below 1."""
    digits = 0
    while value < 1:
        value, digits = value * 10, digits + 1
    return digits


def short(value: float) -> str:
    """A plotted number (a sample, not a bound) with three digits.

    >>> short(0.30000000000000004), short(-1234567.0), short(0.0)
    ('0.3', '-1.23e+06', '0')
    """
    return f"{value:.3g}"


def size_text(count: int) -> str:
    """A number of bytes.

    >>> size_text(812), size_text(41_500), size_text(3_200_000)
    ('812 bytes', '41.5 kB', '3.2 MB')
    """
    if count < 1000:
        return f"{count} bytes"
    return f"{count / 1e3:.3g} kB" if count < 999_500 else f"{count / 1e6:.3g} MB"


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
