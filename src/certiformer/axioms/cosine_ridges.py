"""Cosine sums of several variables as sums of ridge functions, and what replaces their profiles by bent lines costs.

In scaled coordinates t in [0, 1]^D the Fejer-Korovkin operator of degrees m_i with N_i nodes an axis is

    P(t) = sum_k c_k prod_i cos(pi k_i t_i),   c_k = sum_q f(t_q) prod_i e_{k_i} rho_{k_i} cos(pi k_i t_{q_i}) / N_i,

nodes t_q = (q + 1/2)/N, e_0 = 1, e_k = 2, and rho_k = sum_j a_j a_{j+k} / sum_j a_j^2 with a_j = sin((j+1) pi/(m+2)).
A product of cosines is a mean of cosines of sums, so with q the number of nonzero k_i

    prod_i cos(pi k_i t_i) = 2^(1-q) sum over signs (the first +) of cos(pi kappa . t),   kappa_i = +- k_i.

Frequencies that are multiples g p of one primitive direction p form the profile g_p(s) = sum_g a_{gp} cos(pi g s) of
s = p . t, which runs over [sum min(p_i, 0), sum max(p_i, 0)].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import gcd, prod

from flint import arb, arb_mat, fmpq

from certiformer.kernel.balls import HALF, ZERO, larger, smaller

Direction = tuple[int, ...]

# Sub-pieces of a piece on which the distance of line and profile is enclosed: the rest term is 1/64 of the piece's own.
SUB_PIECES = 8


def multipliers(degree: int) -> list[arb]:
    """rho_0 = 1, ..., rho_m."""
    pi = arb.pi()
    a = [(pi * arb(fmpq(j + 1, degree + 2))).sin() for j in range(degree + 1)]
    sums = [sum((a[j] * a[j + k] for j in range(degree + 1 - k)), ZERO) for k in range(degree + 1)]
    return [s / sums[0] for s in sums]


@dataclass(frozen=True)
class Spread:
    """How far the operator looks along an axis: upper bounds of E|y - t| and of (E (y - t)^2)^(1/2)."""

    absolute: arb
    square: arb


def spread(degree: int, nodes: int) -> Spread:
    """The moments of the operator's weights; needs 2 N > m + 2 (`rules.korovkin_ridges` has the proof).

    >>> from certiformer.kernel.balls import working_precision
    >>> working_precision()
    >>> found = spread(22, 48)
    >>> f"{float(found.absolute):.4f} {float(found.square):.4f}"
    '0.0331 0.0430'
    """
    rho, pi = multipliers(degree), arb.pi()
    aliased = [(pi / (2 * nodes) / (pi * arb(fmpq(k, 2 * nodes))).sin()) ** 2 for k in range(1, degree + 1, 2)]
    odd = [r * (arb(fmpq(2, k * k)) - s) for r, s, k in zip(rho[1::2], aliased, range(1, degree + 1, 2), strict=True)]
    absolute = HALF - 4 / pi**2 * sum(odd, ZERO)
    # With u = 1 - cos(pi y): (pi y)^2 <= 2 u + (pi^2 - 4) u^2 / 4. rho beyond the degree is zero.
    first, second = [*rho[1:], ZERO, ZERO][:2]
    mean, mean_square = 1 - first, arb(fmpq(3, 2)) - 2 * first + second * HALF
    square = ((2 * mean + (pi**2 - 4) / 4 * mean_square) / pi**2).sqrt().upper()
    return Spread(smaller(absolute.upper(), square), square)


def coefficients(samples: list[arb], degrees: Sequence[int], nodes: Sequence[int]) -> list[arb]:
    """c_k in the order of `itertools.product`; `samples` likewise, one for each node."""
    values = samples
    for degree, count in zip(degrees, nodes, strict=True):
        rest = len(values) // count
        rho = multipliers(degree)
        rows = [
            (2 if k else 1) * rho[k] * arb(fmpq(k * (2 * q + 1), 2 * count)).cos_pi() / count
            for k in range(degree + 1)
            for q in range(count)
        ]
        contracted = arb_mat(degree + 1, count, rows) * arb_mat(count, rest, values)
        values = contracted.transpose().entries()  # the axis done goes last, so after all of them the order is back
    return values


def directions(degrees: Sequence[int]) -> int:
    """How many frequencies kappa there are, up to sign."""
    return (prod(2 * m + 1 for m in degrees) - 1) // 2


def ridges(values: Sequence, degrees: Sequence[int]) -> tuple[object, dict[Direction, dict[int, object]]]:
    """The constant, and for every primitive direction its amplitudes by harmonic; works for any kind of numbers.

    >>> constant, found = ridges([1.0, 2.0, 4.0, 8.0], (1, 1))      # 1 + 2 cos(pi t2) + 4 cos(pi t1) + 8 cos cos
    >>> constant, found
    (1.0, {(0, 1): {1: 2.0}, (1, 0): {1: 4.0}, (1, 1): {1: 4.0}, (1, -1): {1: 4.0}})
    """
    found: dict[Direction, dict[int, object]] = {}
    for k, value in zip(product(*(range(m + 1) for m in degrees)), values, strict=True):
        used = [i for i, n in enumerate(k) if n]
        if not used:
            continue
        g, share = gcd(*k), value / 2 ** (len(used) - 1)
        for signs in product((1, -1), repeat=len(used) - 1):
            p = [n // g for n in k]
            for i, sign in zip(used[1:], signs, strict=True):
                p[i] *= sign
            found.setdefault(tuple(p), {})[g] = share
    return values[0], found


def reach(p: Direction) -> tuple[int, int]:
    """The range of p . t over the unit cube."""
    return sum(min(n, 0) for n in p), sum(max(n, 0) for n in p)


class Cosines:
    """A profile g(s) = sum_g a_g cos(pi g s)."""

    def __init__(self, amplitudes: dict[int, arb]):
        self.terms = sorted(amplitudes.items())
        pi = arb.pi()
        self.curved = [(g, -a * (pi * g) ** 2) for g, a in self.terms]
        self.size = sum((a.abs_upper() for _, a in self.terms), ZERO).upper()
        self.largest_second = sum((a.abs_upper() for _, a in self.curved), ZERO).upper()
        self.largest_third = sum((a.abs_upper() * pi * g for g, a in self.curved), ZERO).upper()

    def __call__(self, s: arb) -> arb:
        return sum((a * (g * s).cos_pi() for g, a in self.terms), ZERO)

    def second(self, low: arb, high: arb) -> arb:
        """An upper bound of |g''| between two exact points."""
        middle = sum((a * (g * (low + high) * HALF).cos_pi() for g, a in self.curved), ZERO)
        local = (middle.abs_upper() + (high - low) * HALF * self.largest_third).upper()
        return smaller(local, self.largest_second)


def first_line(profile: Cosines, low: arb, high: arb) -> tuple[arb, arb]:
    """Value at `low` and slope of the line of the first piece: the chord, moved half way to the curve at its middle."""
    left, right = profile(low), profile(high)
    lift = (profile((low + high) * HALF) - (left + right) * HALF) * HALF
    return (left + lift).mid(), ((right - left) / (high - low)).mid()


def bent_line_error(profile: Cosines, p: Direction, line: tuple[arb, arb], bends: list[tuple[arb, arb]]) -> arb:
    """An upper bound of |bent line - profile| over the range of direction p.

    The bent line starts as `line` (value at the low end, slope) and changes its slope by the second entry of a bend at
    its knot, the first entry, an exact number. On a sub-piece of width h the difference is at most the larger of its
    values at the two ends plus h^2/8 sup |g''|.
    """
    low, high = (arb(end) for end in reach(p))
    value, slope = line
    inside = []
    for knot, change in sorted(bends, key=lambda bend: bend[0].mid()):
        if knot <= low:
            value, slope = value + change * (low - knot), slope + change
        elif knot < high:
            inside.append((knot, change))
    worst, error = ZERO, abs(value - profile(low)).upper()
    for knot, change in [*inside, (high, ZERO)]:
        step = knot - low
        if step > 0:
            curvature = profile.second(low, knot)
            ends = [low, *((low + step * k / SUB_PIECES).mid() for k in range(1, SUB_PIECES)), knot]
            for a, b in pairwise(ends):
                after = abs(value + slope * (b - low) - profile(b)).upper()
                rest = (b - a) * (b - a) * curvature / 8
                worst, error = larger(worst, (larger(error, after) + rest).upper()), after
        value, slope, low = value + slope * step, slope + change, knot
    return worst
