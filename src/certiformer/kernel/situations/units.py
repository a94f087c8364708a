"""Feed-forward sub-layers: every situation of the cells that the units of a coordinate read.

Units that see the same linear form s of the coordinates, up to a factor and a bias, are one *direction*; what they add to a
coordinate, and the coordinate itself if that is all they read, is one piecewise-linear function g of s. All of them see the
same s, in a run too, so the noise of s moves the coordinate within g([low, high]): x - relu(x) is 0 for every x >= 0, and
2 relu(s - 1/4) - 2 relu(s - 3/4) is 1 for every s >= 3/4, however noisy s is.

*In a run* the argument of a unit is exact, or off by d (`Run.slip`); the units add up, exactly or not; then the residual is
added, which is exact where the result is one number of the format for certain. A unit whose argument is not positive, d
included, is 0 in every run. What is left is compared with the code of the cell that the plan gives to the coordinate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, reduce
from math import gcd
from typing import NamedTuple

from certiformer.kernel import Refused
from certiformer.kernel.situations.cells import Content, Contents, Form, Meaning
from certiformer.kernel.situations.numbers import (
    UNIT,
    Number,
    Run,
    Terms,
    as_ball,
    ceil_shift,
    constant,
    gathered,
    sure,
    term,
    times,
)
from certiformer.kernel.situations.plan import EMPTIED, Held

Row = dict[int, int]  # weights by coordinate


class Unit(NamedTuple):
    """relu(factor * s + bias), and what it adds to coordinates."""

    factor: int
    bias: int
    out: Row


class Alive(NamedTuple):
    """A unit that may be on: its argument before rounding, how far a run may be off, the grid that it is exact on."""

    unit: Unit
    argument: Terms
    slip: int
    grid: int | None


def scaled(terms: Terms, factor: int) -> Terms:
    """A sum with all weights multiplied by `factor`, an integer number of units."""
    if factor == UNIT:
        return terms
    ends = terms.low * factor, terms.high * factor
    up, down = (ceil_shift(abs(factor) * x) for x in (terms.up, terms.down))
    if factor < 0:
        up, down = down, up
    low, high = min(ends) >> 192, ceil_shift(max(ends))
    grid = (factor & -factor) * terms.grid >> 192
    noisy = tuple((w * factor >> 192, a, b) for w, a, b in terms.noisy)
    fine = all(w * factor % UNIT == 0 for w, _, _ in terms.noisy) and (bool(grid) or not terms.grid)
    if not fine:  # too fine for the unit: no grid is known
        noisy, grid = ((UNIT, -abs(low) - 1, abs(high) + 1),) * 2, 0
    inexact = terms.inexact or bool(terms.count and abs(factor) & (abs(factor) - 1))
    return Terms(terms.code * factor >> 192, low, high, up, down, grid, noisy, terms.count, inexact)


class Direction:
    """All units that see one linear form of the coordinates."""

    def __init__(self, run: Run, primitive: tuple[tuple[int, int], ...], form: Form):
        self.run, self.primitive, self.form = run, primitive, form
        self.units: list[Unit] = []
        self.margin: int | None = None  # the smallest distance of a noisy argument from the next knot
        self._known: dict[tuple[int, ...] | None, tuple[Terms, list[Alive]]] = {}

    def at(self, places: Mapping[str, int] | None) -> tuple[Terms, list[Alive]]:
        """s and the units that may be on in a situation; None: at the register."""
        key = None if places is None else tuple(places[name] for name in self.form.cells)
        if key not in self._known:
            s = self.form.start if places is None else self.form.at(places)
            self._known[key] = s, [alive for unit in self.units if (alive := self._alive(unit, s)) is not None]
            if s.low < s.high:
                self._keep(s)
        return self._known[key]

    def _alive(self, unit: Unit, s: Terms) -> Alive | None:
        argument = scaled(s, unit.factor)
        if unit.bias:
            argument = argument.plus(constant(unit.bias))
        grid = self.run.finest(argument)
        slip = self.run.slip(argument, known=grid is not None)
        return Alive(unit, argument, slip, grid) if argument.high + slip > 0 else None

    def _keep(self, s: Terms) -> None:
        """The distance of a noisy argument from the next knot that it does not touch."""
        for unit in self.units:
            knot = -unit.bias * UNIT // unit.factor
            away = max(s.low - knot, knot - s.high)
            if away > 0 and (self.margin is None or away < self.margin):
                self.margin = away

    def reads_only(self, coordinate: int) -> bool:
        return self.primitive == ((coordinate, UNIT),)


def directions(run: Run, contents: Contents, units: Iterable[tuple[Row, int, Row]]) -> list[Direction]:
    """The units (incoming weights, bias, outgoing weights) by direction."""
    found: dict[tuple[tuple[int, int], ...], Direction] = {}
    for incoming, bias, out in units:
        common = reduce(gcd, incoming.values(), 0) or UNIT
        factor = common if not incoming or next(iter(incoming.values())) > 0 else -common
        primitive = tuple((c, (w // factor) * UNIT) for c, w in incoming.items())
        if primitive not in found:
            found[primitive] = Direction(run, primitive, Form(contents, dict(primitive)))
        found[primitive].units.append(Unit(factor, bias, out))
    return list(found.values())


def settled(
    held: Held,
    names: Sequence[str],
    cases: Iterable[tuple[int, ...]],
    number: Callable[[dict[str, int] | None], Number],
) -> Content:
    """The content of a coordinate that is to hold `held`; `number`: what it holds in a case, or (None) at the register."""
    at = None if held.cell is None else names.index(held.cell)
    numbers: list[Number | None] = [None] * len(held.codes)
    for case in cases:
        place = 0 if at is None else case[at]
        new, before = number(dict(zip(names, case, strict=True)))._replace(code=held.codes[place]), numbers[place]
        numbers[place] = new if before is None else before.hull(new)
    filled = tuple(sure(code) if x is None else x for x, code in zip(numbers, held.codes, strict=True))
    return Content(held.cell, filled, number(None)._replace(code=held.start))


class Sublayer:
    """One feed-forward sub-layer: what it makes of the contents, compared with a plan."""

    def __init__(
        self, run: Run, meaning: Meaning, contents: Contents, units: Iterable[tuple[Row, int, Row]], bias: Row
    ):
        self.run, self.meaning, self.contents, self.bias = run, meaning, contents, bias
        self.directions = directions(run, contents, units)
        self.writers: dict[int, list[Direction]] = {}
        for direction in self.directions:
            for c in {c for unit in direction.units for c in unit.out}:
                self.writers.setdefault(c, []).append(direction)

    @property
    def margin(self) -> int | None:
        """The smallest distance of a noisy argument from the next knot."""
        return min((d.margin for d in self.directions if d.margin is not None), default=None)

    def after(self, held: Mapping[int, Held]) -> Contents:
        """The contents afterwards; `held`: what the plan says about coordinates, all others stay as they are."""
        touched = sorted({*self.writers, *self.bias, *held})
        result = list(self.contents)
        groups: dict[tuple[str, ...], list[int]] = {}
        for c in touched:
            groups.setdefault(self._cells(c, held.get(c)), []).append(c)
        for names, coordinates in groups.items():
            cases = self.meaning.situations(names)
            for c in coordinates:
                result[c] = settled(held.get(c, EMPTIED), names, cases, partial(self._number, c))
        return result

    def _cells(self, c: int, held: Held | None) -> tuple[str, ...]:
        """Everything that the new content of a coordinate may depend on."""
        names = {name for direction in self.writers.get(c, ()) for name in direction.form.cells}
        names |= {name for name in (self.contents[c].cell, held.cell if held else None) if name is not None}
        return tuple(sorted(names))

    def _number(self, c: int, places: Mapping[str, int] | None) -> Number:
        """What a coordinate holds afterwards in one situation."""
        old, run = self.contents[c], self.run
        held = old.start if places is None else old.numbers[0 if old.cell is None else places[old.cell]]
        if self._taken_away(c, held, places):
            return Number(0, 0, 0 if held.low >= run.tiny else run.tiny)
        low = high = shift = self.bias.get(c, 0)
        code, slip, out, joint, exact = shift, 0, [constant(shift)] if shift else [], False, True
        grids = [shift & -shift] if shift else []
        for direction in self.writers.get(c, ()):
            s, alive = direction.at(places)
            here = [unit for unit in alive if unit.unit.out.get(c)]
            own = bool(here) and direction.reads_only(c)
            joint = joint or own
            if not here:
                continue
            pieces = Pieces([(u.unit.factor, u.unit.bias, u.unit.out[c]) for u in here], own)
            bottom, top = pieces.span(s.low, s.high)
            low, high, code = low + bottom, high + top, code + pieces.value(s.code)[0]
            for u in here:
                weight = u.unit.out[c]
                slip += times(abs(weight), u.slip)
                value = Number(
                    max(u.argument.code, 0), max(u.argument.low - u.slip, 0), max(u.argument.high + u.slip, 0)
                )
                out.append(term(weight, value))
                exact = exact and u.slip == 0
                grids.append(0 if u.grid is None else (weight & -weight) * u.grid >> 192)
        if not joint:
            low, high, code = low + held.low, high + held.high, code + held.code
        terms = gathered(out)
        # What a unit lets through is on the grid of its argument, so that the lemma on exact sums applies to the units.
        grid = min(grids) if grids and all(grids) else 0
        fits = max(terms.up, terms.down) <= grid << run.precision and grid >= run.tiny if grid else False
        alone = not terms.count or (terms.count == 1 and not terms.inexact and max(terms.low, -terms.high) >= run.tiny)
        if not (fits or alone):
            slip, exact = slip + run.slip(terms), False
        elif not as_ball(terms.size) * 2 < run.largest:
            raise Refused(f"a number of the run may exceed the largest finite {run.name}")
        low, high = low - slip, high + slip
        if not terms.count:
            return Number(code, low, high)
        if low == high and exact and run.is_number(low) and run.is_number(held.low):
            return Number(code, low, high)
        return run.total(_rounded_once(Number(code, low, high)))

    def _taken_away(self, c: int, held: Number, places: Mapping[str, int] | None) -> bool:
        """x - relu(x) for x >= 0, and nothing else: 0 in a run, or x itself where x is tiny and flushed."""
        here = [(d, u) for d in self.writers.get(c, ()) for u in d.at(places)[1] if u.unit.out.get(c)]
        if len(here) != 1 or held.low < 0 or self.bias.get(c):
            return False
        direction, ((factor, bias, out), *_) = here[0]
        return direction.reads_only(c) and (factor, bias, out[c]) == (UNIT, 0, -UNIT)


def _rounded_once(x: Number) -> Terms:
    """A number that one addition makes."""
    size = max(abs(x.low), abs(x.high))
    up, down = size * (x.high > 0), size * (x.low < 0)
    noisy = ((UNIT, x.low, x.high),) * 2
    return Terms(x.code, x.low, x.high, up, down, 0, noisy, 2)


class Pieces:
    """sum of a relu(k s + b), and s itself where `own`, as a function of s."""

    def __init__(self, units: list[tuple[int, int, int]], own: bool):
        self.units, self.own = units, own

    def value(self, s: int) -> tuple[int, int]:
        """The function at s, rounded down and up."""
        total = sum(a * max(k * s + (b << 192), 0) for k, b, a in self.units)
        shift = s if self.own else 0
        return (total >> 384) + shift, ceil_shift(total, 384) + shift

    def span(self, low: int, high: int) -> tuple[int, int]:
        """Ends of its values between two numbers: it is linear but for its knots, each of which lies within one unit of an
        integer; the steepest slope covers that unit."""
        points, steep = [low, high], 0
        for k, b, a in self.units:
            knot = -(b << 192) // k if k else low
            if low < knot + 1 and knot < high:
                points += [min(max(x, low), high) for x in (knot, knot + 1)]
                if (b << 192) % k:
                    steep += ceil_shift(abs(a * k), 384) + 1
        values = [self.value(x) for x in points]
        return min(x for x, _ in values) - steep, max(x for _, x in values) + steep
