"""Adds nodes to a graph one by one: equal ones are shared, values and facts are inferred, problems are collected.

Both passes and the reader of `program.json` build their graphs here, so the value sets of a file are recomputed from its
tables and operations, never believed.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.facts import facts_of, most_selected, selects_one_value
from certiformer.rasp.graph import Graph, Node, Relation, Table, ValueSet
from certiformer.rasp.meaning import Fault, apply
from certiformer.rasp.operation import Binary, Operation, is_exact
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import Value, canonical, identity, in_order, is_number
from certiformer.rasp.values import (
    UNKNOWN,
    arguments_of,
    listed,
    of_mean,
    of_operation,
    of_sum,
    whole_numbers,
    with_default,
)

Function = Operation | Table | Comparison | Relation | None


@dataclass(frozen=True)
class Problem:
    """What is wrong with a node, and what to write instead; `unproved` when it may still be right."""

    node: int
    problem: str
    instead: str
    unproved: bool = False


class GraphBuilder:
    """A graph in the making, for inputs of at most `length` tokens out of `vocab`."""

    def __init__(self, vocab: Collection[Value], length: int) -> None:
        self.vocab, self.length = read_domain(vocab, length)
        self.nodes: list[Node] = []
        self.problems: list[Problem] = []
        self._numbers: dict[tuple, int] = {}
        self._asked: dict[int, bool] = {}

    @staticmethod
    def continued(graph: Graph) -> GraphBuilder:
        """A builder that goes on after the last node of a graph whose values and facts are already known."""
        builder = GraphBuilder(graph.vocab, graph.length)
        builder.nodes = list(graph.nodes)
        for number, node in enumerate(graph.nodes):
            outputs = node.values.values if isinstance(node.function, Table) and node.values else None
            builder._numbers.setdefault(_key(node.kind, node.inputs, node.function, node.constant, outputs), number)
            builder._asked[number] = node.numerical
        return builder

    def add(
        self,
        kind: str,
        inputs: tuple[int, ...] = (),
        function: Function = None,
        constant: Any = None,
        *,
        name: str = "",
        outputs: tuple[Value, ...] | None = None,
    ) -> int:
        """The number of the node with these data, new or old. `outputs` are the results that a table points to."""
        key = _key(kind, inputs, function, constant, outputs)
        if key not in self._numbers:
            number = self._numbers[key] = len(self.nodes)
            draft = Node(kind, inputs, function, constant, None, name or kind)
            values = None if draft.is_selector else self._values(draft, number, outputs)
            if draft.kind == "select":
                self._try_comparison(draft, number)
            draft = replace(draft, values=values)
            self.nodes.append(replace(draft, facts=facts_of(self.nodes, draft)))
        return self._numbers[key]

    def add_wish(self, number: int, numerical: bool) -> None:
        """Note that a node is to be carried as a number, or not; of two wishes for a shared node, the number wins."""
        self._asked[number] = numerical or self._asked.get(number, False)

    def finish(self, output: int) -> Graph:
        """The graph with the given result. A node is carried as a number if asked, or if it cannot be listed."""
        nodes = []
        for number, node in enumerate(self.nodes):
            unlisted = node.values is not None and node.values.values is None
            nodes.append(replace(node, numerical=self._asked.get(number, False) or unlisted))
        return Graph(tuple(nodes), output, self.vocab, self.length)

    def values(self, number: int) -> ValueSet:
        """The values of a sequence that is already in the graph."""
        found = self.nodes[number].values
        return UNKNOWN if found is None else found

    def blame(self, number: int, problem: str, instead: str, unproved: bool = False) -> None:
        """Collect a problem."""
        self.problems.append(Problem(number, problem, instead, unproved))

    def _values(self, node: Node, number: int, outputs: tuple[Value, ...] | None) -> ValueSet:
        match node.kind:
            case "tokens":
                return ValueSet(self.vocab)
            case "indices":
                return whole_numbers(0, self.length - 1)
            case "length":
                return whole_numbers(1, self.length)
            case "full":
                return listed([node.constant])
            case "written":
                check_length, *written = node.constant
                return listed(written, undefined=len(written) < self.length and not check_length)
            case "map":
                return self._map_values(node, number, outputs)
            case "width":
                selector = self.nodes[node.inputs[0]]
                least = 1 if "reflexive" in selector.facts else 0
                return whole_numbers(least, 1 if "single" in selector.facts else self.length)
            case "aggregate":
                return self._aggregate_values(node, number)
        raise BadInput(f"{node.kind} is not a kind of node")

    def _map_values(self, node: Node, number: int, outputs: tuple[Value, ...] | None) -> ValueSet:
        inputs = [self.values(i) for i in node.inputs]
        if isinstance(node.function, Table):
            undefined = -1 in node.function.entries or any(values.undefined for values in inputs)
            return ValueSet(outputs, undefined)
        if node.function is None:  # a user's function that could not be tabulated: already blamed
            return UNKNOWN
        summed = self._summed(node)
        if summed is not None:
            return summed
        try:
            result = of_operation(node.function, inputs)  # type: ignore[arg-type]
        except Fault as fault:
            problem = str(fault).partition(";")[0]
            self.blame(number, problem, "restrict the values that reach it with a Map that returns None elsewhere")
            return UNKNOWN
        if not result.known and all(values.known for values in inputs):
            self.blame(
                number,
                f"has too many values to list, and no bounds are known for {node.function}",
                "use + - * and comparisons of exact numbers, a smaller vocabulary, or a smaller length",
            )
        return result

    def _summed(self, node: Node) -> ValueSet | None:
        """A mean times the width of its own selector is a sum; as a product of unrelated numbers it looks fractional."""
        if node.function != Binary("*"):
            return None
        for mean, count in (node.inputs, node.inputs[::-1]):
            if self.nodes[mean].kind != "aggregate":
                continue
            selector, value = self.nodes[mean].inputs
            of_all = self.nodes[selector].function is Comparison.TRUE and "reflexive" in self.nodes[selector].facts
            counts = self.nodes[count].kind == "width" and self.nodes[count].inputs[0] == selector
            if counts or (of_all and self.nodes[count].kind == "length"):
                found = of_sum(self.values(value), self.length)
                default = self.nodes[mean].constant
                if found is None or not (default is None or is_exact(default)):
                    return None
                always = "reflexive" in self.nodes[selector].facts
                return found if always else with_default(found, None if default is None else 0)
        return None

    def _aggregate_values(self, node: Node, number: int) -> ValueSet:
        selector, inner = self.nodes[node.inputs[0]], self.values(node.inputs[1])
        if not inner.known:
            return UNKNOWN
        one_value = selects_one_value(self.nodes, selector, node.inputs[1])
        symbols = inner.values is not None and not all(is_number(value) for value in inner.values)
        most = most_selected(self.nodes, selector, self.length)
        result = inner if one_value or symbols else of_mean(inner, most)
        if symbols and not one_value:  # numbers among the symbols have means, too
            numbers = listed([value for value in inner.values or () if is_number(value)])
            means = of_mean(numbers, most).values if numbers.values else ()
            result = UNKNOWN if means is None else listed([*(inner.values or ()), *means], inner.undefined)
        if not result.known:
            self.blame(number, f"has too many means of {inner} to list", "use exact numbers instead of floats")
        if symbols and not one_value and len(inner.values or ()) > 1:
            self.blame(
                number,
                f"may select positions with different values out of {inner}, which have no mean",
                "select one position: compare a key that differs at every position, such as indices, a rank, or an"
                " occurrence number, with ==",
                unproved=True,
            )
        return result if "reflexive" in selector.facts else with_default(result, node.constant)

    def _try_comparison(self, node: Node, number: int) -> None:
        """A comparison must have a meaning on every pair it can meet."""
        keys, queries = (self.values(i) for i in node.inputs)
        if not isinstance(node.function, Comparison) or node.function.value in ("==", "!=", "True", "False"):
            return
        samples = [ValueSet(_one_of_each_type(values)) for values in (keys, queries)]
        for pair in arguments_of(samples):
            try:
                apply(node.function, pair)
            except Fault as fault:
                self.blame(
                    number, str(fault).partition(";")[0], "compare numbers with numbers and strings with strings"
                )
                return


def _key(
    kind: str, inputs: tuple[int, ...], function: Function, constant: Any, outputs: tuple[Value, ...] | None
) -> tuple:
    """Equal for nodes that can be shared."""
    return (kind, inputs, function, identity(constant), None if outputs is None else tuple(map(identity, outputs)))


def _one_of_each_type(values: ValueSet) -> tuple[Value, ...]:
    """Whether values compare depends on their types; tuples are all tried, up to a limit."""
    if values.values is None:
        return (values.span.low,) if values.span else ()
    kinds = {type(value): value for value in values.values}
    tuples = [value for value in values.values if isinstance(value, tuple)][:100]
    return (*(value for kind, value in kinds.items() if kind is not tuple), *tuples)


def read_domain(vocab: Collection[Value], length: int) -> tuple[tuple[Value, ...], int]:
    """The vocabulary in order and the length, refused when they make no sense."""
    if isinstance(vocab, str) or not hasattr(vocab, "__len__") or not len(vocab):
        raise BadInput("the vocabulary is a set or list with at least one token")
    if type(length) is not int or not 1 <= length <= 1_000_000:
        raise BadInput(f"the length is a whole number from 1 to 1,000,000, not {length!r}")
    tokens = [canonical(token) for token in vocab]
    if any(token is None for token in tokens):
        raise BadInput("None is not a token")
    if len(set(tokens)) < len(tokens):
        raise BadInput("the vocabulary lists a token twice (True counts as 1, and False as 0)")
    return in_order(tokens), length
