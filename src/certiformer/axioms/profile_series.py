"""Derivatives of a function of one variable over an interval, as balls, to any order.

A truncated power series a_0 + a_1 t + ... whose coefficients are balls: run on a program with a_0 = an interval and
a_1 = 1 it encloses f^(k)/k! at every point of the interval. An elementary function phi(a) is the sum of phi^(k)(a_0)/k!
(a - a_0)^k. `abs`, `max`, `min` and `where` must be decided *strictly* on the closed interval, otherwise every
coefficient is nan, as it is where an operation has no value; so a function whose series is finite on all closed intervals
of a partition is smooth across their common ends as well.
"""

from __future__ import annotations

from flint import arb

from certiformer.kernel import balls
from certiformer.kernel.balls import ONE, ZERO
from certiformer.kernel.programs import Program, fold
from certiformer.kernel.taylor import point_series

Series = list[arb]


class SeriesAlgebra:
    """Runs a program in power series of the given order: an algebra for `target.fold`."""

    def __init__(self, order: int):
        self.order = order

    def constant(self, text: str) -> Series:
        return [balls.constant(text)] + [ZERO] * self.order

    def neg(self, a: Series) -> Series:
        return [-x for x in a]

    def add(self, a: Series, b: Series) -> Series:
        return [x + y for x, y in zip(a, b, strict=True)]

    def sub(self, a: Series, b: Series) -> Series:
        return [x - y for x, y in zip(a, b, strict=True)]

    def mul(self, a: Series, b: Series) -> Series:
        return [sum((a[i] * b[k - i] for i in range(k + 1)), ZERO) for k in range(self.order + 1)]

    def div(self, a: Series, b: Series) -> Series:
        if b[0].contains(0):
            return self._undefined()
        result: Series = []
        for k in range(self.order + 1):
            known = sum((result[i] * b[k - i] for i in range(k)), ZERO)
            result.append((a[k] - known) / b[0])
        return result

    def pow(self, a: Series, n: int) -> Series:
        # The coefficients of x^n at x = a_0: binom(n, k) a_0^(n-k), zero from k = n + 1 on.
        outer, factor = [], ONE
        for k in range(self.order + 1):
            outer.append(factor * balls.power(a[0], n - k) if k <= n else ZERO)
            factor = factor * (n - k) / (k + 1)
        return self._composed(outer, a)

    def __getattr__(self, name: str):
        return lambda a: self._elementary(name, a)

    def _elementary(self, name: str, a: Series) -> Series:
        outer = list(point_series(name, a[0], self.order))
        if not all(x.is_finite() for x in outer):
            return self._undefined()
        return self._composed(outer, a)

    def _composed(self, outer: Series, a: Series) -> Series:
        """Horner's rule in (a - a_0)."""
        inner = [ZERO, *a[1:]]
        result = [outer[-1]] + [ZERO] * self.order
        for coefficient in outer[-2::-1]:
            result = self.mul(result, inner)
            result[0] = result[0] + coefficient
        return result

    def _undefined(self) -> Series:
        return [arb.nan()] * (self.order + 1)

    def abs(self, a: Series) -> Series:
        return self.max(a, self.neg(a))

    def max(self, a: Series, b: Series) -> Series:
        gap = a[0] - b[0]
        return (a if gap > 0 else b) if gap > 0 or gap < 0 else self._undefined()

    def min(self, a: Series, b: Series) -> Series:
        return self.neg(self.max(self.neg(a), self.neg(b)))

    def compare(self, comparison: str, a: Series, b: Series) -> bool | None:
        gap = a[0] - b[0]
        return bool(gap < 0) if gap > 0 or gap < 0 else None

    def select(self, condition: None, x: Series, y: Series) -> Series:
        return self._undefined()

    def undefined(self, value: Series) -> bool:
        return not all(x.is_finite() for x in value)


def derivatives(program: Program, value: arb, order: int) -> list[list[arb]]:
    """For every output of a program of one variable: enclosures of f, f', ..., f^(order) on the ball `value`."""
    start = [value, ONE, *[ZERO] * (order - 1)][: order + 1]
    found = fold(program, [start], SeriesAlgebra(order))
    return [[c * arb.fac_ui(k) for k, c in enumerate(series)] for series in found]
