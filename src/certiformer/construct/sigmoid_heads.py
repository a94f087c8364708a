"""`--method sigmoid-heads`: sums of ridge functions by attention alone, one sigmoid head a knot.

The theorem, its proof and its constants live in `axioms.sigmoid_heads`. Here the profiles are read off the target,
their derivatives are enclosed, and for every ridge the knots with the fewest heads are searched whose bound stays below
its share of epsilon: over the order, the sharpness, the slope that the residual stream carries, and the extra knots.

Shares. A ridge whose heads grow like (A/share)^(1/p) has A ~ n^p * share for the n heads it needs at equal shares; the
sum of heads for a given sum of shares is least where share ~ A^(1/(p+1)), that is ~ n^(p/(p+1)). The orders in use are
around p = 4, which is taken for all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from certiformer.axioms.logistic_rounding import rounding
from certiformer.axioms.sigmoid_heads import apriori, clipped
from certiformer.axioms.sigmoid_knots import HIGHEST, Knots, ProfileBounds, Ridge, ideal_heads, ridge_sum
from certiformer.construct.method import Construction, Size, Task
from certiformer.construct.sigmoid_attention import sigmoid_transformer as sigmoid_transformer
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, larger, working_precision
from certiformer.kernel.certificate import Theorem as TheoremNode
from certiformer.kernel.programs import decimal_text

LAYOUTS = ("token",)
MAX_HEADS = 20_000
PARTS = 256  # pieces of each ridge's range on which derivatives are enclosed
# The a-priori bound is kept below epsilon by this factor: room for the distance of stored to ideal weights.
ROOM = Fraction(999, 1000)
SHARPNESS = {
    1: (Fraction(8), Fraction(16)),
    2: tuple(Fraction(n, 4) for n in (6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 20, 24)),
    4: tuple(Fraction(n, 4) for n in range(5, 15)),
    6: tuple(Fraction(n, 4) for n in range(5, 14)),
    8: tuple(Fraction(n, 4) for n in range(5, 13)),
}
# More pieces than needed leave room for fewer extra knots; beyond this many more it has never paid.
SPARE_PIECES = 6


@dataclass(frozen=True)
class Plan:
    """Knots for every ridge, good enough by the theorem."""

    task: Task
    linear: list[tuple[Fraction, ...]]
    ridges: list[Ridge]
    knots: list[Knots]
    bound: float
    room: float
    theorem: str = "sigmoid_heads"

    def size(self) -> Size:
        """The exact size, but for weights that happen to be zero."""
        inputs, outputs = len(self.linear[0]), len(self.linear)
        width, heads = inputs + outputs, max(1, _heads(self.knots))
        # A head: query, offset and value of the flag, the variables of its direction, the outputs of its profiles.
        own = sum(
            cut.heads * (3 + sum(map(bool, ridge.direction)) + sum(p is not None for p in ridge.profiles))
            for ridge, cut in zip(self.ridges, self.knots, strict=True)
        )
        slopes = _slopes(self.linear, self.ridges, self.knots)
        nonzero = own + inputs + 1 + 2 * outputs + int(np.count_nonzero(slopes))
        dense = 4 * width * heads + inputs * width + 2 * width + width * outputs + outputs
        return Size(nonzero, dense, _heads(self.knots), 0, 1)

    def realise(self) -> Construction:
        working_precision()
        domain = BallDomain(self.task.target.domain)
        ideal = ideal_heads(self.linear, self.ridges, self.knots, domain)
        inputs, outputs = domain.dimension, len(self.linear)
        model = sigmoid_transformer(
            _floats(ideal.slope, outputs),
            np.array([float(c.mid()) for c in ideal.constant]),
            _floats(ideal.weights, inputs),
            np.array([float(b.mid()) for b in ideal.bias]),
            _floats(ideal.coefficients, outputs),
        )
        bound = decimal_text(Fraction(self.bound) + Fraction(self.room), up=True)
        parameters = {"ridges": [cut.parameters() for cut in self.knots], "partition": PARTS}
        return Construction(model, TheoremNode(bound, self.theorem, parameters))


def _floats(rows: list, columns: int) -> np.ndarray:
    return np.array([[float(v.mid()) for v in row] for row in rows]).reshape(len(rows), columns)


def _slopes(linear: list, ridges: list[Ridge], knots: list[Knots]) -> np.ndarray:
    total = np.array(linear, float).T
    for ridge, cut in zip(ridges, knots, strict=True):
        total = total + np.outer(ridge.direction, [float(a) for a in cut.slopes])
    return total


def plan(task: Task) -> Plan:
    """The fewest heads found that the theorem proves; raises `Refused` with the reason when it does not apply.

    >>> from certiformer.target import Target, parse_domain, parse_formula
    >>> target = Target("", parse_formula("cos(3*x1)"), parse_domain("[0, 1]"))
    >>> chosen = plan(Task.of(target, Fraction(1, 100)))
    >>> [(cut.order, cut.heads) for cut in chosen.knots], chosen.size().nonzero
    ([(6, 9)], 50)
    """
    working_precision()
    domain = BallDomain(task.target.domain)
    linear, ridges = ridge_sum(task.target.program)
    searches = [_Search(ridge, domain) for ridge in ridges]
    epsilon = float(task.epsilon * ROOM)
    knots: list[Knots] = []
    if searches:
        equal = [search.fewest(epsilon / len(searches)) for search in searches]
        weights = [max(cut.heads, 0.3) ** 0.8 for cut in equal]
        weighted = [s.fewest(epsilon * w / sum(weights)) for s, w in zip(searches, weights, strict=True)]
        knots = _spend_rest(searches, min(equal, weighted, key=_heads), epsilon)
    bound, room = max(_totals(searches, knots), default=0.0), _rounding(linear, searches, knots, domain)
    if bound + room > task.epsilon:
        raise Refused("epsilon is below what float64 weights of this method can carry")
    return Plan(task, linear, ridges, knots, bound, room)


def _heads(knots: list[Knots]) -> int:
    return sum(cut.heads for cut in knots)


def _rounding(linear: list, searches: list[_Search], knots: list[Knots], domain: BallDomain) -> float:
    """An estimate of the distance of stored to ideal weights, rather too large; the checker encloses the true one.

    Coefficients and constants are off by 2^-53 of their size, scores of size kappa J as well, and a score moves its head
    by a quarter of that.
    """
    ends = [max(abs(float(a)), abs(float(b))) for a, b in domain.ends]
    size = 1.0 + max(sum(abs(float(c)) * e for c, e in zip(line, ends, strict=True)) for line in linear)
    for search, cut in zip(searches, knots, strict=True):
        size += search.variation() * (4 + float(cut.sharpness) * cut.heads)
    return size * 2.0**-50


def _totals(searches: list[_Search], knots: list[Knots]) -> list[float]:
    """The bound of every output."""
    parts = [search.bounds_of(cut) for search, cut in zip(searches, knots, strict=True)]
    return [sum(column) for column in zip(*parts, strict=True)]


def _spend_rest(searches: list[_Search], knots: list[Knots], epsilon: float) -> list[Knots]:
    """Rounding up leaves a rest of epsilon: give it to one ridge after the other while that saves heads."""
    for position, search in enumerate(searches):
        others = [s for i, s in enumerate(searches) if i != position]
        spent = _totals(others, [k for i, k in enumerate(knots) if i != position])
        better = search.fewest(epsilon - max(spent, default=0.0))
        if better.heads < knots[position].heads:
            knots = [*knots[:position], better, *knots[position + 1 :]]
    return knots


class _Search:
    """The knots of one ridge for any share of epsilon."""

    def __init__(self, ridge: Ridge, domain: BallDomain):
        ends = ridge.ends(domain)
        self.outputs = len(ridge.profiles)
        self.bounds = [(o, ProfileBounds(p, *ends, PARTS)) for o, p in enumerate(ridge.profiles) if p is not None]
        self.smooth = min(b.smooth for _, b in self.bounds)
        if self.smooth < 1:
            raise Refused("a ridge of the target is not known to be Lipschitz on its range")

    def variation(self) -> float:
        """About the largest value of a profile and the sum of its coefficients."""
        widest = [float(b.sizes[0] + (b.high - b.low) * b.steepest(Fraction(0))) for _, b in self.bounds]
        return max(widest)

    def bounds_of(self, cut: Knots) -> list[float]:
        """The contribution of the ridge to every output."""
        result = [0.0] * self.outputs
        for o, bounds in self.bounds:
            result[o] = math.nextafter(float(apriori(cut, o, bounds)), math.inf)
        return result

    def fewest(self, share: float) -> Knots:
        """The knots with the fewest heads whose bound is at most `share`."""
        best: Knots | None = None
        for slopes in self._slopes():
            straight = Knots(0, 0, 0, Fraction(2), 1, slopes)
            if max(self.bounds_of(straight)) <= share:
                return straight
            for order in (6, 8, 4, 2, 1) if self.smooth == HIGHEST else (1,):
                for sharpness in SHARPNESS[order]:
                    found = self._shortest(Knots(1, 0, 0, sharpness, order, slopes), share, best)
                    best = found or best
        if best is None:
            raise Refused(f"this epsilon needs more than {MAX_HEADS:,} heads along one direction")
        return best

    def _slopes(self) -> list[tuple[Fraction, ...]]:
        """Slopes for the residual stream: amid those of the profile (least U_1), and those at the ends (no clipping)."""
        choices = []
        picks = [lambda b: b.slope.mid()]
        if self.smooth == HIGHEST:
            picks += [lambda b: b.ends[0][1].mid(), lambda b: b.ends[1][1].mid()]
        for pick in picks:
            slopes = [Fraction(0)] * self.outputs
            for o, bounds in self.bounds:
                slopes[o] = Fraction(float(pick(bounds)))
            choices.append(tuple(slopes))
        return list(dict.fromkeys(choices))

    def _shortest(self, start: Knots, share: float, best: Knots | None) -> Knots | None:
        """The shortest knots of this kind with fewer heads than `best`."""
        limit = best.heads if best else MAX_HEADS
        noise = rounding(start.sharpness)

        def inner(pieces: int) -> float:
            """The bound without clipping."""
            endless = (
                replace(start, pieces=pieces, left=60, right=60) if start.order > 1 else replace(start, pieces=pieces)
            )
            return max(self.bounds_of(endless))

        if limit < 1 or inner(limit) > share:
            return None
        low, high = 0, limit
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if inner(middle) <= share else (middle, high)
        found = None
        for pieces in range(high, high + SPARE_PIECES):
            cut = replace(start, pieces=pieces)
            if cut.order > 1:
                rest = (share - inner(pieces)) / (1 + math.exp(-float(noise.kappa) * pieces))
                cut = self._margins(cut, rest, noise, limit)
            if cut is not None and cut.heads < limit and max(self.bounds_of(cut)) <= share:
                found, limit = cut, cut.heads
        return found

    def _margins(self, cut: Knots, rest: float, noise, limit: int) -> Knots | None:
        """The fewest extra knots on both sides whose clipping costs at most `rest`."""
        margins = []
        for side in (0, 1):
            name = ("left", "right")[side]
            for margin in range(limit - cut.pieces - sum(margins)):
                wider = replace(cut, **{name: margin})
                worst = None
                for o, bounds in self.bounds:
                    lost = clipped(wider, o, bounds, side, noise)
                    worst = lost if worst is None else larger(worst, lost)
                if worst is not None and float(worst) <= rest:
                    break
            else:
                return None
            margins.append(margin)
            cut = replace(cut, **{name: margin})
        return cut
