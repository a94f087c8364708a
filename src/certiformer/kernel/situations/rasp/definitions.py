"""Nodes that are linear combinations of others: by an affine map, by a table that turns out to be one, by an identity."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from certiformer.kernel.meanings.rasp import Node, Program, exact, is_exact, is_number
from certiformer.kernel.situations.rasp.circuit import Identity, rational
from certiformer.kernel.situations.rasp.domains import MOST
from certiformer.kernel.situations.rasp.evaluation import Evaluation
from certiformer.kernel.situations.rasp.lemmas import as_affine
from certiformer.kernel.situations.rasp.lemmas import known as has_values

LEVELS = 6  # how often the terms of a linear combination are replaced by their own definitions

Combination = tuple[dict[int, Fraction], Fraction]  # factors by node, and the offset


class Definitions(Evaluation):
    """Linear combinations that nodes are."""

    def __init__(self, graph: Program, steps: Iterable[Sequence] = ()):
        super().__init__(graph, steps)
        self._linear: list[tuple[int, Combination]] = []
        self._by_term: dict[int, list[int]] | None = None
        self._definitions: dict[int, Combination] = {}

    def add_identity(self, given: Identity) -> None:
        """Use an identity that was verified."""
        self.identities[given.node], self._by_term = given, None
        self._supports.clear()
        self._definitions.clear()

    def definitions(self, known: set[int]) -> list[tuple[int, Combination]]:
        """The nodes that are linear combinations of these variables, with their factors and offset; the longest first."""
        self._find_linear()
        chosen = {place for x in known for place in self._by_term.get(x, ())}  # type: ignore[union-attr]
        found = [self._linear[place] for place in chosen if set(self._linear[place][1][0]) <= known]
        return sorted(found, key=lambda pair: (-len(pair[1][0]), pair[0]))

    def _find_linear(self) -> None:
        """Definitions of nodes in terms of others, as they stand and with the terms' own definitions put in."""
        if self._by_term is not None:
            return
        self._linear, self._by_term = [], {}
        for number in range(len(self.graph.nodes)):
            if not has_values(self.node(number)) or not self._exact(number):
                continue
            terms, offset = self.linear_definition(number)
            for _ in range(LEVELS):
                for own in ((terms, offset), self._expanded(terms, offset, most=1)):  # a term may be a node's double
                    if len(own[0]) > 1 and self.domain(number)[-1] is not None:
                        for x in own[0]:
                            self._by_term.setdefault(x, []).append(len(self._linear))
                        self._linear.append((number, own))
                before = terms
                terms, offset = self._expanded(terms, offset)
                if terms == before:
                    break

    def _expanded(self, terms: dict[int, Fraction], offset: Fraction, most: int = MOST) -> Combination:
        """Every term replaced by its own definition, where it has one with at most so many terms."""
        total: dict[int, Fraction] = {}
        for x, factor in terms.items():
            inner, shift = self.linear_definition(x)
            inner = inner if len(inner) <= most else {}
            offset += factor * shift if inner else 0
            for y, f in (inner or {x: Fraction(1)}).items():
                total[y] = total.get(y, Fraction(0)) + factor * f
        return {x: f for x, f in total.items() if f}, offset

    def linear_definition(self, number: int) -> Combination:
        """Factors and offset of a node that is a linear combination of others, by an affine map or an identity."""
        if number not in self._definitions:
            self._definitions[number] = self._definition_of(number, self.node(number))
        return self._definitions[number]

    def _definition_of(self, number: int, node: Node) -> Combination:
        # Floats are rounded on the way: (a + x) - (a + y) is not x - y.
        affine = as_affine(node) if node.kind == "map" and all(map(self._exact, node.inputs)) else None
        if affine is not None:
            pairs, offset = list(zip(affine.factors, node.inputs, strict=True)), Fraction(affine.offset)
        elif node.kind == "map" and len(node.inputs) == 1 and self._defined_numbers(number, *node.inputs):
            return self._even_table(number, node.inputs[0])
        elif number in self.identities:
            given = self.identities[number]
            pairs, offset = [(rational(f), x) for f, x in given.terms], rational(given.offset)
        else:
            return {}, Fraction(0)
        terms: dict[int, Fraction] = {}
        for factor, x in pairs:
            if self._fixed(x):
                if not is_exact(self.domain(x)[0]):
                    return {}, offset
                offset += Fraction(factor) * exact(self.domain(x)[0])
            else:
                terms[x] = terms.get(x, Fraction(0)) + Fraction(factor)
        return {x: f for x, f in terms.items() if f}, offset

    def _defined_numbers(self, *numbers: int) -> bool:
        return all(self.listed(x) and self._exact(x) and self.domain(x)[-1] is not None for x in numbers)

    def _even_table(self, number: int, x: int) -> Combination:
        """A function of one node that turns out to be affine."""
        value_of = self.evaluator(number, [x])
        values = [value_of((p,)) for p in range(len(self.domain(x)))]
        if len(values) < 2 or not all(map(is_number, values)):
            return {}, Fraction(0)
        points = [(exact(a), exact(v)) for a, v in zip(self.domain(x), values, strict=True)]
        (a, v), (b, w) = points[0], points[-1]
        slope = (w - v) / (b - a) if a != b else Fraction(0)
        even = slope and all(y == v + slope * (t - a) for t, y in points)
        return ({x: slope}, v - slope * a) if even else ({}, Fraction(0))
