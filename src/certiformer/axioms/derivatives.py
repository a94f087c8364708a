"""Derivatives of any order over a box: every Taylor coefficient f^(a)/a!, |a| <= m, as a ball that holds for all points.

Truncated power series in D variables, with *fat* balls as coefficients: run a program on x_i = X_i + e_i, X_i the ball of
the whole side of the box, and the coefficient of e^a encloses f^(a)(x)/a! for every x of the box at once (the rules for
sums, products and compositions of power series are identities in the coefficients, so balls may be put in for them).

`smooth` says whether the program is infinitely often differentiable in a neighbourhood of the closed box: a comparison
(`abs`, `max`, `min`, `where`) counts as decided only if it is *strict* on the closed box, as in `axioms.jets`, so a kink
on the interface of two boxes is undecided in both. Where `smooth` is false the coefficients mean nothing.

`axioms.jets` stays the tool for first order, where kinks are allowed (Clarke's gradient).
"""

from __future__ import annotations

from itertools import product
from math import comb

from flint import arb, fmpq

from certiformer.kernel import balls
from certiformer.kernel.balls import ONE, ZERO, BallDomain, about, hull
from certiformer.kernel.programs import Program, fold
from certiformer.kernel.taylor import Table, point_series, table


class Series:
    """Coefficients by position in the monomial table (absent means zero); `why` says what makes it not smooth."""

    __slots__ = ("coef", "why")

    def __init__(self, coef: dict[int, arb], why: str = ""):
        self.coef, self.why = coef, why

    @property
    def smooth(self) -> bool:
        return not self.why

    @property
    def value(self) -> arb:
        return self.coef.get(0, ZERO)


class SeriesAlgebra:
    """Runs a program in series: an algebra for `target.fold`."""

    def __init__(self, tab: Table):
        self.table = tab

    def variable(self, value: arb, axis: int) -> Series:
        return Series({0: value, self.table.axis[axis]: ONE} if self.table.order else {0: value})

    def constant(self, text: str) -> Series:
        return Series({0: balls.constant(text)})

    def neg(self, a: Series) -> Series:
        return Series({i: -c for i, c in a.coef.items()})

    def add(self, a: Series, b: Series) -> Series:
        coef = dict(a.coef)
        for i, c in b.coef.items():
            coef[i] = coef[i] + c if i in coef else c
        return Series(coef)

    def sub(self, a: Series, b: Series) -> Series:
        return self.add(a, self.neg(b))

    def mul(self, a: Series, b: Series) -> Series:
        return Series(self._times(a.coef, b.coef))

    def _times(self, a: dict[int, arb], b: dict[int, arb]) -> dict[int, arb]:
        size, places = self.table.size, self.table.product
        result: dict[int, arb] = {}
        for i, x in a.items():
            row = places[i]
            for j, y in b.items():
                place = row[j]
                if place < size:
                    result[place] = result[place] + x * y if place in result else x * y
        return result

    def div(self, a: Series, b: Series) -> Series:
        if b.value.contains(0):
            return self._undefined("division by a number that may be zero")
        inverse = [ONE / b.value]
        for _ in range(self.table.order):
            inverse.append(-inverse[-1] * inverse[0])
        return self.mul(a, self._outer(b, inverse))

    def pow(self, a: Series, n: int) -> Series:
        orders = range(min(self.table.order, n) + 1)
        return self._outer(a, [comb(n, i) * balls.power(a.value, n - i) for i in orders])

    def _outer(self, a: Series, taylor: list[arb]) -> Series:
        """phi(a) = sum_i t_i (a - a_0)^i; (a - a_0)^i has no term of degree below i, so order + 1 terms are all."""
        step = {i: c for i, c in a.coef.items() if i}
        result, power = {0: taylor[0]}, {0: ONE}
        for t in taylor[1:]:
            power = self._times(power, step)
            if not power:
                break
            for i, c in power.items():
                result[i] = result[i] + t * c if i in result else t * c
        return Series(result)

    def undefined(self, value: Series) -> bool:
        """A series that is not known to be smooth has no coefficients, and nothing can be computed from it."""
        return not value.smooth

    def _undefined(self, why: str) -> Series:
        return Series(dict.fromkeys(range(self.table.size), arb.nan()), why)

    def __getattr__(self, name: str):
        """The elementary functions, all of them analytic where their series at a fat ball is finite."""

        def apply(a: Series) -> Series:
            taylor = point_series(name, a.value, self.table.order)
            if not all(t.is_finite() for t in taylor):
                return self._undefined(f"{name} outside its domain or where its derivatives are unbounded")
            return self._outer(a, taylor)

        return apply

    def abs(self, a: Series) -> Series:
        return self.max(a, self.neg(a))

    def max(self, a: Series, b: Series) -> Series:
        return self._choice(a, b, a.value - b.value)

    def min(self, a: Series, b: Series) -> Series:
        return self._choice(a, b, b.value - a.value)

    def _choice(self, a: Series, b: Series, gap: arb) -> Series:
        """a where gap > 0, b where gap < 0."""
        if gap > 0 or gap < 0:
            return a if gap > 0 else b
        return self._undefined("a kink of abs, max or min")

    def compare(self, comparison: str, a: Series, b: Series) -> bool | None:
        gap = a.value - b.value
        return bool(gap < 0) if gap > 0 or gap < 0 else None

    def select(self, condition: None, x: Series, y: Series) -> Series:
        return self._undefined("a branch of where that is not decided on the box")


def series(program: Program, values: list[arb], order: int) -> list[Series]:
    """The Taylor coefficients of every output at the point, or over the box, whose coordinates are the given balls.

    >>> from certiformer.target import parse_formula
    >>> (found,) = series(parse_formula("x1**3 + x1*x2"), [arb(2), arb(5)], 3)
    >>> tab = table(2, 3)
    >>> {tab.monomials[i]: float(c) for i, c in sorted(found.coef.items())}
    {(0, 0): 18.0, (1, 0): 17.0, (0, 1): 2.0, (2, 0): 6.0, (1, 1): 1.0, (3, 0): 1.0}
    """
    algebra = SeriesAlgebra(table(len(values), order))
    return fold(program, [algebra.variable(v, i) for i, v in enumerate(values)], algebra)


class TaylorBounds:
    """Upper bounds of |f^(a)|/a! over a whole domain, for every output and every |a| <= order, from a uniform partition.

    `largest[o][position of a in the monomial table]`; `smooth` is false if one box is not known to be smooth, `why` and
    `where` then say what limits it and on which box.
    """

    def __init__(self, program: Program, domain: BallDomain, parts: tuple[int, ...], order: int):
        self.table, outputs = table(domain.dimension, order), len(program.outputs)
        self.largest = [[ZERO] * self.table.size for _ in range(outputs)]
        self.why, self.where = "", ""
        pieces = [covering(domain, axis, count) for axis, count in enumerate(parts)]
        for values in product(*pieces):
            for o, found in enumerate(series(program, list(values), order)):
                if found.why:
                    self.why = found.why
                    self.where = about([(v.lower(), v.upper()) for v in values])
                    return
                line = self.largest[o]
                for i, c in found.coef.items():
                    line[i] = balls.larger(line[i], c.abs_upper())

    @property
    def smooth(self) -> bool:
        return not self.why


def covering(domain: BallDomain, axis: int, count: int) -> list[arb]:
    """`count` closed balls that cover axis `axis` of the domain."""
    low, high = domain.ends[axis]
    ends = [low + (high - low) * arb(fmpq(k, count)) for k in range(count + 1)]
    return [hull(a.lower(), b.upper()) for a, b in zip(ends, ends[1:], strict=False)]
