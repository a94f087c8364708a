"""Which pairs of positions are selected, when some comparisons are known and all others may be true or false.

Atoms of a selector are its comparisons. Those of the two indices are known from the positions (`tables`), those that
compare a function of one key value with a constant from that value (`keyed`); all others are `free`. Free atoms that
compare functions of the same two nodes exclude or imply each other (< and ==): only truths that some pair of values has are
considered.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import Table
from certiformer.kernel.situations.rasp.domains import MOST, Side
from certiformer.kernel.situations.rasp.variables import Variables

MOST_CASES = 200_000
MOST_POSITIONS = 4 * MOST  # pairs of positions in one table


@dataclass(frozen=True)
class Counted:
    """factor * sum over the selected positions (all of them: None) of the number at `value` (None: one)."""

    factor: Fraction
    selector: int | None
    value: int | None = None


class Pairs:
    """The atoms of some counted sums, sorted by what is known about them."""

    def __init__(self, variables: Variables, counted: Iterable[Counted], values: set[int]):
        self.variables, self.length, self.values = variables, variables.graph.length, values
        leaves = {a for term in counted if term.selector is not None for a in self._atoms(term.selector)}
        self.tables = {a: table for a in leaves if (table := of_indices(variables, a)) is not None}
        self.keyed = {a: table for a in leaves - set(self.tables) if (table := self._of_value(a)) is not None}
        self.free = self._possible(leaves - set(self.tables) - set(self.keyed))
        self.order = sorted(self.tables)
        self.count = prod(len(truths) for _, truths in self.free)
        if self.count > MOST_CASES:
            raise Refused(f"its comparisons may be true or false in {self.count:,} ways, which are too many")

    def _possible(self, atoms: set[int]) -> list[tuple[tuple[int, ...], list[tuple[bool, ...]]]]:
        """Atoms that compare functions of the same two nodes, and the truths that they can have together."""
        found: dict[tuple[int, ...], list[int]] = {}
        for atom in sorted(atoms):
            pair = tuple(map(self._root, self.variables.node(atom).inputs))
            found.setdefault(pair or (-1, atom), []).append(atom)
        return [(tuple(own), self._truths(pair, own)) for pair, own in found.items()]

    def _root(self, number: int) -> int:
        """The node that a chain of maps of one node begins with."""
        node = self.variables.node(number)
        while node.kind == "map" and len(set(node.inputs)) == 1:
            number, node = node.inputs[0], self.variables.node(node.inputs[0])
        return number

    def _truths(self, pair: tuple[int, ...], atoms: list[int]) -> list[tuple[bool, ...]]:
        v = self.variables
        if pair[0] < 0 or not all(map(v.listed, pair)) or prod(len(v.domain(x)) for x in pair) > MOST:
            return list(product((False, True), repeat=len(atoms)))
        tables = []
        for atom in atoms:
            values = [(node, v.evaluator(node, [root])) for node, root in zip(v.node(atom).inputs, pair, strict=True)]
            places = [range(len(v.domain(root))) for root in pair]
            sides = [Side((node,), [(f((p,)),) for p in own]) for (node, f), own in zip(values, places, strict=True)]
            tables.append(v.truth(atom, *sides))
        return sorted({truths for rows in zip(*tables, strict=True) for truths in zip(*rows, strict=True)})

    def _atoms(self, selector: int) -> set[int]:
        node = self.variables.node(selector)
        return {selector} if node.kind in ("select", "pattern") else {a for i in node.inputs for a in self._atoms(i)}

    def _of_value(self, atom: int) -> tuple[int, list[bool]] | None:
        """A value that decides an atom alone, and the truth by its place."""
        v, node = self.variables, self.variables.node(atom)
        for value in self.values if node.kind == "select" else ():
            key, query = node.inputs
            if v.follows(key, {value}) and v.follows(query, set()):
                keys = Side((key,), [(v.evaluator(key, [value])((p,)),) for p in range(len(v.domain(value)))])
                return value, v.truth(atom, keys, Side((query,), [(v.evaluator(query, [])(()),)]))[0]
        return None

    @property
    def only_order(self) -> bool:
        """Whether only the order of the two positions matters."""
        v = self.variables
        nodes = [v.node(a) for a in self.order]
        return all(n.inputs == (v.indices, v.indices) and not isinstance(n.function, Table) for n in nodes)

    def at(self, i: int, j: int) -> tuple:
        """What is known about the pair of query i and key j; equal for pairs that need not be told apart."""
        return ((j > i) - (j < i), *(self.tables[a][i][j] for a in self.order))

    def cases(self, places: dict[int, int], known: tuple | None = None) -> Iterator[dict[int, bool]]:
        """All truths of the atoms that are possible with these values, for one pair (`at`) or for any."""
        options = [known[1:]] if known is not None else product((False, True), repeat=len(self.order))
        keyed = {a: row[places[value]] for a, (value, row) in self.keyed.items()}
        for given in options:
            for truths in product(*(options for _, options in self.free)):
                atoms = keyed | dict(zip(self.order, given, strict=True))
                for (names, _), values in zip(self.free, truths, strict=True):
                    atoms.update(zip(names, values, strict=True))
                yield atoms

    def holds(self, selector: int | None, atoms: dict[int, bool]) -> bool:
        """Whether a selector is true."""
        if selector is None:
            return True
        if selector in atoms:
            return atoms[selector]
        node = self.variables.node(selector)
        parts = [self.holds(i, atoms) for i in node.inputs]
        return not parts[0] if node.kind == "not" else all(parts) if node.kind == "and" else any(parts)


def of_indices(variables: Variables, selector: int) -> list[list[bool]] | None:
    """The truth of a selector of the two indices alone, a row for every query; None when it depends on more."""
    leaves = variables.leaves(selector)
    sides = [{pair[s] for pair in leaves} for s in (0, 1)]
    if not all(variables.follows(node, {variables.indices}) for node in sides[0] | sides[1]):
        return None
    if variables.graph.length**2 > MOST_POSITIONS:
        raise Refused(f"the pairs of {variables.graph.length:,} positions are more than the checker enumerates")
    made = []
    for nodes in sides:
        evaluators = [variables.evaluator(node, [variables.indices]) for node in nodes]
        cases = [tuple(f((i,)) for f in evaluators) for i in range(variables.graph.length)]
        made.append(Side(tuple(nodes), cases))
    return variables.truth(selector, *made)
