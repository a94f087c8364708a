"""Sums of one radial bump over a lattice: the constants of the squares-and-bumps theorem, enclosed in balls.

Units: lattice spacing 1. The bump is phi(t) = sum_k heights_k relu(thresholds_k - t) in the squared distance t = |y|^2, all
heights positive, so phi is nonnegative, decreasing, piecewise linear and zero from the last threshold on. The squared
distance is known up to a common shift eta, |eta| <= tolerance. Over all positions z, all shifts, and lattice points c,
y = z - c:

    defect >= |sum phi(t + eta) - 1|,        drift >= |sum phi(t + eta) y_i|,
    absolute >= sum phi |y_i|,    second >= sum phi y_i^2,    mixed >= sum phi |y_i||y_j|   (i != j).

The sums have period one in every coordinate and are symmetric under y_i -> -y_i and under permutations of coordinates, so
slices of the simplex 0 <= z_1 <= ... <= z_D <= 1/2 suffice. The last three are enclosed directly: phi is decreasing, so
its largest value on a slice is at the smallest t. The first two need cancellation: with the slice's centre z0 and half
width w, Lebourg's mean value theorem for Lipschitz functions gives

    |F(z, eta) - F(z0, 0)| <= w sum_i |dF/dz_i| + tolerance |dF/deta|

with Clarke's generalised gradients, for which phi'(t) is the hull of the slopes that t may have on the slice.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product

from flint import arb, fmpq

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, ball, hull, larger

MAX_TERMS = 64
MAX_RADIUS_SQUARED = 40
MAX_WORK = 3_000_000  # lattice points times slices


@dataclass(frozen=True)
class Bump:
    """phi of the module docstring; thresholds increase, heights are positive."""

    thresholds: tuple[Fraction, ...]
    heights: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip((Fraction(0), *self.thresholds), self.thresholds, strict=False))
        if not rising or len(self.thresholds) != len(self.heights) or not 1 <= len(self.heights) <= MAX_TERMS:
            raise Refused("the bump of the theorem node has no increasing thresholds")
        if not all(height > 0 for height in self.heights) or self.thresholds[-1] > MAX_RADIUS_SQUARED:
            raise Refused("the bump of the theorem node has a height that is not positive, or is too wide")


@dataclass(frozen=True)
class Constants:
    """Upper bounds over all positions and shifts, as in the module docstring; `mixed` is zero in one dimension."""

    defect: arb
    drift: arb
    absolute: arb
    second: arb
    mixed: arb


@lru_cache(maxsize=32)
def constants(bump: Bump, dimension: int, tolerance: Fraction, slices: int) -> Constants:
    """The constants from `slices` slices of the half period of every axis."""
    reach = ball(bump.thresholds[-1] + tolerance).sqrt()
    wide = int(float(reach)) + 2
    if not 0 <= tolerance < 1 or (slices * (2 * wide + 1)) ** dimension > MAX_WORK:
        raise Refused("the sums over the lattice of the theorem node are too long to enclose")
    worst = Constants(ZERO, ZERO, ZERO, ZERO, ZERO)
    points = list(product(range(-wide, wide + 2), repeat=dimension))
    for choice in combinations_with_replacement(range(slices), dimension):
        found = _on_slice(bump, choice, slices, ball(tolerance).upper(), points)
        worst = Constants(*(larger(a, b) for a, b in zip(vars(worst).values(), found, strict=True)))
    return worst


def _on_slice(bump: Bump, choice: tuple[int, ...], slices: int, tolerance: arb, points: list) -> tuple[arb, ...]:
    """The five constants on one slice."""
    axes = range(len(choice))
    half = arb(fmpq(1, 4 * slices))
    centre = [arb(fmpq(2 * k + 1, 4 * slices)) for k in choice]
    around = [hull((c - half).lower(), (c + half).upper()) for c in centre]
    # Distances by coordinate, once for every lattice line.
    lines = sorted({c for point in points for c in point})
    near = [{c: around[i] - c for c in lines} for i in axes]
    squares = [{c: _square(near[i][c]) for c in lines} for i in axes]
    thresholds, heights = [ball(x) for x in bump.thresholds], [ball(x) for x in bump.heights]
    mass, mass_slope, mass_shift = -ONE, [ZERO] * len(choice), ZERO
    lean, lean_slope = [ZERO] * len(choice), [[ZERO] * len(choice) for _ in axes]
    lean_shift, absolute, second = [ZERO] * len(choice), [ZERO] * len(choice), [ZERO] * len(choice)
    mixed = {(i, j): ZERO for i in axes for j in axes if i < j}
    shift = hull(-tolerance, tolerance)
    for point in points:
        t = sum((squares[i][c] for i, c in enumerate(point)), ZERO)
        if t - tolerance > thresholds[-1]:
            continue
        y = [near[i][c] for i, c in enumerate(point)]
        exact = [centre[i] - c for i, c in enumerate(point)]
        at = sum((e * e for e in exact), ZERO)
        value = sum((h * (x - at).max(ZERO) for x, h in zip(thresholds, heights, strict=True)), ZERO)
        slope = _slope(thresholds, heights, t + shift)
        low, high = (t + shift).lower(), (t + shift).upper()
        largest = sum((h * (x - low).max(ZERO) for x, h in zip(thresholds, heights, strict=True)), ZERO).upper()
        anywhere = hull(
            sum((h * (x - high).max(ZERO) for x, h in zip(thresholds, heights, strict=True)), ZERO).lower(), largest
        )
        mass, mass_shift = mass + value, mass_shift + slope
        for i in axes:
            size = y[i].abs_upper()
            mass_slope[i] = mass_slope[i] + 2 * slope * y[i]
            lean[i], lean_shift[i] = lean[i] + value * exact[i], lean_shift[i] + slope * y[i]
            absolute[i], second[i] = absolute[i] + largest * size, second[i] + largest * size * size
            for j in axes:
                change = 2 * slope * y[i] * y[j]
                lean_slope[i][j] = lean_slope[i][j] + (change + anywhere if i == j else change)
                if i < j:
                    mixed[i, j] = mixed[i, j] + largest * size * y[j].abs_upper()
    defect = abs(mass) + half * sum(map(abs, mass_slope), ZERO) + tolerance * abs(mass_shift)
    drifts = [abs(lean[i]) + half * sum(map(abs, lean_slope[i]), ZERO) + tolerance * abs(lean_shift[i]) for i in axes]
    columns = [[defect], drifts, absolute, second, list(mixed.values()) or [ZERO]]
    return tuple(_largest(column) for column in columns)


def _slope(thresholds: list[arb], heights: list[arb], t: arb) -> arb:
    """The hull of the slopes of phi on the ball t."""
    total = ZERO
    for threshold, height in zip(thresholds, heights, strict=True):
        if t < threshold:
            total = total - height
        elif not t > threshold:
            total = total - hull(ZERO, height.upper())
    return total


def _square(x: arb) -> arb:
    """x^2 as a ball without negative numbers, for any ball x."""
    return hull(x.abs_lower() * x.abs_lower(), (x.abs_upper() * x.abs_upper()).upper()) if x.contains(0) else x * x


def _largest(values: list[arb]) -> arb:
    result = ZERO
    for value in values:
        result = larger(result, value.upper())
    return result
