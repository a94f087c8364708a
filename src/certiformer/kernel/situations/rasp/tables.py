"""Feed-forward sub-layers: hidden units that look in one direction, added up as piecewise-linear functions of one number.

A unit relu(k s + b), s a linear form of coordinates with coprime integer weights, is active where k s + b > 0. For all
units of one direction that write a coordinate with weights a_i, the sum over active ones is s sum a_i k_i + sum a_i b_i:
sorted by threshold, prefix sums give it at any s.

Units that read the coordinate they write, and nothing else, are added to what it held before: both see the same error, so
that x - relu(x) is zero wherever x > 0, exactly, also in a run (k = 1, a = -1, b = 0: nothing is rounded).

In a run s is off by e, the same for all units, so the sum moves by at most the largest |g(s') - g(s)|, |s' - s| <= e, and g
is piecewise linear: the ends and the knots in between decide (`moved`). Rounding in unit i adds at most r (|k_i| S + |b_i|)
with S >= sum of |terms of s| and r = gamma of the unit's sum, unless the lemma on absorption applies to all units of the
direction. A unit whose exact value is below -2 |k_i| (e + 2 r S + t) stays off in the run, too: its own rounding is at most
r (|k_i| (2 S + e) + d) + t with d its distance from zero, and r <= 1/3.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import reduce
from itertools import accumulate
from math import gcd

from certiformer.kernel import Refused
from certiformer.kernel.situations.numbers import BITS, UNIT, ceil_shift, times
from certiformer.kernel.situations.rasp.cases import DEPTH, Amount, Part, Sum, old_part
from certiformer.kernel.situations.rasp.fixed import Arithmetic, low_bit, lowered, smallest_bit
from certiformer.kernel.situations.rasp.state import Content, Contents, Form
from certiformer.kernel.situations.rasp.variables import Variables

Row = dict[int, int]  # weights by coordinate
Unit = tuple[int, int, Row]  # k, b, and the outgoing weights


class Direction:
    """All hidden units that see one linear form of the coordinates."""

    def __init__(self, variables: Variables, primitive: tuple[tuple[int, int], ...], form: Form):
        self.arithmetic, self.variables, self.primitive, self.form = form.arithmetic, variables, primitive, form
        self.units: list[Unit] = []
        self.limit, self.relative, self.absolute = form.arithmetic.absorbed(0, 0), 0, 0

    def add(self, unit: Unit) -> None:
        """Take in a unit, and what rounding may do to it."""
        k, b, _ = unit
        self.units.append(unit)
        form, size = self.form, abs(k)
        grid = lowered(smallest_bit([(k & -k) * form.grid, (b & -b) << 2 * BITS]), 2 * BITS)
        weights = [ceil_shift(k * w) for w in form.weights.values()]
        plan = self.arithmetic.plan(
            weights, grid, times(size, form.size) + abs(b), times(size, form.carried), more=int(b != 0)
        )
        self.limit = min(self.limit, plan.limit * UNIT // size if plan.limit > 0 else plan.limit)
        self.relative, self.absolute = max(self.relative, plan.relative), max(self.absolute, plan.absolute)

    def reads_only(self, coordinate: int) -> bool:
        return self.primitive == ((coordinate, 1),)

    def writes(self, coordinate: int) -> Part | None:
        """What the units of this direction add to a coordinate, together with what it held if they read nothing else."""
        units = [(k, b, out[coordinate]) for k, b, out in self.units if coordinate in out]
        if not units:
            return None
        pieces = _Pieces(units, self.reads_only(coordinate))
        form, order = self.form, tuple(self.form.parts)
        if not all(map(self.variables.listed, order)):
            pieces.require_no_knot(form, self.variables)

        def at(places: tuple[int, ...]) -> Amount:
            return self._amount(pieces, *form.at(dict(zip(order, places, strict=True))))

        return Part(order, at, self._amount(pieces, form.start, form.start_error, form.start_size))

    def _amount(self, pieces: _Pieces, s: int, error: int, size: int) -> Amount:
        value = pieces.value(s)
        if pieces.cancels(s, error << BITS):  # no terms: they are gone unless others come between them
            return Amount(value, 0, 2 * error, 2 * (size + error), 0)
        absorbed = error <= self.limit or self.arithmetic.form is None
        if absorbed and not error:
            total, terms, *_ = pieces.size(s, 0)
            return Amount(value, 0, 0, total, terms)
        rounding = 0 if absorbed else self.relative
        lost = 0 if self.arithmetic.form is None else self.absolute
        slack = 2 * (error + 2 * times(self.relative, size) + lost * UNIT // pieces.least + 1)
        moved = pieces.moved(s, error << BITS, value)
        total, terms, slopes, shifts, weights = pieces.size(s, slack << BITS)
        carried = ceil_shift(error * slopes, 2 * BITS) + (error if pieces.own else 0)
        rounded = ceil_shift(rounding * (slopes * (size + error) + (shifts << BITS)), 3 * BITS) + times(lost, weights)
        if absorbed:
            carried += times(self.relative, carried)
        return Amount(value, moved + rounded, carried + rounded, total + carried + rounded, terms)


class _Pieces:
    """sum of a relu(k s + b) as a function of s (in units of 2^-2 BITS), by prefix sums over sorted thresholds."""

    def __init__(self, units: list[tuple[int, int, int]], own: bool = False):
        """`own`: s itself is added, what the coordinate held before."""
        self.own = own
        self.least = min(abs(k) for k, _, _ in units)
        # For integers s: k s + b > 0 exactly for s >= floor(-b/k) + 1 (k > 0), for s <= ceil(b/|k|) - 1 (k < 0).
        up = sorted((((-b << 2 * BITS) // k) + 1, k, b, a) for k, b, a in units if k > 0)
        down = sorted((-((-b << 2 * BITS) // -k) - 1, k, b, a) for k, b, a in units if k < 0)
        self.up, self.down = [u[0] for u in up], [u[0] for u in down]
        self.up_sums, self.down_sums = _prefixes(up), _prefixes(down)

    def _sums(self, s: int, slack: int = 0) -> list[int]:
        """Sums over the units that are active at s or within the slack."""
        above = self.up_sums[bisect_left(self.up, s + slack + 1)]
        below, whole = self.down_sums[bisect_left(self.down, s - slack)], self.down_sums[-1]
        return [u + w - d for u, w, d in zip(above, whole, below, strict=True)]

    def value(self, s: int) -> int:
        slope, shift, *_ = self._sums(s)
        return (slope + UNIT * UNIT * self.own) * s + (shift << 2 * BITS)

    def cancels(self, s: int, error: int) -> bool:
        """Whether one unit takes away exactly what the coordinate held: x + (-1) relu(1 x + 0) = 0 in every run.

        At both ends that is the only active unit. Upward units stay on, downward ones off: in between no other is active,
        and if the ends have different ones, relu(-x) and relu(x), one is active on each side of zero.
        """
        return self.own and all(map(self._takes_away, (s - error, s + error)))

    def _takes_away(self, s: int) -> bool:
        slope, shift, _, _, slopes, _, weights, count = self._sums(s)
        return count == 1 and slope == -UNIT * UNIT and shift == 0 and slopes == -slope and not weights & (weights - 1)

    def size(self, s: int, slack: int) -> tuple[int, int, int, int, int]:
        """The sum of |a| relu(k s + b), and over the units within the slack: their number, sums of |a k|, |a b| and |a|."""
        _, _, slope, shift, *_ = self._sums(s)
        exact = ceil_shift(slope * s + (shift << 2 * BITS), DEPTH - BITS)
        *_, slopes, shifts, weights, count = self._sums(s, slack)
        if self.own:
            exact, count = exact + ceil_shift(abs(s)), count + 1
        return exact, count, slopes, shifts, weights

    def require_no_knot(self, form: Form, variables: Variables) -> None:
        """Over an interval of numbers too many to list, every unit must be on or off throughout.

        Its ends are the first two places; where the number is undefined is a case of its own, beside listed ones.
        """
        intervals = [x for x in form.parts if not variables.listed(x)]
        alone = intervals if len(intervals) == 1 else []
        parts = [values[:2] if x in alone else values for x, (values, _, _) in form.parts.items()]
        low, high = (form.constant + sum(map(pick, parts)) for pick in (min, max))
        # The knot of an upward unit lies in [t - 1, t), of a downward one in (t, t + 1]; one at an end does no harm.
        if any(low + 1 < t <= high for t in self.up) or any(low <= t < high - 1 for t in self.down):
            raise Refused("a hidden unit has its knot inside an interval of numbers that are too many to list")

    def moved(self, s: int, error: int, value: int) -> int:
        """The largest |g(s') - g(s)| over |s' - s| <= error."""
        if not error:
            return 0
        points = [s - error, s + error]
        for thresholds, side in ((self.up, -1), (self.down, 1)):
            inside = thresholds[bisect_left(thresholds, s - error) : bisect_left(thresholds, s + error + 1)]
            points += [t + d for t in set(inside) for d in (0, side)]  # the knot lies between these two integers
        reach = max(abs(self.value(p) - value) for p in points)
        # Between neighbouring integers the function is linear up to one knot: one step of the steepest slope covers it.
        *_, slopes, _, _, _ = self._sums(s, error + 2)
        return ceil_shift(reach + slopes, DEPTH - BITS)


def _prefixes(units: list[tuple[int, int, int, int]]) -> list[list[int]]:
    """Running sums of a k, a b, |a| k, |a| b, |a k|, |a b|, |a| and the count."""
    rows = [[a * k, a * b, abs(a) * k, abs(a) * b, abs(a * k), abs(a * b), abs(a), 1] for _, k, b, a in units]
    return list(accumulate(rows, lambda x, y: [p + q for p, q in zip(x, y, strict=True)], initial=[0] * 8))


def directions(
    arithmetic: Arithmetic, variables: Variables, contents: Contents, units: Iterable[tuple[Row, int, Row]]
) -> list[Direction]:
    """The units (incoming weights, bias, outgoing weights) by direction."""
    found: dict[tuple[tuple[int, int], ...], Direction] = {}
    for incoming, b, out in units:
        common = reduce(gcd, incoming.values(), 0) or UNIT  # a unit that reads nothing sees the form s = 0
        k = common if not incoming or next(iter(incoming.values())) > 0 else -common
        primitive = tuple((c, w // k) for c, w in incoming.items())
        if primitive not in found:
            form = Form(arithmetic, variables, contents, {c: w << BITS for c, w in primitive})
            found[primitive] = Direction(variables, primitive, form)
        found[primitive].add((k, b, out))
    return list(found.values())


def gathered(coordinate: int, found: list[Direction], bias: int, old: Content) -> Sum:
    """Everything that a coordinate gets from its units, the bias, and what it held before."""
    parts = [part for part in (direction.writes(coordinate) for direction in found) if part is not None]
    out, grids = [], []
    for direction in found:
        for k, b, weights in direction.units:
            if coordinate in weights:
                a = weights[coordinate]
                out.append(a)
                grids.append((a & -a) * smallest_bit([(k & -k) * direction.form.grid, (b & -b) << 2 * BITS]))
    grids += [low_bit([bias]) << DEPTH - BITS, old.grid << DEPTH - BITS]
    products = any(w & (w - 1) for w in map(abs, out))
    constant = Amount(bias << (DEPTH - BITS), 0, 0, abs(bias), int(bias != 0))
    grid = lowered(smallest_bit(grids), DEPTH - BITS)
    takes = any(direction.reads_only(coordinate) and direction.writes(coordinate) for direction in found)
    if not takes:
        parts.append(old_part(old))
    return Sum(parts, constant, products, sum(map(abs, out)), grid, 2 * takes)
