"""What the values of one position can be: the nodes that a sub-layer reads, and the nodes that follow from them.

A *variable* is a node of the extended program; its domain is the list of its values, and undefined (None) last when it can
occur. Numbers too many to list are represented by the two ends of their interval, and only affine functions of them are
followed: what holds at both ends up to an error then holds in between up to the same error.

From the variables that are read, other nodes at the same position follow through maps, written lists (functions of the
index) and identities. The value sets contain every value that occurs (`rasp.values`), so a combination of variables
that gives a node a value outside its set occurs on no input: it is skipped. So is an index that is not below the length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

from certiformer.checker.rules.refusal import Refused
from certiformer.rasp.circuit import Identity, rational
from certiformer.rasp.graph import Graph, Node, Relation, Span, Table
from certiformer.rasp.meaning import Fault, apply
from certiformer.rasp.operation import TRUTHS, Operation, WithConstant, as_affine, is_exact
from certiformer.rasp.value import Value, exact, identity, is_number, reduced

MOST = 4_000_000  # combinations of variables in one enumeration
LEVELS = 6  # how often the terms of a linear combination are replaced by their own definitions
TOLERANCE = 1 << 144  # in units of 2^-256: features that are no binary fractions are rounded
IMPOSSIBLE = object()  # a combination that occurs on no input

Evaluator = Callable[[tuple[int, ...]], Any]


@dataclass(frozen=True)
class Side:
    """The nodes that a selector compares on one side, and their values in every case, one tuple a case."""

    nodes: tuple[int, ...]
    values: list[tuple[Value, ...]]

    def values_of(self, node: int) -> list[Value]:
        at = self.nodes.index(node)
        return [case[at] for case in self.values]


class Variables:
    """The extended program, its identities, and the domains of its nodes."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self.identities: dict[int, Identity] = {}
        self._domains: dict[int, list[Value]] = {}
        self._places: dict[int, dict[tuple, int]] = {}
        self._linear: list[tuple[int, tuple[dict[int, Fraction], Fraction]]] = []
        self._by_term: dict[int, list[int]] | None = None
        self._allowed: dict[tuple[int, int], set[tuple[int, int]] | None] = {}
        self._supports: dict[tuple[int, frozenset[int]], set[int] | None] = {}
        self._definitions: dict[int, tuple[dict[int, Fraction], Fraction]] = {}
        kinds = {node.kind: number for number, node in enumerate(graph.nodes)}
        self.tokens, self.indices = kinds.get("tokens", -1), kinds.get("indices", -2)
        self.length = kinds.get("length")

    def add_identity(self, given: Identity) -> None:
        """Use an identity that was verified."""
        self.identities[given.node], self._by_term = given, None
        self._supports.clear()
        self._definitions.clear()

    def node(self, number: int) -> Node:
        if not 0 <= number < len(self.graph.nodes):
            raise Refused(f"the circuit speaks of node {number}, which the extended program does not have")
        return self.graph.nodes[number]

    def name(self, number: int) -> str:
        return f"node {number} ({self.node(number).name})" if number >= 0 else ("tokens", "indices")[-1 - number]

    def listed(self, number: int) -> bool:
        return number < 0 or getattr(self.node(number).values, "values", None) is not None

    def _fixed(self, number: int) -> bool:
        """Whether a node has one value only."""
        return self.listed(number) and len(self.domain(number)) == 1

    def domain(self, number: int) -> list[Value]:
        """The values of a node, None last where undefined can occur; the two ends where they are too many to list."""
        if number not in self._domains:
            if number < 0:
                found: list[Value] = list(self.graph.vocab) if number == -1 else list(range(self.graph.length))
            else:
                values = self.node(number).values
                if values is None or not values.known:
                    raise Refused(f"the values of {self.name(number)} are not known")
                ends = values.span or Span(Fraction(0), Fraction(0), None)
                listed = (reduced(ends.low), reduced(ends.high)) if values.values is None else values.values
                found = [*listed, *([None] if values.undefined else [])]
            self._domains[number] = found
            self._places[number] = {identity(value): place for place, value in enumerate(found)}
        return self._domains[number]

    def place(self, number: int, value: Value) -> Any:
        """The place of a value in a node's domain; `IMPOSSIBLE` when the node never takes it."""
        self.domain(number)
        return self._places[number].get(identity(value), IMPOSSIBLE)

    def slope(self, number: int, values: list[int]) -> Fraction | None:
        """The factor by which `values` grow with the numbers of a domain, if they do so evenly up to TOLERANCE."""
        domain = self.domain(number)
        if len(domain) < 2 or not self.listed(number) or not all(x is not None and is_exact(x) for x in domain):
            return None
        numbers = [exact(x) for x in domain]
        if numbers[0] == numbers[-1]:
            return None
        slope = (values[-1] - values[0]) / (numbers[-1] - numbers[0])
        slope = Fraction(round(slope / (1 << 64)) << 64) or slope  # the stored weight, where features were rounded
        pairs = zip(values, numbers, strict=True)
        even = all(abs(v - values[0] - slope * (x - numbers[0])) <= TOLERANCE for v, x in pairs)
        return slope if even else None

    def definitions(self, known: set[int]) -> list[tuple[int, tuple[dict[int, Fraction], Fraction]]]:
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
            if getattr(self.node(number).values, "known", False) is False or not self._exact(number):
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

    def _expanded(
        self, terms: dict[int, Fraction], offset: Fraction, most: int = MOST
    ) -> tuple[dict[int, Fraction], Fraction]:
        """Every term replaced by its own definition, where it has one with at most so many terms."""
        total: dict[int, Fraction] = {}
        for x, factor in terms.items():
            inner, shift = self.linear_definition(x)
            inner = inner if len(inner) <= most else {}
            offset += factor * shift if inner else 0
            for y, f in (inner or {x: Fraction(1)}).items():
                total[y] = total.get(y, Fraction(0)) + factor * f
        return {x: f for x, f in total.items() if f}, offset

    def linear_definition(self, number: int) -> tuple[dict[int, Fraction], Fraction]:
        """Factors and offset of a node that is a linear combination of others, by an affine map or an identity."""
        if number not in self._definitions:
            self._definitions[number] = self._definition_of(number, self.node(number))
        return self._definitions[number]

    def _definition_of(self, number: int, node: Node) -> tuple[dict[int, Fraction], Fraction]:
        affine = as_affine(node.function) if node.kind == "map" and isinstance(node.function, Operation) else None
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

    def _even_table(self, number: int, x: int) -> tuple[dict[int, Fraction], Fraction]:
        """A function of one node that turns out to be affine."""
        value_of = self.evaluator(number, [x])
        values = [value_of((p,)) for p in range(len(self.domain(x)))]
        if len(values) < 2 or any(v is IMPOSSIBLE or not is_number(v) for v in values):
            return {}, Fraction(0)
        points = [(exact(a), exact(v)) for a, v in zip(self.domain(x), values, strict=True)]
        (a, v), (b, w) = points[0], points[-1]
        slope = (w - v) / (b - a) if a != b else Fraction(0)
        even = slope and all(y == v + slope * (t - a) for t, y in points)
        return ({x: slope}, v - slope * a) if even else ({}, Fraction(0))

    def support(self, number: int, known: set[int]) -> set[int]:
        """The variables among `known` that a node follows from."""
        key = (number, frozenset(known))
        if key not in self._supports:
            self._supports[key] = self._support(number, known)
        found = self._supports[key]
        if found is None:
            raise Refused(f"{self.name(number)} does not follow from what is read")
        return found

    def _support(self, number: int, known: set[int]) -> set[int] | None:
        if number in known:
            return {number}
        node = self.node(number)
        if node.kind == "full" or self._fixed(number):
            return set()
        if node.kind == "written" and self.indices in known:
            return {self.indices}
        ways = [node.inputs] if node.kind == "map" else []
        ways += [[i for _, i in self.identities[number].terms]] if number in self.identities else []
        for inputs in ways:
            if all(self.follows(i, known) for i in inputs):
                return {v for i in inputs for v in self.support(i, known)}
        return None

    def evaluator(self, number: int, variables: Sequence[int]) -> Evaluator:
        """The value of a node as a function of the places of the variables; `IMPOSSIBLE` where it cannot be."""
        if number in variables:
            at, domain = variables.index(number), self.domain(number)
            return lambda places: domain[places[at]]
        node = self.node(number)
        if node.kind == "full":
            return lambda places: node.constant
        if self._fixed(number):
            fixed = self.domain(number)[0]
            return lambda places: fixed
        if node.kind == "written":
            at, written = variables.index(self.indices), node.constant[1:]
            return lambda places: written[places[at]] if places[at] < len(written) else None
        by_map = node.kind == "map" and all(self.follows(i, set(variables)) for i in node.inputs)
        if not by_map and number not in self.identities:
            raise Refused(f"{self.name(number)} does not follow from what is read")
        inputs = node.inputs if by_map else [i for _, i in self.identities[number].terms]
        if by_map and any(not self.listed(x) for x in self.support(number, set(variables))):
            if self.listed(number) and self.domain(number)[1:] == [None]:  # one value, or undefined
                only, defined = self.domain(number)[0], self._presence(number, variables)
                return lambda places: only if defined(places) else None
            self._require_affine(number)
        inner = [self.evaluator(i, variables) for i in inputs]
        step = self._map(number) if by_map else self._sum(number)

        def value(places: tuple[int, ...]) -> Any:
            arguments = [f(places) for f in inner]
            if any(x is IMPOSSIBLE for x in arguments):
                return IMPOSSIBLE
            result = None if any(x is None for x in arguments) else step(arguments)
            return self._belongs(number, result)

        return value

    def _presence(self, number: int, variables: Sequence[int]) -> Callable[[tuple[int, ...]], bool]:
        """Whether a node is defined, through maps that are defined wherever their inputs are."""
        if number in variables:
            at, domain = variables.index(number), self.domain(number)
            return lambda places: domain[places[at]] is not None
        f, inputs = self.node(number).function, self.node(number).inputs
        total = isinstance(f, Table) and min(f.entries) >= 0
        if isinstance(f, WithConstant) and f.symbol in TRUTHS and is_number(f.constant):
            total = not self.listed(inputs[0])  # numbers without a list compare with any number
        if not total:
            raise Refused(f"where {self.name(number)} is defined does not follow from what is read")
        inner = [self._presence(i, variables) for i in inputs]
        return lambda places: all(defined(places) for defined in inner)

    def _require_affine(self, number: int) -> None:
        """The ends of an interval decide about affine functions only."""
        function = self.node(number).function
        if not isinstance(function, Operation) or as_affine(function) is None:
            raise Refused(f"{self.name(number)} is no affine function of numbers that are too many to list")

    def _exact(self, number: int) -> bool:
        return not self.listed(number) or all(x is None or is_exact(x) for x in self.domain(number))

    def _belongs(self, number: int, value: Value) -> Any:
        if not self.listed(number):
            return value
        return value if self.place(number, value) is not IMPOSSIBLE else IMPOSSIBLE

    def _map(self, number: int) -> Callable[[list[Value]], Value]:
        node = self.node(number)
        if isinstance(node.function, Table):
            table, outputs = node.function, self.domain(number)
            inputs = node.inputs

            def look_up(arguments: list[Value]) -> Value:
                entry = 0
                for i, size, x in zip(inputs, table.shape, arguments, strict=True):
                    place = self.place(i, x)
                    if place is IMPOSSIBLE:
                        return IMPOSSIBLE
                    entry = entry * size + place
                return None if table.entries[entry] < 0 else outputs[table.entries[entry]]

            return look_up
        function: Any = node.function
        affine = as_affine(function)
        if affine is not None and all(self._exact(i) for i in node.inputs):
            factors, offset = affine.factors, affine.offset
            whole = all(type(x) is int for x in (*factors, offset))

            def combined(arguments: list[Value]) -> Value:
                total = sum([f * x for f, x in zip(factors, arguments, strict=True)], offset)
                return total if whole and type(total) is int else reduced(Fraction(total))

            return combined

        def computed(arguments: list[Value]) -> Value:
            try:
                return apply(function, arguments)
            except Fault:
                return IMPOSSIBLE  # the program has no meaning on such an input, and the claim excludes it

        return computed

    def _sum(self, number: int) -> Callable[[list[Value]], Value]:
        given = self.identities[number]
        if self.node(number).kind == "aggregate":  # equals one other node, value by value; all others are plain numbers
            return lambda arguments: arguments[0]
        numbers = [rational(number) for number in (given.offset, *(factor for factor, _ in given.terms))]
        offset, *factors = [int(x) if x.denominator == 1 else x for x in numbers]  # integers are much faster

        def total(arguments: list[Value]) -> Value:
            if not all(map(is_number, arguments)):
                return IMPOSSIBLE
            terms = [f * (x if type(x) is int else exact(x)) for f, x in zip(factors, arguments, strict=True)]
            result = sum(terms, offset)
            return result if type(result) is int else reduced(Fraction(result))

        return total

    def base(self, variables: Sequence[int]) -> list[int]:
        """The variables from which all of them follow: those that do not follow from the others."""
        found = list(variables)
        for x in sorted(variables, reverse=True):
            rest = set(found) - {x}
            if self.follows(x, rest):
                found.remove(x)
        return found

    def follows(self, number: int, known: set[int]) -> bool:
        """Whether a node follows from these variables at the same position."""
        try:
            self.support(number, known)
        except Refused:
            return False
        return True

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
            if isinstance(relation, Relation):
                q, width = self.place(query_node, query), relation.shape[1]
                return [k is not None and relation.entries[self.place(key_node, k) * width + q] for k in values]
            try:
                return [k is not None and bool(relation(k, query)) for k in values]  # type: ignore[operator]
            except TypeError:
                raise Refused(f"{node.name} compares values that have no order") from None

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
