"""Moments of discrete Gaussians of several temperatures, combined so that the low orders cancel: the constants of A3.

Units: grid spacing 1. Head i = 1..k has sharpness b/i and output weight alpha_i = (-1)^(i-1) C(k, i). Write y = m - x for
lattice points m, and E_i for the mean under the weights e^{-(b/i) y^2}.

*All lattice points, sharpness s.* Poisson summation of e^{-s y^2 + u y}, coefficient by coefficient in u, gives

    sum_m y^j e^{-s y^2} = sqrt(pi/s) (g_j + r_j),   g_j = (j-1)!!/(2s)^{j/2} for even j, 0 for odd j,
    |r_j| <= 2 sum_{n>=1} e^{-pi^2 n^2/s} P_j(pi n/s),    P_j(z) = sum_l j!/(l! (j-2l)!) (1/(4s))^l z^{j-2l},

because e^{u^2/(4s)} e^{-i pi n u/s} is the factor of frequency n. So E y^j = (g_j + r_j)/(1 + r_0), and g_j is exactly the
moment of a Gaussian: with s = b/i it is proportional to i^{j/2}.

*Cancellation.* For a multi-index a the product of the Gaussian moments of head i is i^{|a|/2} times a constant (0 if some
a_t is odd), and sum_i (-1)^(i-1) C(k, i) i^p = 0 for p = 1..k-1 (k-th differences kill polynomials of degree below k). So
the combined moments of even order |a| = 2..2k-2 and of all odd orders consist of the r_j alone: b = 0.6 makes them 1e-6.

*Margins.* `margin` extra cells on both sides: a dropped point has |y| >= margin + 1/2 =: y0. With
T_j = 2 sum_{i>=0} (y0 + i)^j e^{-s (y0+i)^2} / (sum over all points), conditioning on the kept points gives
E_kept y^j = (E y^j + t_j)/(1 - t), |t_j| <= T_j, 0 <= t <= T_0, and E_kept |y|^j <= E|y|^j/(1 - T_0).
Odd absolute moments: E|y|^j <= sqrt(E|y|^{j-1} E|y|^{j+1}) (Cauchy-Schwarz).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, ball, hull
from certiformer.kernel.taylor import table

FREQUENCIES = 6
POINTS = 24
SHARPNESS = Fraction(1, 20), Fraction(4)
MAX_HEADS, MAX_MARGIN, MAX_ORDER = 6, 64, 12


@dataclass(frozen=True)
class HeadMoments:
    """For one head and one axis: balls of E y^j and upper bounds of E|y|^j for j <= order, over every x of the domain."""

    signed: list[arb]
    absolute: list[arb]


def output_weights(heads: int) -> list[int]:
    """alpha_i = (-1)^(i-1) C(k, i), i = 1..k; they sum to one.

    >>> output_weights(3)
    [3, -3, 1]
    """
    return [(-1) ** (i - 1) * comb(heads, i) for i in range(1, heads + 1)]


@lru_cache(maxsize=1024)
def head_moments(sharpness: Fraction, margin: int, order: int) -> HeadMoments:
    """The moments of one head; refuses a sharpness, margin or order outside the range of the proof."""
    if not SHARPNESS[0] <= sharpness <= SHARPNESS[1] or not 1 <= margin <= MAX_MARGIN or order > MAX_ORDER:
        raise Refused(
            f"sharpness {sharpness}, margin {margin}, order {order}: outside the range of the theorem's proof"
        )
    s, start = ball(sharpness), ball(Fraction(2 * margin + 1, 2))
    if not 2 * s * start * start >= order + 1:
        raise Refused(f"margin {margin} is too small for sharpness {sharpness}")
    rests = [_lattice_rest(sharpness, j) for j in range(order + 2)]
    total = ONE + hull(-rests[0], rests[0])
    if not total > 0:
        raise Refused(f"sharpness {sharpness} is too large for the Poisson bounds of the theorem")
    full = [(_gaussian(s, j) + hull(-r, r)) / total for j, r in enumerate(rests)]
    mass = (arb.pi() / s).sqrt() * total
    dropped = [(2 * tail / mass).upper() for tail in _tails(s, start, order)]
    kept = ONE - hull(ZERO, dropped[0])
    if not kept > 0:
        raise Refused(f"margin {margin} is too small for sharpness {sharpness}")
    signed = [ONE] + [(full[j] + hull(-dropped[j], dropped[j])) / kept for j in range(1, order + 1)]
    sizes = [full[j].upper() if j % 2 == 0 else (full[j - 1].upper() * full[j + 1].upper()).sqrt().upper()
             for j in range(order + 1)]  # fmt: skip
    return HeadMoments(signed, [ONE] + [(size / kept).upper() for size in sizes[1:]])


def _gaussian(s: arb, j: int) -> arb:
    """(j-1)!!/(2s)^{j/2} for even j, else 0."""
    value = ONE
    for i in range(1, j, 2):
        value = value * i / (2 * s)
    return value if j % 2 == 0 else ZERO


@lru_cache(maxsize=1024)
def _lattice_rest(sharpness: Fraction, j: int) -> arb:
    """The bound of |r_j|; beyond FREQUENCIES consecutive terms fall by more than half, so twice the last term is enough.

    Ratio of terms n + 1 and n: e^{-pi^2 (2n+1)/s} ((n+1)/n)^j <= e^{-pi^2 13/4} (7/6)^13 < 1e-12 for s <= 4, n >= 6.
    """
    s, total = ball(sharpness), ZERO
    factors = [arb.fac_ui(j) / (arb.fac_ui(m) * arb.fac_ui(j - 2 * m)) for m in range(j // 2 + 1)]
    for n in range(1, FREQUENCIES + 1):
        z = arb.pi() * n / s
        terms = (factor * _power(1 / (4 * s), m) * _power(z, j - 2 * m) for m, factor in enumerate(factors))
        term = (-arb.pi() * n * z).exp() * sum(terms, ZERO)
        total = total + (2 * term if n == FREQUENCIES else term)
    return (2 * total).upper()


def _tails(s: arb, start: arb, order: int) -> list[arb]:
    """sum_{i>=0} (start+i)^j e^{-s (start+i)^2} for j <= order; the terms decrease because 2 s start^2 >= j.

    So sum_{i >= n} is at most the n-th term plus the integral from start + n on, and because y^j e^{-s y^2 / 2}
    decreases there too once s (start + n)^2 >= j, the integral is at most the n-th term divided by s (start + n).
    """
    points = [start + i for i in range(POINTS + 1)]
    if not s * points[-1] * points[-1] >= order:
        raise Refused("the sharpness is too small for the tail bound of the theorem")
    terms = [(-s * y * y).exp() for y in points]
    terms[-1] = terms[-1] * (1 + 1 / (s * points[-1]))
    tails = [sum(terms, ZERO)]
    for _ in range(order):
        terms = [term * y for term, y in zip(terms, points, strict=True)]
        tails.append(sum(terms, ZERO))
    return tails


def _power(x: arb, n: int) -> arb:
    result = ONE
    for _ in range(n):
        result = result * x
    return result


@dataclass(frozen=True)
class Combined:
    """Bounds in units of the spacing, by position in the monomial table of that dimension and order.

    `signed[a]`, 1 <= |a| < order: of |sum_i alpha_i E_i y^a|; `absolute[a]`, |a| = order: of sum_i |alpha_i| E_i |y|^a.
    """

    signed: dict[int, arb]
    absolute: dict[int, arb]


@lru_cache(maxsize=1024)
def combined_moments(sharpness: Fraction, heads: int, margin: int, dimension: int, order: int) -> Combined:
    """What the k heads together make of every monomial in y = c - x; weights factorise over the axes."""
    if not 1 <= heads <= MAX_HEADS:
        raise Refused(f"the theorem speaks of 1 to {MAX_HEADS} heads")
    single = [head_moments(sharpness / i, margin, order) for i in range(1, heads + 1)]
    tab, signed, absolute = table(dimension, order), {}, {}
    for place, monomial in enumerate(tab.monomials[: tab.size]):
        if not any(monomial):
            continue
        total = ZERO
        for alpha, moments in zip(output_weights(heads), single, strict=True):
            last = sum(monomial) == order
            factor = arb(abs(alpha) if last else alpha)
            for power in monomial:
                factor = factor * (moments.absolute if last else moments.signed)[power]
            total = total + factor
        (absolute if sum(monomial) == order else signed)[place] = total.abs_upper()
    return Combined(signed, absolute)
