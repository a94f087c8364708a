"""Rows in situations: base terms, cells that are functions of them, and what the coordinates of a row hold.

A *base* is a term of the meaning with a finite domain (the symbol of a row, the state before it, where a row stands in
time). A *cell* is a function of bases. The situations of a set of cells are all combinations of the bases that they are
functions of, except those that break an *equation* of the meaning, evaluated on that very combination. Leaving an
equation out only adds situations. Checked and excluded situations are counted and must be the product of the domains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, NamedTuple

from certiformer.kernel import Refused
from certiformer.kernel.situations.numbers import UNIT, ZERO, Number, Terms, gathered, sure, term

MOST = 4_000_000  # situations in one check

Value = Any  # of a base or a cell; hashable


@dataclass(frozen=True)
class Cell:
    """A term of the meaning at one row: its values, the bases that it follows from, and how."""

    domain: tuple[Value, ...]
    bases: tuple[str, ...]
    value: Callable[..., Value]


class Equation(NamedTuple):
    """An equation of the meaning between bases, with the reason that is counted where it fails."""

    reason: str
    bases: tuple[str, ...]
    holds: Callable[..., bool]


@dataclass(frozen=True)
class Link:
    """Row i and the one row `target(i)`: what a cell there (key) is called here (value); part of the meaning."""

    target: Callable[[int], int]
    brings: Mapping[str, str]


@dataclass
class Tally:
    """How many situations there were, and what became of them."""

    total: int = 0
    checked: int = 0
    excluded: Counter[str] = field(default_factory=Counter)

    def close(self, total: int, checked: int, excluded: Counter[str]) -> None:
        if checked + excluded.total() != total:
            raise Refused(
                f"{checked + excluded.total():,} of {total:,} situations were checked or excluded, which must be all"
            )
        self.total, self.checked = self.total + total, self.checked + checked
        self.excluded.update(excluded)


@dataclass(frozen=True)
class Meaning:
    """What a row can be: bases with their domains, cells, equations; `tally` counts what was checked."""

    bases: Mapping[str, tuple[Value, ...]]
    cells: Mapping[str, Cell]
    equations: tuple[Equation, ...] = ()
    links: Mapping[str, Link] = field(default_factory=dict)
    tally: Tally = field(default_factory=Tally, compare=False)
    known: dict[tuple[str, ...], list[tuple[int, ...]]] = field(default_factory=dict, compare=False)

    def restricted(self, base: str, domain: tuple[Value, ...]) -> Meaning:
        """The same where a base takes some of its values only."""
        if not set(domain) <= set(self.bases[base]):
            raise Refused(f"{base} is restricted to values that it does not have")
        return replace(self, bases={**self.bases, base: domain}, known={})

    def with_cell(self, name: str, cell: Cell) -> Meaning:
        """The same where a cell is defined otherwise."""
        return replace(self, cells={**self.cells, name: cell}, known={})

    def cell(self, name: str) -> Cell:
        if name not in self.cells:
            raise Refused(f"the plan speaks of a cell {name!r} that the meaning does not have")
        return self.cells[name]

    def situations(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        """The places of the values that these cells have together, each combination once."""
        key = tuple(names)
        if key not in self.known:
            self.known[key] = self._situations(names)
        return self.known[key]

    def _situations(self, names: Sequence[str]) -> list[tuple[int, ...]]:
        cells = [self.cell(name) for name in names]
        bases = sorted({base for cell in cells for base in cell.bases})
        count = prod(len(self.bases[base]) for base in bases)
        if count > MOST:
            raise Refused(
                f"{count:,} combinations of {', '.join(bases)} are more than the {MOST:,} that are enumerated"
            )
        equations = [equation for equation in self.equations if set(equation.bases) <= set(bases)]
        places = [{value: place for place, value in enumerate(cell.domain)} for cell in cells]
        picks = [[bases.index(base) for base in cell.bases] for cell in cells]
        tests = [(e.reason, [bases.index(base) for base in e.bases], e.holds) for e in equations]
        excluded: Counter[str] = Counter()
        found: dict[tuple[int, ...], None] = {}
        checked = 0
        for own in product(*(self.bases[base] for base in bases)):
            broken = next((why for why, at, holds in tests if not holds(*(own[i] for i in at))), None)
            if broken is not None:
                excluded[broken] += 1
                continue
            checked += 1
            case = []
            for name, cell, known, at in zip(names, cells, places, picks, strict=True):
                value = cell.value(*(own[i] for i in at))
                if value not in known:
                    raise Refused(f"the cell {name!r} takes a value that is not in its list: {value!r}")
                case.append(known[value])
            found[tuple(case)] = None
        self.tally.close(count, checked, excluded)
        return list(found)


class Content(NamedTuple):
    """A coordinate of the rows: the cell that it is a function of (None: a constant), and its number for every value.

    `start`: what the register holds there, for a transformer that has one.
    """

    cell: str | None
    numbers: tuple[Number, ...]
    start: Number = ZERO

    @property
    def empty(self) -> bool:
        return self.start == ZERO and all(number == ZERO for number in self.numbers)

    def within(self, other: Content) -> bool:
        ours = other.cell is None or self.cell == other.cell
        numbers = self.numbers * (len(other.numbers) if self.cell is None else 1)
        inner = all(
            a.within(b) for a, b in zip(numbers, other.numbers * (len(numbers) // len(other.numbers)), strict=True)
        )
        return ours and inner and self.start.within(other.start)

    def hull(self, other: Content) -> Content:
        numbers = tuple(a.hull(b) for a, b in zip(self.numbers, other.numbers, strict=True))
        return Content(self.cell, numbers, self.start.hull(other.start))


EMPTY = Content(None, (ZERO,))
Contents = list[Content]


class Form:
    """A linear form of the coordinates, split by cell: weights by coordinate, and a bias."""

    def __init__(self, contents: Sequence[Content], weights: Mapping[int, int], bias: int = 0):
        used = {c: w for c, w in weights.items() if w and not contents[c].empty}
        self.weights, self.bias = used, bias
        fixed = [term(UNIT, sure(bias))] if bias else []
        fixed += [term(w, contents[c].numbers[0]) for c, w in used.items() if contents[c].cell is None]
        self.constant = gathered(fixed)
        begins = [term(w, contents[c].start) for c, w in used.items()]
        self.start = gathered([*begins, *([fixed[0]] if bias else [])])
        names = sorted({name for c in used if (name := contents[c].cell) is not None})
        self.parts: dict[str, list[Terms]] = {}
        for name in names:
            own = [(w, contents[c].numbers) for c, w in used.items() if contents[c].cell == name]
            sizes = {len(numbers) for _, numbers in own}
            if len(sizes) != 1:
                raise Refused(f"coordinates give the cell {name!r} different numbers of values")
            self.parts[name] = [gathered(term(w, numbers[v]) for w, numbers in own) for v in range(sizes.pop())]

    @property
    def cells(self) -> tuple[str, ...]:
        return tuple(self.parts)

    def at(self, places: Mapping[str, int]) -> Terms:
        """The sum in the situation where cells have these places."""
        total = self.constant
        for name, own in self.parts.items():
            part = own[places[name]]
            if part.count:
                total = total.plus(part) if total.count else part
        return total
