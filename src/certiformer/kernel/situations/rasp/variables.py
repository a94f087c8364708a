"""What the values of one position can be together: all combinations of the nodes that a sub-layer reads.

Other nodes at the same position follow from these (`evaluation`). A combination is left out where a node differs from what
defines it, where an index is not below the length, or where a map does not go with one of its inputs; each is counted
(`cells.Tally`). Numbers too many to list are never left out: they stand for themselves, by the ends of their interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import Program, Value
from certiformer.kernel.situations.cells import Tally
from certiformer.kernel.situations.rasp.definitions import Definitions
from certiformer.kernel.situations.rasp.domains import MOST
from certiformer.kernel.situations.rasp.evaluation import Contradiction, Evaluator

Case = tuple[tuple[int, ...], list[Value]]  # places of what is read, values of the nodes asked for
Equation = tuple[str, Callable[[tuple[int, ...]], bool]]  # its name, and whether it holds for places of the base

NOT_BELOW_LENGTH = "an index is not below the length"
NOT_ITS_INPUT = "a map does not go with its input"
NOT_ITS_DEFINITION = "a node differs from what defines it"


class Variables(Definitions):
    """Everything that the checker knows about the values of the extended program."""

    def __init__(self, graph: Program, steps: Iterable[Sequence] = ()):
        super().__init__(graph, steps)
        self.tally = Tally()  # of all checks
        self._allowed: dict[tuple[int, int], set[tuple[int, int]] | None] = {}

    def base(self, variables: Sequence[int]) -> list[int]:
        """The variables from which all of them follow: those that do not follow from the others, or have no list."""
        kept = list(variables)
        for x in sorted(variables, reverse=True):
            rest = set(kept) - {x}
            if self.listed(x) and self.follows(x, rest):
                kept.remove(x)
        return kept

    def linked(self, variables: Iterable[int]) -> list[list[int]]:
        """Sets of variables that are not independent of each other."""
        known = set(variables)
        base = self.base(sorted(known))
        bonds = [[base[x], base[y]] for x, y, _ in self._bonds(base)]
        return bonds + [[x, *self.support(x, set(base))] for x in known - set(base)]

    def cases(self, read: Sequence[int], nodes: Sequence[int] = ()) -> Iterator[Case]:
        """All cases of the variables at one position, and the values of nodes that follow from them."""
        base = self.base(read)
        sizes = [len(self.domain(x)) for x in base]
        if prod(sizes) > MOST:
            names, count = ", ".join(map(self.name, base)), f"{prod(sizes):,}"
            raise Refused(f"{count} combinations of {names} are more than the {MOST:,} that the checker enumerates")
        total, checked, excluded = prod(len(self.domain(x)) for x in read), 0, Counter()
        share = total // max(prod(sizes), 1)  # cases that differ in what follows only
        completed, values_of = self._completed(base, read), [self.evaluator(node, read) for node in nodes]
        for own, broken in self._judged(base, sizes):
            if broken is not None:
                excluded[broken] += share
                continue
            try:
                places = completed(own)
                values = [value_of(places) for value_of in values_of]
            except Contradiction as contradiction:
                excluded[str(contradiction)] += share
                continue
            checked += 1
            excluded[NOT_ITS_DEFINITION] += share - 1
            yield places, values
        self.tally.close(total, checked, +excluded)

    def _judged(self, base: list[int], sizes: list[int]) -> Iterator[tuple[tuple[int, ...], str | None]]:
        """All combinations of places, each with the equation that it breaks, if there is one."""
        equations = self._equations(base)
        for own in product(*map(range, sizes)):
            yield own, next((name for name, holds in equations if not holds(own)), None) if equations else None

    def _equations(self, base: list[int]) -> list[Equation]:
        known: list[Equation] = []
        if self.length in base and self.indices in base and self.listed(self.indices) and self.listed(self.length):
            n, i = base.index(self.length), base.index(self.indices)
            indices, lengths = self.domain(self.indices), self.domain(self.length)
            known.append((NOT_BELOW_LENGTH, lambda own: indices[own[i]] < lengths[own[n]]))
        for x, y, allowed in self._bonds(base):
            known.append((NOT_ITS_INPUT, lambda own, x=x, y=y, allowed=allowed: (own[x], own[y]) in allowed))
        return known

    def _bonds(self, base: list[int]) -> list[tuple[int, int, set[tuple[int, int]]]]:
        """Pairs of places that occur together, for a map and one of its two inputs: undefined goes with undefined."""
        bonds = []
        for x in base:
            inputs = self.node(x).inputs if x >= 0 and self.node(x).kind == "map" and self.listed(x) else ()
            for y in set(inputs) & set(base):
                if (x, y) not in self._allowed:
                    self._allowed[x, y] = self._together(x, y, inputs)
                allowed = self._allowed[x, y]
                if allowed is not None:
                    bonds.append((base.index(x), base.index(y), allowed))
        return bonds

    def _together(self, x: int, y: int, inputs: tuple[int, ...]) -> set[tuple[int, int]] | None:
        sizes = [len(self.domain(i)) for i in inputs]
        if prod(sizes) > MOST // 20 or not all(map(self.listed, inputs)):
            return None
        order = list(dict.fromkeys(inputs))
        return {(self.place(x, value), places[order.index(y)]) for places, (value,) in self.cases(order, [x])}

    def _completed(self, base: list[int], read: Sequence[int]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
        """The places of everything that is read, from those of the base."""
        if list(read) == base:
            return lambda own: own

        def place_in(x: int) -> Callable[[tuple[int, ...]], int]:
            if x in base:
                at = base.index(x)
                return lambda own: own[at]
            value_of: Evaluator = self.evaluator(x, base)
            return lambda own: self.place(x, value_of(own))

        steps = [place_in(x) for x in read]
        return lambda own: tuple([step(own) for step in steps])
