"""What the values of one position can be together: all combinations of the nodes that a sub-layer reads.

Other nodes at the same position follow from these (`evaluation`); a combination that makes one of them impossible occurs on
no input and is skipped. So is an index that is not below the length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

from certiformer.checker.margin.definitions import Definitions
from certiformer.checker.margin.domains import IMPOSSIBLE, MOST
from certiformer.checker.rules.refusal import Refused
from certiformer.rasp.graph import Graph


class Variables(Definitions):
    """Everything that the checker knows about the values of the extended program."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self._allowed: dict[tuple[int, int], set[tuple[int, int]] | None] = {}

    def base(self, variables: Sequence[int]) -> list[int]:
        """The variables from which all of them follow: those that do not follow from the others."""
        found = list(variables)
        for x in sorted(variables, reverse=True):
            rest = set(found) - {x}
            if self.follows(x, rest):
                found.remove(x)
        return found

    def linked(self, variables: Iterable[int]) -> list[list[int]]:
        """Sets of variables that are not independent of each other."""
        known = set(variables)
        base = self.base(sorted(known))
        bonds = [[base[x], base[y]] for x, y, _ in self._bonds(base)]
        return bonds + [[x, *self.support(x, set(base))] for x in known - set(base)]

    def combinations(self, variables: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """All places of the variables at one position that can occur together, as far as maps and the length tell."""
        base = self.base(variables)
        sizes = [len(self.domain(v)) for v in base]
        count = prod(sizes)
        if count > MOST:
            names = ", ".join(map(self.name, base))
            raise Refused(f"{count:,} combinations of {names} are more than the {MOST:,} that the checker enumerates")
        places: Iterator[tuple[int, ...]] = product(*map(range, sizes))
        if self.length in base and self.indices in base:
            n, i = base.index(self.length), base.index(self.indices)  # type: ignore[arg-type]
            places = (x for x in places if x[i] <= x[n])  # the domain of length begins at 1, that of indices at 0
        for x, y, allowed in self._bonds(base):
            places = filter(lambda p, x=x, y=y, allowed=allowed: (p[x], p[y]) in allowed, places)
        if len(base) == len(variables):
            return places
        return self._completed(base, variables, places)

    def _bonds(self, base: list[int]) -> list[tuple[int, int, set[tuple[int, int]]]]:
        """Pairs of places that occur together, for a map and one of its two inputs: undefined goes with undefined."""
        found = []
        for x in base:
            inputs = self.node(x).inputs if x >= 0 and self.node(x).kind == "map" and self.listed(x) else ()
            for y in set(inputs) & set(base):
                if (x, y) not in self._allowed:
                    self._allowed[x, y] = self._together(x, y, inputs)
                allowed = self._allowed[x, y]
                if allowed is not None:
                    found.append((base.index(x), base.index(y), allowed))
        return found

    def _together(self, x: int, y: int, inputs: tuple[int, ...]) -> set[tuple[int, int]] | None:
        sizes = [len(self.domain(i)) for i in inputs]
        if prod(sizes) > MOST // 20 or not all(map(self.listed, inputs)):
            return None
        value_of, at = self.evaluator(x, list(inputs)), inputs.index(y)
        values = ((p[at], value_of(p)) for p in product(*map(range, sizes)))
        return {(self.place(x, value), p) for p, value in values if value is not IMPOSSIBLE}

    def _completed(
        self, base: list[int], variables: Sequence[int], places: Iterator[tuple[int, ...]]
    ) -> Iterator[tuple[int, ...]]:
        rest = [(x, self.evaluator(x, base)) for x in variables if x not in base]
        order = [(0, base.index(x)) if x in base else (1, [y for y, _ in rest].index(x)) for x in variables]
        for own in places:
            values = [(x, f(own)) for x, f in rest]
            more: list[Any] = [IMPOSSIBLE if value is IMPOSSIBLE else self.place(x, value) for x, value in values]
            if IMPOSSIBLE not in more:
                yield tuple([(own, more)[side][at] for side, at in order])
