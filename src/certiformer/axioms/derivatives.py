"""Derivatives over a box: every Taylor coefficient f^(a)/a!, |a| <= m, as a ball that holds for all points.

Truncated power series in D variables, with *fat* balls as coefficients: run a program on x_i = X_i + e_i, X_i the ball of
the whole side of the box, and the coefficient of e^a encloses f^(a)(x)/a! for every x of the box at once (the rules for
sums, products and compositions of power series are identities in the coefficients, so balls may be put in for them).
What the enclosure may claim is tracked by `smooth`:

* 2: the program is infinitely often differentiable in a neighbourhood of the closed box;
* 1: it is Lipschitz there, and the coefficients of order one contain every element of Clarke's generalised gradient (an
  undecided `abs`, `max` or `min` takes the hull of both sides); higher ones mean nothing;
* 0: nothing is claimed (an undecided `where` may jump; a division, a root or a logarithm may have no value).

A comparison counts as decided only if it is *strict* on the closed box. So if every box of a partition has smooth = 2,
the function is smooth across the interfaces as well: a kink that hides exactly on an interface touches the closed boxes
on both sides and is undecided in both. Whoever asks for more than second derivatives has no use for a gradient, so there
a kink is nothing that is claimed. `smooth` belongs to the program as written; no derivative supplied by a user is read.
"""

from __future__ import annotations

from itertools import product
from math import comb

from flint import arb, fmpq

from certiformer.kernel import balls
from certiformer.kernel.balls import ONE, ZERO, BallDomain, about, hull
from certiformer.kernel.programs import Program, fold
from certiformer.kernel.taylor import Table, point_series, table

CLARKE = 2  # the highest order of series in which a kink keeps its gradient


class Series:
    """Coefficients by position in the monomial table (absent means zero); `why` says what limits `smooth`."""

    __slots__ = ("coef", "smooth", "table", "why")

    def __init__(self, tab: Table, coef: dict[int, arb], smooth: int = 2, why: str = ""):
        self.table, self.coef, self.smooth, self.why = tab, coef, smooth, why

    @property
    def value(self) -> arb:
        return self.coef.get(0, ZERO)

    @property
    def grad(self) -> list[arb]:
        """The first derivatives, for series of order one and more."""
        return [self.coef.get(place, ZERO) for place in self.table.axis]

    @property
    def hess(self) -> dict[tuple[int, int], arb]:
        """The second derivatives for i <= j; none where the order is one."""
        places = second_places(self.table)
        return {pair: factor * self.coef.get(place, ZERO) for pair, (place, factor) in places.items()}


def second_places(tab: Table) -> dict[tuple[int, int], tuple[int, int]]:
    """For each pair i <= j where f_ij is found: the place of its Taylor coefficient, and what that is multiplied by."""
    pairs = {(i, j): tab.product[a][b] for i, a in enumerate(tab.axis) for j, b in enumerate(tab.axis) if i <= j}
    return {(i, j): (place, 2 if i == j else 1) for (i, j), place in pairs.items() if place < tab.size}


class SeriesAlgebra:
    """Runs a program in series: an algebra for `kernel.programs.fold`."""

    def __init__(self, tab: Table):
        self.table = tab

    def variable(self, value: arb, axis: int) -> Series:
        return self._made({0: value, self.table.axis[axis]: ONE} if self.table.order else {0: value})

    def constant(self, text: str) -> Series:
        return self._made({0: balls.constant(text)})

    def neg(self, a: Series) -> Series:
        return self._made({i: -c for i, c in a.coef.items()}, a)

    def add(self, a: Series, b: Series) -> Series:
        coef = dict(a.coef)
        for i, c in b.coef.items():
            coef[i] = coef[i] + c if i in coef else c
        return self._made(coef, a, b)

    def sub(self, a: Series, b: Series) -> Series:
        return self.add(a, self.neg(b))

    def mul(self, a: Series, b: Series) -> Series:
        return self._made(self._times(a.coef, b.coef), a, b)

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
        return self._made(result, a)

    def undefined(self, value: Series) -> bool:
        """What has no value, or perhaps none; nothing is computed from it."""
        return not value.value.is_finite()

    def _made(self, coef: dict[int, arb], *parts: Series) -> Series:
        """A series that is as smooth as the least smooth of the series it was made from."""
        weak = min(parts, key=lambda part: part.smooth, default=Series(self.table, {}))
        return Series(self.table, coef, weak.smooth, weak.why)

    def _undefined(self, why: str) -> Series:
        return Series(self.table, dict.fromkeys(range(self.table.size), arb.nan()), 0, why)

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
        return self._choice(a, b, a.value - b.value, a.value.max(b.value))

    def min(self, a: Series, b: Series) -> Series:
        return self._choice(a, b, b.value - a.value, a.value.min(b.value))

    def _choice(self, a: Series, b: Series, gap: arb, value: arb) -> Series:
        """a where gap > 0, b where gap < 0, the hull of both gradients where the sign is open."""
        if gap > 0 or gap < 0:
            return self._made((a if gap > 0 else b).coef, a, b)
        why = "a kink of abs, max or min"
        if self.table.order > CLARKE:
            return self._undefined(why)
        coef = {0: value, **dict.fromkeys(range(1, self.table.size), arb.nan())}
        for i in self.table.axis if self.table.order else ():
            coef[i] = a.coef.get(i, ZERO).union(b.coef.get(i, ZERO))
        return Series(self.table, coef, 1, next((part.why for part in (a, b) if part.why), why))

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


class DerivativeBounds:
    """Upper bounds of |f^(a)|/a! over a whole domain, for every output and every |a| <= order, from a uniform partition.

    `largest[o][position of a in the monomial table]`; `smooth` is the weakest that was found, `why` and `where` say what
    limits it and on which box.
    """

    def __init__(self, program: Program, domain: BallDomain, parts: tuple[int, ...], order: int):
        self.table, outputs = table(domain.dimension, order), len(program.outputs)
        self.largest = [[ZERO] * self.table.size for _ in range(outputs)]
        self.smooth, self.why, self.where = 2, "", ""
        pieces = [covering(domain, axis, count) for axis, count in enumerate(parts)]
        for values in product(*pieces):
            for line, found in zip(self.largest, series(program, list(values), order), strict=True):
                if found.smooth < self.smooth:
                    self.smooth, self.why = found.smooth, found.why
                    self.where = about([(v.lower(), v.upper()) for v in values])
                for i, c in found.coef.items():
                    line[i] = balls.larger(line[i], c.abs_upper())
            if not self.smooth:
                return

    @property
    def gradient(self) -> list[list[arb]]:
        """Bounds of |f_i|, an output each."""
        return [[line[place] for place in self.table.axis] for line in self.largest]

    @property
    def hessian(self) -> list[dict[tuple[int, int], arb]]:
        """Bounds of |f_ij| for i <= j, an output each; none where the order is one."""
        places = second_places(self.table)
        return [{pair: factor * line[place] for pair, (place, factor) in places.items()} for line in self.largest]


def covering(domain: BallDomain, axis: int, count: int) -> list[arb]:
    """`count` closed balls that cover axis `axis` of the domain."""
    low, high = domain.ends[axis]
    ends = [low + (high - low) * arb(fmpq(k, count)) for k in range(count + 1)]
    return [hull(a.lower(), b.upper()) for a, b in zip(ends, ends[1:], strict=False)]
