"""What the values of a node can be, its domain, and which of them a selector selects.

A *variable* is a node of the extended program; its domain is the list of its values, and undefined (None) last when it can
occur. Numbers too many to list are represented by the two ends of their interval, and only affine functions of them are
followed: what holds at both ends up to an error then holds in between up to the same error.

A value that has no place in a domain is *refused*; nothing is taken to be impossible because it was not found in a list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import (
    PREDICATES,
    Node,
    Program,
    Table,
    Value,
    exact,
    identity,
    is_exact,
    is_number,
    settled,
    spelled,
)
from certiformer.kernel.situations.numbers import BITS
from certiformer.kernel.situations.rasp.closure import Span, proved_facts, span_of
from certiformer.kernel.situations.rasp.lemmas import known, listed

MOST = 4_000_000  # combinations of variables in one enumeration
TOLERANCE = 1 << 2 * BITS - 112  # in units of 2^-2 BITS: features that are no binary fractions are rounded
LONGEST_NAME = 60  # characters of a node's name in a message


@dataclass(frozen=True)
class Side:
    """The nodes that a selector compares on one side, and their values in every case, one tuple a case."""

    nodes: tuple[int, ...]
    values: list[tuple[Value, ...]]

    def values_of(self, node: int) -> list[Value]:
        at = self.nodes.index(node)
        return [case[at] for case in self.values]


class Domains:
    """The nodes of the extended program and their domains: the values proposed for them, which have been checked."""

    def __init__(self, graph: Program, steps: Iterable[Sequence] = ()):
        self.graph, self.facts = graph, proved_facts(graph, steps)
        self._domains: dict[int, list[Value]] = {}
        self._places: dict[int, dict[tuple, int]] = {}
        self._named: dict[int, dict[Fraction | int, Value]] = {}
        kinds = {node.kind: number for number, node in enumerate(graph.nodes)}
        self.tokens, self.indices = kinds.get("tokens", -1), kinds.get("indices", -2)
        self.length = kinds.get("length")

    def node(self, number: int) -> Node:
        if not 0 <= number < len(self.graph.nodes):
            raise Refused(f"the circuit speaks of node {number}, which the extended program does not have")
        return self.graph.nodes[number]

    def name(self, number: int) -> str:
        """What messages call a variable: its name in the program, in quotes where it could read like a part of them."""
        own = shown(self.node(number).name) if number >= 0 else ("tokens", "indices")[-1 - number]
        odd = not own.isascii() or not own.replace("_", "").isalnum()
        return f'"{own.replace(chr(34), "")}"' if own and odd else own or f"node {number}"

    def listed(self, number: int) -> bool:
        return number < 0 or listed(self.node(number)) is not None

    def span(self, number: int) -> Span | None:
        """The span of a node whose values are too many to list."""
        node = self.node(number)
        return None if node.values is None else span_of(node.values)

    def _fixed(self, number: int) -> bool:
        """Whether a node has one value only."""
        return self.listed(number) and len(self.domain(number)) == 1

    def _exact(self, number: int) -> bool:
        return not self.listed(number) or all(x is None or is_exact(x) for x in self.domain(number))

    def domain(self, number: int) -> list[Value]:
        """The values of a node, None last where undefined can occur; the two ends where they are too many to list."""
        if number not in self._domains:
            if number < 0:
                found: list[Value] = list(self.graph.vocab) if number == -1 else list(range(self.graph.length))
            else:
                node, span = self.node(number), self.span(number)
                if not known(node):
                    raise Refused(f"the values of {self.name(number)} are not known")
                ends = (settled(span.low), settled(span.high)) if span else listed(node) or ()
                found = [*ends, *([None] if node.values.undefined else [])]  # type: ignore[union-attr]
            self._domains[number] = found
            self._places[number] = {identity(value): place for place, value in enumerate(found)}
        return self._domains[number]

    def place(self, number: int, value: Value) -> int:
        """The place of a value in a node's domain."""
        self.domain(number)
        found = self._places[number].get(identity(value))
        if found is None:
            raise Refused(f"{self.name(number)} has the value {said(value)}, which is not in the list of its values")
        return found

    def takes(self, number: int, value: Value) -> bool:
        """Whether a value is in the list of a node's values, or in its interval."""
        domain = self.domain(number)
        if value is None or self.listed(number):
            return identity(value) in self._places[number]
        return is_number(value) and exact(domain[0]) <= exact(value) <= exact(domain[1])

    def named(self, number: int, total: Fraction | int) -> Value:
        """The value of a node that is this number: 1 is True in a node of truth values; the number itself when none is."""
        plain = settled(total)
        if not self.listed(number):
            return plain
        if number not in self._named:
            values = [x for x in self.domain(number) if is_number(x)]
            by_number: dict[Fraction | int, Value] = {exact(x): x for x in values}
            if len(by_number) < len(values):
                raise Refused(f"{self.name(number)} has two values that are the same number")
            self._named[number] = by_number
        return self._named[number].get(total, plain)

    def slope(self, number: int, values: list[int]) -> Fraction | None:
        """The factor by which `values` grow with the numbers of a domain, if they do so evenly up to TOLERANCE."""
        domain = self.domain(number)
        if len(domain) < 2 or not self.listed(number) or not all(x is not None and is_exact(x) for x in domain):
            return None
        numbers = [exact(x) for x in domain]
        if numbers[0] == numbers[-1]:
            return None
        slope = (values[-1] - values[0]) / (numbers[-1] - numbers[0])
        slope = (
            Fraction(round(slope / (1 << BITS // 2)) << BITS // 2) or slope
        )  # the stored weight, where features were rounded
        pairs = zip(values, numbers, strict=True)
        even = all(abs(v - values[0] - slope * (x - numbers[0])) <= TOLERANCE for v, x in pairs)
        return slope if even else None

    def truth(self, selector: int, keys: Side, queries: Side) -> list[list[bool]]:
        """Whether a selector holds: a row for every query, in it a truth value for every key."""
        node = self.node(selector)
        if node.kind == "select":
            return self._selected(node, keys, queries)
        if node.kind == "pattern":
            rows = node.constant[1:]
            inside = [k if k < len(rows) else None for k in keys.values_of(self.indices)]
            wanted = queries.values_of(self.indices)
            return [[q < len(rows) and k is not None and rows[q][k] for k in inside] for q in wanted]
        parts = [self.truth(i, keys, queries) for i in node.inputs]
        if node.kind == "not":
            return [[not x for x in row] for row in parts[0]]
        both = all if node.kind == "and" else any
        return [[both(pair) for pair in zip(*rows, strict=True)] for rows in zip(*parts, strict=True)]

    def _selected(self, node: Node, keys: Side, queries: Side) -> list[list[bool]]:
        relation, (key_node, query_node) = node.function, node.inputs
        known: dict[tuple, list[bool]] = {}
        values = keys.values_of(key_node)
        none = [False] * len(values)

        def row(query: Value) -> list[bool]:
            if query is None:
                return none
            if isinstance(relation, Table):
                q, width = self.place(query_node, query), relation.shape[1]
                return [k is not None and relation.entries[self.place(key_node, k) * width + q] == 1 for k in values]
            compare = PREDICATES[relation]  # type: ignore[index]
            return [k is not None and compare(k, query) for k in values]

        for query in queries.values_of(query_node):
            if identity(query) not in known:
                known[identity(query)] = row(query)
        return [known[identity(query)] for query in queries.values_of(query_node)]

    def leaves(self, selector: int) -> list[tuple[int, int]]:
        """The (key node, query node) pairs that a selector compares."""
        node = self.node(selector)
        if node.kind == "select":
            return [node.inputs]  # type: ignore[list-item]
        if node.kind == "pattern":
            return [(self.indices, self.indices)]
        return [pair for i in node.inputs for pair in self.leaves(i)]

    def conjuncts(self, selector: int) -> list[int]:
        """The selectors that are joined by `and`."""
        node = self.node(selector)
        return [c for i in node.inputs for c in self.conjuncts(i)] if node.kind == "and" else [selector]


def said(value: Value) -> str:
    """A value as messages show it.

    >>> said(None), said(Fraction(1, 3)), said("a")
    ('undefined', '1/3', "'a'")
    """
    return "undefined" if value is None else str(value) if type(value) is Fraction else spelled(value)


def shown(name: str) -> str:
    """A name out of a file as messages show it: cut, and without characters that move a terminal's cursor."""
    cut = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 3] + "..."
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in cut)
