"""Exact numbers as integers, and what a run may add to a sum.

A *fixed* number is an integer that counts units of 2^-BITS. Weights are fixed numbers without rounding; a product of two
counts units of 2^-2 BITS, and so on: sums of products are exact integers. Errors are fixed numbers rounded up, so an error
is never below one unit unless it is zero. Features that are no multiples of the unit are rounded, and one unit is charged.

*Sums in a run* (`rounding` has the model of one operation; u is its unit roundoff, m counts additions and products). Let
the terms be y_i + e_i. In general the computed sum errs by at most sum |e_i| + gamma_m sum (|y_i| + |e_i|).

*Absorption* (Lemma). Let all y_i be multiples of h = 2^k, sum |y_i| <= 2^p h, and (1 + u)^m sum |e_i| <= u h / 4. Then in
any order, fused or not, the computed sum errs by at most (1 + u)^m sum |e_i|, without any term in gamma.
Proof. A partial sum has an exact part y, a multiple of h of size at most 2^p h, hence a number of the format, and a
deviation e. If y = 0 an addition returns e (1 + d), |d| <= u. Otherwise |y| >= h, the numbers next to y are at least u h
away, and |e| <= u h / 4 is less than half of that: rounding to nearest returns y itself. Either way the deviations at most
add up and grow by 1 + u. A product x w with x = X + e is such a step with y = X w. QED.
With all e_i = 0 this is the classical statement that sums of integers below 2^p are exact.
Underflow: what is lost or flushed is at most a few t = smallest normal number a term; h >= t is required, so no y is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, fmpz

from certiformer.kernel import Refused
from certiformer.kernel.rounding import FORMATS, Format
from certiformer.kernel.situations.numbers import BITS, UNIT, times
from certiformer.kernel.situations.numbers import upper as as_fixed

SMALLEST = UNIT >> 64  # of nonzero features: far above every t, so that none of them is flushed


def nearest(value: Fraction) -> tuple[int, int]:
    """The nearest fixed number, and the error: 0 or one unit."""
    scaled, rest = divmod(value.numerator << BITS, value.denominator)
    if value and abs(scaled) < SMALLEST:
        raise Refused(f"the circuit states the feature {value}: a circuit states zero and numbers of at least 2^-64")
    return scaled, 1 if rest else 0


def fraction_up(value: Fraction, bits: int = 0) -> int:
    """value / 2^bits, rounded up."""
    return -(-value.numerator // (value.denominator << bits))


def low_bit(values: Iterable[int]) -> int:
    """The largest power of two that divides all values; 0 when all are zero."""
    bits = 0
    for value in values:
        bits |= value
    return bits & -bits


def smallest_bit(bits: Iterable[int]) -> int:
    """The smallest of powers of two, where 0 stands for no condition."""
    return min((bit for bit in bits if bit), default=0)


def lowered(grid: int, bits: int = BITS) -> int:
    """A power of two in coarser units; one that is too small for them becomes one unit, never "no condition"."""
    return max(grid >> bits, 1) if grid else 0


def as_float(value: int) -> float:
    """A fixed number for readers; infinite where a float is too small for it."""
    if value.bit_length() > BITS + 1_000:
        return float("inf") if value > 0 else -float("inf")
    return value / UNIT


def as_ball(value: int, factors: int = 1) -> arb:
    """A product of `factors` fixed numbers as a ball."""
    return arb(fmpz(value)) * arb((1, -BITS * factors))


@dataclass(frozen=True)
class Plan:
    """What a run adds to the errors of the terms of a sum; absorption applies where they add up to at most `limit`."""

    relative: int
    absolute: int
    limit: int  # -1: never

    def added(self, carried: int, size: int) -> int:
        """`carried` is the sum of the errors of the terms in one case, `size` that of the sizes."""
        if carried > self.limit:
            return times(self.relative, carried + size) + self.absolute
        return times(self.relative, carried) + self.absolute if carried else 0

    def error(self, carried: int, size: int) -> int:
        return carried + self.added(carried, size)


class Arithmetic:
    """Real arithmetic (`form` None), or runs in a format."""

    def __init__(self, dtype: str | None):
        self.form: Format | None = None if dtype is None else FORMATS[dtype]
        self.name = "real arithmetic" if dtype is None else dtype
        self.unit = 0 if self.form is None else as_fixed(self.form.unit)
        self.tiny = 0 if self.form is None else as_fixed(self.form.tiny)
        self._gammas: dict[int, int] = {}

    def gamma(self, roundings: int) -> int:
        """gamma_m as a fixed number; zero in real arithmetic."""
        if self.form is None:
            return 0
        if roundings not in self._gammas:
            if not self.form.unit * roundings <= 0.25:
                raise Refused(f"{roundings:,} roundings in a row of {self.name} leave no correct digit")
            self._gammas[roundings] = as_fixed(self.form.gamma(roundings))
        return self._gammas[roundings]

    def absorbed(self, grid: int, size: int) -> int:
        """The largest sum of errors for which the lemma applies (-1: none); `grid` = h (0: all y vanish), `size` = sum |y|.

        (1 + u)^m <= 2 since m u <= 1/4, and 2^-p h / 16 <= u h / 16.
        """
        if self.form is None:
            return -1
        if not grid:
            return 1 << self.form.highest + BITS
        fits = size <= grid << self.form.precision and grid >= 8 * self.tiny
        return (grid >> self.form.precision) // 16 if fits else -1

    def plan(self, weights: Collection[int], grid: int, size: int, carried: int, more: int = 0) -> Plan:
        """A sum of products with `weights` and of `more` numbers; the other arguments bound every case that occurs."""
        inexact = any(w & (w - 1) for w in map(abs, weights))
        return self.plan_of(len(weights) + more, inexact, sum(map(abs, weights)), grid, size, carried)

    def plan_of(self, terms: int, products: bool, weights: int, grid: int, size: int, carried: int) -> Plan:
        """The same for at most `terms` terms; `products`: some weight (`weights`: their total size) is no power of two."""
        if self.form is None:
            return Plan(0, 0, 0)
        if not as_ball(size + carried) * 4 < self.form.largest:
            raise Refused(f"a number of a run may exceed the largest finite {self.name}")
        roundings = max(terms - 1, 0) + products
        limit = self.absorbed(grid if roundings else 0, size)
        # A product, an addition or a flushed operand loses at most t times the sizes of the numbers it stands next to.
        absolute = 4 * terms * times(self.tiny, UNIT + size + carried + weights)
        return Plan(self.gamma(roundings), absolute, limit)
