"""The heads that the sigmoid-head theorem speaks of: knots along every ridge, and their ideal weights in balls.

A target is read as linear . x + sum of profiles along ridge directions (`target.ridges`); outputs that share a direction
share its heads. Along a direction p the range of s = p . x over the box is [lo, hi]. With J pieces, h = (hi - lo)/J, and
`left`, `right` extra knots the edges are E_k = lo + (k - left) h, k = 0 .. J + left + right, and head k sits at the
midpoint of E_{k-1} and E_k with steepness gamma = kappa/h:

    S(s) = w(E_0) + a s + sum_k (w(E_k) - w(E_{k-1})) sigmoid(gamma (s - (E_{k-1} + E_k)/2)).

With u = g - a s, continued beyond the range by its Taylor polynomial of degree order - 1 at the end, w = sum_i beta_i
h^(2i) u^(2i) over 2i < order, which undoes the blur of soft heads up to that order (`rules.logistic_rounding`); w = u for
orders 1 and 2. J = 0 means no heads: S = u(middle) + a s.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import arb, fmpq

from certiformer.axioms.jets import jets
from certiformer.axioms.logistic_rounding import rounding
from certiformer.axioms.profile_series import derivatives
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ZERO, BallDomain, ConstantAlgebra, ball, hull, larger, power
from certiformer.kernel.programs import Program, exact, fold
from certiformer.target.ridges import Direction, ridge_split

MAX_PIECES = 100_000
MAX_MARGIN = 1_000
MAX_PARTS = 20_000
ORDERS = (1, 2, 4, 6, 8)
HIGHEST = max(ORDERS)


@dataclass(frozen=True)
class Ridge:
    """A direction with its profile for every output (None: that output has no such ridge)."""

    direction: Direction
    profiles: tuple[Program | None, ...]

    def ends(self, domain: BallDomain) -> tuple[arb, arb]:
        """The range of direction . x over the box: its ends are attained, so they are real numbers, here as balls."""
        low = high = ZERO
        for c, (a, b) in zip(self.direction, domain.ends, strict=True):
            low, high = low + c * (a if c > 0 else b), high + c * (b if c > 0 else a)
        return low, high


def ridge_sum(program: Program) -> tuple[list[tuple[Fraction, ...]], list[Ridge]]:
    """The linear part of every output, and the ridges of all of them, by direction."""
    splits = [ridge_split(program, o) for o in range(len(program.outputs))]
    found = []
    for split in splits:
        if split is None:
            raise Refused("the target is not written as a sum of ridge functions")
        found.append((split.linear, dict(split.ridges)))
    directions = sorted({direction for _, profiles in found for direction in profiles})
    return [linear for linear, _ in found], [
        Ridge(direction, tuple(profiles.get(direction) for _, profiles in found)) for direction in directions
    ]


@dataclass(frozen=True)
class Knots:
    """How one ridge is cut: pieces J, extra knots on both sides, sharpness kappa, order, and the slope a an output."""

    pieces: int
    left: int
    right: int
    sharpness: Fraction
    order: int
    slopes: tuple[Fraction, ...]

    @property
    def heads(self) -> int:
        return self.pieces + self.left + self.right if self.pieces else 0

    def parameters(self) -> dict[str, Any]:
        slopes = [str(a) for a in self.slopes]
        return {**vars(self), "sharpness": str(self.sharpness), "slopes": slopes}

    @staticmethod
    def from_parameters(data: Any, outputs: int) -> Knots:
        """Read the knots of one ridge from a theorem node, refusing anything that is not that."""
        if not isinstance(data, dict) or set(data) != set(Knots.__dataclass_fields__):
            raise Refused("the parameters of the theorem node do not describe the knots of a ridge")
        limits = {"pieces": MAX_PIECES, "left": MAX_MARGIN, "right": MAX_MARGIN}
        counts = {name: data[name] for name in limits}
        if any(type(n) is not int or not 0 <= n <= limits[name] for name, n in counts.items()):
            raise Refused("the parameters of the theorem node have a number of knots outside their range")
        slopes, order = data["slopes"], data["order"]
        if type(order) is not int or order not in ORDERS or not isinstance(slopes, list) or len(slopes) != outputs:
            raise Refused("the parameters of the theorem node do not describe the knots of a ridge")
        if order == 1 and (data["left"] or data["right"]):
            raise Refused("the first-order theorem has no knots beyond the range")
        if not all(isinstance(text, str) for text in [data["sharpness"], *slopes]):
            raise Refused("the parameters of the theorem node do not describe the knots of a ridge")
        try:
            return Knots(**counts, sharpness=exact(data["sharpness"]), order=order, slopes=tuple(map(exact, slopes)))
        except BadInput as error:
            raise Refused(str(error)) from None


@dataclass(frozen=True)
class Ideal:
    """Ideal heads in balls: weights[h][i], bias[h], coefficients[h][o], and the affine part slope[i][o], constant[o]."""

    weights: list[list[arb]]
    bias: list[arb]
    coefficients: list[list[arb]]
    slope: list[list[arb]]
    constant: list[arb]


def ideal_heads(
    linear: list[tuple[Fraction, ...]], ridges: list[Ridge], knots: list[Knots], domain: BallDomain
) -> Ideal:
    """The heads of all ridges one after the other, knots from low to high."""
    outputs, dimension = len(linear), domain.dimension
    slope = [[ball(linear[o][i]) for o in range(outputs)] for i in range(dimension)]
    ideal = Ideal([], [], [], slope, [ZERO] * outputs)
    for ridge, cut in zip(ridges, knots, strict=True):
        # Only an output that has this ridge is bounded along it, so no other one may be given a slope by it.
        own = [ball(a) if profile else ZERO for a, profile in zip(cut.slopes, ridge.profiles, strict=True)]
        for i, c in enumerate(ridge.direction):
            slope[i] = [a + c * b for a, b in zip(slope[i], own, strict=True)]
        columns = [
            profile_values(profile, cut, o, *ridge.ends(domain)) if profile else [ZERO] * (cut.heads + 1)
            for o, profile in enumerate(ridge.profiles)
        ]
        for o, column in enumerate(columns):
            ideal.constant[o] = ideal.constant[o] + column[0]
        if not cut.pieces:
            continue
        low, high = ridge.ends(domain)
        step = (high - low) / cut.pieces
        gamma = ball(cut.sharpness) / step
        for k in range(1, cut.heads + 1):
            middle = low + step * arb(fmpq(2 * (k - cut.left) - 1, 2))
            ideal.weights.append([gamma * c for c in ridge.direction])
            ideal.bias.append(-gamma * middle)
            ideal.coefficients.append([column[k] - column[k - 1] for column in columns])
    return ideal


def profile_values(profile: Program, cut: Knots, output: int, low: arb, high: arb) -> list[arb]:
    """w at every knot E_0, E_1, ...; without pieces its value in the middle of the range alone."""
    a = ball(cut.slopes[output])
    if not cut.pieces:
        middle = (low + high) * HALF
        return [_value(profile, middle) - a * middle]
    step = (high - low) / cut.pieces
    values = []
    for k in range(cut.heads + 1):
        edge = low + step * (k - cut.left)
        if k < cut.left or k > cut.left + cut.pieces:
            end = low if k < cut.left else high
            found = _minus_slope(derivatives(profile, end, cut.order - 1)[0], end, a)
            values.append(_unblurred(_moved(found, edge - end), step, cut))
        elif cut.order <= 2:
            values.append(_value(profile, edge) - a * edge)
        else:
            values.append(_unblurred(_minus_slope(derivatives(profile, edge, cut.order - 2)[0], edge, a), step, cut))
    return values


def _value(profile: Program, at: arb) -> arb:
    return fold(profile, [at], ConstantAlgebra())[0]


def _minus_slope(found: list[arb], at: arb, a: arb) -> list[arb]:
    """The derivatives of g - a s from those of g."""
    return [found[0] - a * at, found[1] - a, *found[2:]]


def _moved(end: list[arb], t: arb) -> list[arb]:
    """The derivatives of a Taylor polynomial at a distance t from where it was taken."""
    result = []
    for k in range(len(end)):
        powers = [end[n] * power(t, n - k) / arb.fac_ui(n - k) for n in range(k, len(end))]
        result.append(sum(powers, ZERO))
    return result


def _unblurred(found: list[arb], step: arb, cut: Knots) -> arb:
    """sum_i beta_i h^(2i) u^(2i), 2i < order."""
    beta = rounding(cut.sharpness).beta
    return sum((beta[i // 2] * power(step, i) * found[i] for i in range(0, cut.order, 2)), ZERO)


class ProfileBounds:
    """Enclosures of g' (as a ball) and upper bounds of |g^(k)|, k <= 8, on [low, high]; derivatives at the ends.

    `smooth` is 8 when all of them are finite, else 1 when g is Lipschitz (then `slope` holds Clarke's gradients), else 0.
    """

    def __init__(self, profile: Program, low: arb, high: arb, parts: int):
        self.low, self.high = low, high
        self.smooth, self.sizes = HIGHEST, [ZERO] * (HIGHEST + 1)
        edges = [low + (high - low) * arb(fmpq(k, parts)) for k in range(parts + 1)]
        pieces = [hull(a.lower(), b.upper()) for a, b in zip(edges, edges[1:], strict=False)]
        first: list[arb] = []
        for piece in pieces:
            found = derivatives(profile, piece, HIGHEST)[0]
            if not all(value.is_finite() for value in found):
                self.smooth = 1
                break
            first.append(found[1])
            self.sizes = [larger(old, new.abs_upper()) for old, new in zip(self.sizes, found, strict=True)]
        if self.smooth == HIGHEST:
            self.ends = [derivatives(profile, end, HIGHEST - 1)[0] for end in (low, high)]
        else:
            found = [jets(profile, [piece], 1)[0] for piece in pieces]
            first = [jet.grad[0] for jet in found]
            if any(jet.smooth < 1 or not jet.grad[0].is_finite() for jet in found):
                self.smooth, first = 0, []
        self.slope = _union(first)

    def steepest(self, slope: Fraction) -> arb:
        """An upper bound of |g' - slope|."""
        return (self.slope - ball(slope)).abs_upper()


def _union(parts: list[arb]) -> arb:
    if not parts:
        return arb.nan()
    return hull(min(p.lower() for p in parts), max(p.upper() for p in parts))
