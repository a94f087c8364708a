"""Ball arithmetic: constants, boxes, and the ends of intervals.

Every real number is an `arb` of python-flint: a midpoint and a radius that certainly contain it. Ends of intervals and
remainders are *exact* arbs (radius zero) obtained by `.lower()` and `.upper()`, which round outward.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, Protocol

import flint
from flint import arb, fmpq, fmpz

from certiformer.errors import BadInput
from certiformer.kernel.programs import Program, decimal_text, fold

PRECISION = 96  # bits; scores of size 1e5 keep 23 decimal digits
SERIES = 32  # terms that power series of python-flint may have; its default of 10 would cut Taylor series silently

ZERO, ONE, HALF = arb(0), arb(1), arb(fmpq(1, 2))
INFINITY = arb.pos_inf()

Cell = tuple[tuple[int, int], ...]  # per axis (m, k): the interval a + (b - a) [k, k + 1] / 2^m


def working_precision() -> Any:
    """Set the precision of the calling process; every entry point calls it first."""
    flint.ctx.prec, flint.ctx.cap = PRECISION, SERIES


def ball(value: Fraction | int) -> arb:
    """The ball of an exact rational."""
    return arb(fmpq(value.numerator, value.denominator)) if isinstance(value, Fraction) else arb(value)


def constant(text: str) -> arb:
    """The ball of a constant of the target language: a rational, `pi` or `e`."""
    if text == "pi":
        return arb.pi()
    if text == "e":
        return arb.const_e()
    top, _, bottom = text.partition("/")
    return arb(fmpq(int(top), int(bottom or 1)))


class ConstantAlgebra:
    """Point evaluation in balls: an algebra for `programs.fold` (used for the ends of a domain and for witnesses)."""

    constant = staticmethod(constant)
    neg = staticmethod(operator.neg)
    abs = staticmethod(operator.abs)
    add = staticmethod(operator.add)
    sub = staticmethod(operator.sub)
    mul = staticmethod(operator.mul)
    div = staticmethod(operator.truediv)

    def __getattr__(self, name: str) -> Any:
        return getattr(arb, name)

    def pow(self, a: arb, n: int) -> arb:
        return power(a, n)

    def compare(self, comparison: str, a: arb, b: arb) -> bool | None:
        true, false = (a < b, a >= b) if comparison == "lt" else (a <= b, a > b)
        return bool(true) if true or false else None

    def select(self, condition: None, x: arb, y: arb) -> arb:
        return x.union(y)

    def undefined(self, value: arb) -> bool:
        return not value.is_finite()


def power(a: Any, n: int, multiply: Callable[[Any, Any], Any] = operator.mul, one: Any = ONE) -> Any:
    """a to the n by repeated squaring: `arb ** int` returns nan on balls that contain zero (python-flint issue 426)."""
    result = one
    while n:
        if n & 1:
            result = a if result is one else multiply(result, a)
        n >>= 1
        a = multiply(a, a) if n else a
    return result


@dataclass(frozen=True)
class Box:
    """A box that certainly contains a cell: exact centres and exact radii, outward."""

    centre: tuple[arb, ...]
    radius: tuple[arb, ...]

    @property
    def dimension(self) -> int:
        return len(self.centre)

    def low(self, axis: int) -> arb:
        return (self.centre[axis] - self.radius[axis]).lower()

    def high(self, axis: int) -> arb:
        return (self.centre[axis] + self.radius[axis]).upper()

    def __str__(self) -> str:
        return about([(self.low(i), self.high(i)) for i in range(self.dimension)])


class Ends(Protocol):
    """A box as constant programs, one pair an axis."""

    def ends(self) -> list[tuple[Program, Program]]: ...


class BallDomain:
    """The ends of a domain as balls; `box(cell)` encloses a cell of its split trees."""

    def __init__(self, domain: Ends):
        self.ends = [tuple(fold(end, [ZERO], ConstantAlgebra())[0] for end in pair) for pair in domain.ends()]
        for axis, (low, high) in enumerate(self.ends, 1):
            if not (low.is_finite() and high.is_finite() and low < high):
                raise BadInput(f"the interval of axis {axis} of the box is empty, reversed or infinite")

    @property
    def dimension(self) -> int:
        return len(self.ends)

    def axes(self, chosen: tuple[int, ...]) -> BallDomain:
        """The domain of the chosen axes alone, in the given order."""
        return BallDomain.between([self.ends[i] for i in chosen])

    @staticmethod
    def between(ends: list[tuple[arb, ...]]) -> BallDomain:
        """The domain with the given ends."""
        domain = object.__new__(BallDomain)
        domain.ends = ends
        return domain

    def along(self, direction: tuple[int, ...]) -> BallDomain:
        """The range of direction . x over the domain."""
        low, high = ZERO, ZERO
        for c, (left, right) in zip(direction, self.ends, strict=True):
            low, high = (low + c * left, high + c * right) if c > 0 else (low + c * right, high + c * left)
        return BallDomain.between([(low, high)])

    def box(self, cell: Cell) -> Box:
        """An outward box around the real points a + (b - a) [k, k + 1] / 2^m of every axis."""
        centres, radii = [], []
        for (low, high), (m, k) in zip(self.ends, cell, strict=True):
            width = high - low
            start = low + width * arb(fmpq(k, fmpz(1) << m))
            end = low + width * arb(fmpq(k + 1, fmpz(1) << m))
            centre = ((start + end) / 2).mid()
            centres.append(centre)
            radii.append(larger((end - centre).upper(), (centre - start).upper()))
        return Box(tuple(centres), tuple(radii))

    def contains(self, point: list[arb]) -> bool:
        """Whether the point certainly lies inside the closed domain."""
        pairs = zip(self.ends, point, strict=True)
        return all(bool(low <= x) and bool(x <= high) for (low, high), x in pairs)


def larger(a: arb, b: arb) -> arb:
    """The larger of two exact arbs; nan wins, so that it is never lost."""
    return a if a.is_nan() or a > b else b


def smaller(a: arb, b: arb) -> arb:
    """The smaller of two exact arbs; nan wins."""
    return a if a.is_nan() or a < b else b


def largest(values: list[arb]) -> arb:
    """The largest of exact nonnegative arbs; nan wins (Python's `max` would lose it)."""
    return reduce(larger, values, ZERO)


def hull(low: arb, high: arb) -> arb:
    """A ball that contains every number between the two exact ends."""
    return low.union(high)


def about(ends: list[tuple[arb, arb]]) -> str:
    """A box in a reason, rounded to nearest; no claim rests on it."""
    return "about " + " x ".join(f"[{float(low):.12g}, {float(high):.12g}]" for low, high in ends)


def decimal(value: arb, up: bool) -> str:
    """Decimal text of an exact ball, rounded up or down.

    >>> decimal((arb(1) / 3).upper(), up=True)
    '0.333333334'
    """
    # Below 1e-301 and above 1e301 the exact digits would fill pages: the text is coarser, in the direction that is true.
    tiny = arb((1, -1000))
    if up and not value.is_zero():
        value = larger(value, tiny)
    elif not up:
        value = smaller(value, 1 / tiny) if value > tiny else ZERO
    mantissa, exponent = (int(part) for part in (value.upper() if up else value.lower()).man_exp())
    return decimal_text(Fraction(mantissa) * Fraction(2) ** exponent, up=up)
