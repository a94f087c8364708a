"""Moments of the discrete Gaussian on a grid: the constants of the prototype-attention theorems, recomputed in balls.

Units: grid spacing 1, sharpness b, weights proportional to exp(-b (m - x)^2) over lattice points m. Write y = m - x,
q = exp(-pi^2/b), S_j = sum_{k>=1} k^j q^(k^2). Poisson summation gives, for the sum over *all* lattice points,

    theta(x) = sum_m e^{-b y^2} = sqrt(pi/b) (1 + 2 sum_k q^(k^2) cos 2 pi k x),

and by differentiating, E[y] = theta'/(2 b theta), E[y^2] = 1/(2b) + theta''/(4 b^2 theta). Hence

    |E y|  <= (2 pi / b) S_1 / (1 - 2 S_0),        E y^2 <= 1/(2b) + (2 pi^2 / b^2) S_2 / (1 - 2 S_0).

*Margins.* The grid keeps `margin` extra cells on both sides, so a dropped point has |y| >= r + 1/2 =: y0. With
T_j = 2 sum_{i>=0} (y0 + i)^j e^{-b (y0+i)^2} / theta_min (j = 0, 1), conditioning on the kept points gives

    |E_kept y| <= (|E y| + T_1)/(1 - T_0),   E_kept y^2 <= E y^2/(1 - T_0),   E_kept |y| <= E|y|/(1 - T_0).

E|y| has no closed form; it is enclosed on `SLICES` slices of one period. On a slice of width w around x0 numerator and
denominator h satisfy |h(x) - h(x0)| <= (w/2) sup |h'| (mean value theorem), with h' enclosed in balls over the slice.
Numbers at b = 1, r = 3: drift 3.4e-4, second moment 0.502, absolute moment 0.62.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, fmpq

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, ball, hull, larger

SLICES = 64
TERMS = 40
NEAR = 12  # lattice points summed one by one on each side for E|y|
SHARPNESS = Fraction(1, 4), Fraction(16)


@dataclass(frozen=True)
class Moments:
    """Upper bounds, over every point of the domain, of |E y|, E y^2 and E|y| per axis, in units of the spacing."""

    drift: arb
    second: arb
    absolute: arb


@lru_cache(maxsize=64)
def moments(sharpness: Fraction, margin: int) -> Moments:
    """The constants of a grid with `margin` extra cells; refuses a sharpness outside the range of the proof."""
    if not SHARPNESS[0] <= sharpness <= SHARPNESS[1] or not 1 <= margin <= 64:
        raise Refused(f"sharpness {sharpness} and margin {margin} are outside the range the theorem was proved for")
    b, pi = ball(sharpness), arb.pi()
    sums = [sum((arb(k) ** j * (-pi * pi * k * k / b).exp() for k in range(1, TERMS)), ZERO) for j in range(3)]
    # k >= TERMS: k^2 q^(k^2) <= q^(k^2/2) <= q^(TERMS^2/2) summed geometrically, below 1e-40 for b <= 16.
    rest = 2 * (-pi * pi * TERMS * TERMS / (2 * b)).exp()
    sums = [s + hull(ZERO, rest.upper()) for s in sums]
    low = 1 - 2 * sums[0]
    if not low > 0:
        raise Refused(f"sharpness {sharpness} is too large for the Poisson bounds of the theorem")
    drift, second = 2 * pi / b * sums[1] / low, 1 / (2 * b) + 2 * pi * pi / (b * b) * sums[2] / low
    theta = (pi / b).sqrt() * low
    start = ball(Fraction(2 * margin + 1, 2))
    if not 2 * b * start * start >= 1:
        raise Refused(f"margin {margin} is too small for sharpness {sharpness}")
    tails = [2 * _tail(b, start, j) / theta for j in range(2)]
    kept = 1 - tails[0]
    if not kept > 0:
        raise Refused(f"margin {margin} is too small for sharpness {sharpness}")
    values = ((drift + tails[1]) / kept, second / kept, _absolute(sharpness) / kept)
    return Moments(*(v.upper() for v in values))


def _tail(b: arb, start: arb, j: int) -> arb:
    """sum_{i>=0} (start+i)^j e^{-b (start+i)^2}; y e^{-b y^2} decreases for y >= start because 2 b start^2 >= 1."""
    terms = [(start + i) ** j * (-b * (start + i) * (start + i)).exp() for i in range(TERMS)]
    # Beyond: the ratio of consecutive terms is at most e^{-2 b (start + TERMS)} * 2 < 1/2, so twice the next term.
    return sum(terms, ZERO) + 2 * (start + TERMS) ** j * (-b * (start + TERMS) * (start + TERMS)).exp()


@lru_cache(maxsize=64)
def _absolute(sharpness: Fraction) -> arb:
    """An upper bound of E|y| over all positions x of one period, the sum running over all lattice points."""
    b, worst, half = ball(sharpness), ZERO, arb(fmpq(1, 2 * SLICES))
    # Beyond: |y| >= NEAR on both sides, where y e^{-b y^2} decreases (2 b NEAR^2 >= 1).
    beyond = 2 * _tail(b, arb(NEAR), 1)
    for s in range(SLICES):
        middle = arb(fmpq(2 * s + 1, 2 * SLICES))
        (top, total), _ = _near(b, middle)
        _, (top_slope, total_slope) = _near(b, hull(middle - half, middle + half))
        largest, smallest = top + half * abs(top_slope) + beyond, total - half * abs(total_slope)
        worst = larger(worst, (largest / smallest).upper())
    return worst


def _near(b: arb, x: arb) -> tuple[tuple[arb, arb], tuple[arb, arb]]:
    """sum |y| e^{-b y^2} and sum e^{-b y^2} over the near lattice points, and their derivatives, for x in [0, 1].

    No lattice point lies inside (0, 1), so |y| is x - m for m <= 0 and m - x for m >= 1: its derivative is +1 or -1.
    """
    top = total = top_slope = total_slope = ZERO
    for m in range(-NEAR, NEAR + 2):
        y, sign = (x - m, 1) if m <= 0 else (m - x, -1)
        weight = (-b * y * y).exp()
        top, total = top + y * weight, total + weight
        top_slope, total_slope = (
            top_slope + sign * (1 - 2 * b * y * y) * weight,
            total_slope - sign * 2 * b * y * weight,
        )
    return (top, total), (top_slope, total_slope)


ONE_HALF = ball(Fraction(1, 2))


def first_order_moment(sharpness: Fraction) -> arb:
    """sqrt(V) with V = (1 + 5.2 e^{-b})/4 >= sup E y^2 for a grid *without* margin and b >= 2 (proof in the A1 rule)."""
    if sharpness < 2:
        raise Refused(f"sharpness {sharpness} is below 2, which the first-order theorem needs")
    return (ONE_HALF * (ONE + ball(Fraction(26, 5)) * (-ball(sharpness)).exp()).sqrt()).upper()
