"""A table of two inputs as a function of one linear form of them.

A function F(x, y) of listed numbers is a function of s = a x + b y as soon as it is constant where s is. Small factors
such as x + y or x - y often are enough (sums, comparisons, `and`); s = m x + y with m above the range of y always is.
The form with the fewest units wins. A sum g(x) + h(y) needs no form at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np
from jaxtyping import Int

from certiformer.compiler.linear_form import Number
from certiformer.compiler.twins import ONE_KIND
from certiformer.errors import BadInput

SMALL = ((1, 1), (1, -1), (2, 1), (1, 2), (2, -1), (1, -2), (3, 1), (1, 3), (3, -1), (1, -3), (1, 0), (0, 1))
LONG = 1 << 60  # sums of two integers below this fit into int64
DENSE = 16  # places for each pair of arguments, up to which pairs are looked up by place and not sorted


@dataclass(frozen=True)
class Grid:
    """A table F of exact numbers: integers over one denominator, in Python's own type where int64 is too short."""

    integers: Int[np.ndarray, "x y"]
    scale: int = 1

    @staticmethod
    def of(rows: Sequence[Sequence[Number]]) -> Grid:
        """From its entries F[i][j]."""
        integers, scale = Grid.scaled([entry for row in rows for entry in row])
        return Grid(integers.reshape(len(rows), len(rows[0])), scale)

    @staticmethod
    def scaled(numbers: Sequence[Number]) -> tuple[Int[np.ndarray, " n"], int]:
        """The numbers times their common denominator, and that denominator."""
        if set(map(type, numbers)) <= {int}:
            return _array(numbers), 1  # type: ignore[arg-type]
        scale = lcm(*{x.denominator for x in numbers})
        return _array([x.numerator * (scale // x.denominator) for x in numbers]), scale

    def numbers(self, integers: Int[np.ndarray, " n"]) -> list[Number]:
        """Integers of this table as the numbers they stand for."""
        return _shares(integers.tolist(), self.scale)


def _array(integers: Sequence[int]) -> np.ndarray:
    longest = max(map(abs, integers), default=0)
    return np.array(integers, np.int64 if longest < LONG else object)


@dataclass(frozen=True)
class Ridge:
    """s = factors[0] x + factors[1] y, and the corners (s, F) of F as a piecewise linear function of it."""

    factors: tuple[Number, Number]
    points: tuple[tuple[Number, Number], ...]


def choose_ridge(x: Sequence[Number], y: Sequence[Number], f: Grid) -> Ridge:
    """The form with the fewest units for the entries F[i][j] at x[i], y[j].

    >>> choose_ridge([0, 1], [0, 1], Grid.of([[0, 0], [0, 1]])).factors
    (1, 1)
    """
    xs, x_scale = Grid.scaled(x)
    ys, y_scale = Grid.scaled(y)
    best: tuple[int, tuple[int, int], np.ndarray, np.ndarray] | None = None
    for a, b in _candidates(xs, ys):
        found = _along(a, b, xs, ys, f.integers)
        if found is not None and (best is None or found[0] < best[0]):
            best = (found[0], (a, b), found[1], found[2])
            if found[0] <= 2:
                break
    if best is None:  # the last candidates separate all pairs of different numbers
        raise BadInput(f"a table tells True from 1 (or False from 0) in what may be a mean; {ONE_KIND}")
    _, (a, b), s, values = best
    s, values = _corners(s, values)
    # s counts in steps of 1 / (a common multiple of both scales), so that its own numbers stay integers.
    common = lcm(x_scale, y_scale)
    factors = (Fraction(a * x_scale, common), Fraction(b * y_scale, common))
    points = zip(_shares(s.tolist(), common), f.numbers(values), strict=True)
    return Ridge((_plain(factors[0]), _plain(factors[1])), tuple(points))


def _corners(s: Int[np.ndarray, " n"], values: Int[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray]:
    """The ends and the points where the slope changes: the others lie on the lines between them."""
    if len(s) < 3 or float(np.abs(s).max()) * float(np.abs(values).max()) >= 2.0**60:
        return s, values
    run, rise = np.diff(s), np.diff(values)
    bends = rise[1:] * run[:-1] != rise[:-1] * run[1:]
    kept = np.concatenate([[True], bends, [True]])
    return s[kept], values[kept]


def _shares(numbers: list[int], scale: int) -> list[Number]:
    """The numbers divided by their scale."""
    return list(numbers) if scale == 1 else [_plain(Fraction(x, scale)) for x in numbers]


def _candidates(xs: Int[np.ndarray, " x"], ys: Int[np.ndarray, " y"]) -> list[tuple[int, int]]:
    wide_x, wide_y = (int(v.max() - v.min()) for v in (xs, ys))
    step_x, step_y = (gcd(*np.diff(np.sort(v)).tolist()) or 1 for v in (xs, ys))
    m, k = wide_y // max(step_x, 1) + 1, wide_x // max(step_y, 1) + 1
    return [*SMALL, (m, 1), (1, k), (m, -1), (1, -k)]


def _along(a: int, b: int, xs: np.ndarray, ys: np.ndarray, f: np.ndarray) -> tuple[int, np.ndarray, np.ndarray] | None:
    """The number of units, the different s in order and F there; None when F is no function of s."""
    longest = sum(abs(factor) * int(np.abs(v).max()) for factor, v in ((a, xs), (b, ys)))
    if longest >= LONG:
        xs, ys = xs.astype(object), ys.astype(object)
    s, values = (a * xs[:, None] + b * ys[None, :]).reshape(-1), f.reshape(-1)
    found = _by_place(s, values) if 2 * longest < DENSE * len(s) else _by_order(s, values)
    if found is None:
        return None
    s, values = found
    slopes = np.diff(values) / np.diff(s)
    return int(np.count_nonzero(np.diff(np.concatenate([[0.0], slopes])))), s, values


def _by_place(s: Int[np.ndarray, " n"], values: Int[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray] | None:
    """The different s in order and the value of each; None when one has two. For s that lie close together."""
    low = s.min()
    at = (s - low).astype(np.int64)  # small, also where a factor 0 stands before integers beyond int64
    held, used = np.zeros(int(at.max()) + 1, values.dtype), np.zeros(int(at.max()) + 1, bool)
    held[at], used[at] = values, True
    if (held[at] != values).any():
        return None
    places = np.flatnonzero(used)
    return places + low, held[places]


def _by_order(s: Int[np.ndarray, " n"], values: Int[np.ndarray, " n"]) -> tuple[np.ndarray, np.ndarray] | None:
    """The same for any s."""
    order = np.argsort(s, kind="stable")
    s, values = s[order], values[order]
    same = s[1:] == s[:-1]
    if (same & (values[1:] != values[:-1])).any():
        return None
    first = np.concatenate([[True], ~same])
    return s[first], values[first]


def additive(f: Grid) -> tuple[tuple[Number, ...], tuple[Number, ...]] | None:
    """g and h with F[i][j] = g[i] + h[j], if there are such."""
    table = f.integers
    g, h = table[:, 0] - table[0, 0], table[0]
    if (table != g[:, None] + h).any():
        return None
    return tuple(f.numbers(g)), tuple(f.numbers(h))


def _plain(number: Fraction) -> Number:
    return number.numerator if number.denominator == 1 else number
