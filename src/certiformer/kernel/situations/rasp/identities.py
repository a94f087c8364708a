"""Identities between nodes, verified pair of positions by pair of positions.

A count at position i is a sum over positions j: a width adds [j is selected], the length adds 1, a mean times the width of
its own selector adds [j is selected] v_j. Let d(i, j) be what all terms of an identity, minus its node, add for the pair.
Which pairs are selected depends on atoms (see `pairs`). If d(i, j) has the same value k(i, j) for all truths of the atoms
that are not known and all values v_j, and k(i, j) = 0 for j > i (the input may end anywhere after i), then the identity
holds at every position if

    sum over j <= i of k(i, j)  +  constants and functions of the index at i  =  0   for every i.

A mean times a width is undefined where nothing is selected and the default is: then every position must select itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import product
from math import prod

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import Value, exact, is_exact, is_number
from certiformer.kernel.situations.rasp.circuit import Identity, rational
from certiformer.kernel.situations.rasp.closure import mean_and_width
from certiformer.kernel.situations.rasp.counted_means import check_aggregate
from certiformer.kernel.situations.rasp.pairs import MOST_CASES, Counted, Pairs, of_indices
from certiformer.kernel.situations.rasp.variables import Variables


def verify_identities(variables: Variables, identities: Iterable[Identity]) -> None:
    """Add the identities to the variables; raises `Refused` for one that does not hold."""
    for each in identities:
        if each.node in variables.identities:
            raise Refused(f"the circuit states two identities for {variables.name(each.node)}")
        if any(_reaches(variables, other, each.node) for _, other in each.terms):
            raise Refused(f"the identity of {variables.name(each.node)} explains a node by itself")
        try:
            if variables.node(each.node).kind == "aggregate":
                check_aggregate(variables, each)
            else:
                _Check(variables, each).verify()
        except Refused as problem:
            raise Refused(f"the identity of {variables.name(each.node)} is not proved: {problem}") from None
        variables.add_identity(each)


def _reaches(variables: Variables, start: int, goal: int) -> bool:
    """Whether a node is explained through `goal`, by maps or identities."""
    open_ends, seen = [start], set()
    while open_ends:
        number = open_ends.pop()
        if number == goal:
            return True
        if number not in seen:
            seen.add(number)
            known = variables.identities.get(number)
            open_ends += [] if known is None else [other for _, other in known.terms]
            open_ends += variables.node(number).inputs if variables.node(number).kind == "map" else ()
    return False


class _Check:
    """One identity between counts."""

    def __init__(self, variables: Variables, given: Identity):
        self.variables, self.length = variables, variables.graph.length
        self.counted: list[Counted] = []
        self.local: list[tuple[Fraction, Callable[[tuple[int, ...]], Value]]] = []
        self.offset = rational(given.offset)
        for factor, number in ((-1, given.node), *given.terms):
            self._add(rational(factor), number)
        self.values = sorted({term.value for term in self.counted if term.value is not None})
        self.pairs = Pairs(variables, self.counted, set(self.values))

    def _add(self, factor: Fraction, number: int) -> None:
        v, node = self.variables, self.variables.node(number)
        if node.kind == "width":
            self.counted.append(Counted(factor, node.inputs[0]))
        elif node.kind == "length":
            self.counted.append(Counted(factor, None))
        elif (summed := self._sum(number)) is not None:
            self.counted.append(Counted(factor, *summed))
        else:
            v.support(number, {v.indices})
            self.local.append((factor, v.evaluator(number, [v.indices])))

    def _sum(self, number: int) -> tuple[int, int] | None:
        """Selector and value of a mean times the width of its own selector."""
        found = mean_and_width(self.variables.facts, self.variables.node(number))
        if found is None:
            return None
        mean = self.variables.node(found[0])
        selector, value = mean.inputs
        if not self.variables.listed(value) or not all(
            x is not None and is_exact(x) for x in self.variables.domain(value)
        ):
            raise Refused("it adds up values that are not listed exact numbers")
        if not (mean.constant is not None and is_exact(mean.constant)) and not self._reflexive(selector):
            raise Refused("nothing may be selected, and the sum is undefined then")
        return selector, value

    def _reflexive(self, selector: int) -> bool:
        """Whether every position selects itself: by the facts, or by the tables of index comparisons."""

        def one(part: int) -> bool:
            if self.variables.facts.holds("reflexive", part):
                return True
            table = of_indices(self.variables, part)
            return table is not None and all(row[i] for i, row in enumerate(table))

        return all(map(one, self.variables.conjuncts(selector)))

    def verify(self) -> None:
        known: dict[tuple, Fraction] = {}

        def total(i: int, j: int) -> Fraction:
            case = self.pairs.at(i, j)
            if case not in known:
                known[case] = self._difference(case)
            return known[case]

        simple = self.pairs.only_order
        for i in range(self.length):
            ahead = range(i + 1, min(i + 2, self.length) if simple else self.length)
            if any(total(i, j) for j in ahead):
                raise Refused(f"positions after {i} count, and an input may end before them")
            before = total(i, 0) * i if simple and i else sum((total(i, j) for j in range(i)), Fraction(0))
            rest = before + total(i, i) + self.offset
            for factor, value_of in self.local:
                value = value_of((i,))
                if value is None or not is_number(value):
                    raise Refused(f"a term is not a number at position {i}")
                rest += factor * exact(value)
            if rest:
                raise Refused(f"the two sides differ by {abs(rest)} at position {i}")

    def _difference(self, known: tuple) -> Fraction:
        """d(i, j), which must not depend on anything else."""
        domains = [range(len(self.variables.domain(value))) for value in self.values]
        count = self.pairs.count * prod(map(len, domains))
        if count > MOST_CASES:
            raise Refused(f"its comparisons and the summed values have {count:,} cases, which are too many")
        found = set()
        for places in product(*domains):
            at = dict(zip(self.values, places, strict=True))
            for atoms in self.pairs.cases(at, known):
                held = [term for term in self.counted if self.pairs.holds(term.selector, atoms)]
                found.add(sum((self._adds(term, at) for term in held), Fraction(0)))
        if len(found) != 1:
            raise Refused("it depends on comparisons that may be true or false")
        return found.pop()

    def _adds(self, term: Counted, at: dict[int, int]) -> Fraction:
        return term.factor * (1 if term.value is None else exact(self.variables.domain(term.value)[at[term.value]]))
