"""Pass: typed graph -> simplified graph with the same meaning: fewer selectors, fused maps, no dead code.

Nodes are rebuilt in order by one small rule each, then only what the output needs is kept. Every rule states when it is
right; "defined" means that undefined cannot occur, since a pair with an undefined key or query is never selected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product

from certiformer.rasp.graph import Graph, Node, Relation, Table
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.map_fusion import MAX_FUSED, MapFuser
from certiformer.rasp.meaning import Fault, holds
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import identity

NEGATED = {
    Comparison.EQ: Comparison.NEQ,
    Comparison.NEQ: Comparison.EQ,
    Comparison.LT: Comparison.GEQ,
    Comparison.GEQ: Comparison.LT,
    Comparison.GT: Comparison.LEQ,
    Comparison.LEQ: Comparison.GT,
    Comparison.TRUE: Comparison.FALSE,
    Comparison.FALSE: Comparison.TRUE,
}


def graph_to_simplified(graph: Graph) -> Graph:
    """An equivalent graph, smaller wherever a rule applies.

    >>> from certiformer.rasp import Comparison, Select, SelectorWidth, indices, tokens
    >>> from certiformer.rasp.program_to_graph import program_to_graph
    >>> n = SelectorWidth(Select(tokens, tokens, Comparison.TRUE))
    >>> print(graph_to_simplified(program_to_graph((n - 1) * 2, {"a"}, 3)))
       0 length: {1, 2, 3}
       1 map 0 Affine(factors=(2,), offset=-2): {0, 2, 4}
    output 1
    """
    pass_ = _Pass(graph)
    for node in graph.nodes:
        pass_.rebuild(node)
    return without_dead_code(pass_.finish())


def without_dead_code(graph: Graph) -> Graph:
    """Only the nodes that the output reads, directly or not."""
    needed = {graph.output}
    for number in range(graph.output, -1, -1):
        if number in needed:
            needed.update(graph.nodes[number].inputs)
    builder = GraphBuilder(graph.vocab, graph.length)
    new: dict[int, int] = {}
    for number in sorted(needed):
        new[number] = copy_node(builder, graph.nodes[number], tuple(new[i] for i in graph.nodes[number].inputs))
    return builder.finish(new[graph.output])


def copy_node(builder: GraphBuilder, node: Node, inputs: tuple[int, ...]) -> int:
    """The same node over inputs with the same lists of values."""
    outputs = node.values.values if isinstance(node.function, Table) and node.values else None
    number = builder.add(node.kind, inputs, node.function, node.constant, name=node.name, outputs=outputs)
    if node.numerical:
        builder.add_wish(number, True)
    return number


class _Pass:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.builder = GraphBuilder(graph.vocab, graph.length)
        self.new: list[int] = []
        self.readers = Counter(i for node in graph.nodes for i in set(node.inputs))
        self.single_reader: set[int] = set()  # new maps that only one node reads
        self.fuser = MapFuser(self.builder, graph, self.single_reader)

    def finish(self) -> Graph:
        return self.builder.finish(self.new[self.graph.output])

    def rebuild(self, node: Node) -> None:
        """Add what becomes of a node; its inputs have been rebuilt."""
        inputs = tuple(self.new[i] for i in node.inputs)
        rules = {
            "select": self._select,
            "not": self._not,
            "and": self._and_or,
            "or": self._and_or,
            "width": self._width,
            "aggregate": self._aggregate,
            "map": self._map,
        }
        rule = rules.get(node.kind)
        number = rule(node, inputs) if rule else copy_node(self.builder, node, inputs)
        if node.numerical and not self.builder.nodes[number].is_selector:
            self.builder.add_wish(number, True)
        if node.kind == "map" and self.readers[len(self.new)] == 1:
            self.single_reader.add(number)
        self.new.append(number)

    def _node(self, number: int) -> Node:
        return self.builder.nodes[number]

    def _defined(self, inputs: Sequence[int]) -> bool:
        sets = [self.builder.values(i) for i in inputs]
        return all(values.known and not values.undefined for values in sets)

    # --- selectors ----------------------------------------------------------------------------------------------------

    def _everything(self, chosen: bool) -> int:
        positions = self.builder.add("indices")
        word = Comparison.TRUE if chosen else Comparison.FALSE
        return self.builder.add("select", (positions, positions), word, name="everything" if chosen else "nothing")

    def _is(self, number: int, word: Comparison) -> bool:
        """Whether a selector is everything (TRUE) or nothing (FALSE)."""
        node = self._node(number)
        return node.function is word and (word is Comparison.FALSE or self._defined(node.inputs))

    def _select(self, node: Node, inputs: tuple[int, ...]) -> int:
        function = node.function
        if isinstance(function, Relation):
            function = self._relisted(node, inputs)
            if not any(function.entries):
                function = Comparison.FALSE
            elif all(function.entries):
                function = Comparison.TRUE
        if function is Comparison.FALSE:
            return self._everything(False)
        if function is Comparison.TRUE and self._defined(inputs):
            return self._everything(True)
        return self.builder.add("select", inputs, function, node.constant, name=node.name)

    def _relisted(self, node: Node, inputs: tuple[int, ...]) -> Relation:
        """The same relation over the lists of the new inputs, which may have become shorter."""
        old, new = (
            _lists(nodes, numbers) for nodes, numbers in ((self.graph.nodes, node.inputs), (self.builder.nodes, inputs))
        )
        relation: Relation = node.function  # type: ignore[assignment]
        if not node.inputs or old == new:
            return relation
        keys, queries = ({key: place for place, key in enumerate(keys)} for keys in old)
        at = [(keys.get(k, -1), queries.get(q, -1)) for k, q in product(*new)]
        width = relation.shape[1]
        return Relation(
            (len(new[0]), len(new[1])), tuple(min(k, q) >= 0 and relation.entries[k * width + q] for k, q in at)
        )

    def _not(self, node: Node, inputs: tuple[int, ...]) -> int:
        inner = self._node(inputs[0])
        if inner.kind == "not":
            return inner.inputs[0]
        if inner.kind == "select" and self._defined(inner.inputs):  # an undefined pair would have to be selected
            if isinstance(inner.function, Comparison):
                opposite: Comparison | Relation = NEGATED[inner.function]
            elif isinstance(inner.function, Relation):
                opposite = Relation(inner.function.shape, tuple(not x for x in inner.function.entries))
            else:
                return copy_node(self.builder, node, inputs)
            return self.builder.add("select", inner.inputs, opposite, name=node.name)
        if self._is(inputs[0], Comparison.FALSE):
            return self._everything(True)
        return copy_node(self.builder, node, inputs)

    def _and_or(self, node: Node, inputs: tuple[int, ...]) -> int:
        neutral, absorbing = (
            (Comparison.TRUE, Comparison.FALSE) if node.kind == "and" else (Comparison.FALSE, Comparison.TRUE)
        )
        if inputs[0] == inputs[1]:
            return inputs[0]
        for this, other in (inputs, inputs[::-1]):
            if self._is(this, neutral):
                return other
            if self._is(this, absorbing):
                return this
            inner = self._node(other)
            if inner.kind == node.kind and this in inner.inputs:  # (a & b) & b
                return other
        first, second = map(self._node, inputs)
        if first.kind == second.kind == "select" and first.inputs == second.inputs:
            relations = [self._as_relation(x) for x in (first, second)]
            if all(relations):  # the same pairs are undefined for both, so the combination is right for them, too
                a, b = (relation.entries for relation in relations if relation)
                both = (x and y if node.kind == "and" else x or y for x, y in zip(a, b, strict=True))
                merged = Node("select", (), Relation(relations[0].shape, tuple(both)), None, None, node.name)  # type: ignore[union-attr]
                return self._select(merged, first.inputs)
        return copy_node(self.builder, node, inputs)

    def _as_relation(self, node: Node) -> Relation | None:
        if isinstance(node.function, Relation):
            return node.function
        keys, queries = (self.builder.values(i).values for i in node.inputs)
        if keys is None or queries is None or len(keys) * len(queries) > MAX_FUSED or node.function is None:
            return None
        try:
            entries = tuple(holds(node.function, k, q) for k, q in product(keys, queries))  # type: ignore[arg-type]
        except Fault:
            return None
        return Relation((len(keys), len(queries)), entries)

    # --- what is read through selectors -------------------------------------------------------------------------------

    def _width(self, node: Node, inputs: tuple[int, ...]) -> int:
        if self._is(inputs[0], Comparison.TRUE):
            return self.builder.add("length")
        if self._is(inputs[0], Comparison.FALSE):
            return self.builder.add("full", constant=0, name=node.name)
        return copy_node(self.builder, node, inputs)

    def _aggregate(self, node: Node, inputs: tuple[int, ...]) -> int:
        selector, value = inputs
        if self._is(selector, Comparison.FALSE):
            return self.builder.add("full", constant=node.constant, name=node.name)
        facts = self._node(selector).facts
        if "reflexive" in facts and ("single" in facts or self._node(value).kind == "full"):
            return value  # every position reads itself, and nothing else that could differ
        return copy_node(self.builder, node, inputs)

    def _map(self, node: Node, inputs: tuple[int, ...]) -> int:
        return self.fuser.fuse(node, inputs)


def _lists(nodes: Sequence[Node], numbers: Sequence[int]) -> list[list[tuple]]:
    found = (nodes[i].values for i in numbers)
    return [list(map(identity, values.values or ())) if values else [] for values in found]
