"""Runs a graph on an input: by its tables and operations alone, refusing every value outside an inferred set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.graph import Graph, Node, Relation, Table, ValueSet
from certiformer.rasp.interpreter import read_tokens
from certiformer.rasp.meaning import Fault, aggregate, apply
from certiformer.rasp.value import Value, exact, identity


class GraphRunner:
    """A graph ready to be run on many inputs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._places = [_places(node.values) for node in graph.nodes]

    def run(self, xs: Sequence[Value]) -> list[Value]:
        """The value of the graph's output at every position, exactly as the interpreter gives it."""
        return self.run_all(xs)[self.graph.output]

    def run_all(self, xs: Sequence[Value]) -> list[list[Any]]:
        """The values of every node; for a selector, a row of truth values for every query."""
        tokens = read_tokens(xs, self.graph.vocab, self.graph.length)
        results: list[list[Any]] = []
        for number, node in enumerate(self.graph.nodes):
            try:
                result = self.step(node, [results[i] for i in node.inputs], tokens)
            except Fault as fault:
                raise BadInput(f"node {number} ({node.name}) {fault}") from None
            if not node.is_selector:
                self._check(number, node, result)
            results.append(result)
        return results

    def step(self, node: Node, below: list[list[Any]], xs: list[Value]) -> list[Any]:
        """The values of a node, given those of its inputs."""
        n = len(xs)
        match node.kind:
            case "tokens":
                return xs
            case "indices":
                return list(range(n))
            case "length":
                return [n] * n
            case "full":
                return [node.constant] * n
            case "written":
                written = _written(node, n)
                return [written[i] if i < len(written) else None for i in range(n)]
            case "map":
                return [self.map_value(node, arguments) for arguments in zip(*below, strict=True)]
            case "select":
                keys, queries = below
                return [[self.selected(node, key, query) for key in keys] for query in queries]
            case "pattern":
                rows = _written(node, n)
                return [[max(q, k) < len(rows) and rows[q][k] for k in range(n)] for q in range(n)]
            case "and":
                return [[a and b for a, b in zip(*rows, strict=True)] for rows in zip(*below, strict=True)]
            case "or":
                return [[a or b for a, b in zip(*rows, strict=True)] for rows in zip(*below, strict=True)]
            case "not":
                return [[not chosen for chosen in row] for row in below[0]]
            case "width":
                return [sum(row) for row in below[0]]
            case "aggregate":
                pattern, values = below
                chosen = ([v for v, here in zip(values, row, strict=True) if here] for row in pattern)
                return [aggregate(selected, node.constant) for selected in chosen]
        raise BadInput(f"{node.kind} is not a kind of node")

    def map_value(self, node: Node, arguments: Sequence[Value]) -> Value:
        """What a map gives at one position."""
        if any(x is None for x in arguments):
            return None
        if not isinstance(node.function, Table):
            return apply(node.function, arguments)  # type: ignore[arg-type]
        entry = node.function.entries[self._place(node, arguments)]
        return None if entry < 0 else (node.values.values or ())[entry]  # type: ignore[union-attr]

    def selected(self, node: Node, key: Value, query: Value) -> bool:
        """Whether a select chooses a pair."""
        if key is None or query is None:
            return False
        if isinstance(node.function, Relation):
            return node.function.entries[self._place(node, (key, query))]
        return bool(apply(node.function, (key, query)))  # type: ignore[arg-type]

    def _place(self, node: Node, arguments: Sequence[Value]) -> int:
        place = 0
        for number, value, size in zip(node.inputs, arguments, node.function.shape, strict=True):  # type: ignore[union-attr]
            place = place * size + self._places[number][identity(value)]
        return place

    def _check(self, number: int, node: Node, result: list[Value]) -> None:
        values = node.values
        for value in result:
            if values is None or not _belongs(value, values, self._places[number]):
                raise BadInput(f"node {number} ({node.name}) takes the value {value!r}, which was not inferred for it")


def _places(values: ValueSet | None) -> dict[tuple, int]:
    listed = () if values is None else values.values or ()
    return {identity(value): place for place, value in enumerate(listed)}


def _belongs(value: Value, values: ValueSet, places: dict[tuple, int]) -> bool:
    if value is None:
        return values.undefined
    if values.values is not None:
        return identity(value) in places
    span = values.span
    if span is None or isinstance(value, (str, tuple, float)):
        return False
    named = type(value) is bool or not span.ambiguous
    if named and identity(value) != identity(span.value_of(exact(value))):
        return False
    denominator = (exact(value) / span.step).denominator
    return span.low <= exact(value) <= span.high and denominator <= (span.largest_denominator or denominator)


def _written(node: Node, n: int) -> tuple:
    check_length, *written = node.constant
    if check_length and len(written) != n:
        raise BadInput(f"{node.name} is written for inputs of length {len(written)}, not {n}")
    return tuple(written)


def run_graph(graph: Graph, xs: Sequence[Value]) -> list[Value]:
    """The exact value of a graph on one input."""
    return GraphRunner(graph).run(xs)
