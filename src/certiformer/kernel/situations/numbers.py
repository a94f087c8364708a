"""Numbers of a run: enclosed in intervals with integer ends, and sums of them in any order.

An end is an integer that counts units of 2^-BITS, so everything here is exact or rounded outward. An interval holds the
number over the reals *and* the number of every run in the format; where both ends agree the number is known exactly.
`Number.code` is what the number is meant to be (a reference point, nothing is concluded from it alone).

*Exact sums* (Lemma). If all terms are multiples of g and every partial sum is at most 2^p g, no order of additions rounds,
fused or not. Partial sums lie between minus the sum of the negative terms and the sum of the positive ones. One term may be
a number a of the run that is known up to noise only: for 2^e <= |a| <= 2^(e+1) it is a multiple of 2^(e+1-p), and the
condition is checked from binade to binade.

*Absorption* (Lemma). Let terms be y_i + e_i, all y_i multiples of h, sum |y_i| <= 2^p h, (1 + u)^m sum |e_i| <= u h / 4. In
any order the sum is within (1 + u)^m sum |e_i| of the sum of the y_i. Proof: a partial sum has an exact part y, a multiple
of h below 2^p h, hence a number of the format, and a deviation e; numbers next to y are at least u h away, so rounding
returns y itself, or keeps e (1 + d) where y = 0. QED.

*All other sums* err by gamma_m times the sum of sizes, m additions and one for the products (`kernel.rounding`). Flushed
operands and results lose at most the smallest normal number t each.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from flint import arb, fmpz

from certiformer.kernel import Refused
from certiformer.kernel.rounding import FORMATS, Format

BITS = 192
UNIT = 1 << BITS


class Number(NamedTuple):
    """A number of the stream: what it is meant to be, and the ends of an interval that holds it."""

    code: int
    low: int
    high: int

    @property
    def known(self) -> bool:
        return self.low == self.high

    @property
    def off(self) -> int:
        """How far it may be from its code."""
        return max(self.high - self.code, self.code - self.low)

    def hull(self, other: Number) -> Number:
        return Number(self.code, min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Number) -> bool:
        return other.low <= self.low and self.high <= other.high


def sure(value: int) -> Number:
    """A number that is known exactly."""
    return Number(value, value, value)


ZERO = sure(0)


def fixed(value: float, what: str) -> int:
    """A stored number, exactly."""
    top, bottom = value.as_integer_ratio()
    scaled, rest = divmod(top << BITS, bottom)
    if rest:
        raise Refused(f"{what} holds {value!r}, which is no multiple of 2^-{BITS}")
    return scaled


def ceil_shift(value: int, bits: int = BITS) -> int:
    """value / 2^bits, rounded up."""
    return -(-value >> bits)


def times(a: int, b: int) -> int:
    """The product of two sizes, rounded up."""
    return ceil_shift(a * b)


def upper(value: arb) -> int:
    """An integer number of units that is at least `value`."""
    if not value < arb((1, 4096)):
        raise Refused("a bound of the run is not finite, or far too large")
    mantissa, exponent = (int(part) for part in value.upper().man_exp())
    return mantissa << exponent + BITS if exponent + BITS >= 0 else ceil_shift(mantissa, -exponent - BITS)


def lower(value: arb) -> int:
    return -upper(-value)


def as_ball(value: int) -> arb:
    return arb(fmpz(value)) * arb((1, -BITS))


def power_of_two(value: int) -> bool:
    return not abs(value) & (abs(value) - 1)


class Terms(NamedTuple):
    """A sum before it is rounded: its value, the sums of positive and of negative terms, the largest power of two that
    divides all known terms (0: no condition), the noisy terms (weight, low, high), and how many terms are not zero."""

    code: int = 0
    low: int = 0
    high: int = 0
    up: int = 0
    down: int = 0
    grid: int = 0
    noisy: tuple[tuple[int, int, int], ...] = ()
    count: int = 0
    inexact: bool = False  # whether a product has a weight that is no power of two

    def plus(self, other: Terms) -> Terms:
        grid = min(self.grid, other.grid) if self.grid and other.grid else self.grid or other.grid
        return Terms(
            self.code + other.code,
            self.low + other.low,
            self.high + other.high,
            self.up + other.up,
            self.down + other.down,
            grid,
            self.noisy + other.noisy,
            self.count + other.count,
            self.inexact or other.inexact,
        )

    @property
    def size(self) -> int:
        return self.up + self.down

    @property
    def off(self) -> int:
        return max(self.high - self.code, self.code - self.low)


NOTHING = Terms()


def term(weight: int, x: Number) -> Terms:
    """weight * x, before rounding."""
    if not weight or x == ZERO:
        return NOTHING
    ends = weight * x.low, weight * x.high
    exact, low, high = weight * x.code, min(ends) >> BITS, ceil_shift(max(ends))
    if x.known and high == low:
        grid, noisy = (low & -low) or 1, ()
    else:
        grid, noisy = 0, ((weight, x.low, x.high),)
    inexact = not power_of_two(weight)
    return Terms(exact >> BITS, low, high, max(high, 0), max(-low, 0), grid, noisy, 1, inexact)


def constant(value: int) -> Terms:
    return term(UNIT, sure(value))


def gathered(parts: Iterable[Terms]) -> Terms:
    total = NOTHING
    for part in parts:
        if part.count:
            total = total.plus(part) if total.count else part
    return total


class Run:
    """What a run in a format may do to a sum."""

    def __init__(self, dtype: str):
        self.form: Format = FORMATS[dtype]
        self.name, self.precision = dtype, self.form.precision
        self.unit, self.tiny, self.largest = upper(self.form.unit), upper(self.form.tiny), self.form.largest
        self._gammas: dict[int, int] = {}

    def gamma(self, roundings: int) -> int:
        if roundings not in self._gammas:
            self._gammas[roundings] = upper(self.form.gamma(roundings))
        return self._gammas[roundings]

    def is_number(self, value: int) -> bool:
        """Whether an exact value is a number of the format, and not one that is flushed."""
        odd = abs(value) // ((value & -value) or 1)
        return not value or (odd.bit_length() <= self.precision and abs(value) >= self.tiny)

    def finest(self, terms: Terms) -> int | None:
        """A grid on which the sum of terms is exact in every order; None where there is none that is known."""
        if not terms.noisy:
            return self._fits(terms.grid or UNIT, terms.up, terms.down)
        (weight, low, high), *others = terms.noisy
        if others:
            return None
        if low < 0 < high or not (low and high):
            return None
        least, most = sorted((abs(low), abs(high)))
        own, finest, binade = term(weight, Number(low, low, high)), 0, least.bit_length() - 1
        while 1 << binade <= most:
            spacing = binade + 1 - self.precision
            piece = ceil_shift(abs(weight) * min(most, 2 << binade))
            grid = (abs(weight) & -abs(weight)) << spacing >> BITS if spacing >= 0 else 0
            grid = min(grid, terms.grid) if terms.grid else grid
            up, down = terms.up - own.up + piece * bool(own.up), terms.down - own.down + piece * bool(own.down)
            if not grid or self._fits(grid, up, down) is None:
                return None
            finest = min(finest, grid) if finest else grid
            binade += 1
        return finest

    def _fits(self, grid: int, up: int, down: int) -> int | None:
        return grid if max(up, down) <= grid << self.precision and grid >= self.tiny else None

    def slip(self, terms: Terms, known: bool = False) -> int:
        """How far the sum of a run may be from the exact sum of its terms; `known`: `finest` has found a grid."""
        if terms.count == 0:
            return 0
        if not as_ball(2 * terms.size) < self.largest:
            raise Refused(f"a number of the run may exceed the largest finite {self.name}")
        if known or self.finest(terms) is not None:
            return 0
        roundings = terms.count - 1 + terms.inexact
        weights = sum(abs(weight) for weight, _, _ in terms.noisy)
        lost = 4 * terms.count * times(self.tiny, UNIT + terms.size + weights)
        return lost + (self._rounded(terms, roundings) if roundings else 0)

    def _rounded(self, terms: Terms, roundings: int) -> int:
        """gamma times the sizes, or a multiple of the deviations where they are absorbed."""
        relative, off = self.gamma(roundings), 0
        grid = terms.grid
        for weight, low, high in terms.noisy:
            middle = weight * ((low + high) // 2)
            nearest = (middle + (UNIT << BITS - 9)) >> 2 * BITS - 8 << BITS - 8  # to multiples of 2^-8
            off += max(ceil_shift(abs(weight * end - (nearest << BITS))) for end in (low, high))
            if nearest:
                grid = min(grid, nearest & -nearest) if grid else nearest & -nearest
        grid = grid or UNIT
        if (
            off <= (grid >> self.precision) // 16
            and terms.size + off <= grid << self.precision
            and grid >= 8 * self.tiny
        ):
            return 3 * off  # from the ends of the interval to (1 + u)^m off on either side of the sum of the y_i
        return times(relative, terms.size)

    def total(self, terms: Terms) -> Number:
        """The sum of a run. Sums of numbers that are not negative are not negative."""
        slip = self.slip(terms)
        low, high = terms.low - slip, terms.high + slip
        return Number(terms.code, low if terms.down else max(low, 0), high if terms.up else min(high, 0))
