"""Small questions about features: their numbers in a row, and whether one is an affine map of another."""

from __future__ import annotations

from fractions import Fraction

from certiformer.compiler.draft import Feature
from certiformer.compiler.linear_form import Number


def entries(feature: Feature) -> list[Number]:
    """The numbers of a feature, undefined last."""
    return [*(feature.numbers or ()), *([] if feature.undefined is None else [feature.undefined])]


def constant(feature: Feature) -> bool:
    """Whether a feature holds the same number for all values."""
    held = feature.numbers
    if held is None or (not held and feature.undefined is None):
        return False
    first = held[0] if held else feature.undefined
    if feature.undefined is not None and feature.undefined != first:
        return False
    return all(x == first for x in held)


def like(code: Feature, numbers: tuple[Number, ...]) -> Feature:
    """A feature of the same node as a code, from its numbers with undefined last."""
    return Feature(tuple(numbers)) if code.undefined is None else Feature(tuple(numbers[:-1]), numbers[-1])


def plain(number: Number) -> Number:
    """An integer when it is one: integers are added faster, and written shorter."""
    return number.numerator if number.denominator == 1 else number


def affine_of(code: Feature, feature: Feature) -> tuple[Number, Number] | None:
    """(a, b) with feature = a * code + b for all values; None when there are no such numbers.

    >>> affine_of(Feature((0, 1, 2)), Feature((5, 3, 1))), affine_of(Feature((0, 1, 2)), Feature((0, 1, 4)))
    ((-2, 5), None)
    """
    if feature.snapped or code.or_more or feature.or_more or code.numbers is None or feature.numbers is None:
        return None
    c, f = entries(code), entries(feature)
    other = next((i for i, x in enumerate(c) if x != c[0]), None)
    if other is None:
        return None
    rise, run = f[other] - f[0], c[other] - c[0]
    if not rise and any(y != f[0] for y in f):  # one-hot features of thousands of fractions are asked for often
        return None
    if any((y - f[0]) * run != rise * (x - c[0]) for x, y in zip(c, f, strict=True)):
        return None
    a = Fraction(rise) / run
    return plain(a), plain(f[0] - a * c[0])
