"""`program.json`: a graph as data, written in one way and read strictly.

The file holds, for every node, its kind, inputs, function (an operation by name, or a table) and constant. Value sets are
written for readers, and recomputed by ours: a file whose sets, order of nodes, or spelling differ in anything from what
the graph would write itself is refused. Reading runs no Python of anybody.
"""

from __future__ import annotations

import json
from typing import Any

from certiformer.errors import BadInput
from certiformer.rasp.graph import SELECTORS, SEQUENCES, Graph, Node, Relation, Span, Table, ValueSet
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.operation import Operation, operation_from_json, operation_to_json
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import Value, from_json, in_order, to_json
from certiformer.rasp.values import consecutive

FORMAT = "certiformer-program-1"
MAX_NODES = 100_000
INPUTS = {"map": (1, 2), "width": (1,), "aggregate": (2,), "select": (2,), "and": (2,), "or": (2,), "not": (1,)}


def graph_to_text(graph: Graph) -> str:
    """The canonical content of `program.json`."""
    data = {
        "format": FORMAT,
        "length": graph.length,
        "nodes": [_node_to_json(node) for node in graph.nodes],
        "output": graph.output,
        "vocab": [to_json(token) for token in graph.vocab],
    }
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"


def _node_to_json(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": node.kind, "name": node.name}
    if node.inputs:
        data["inputs"] = list(node.inputs)
    if node.values is not None:
        data["values"] = _values_to_json(node.values)
        data["numerical"] = node.numerical
    match node.function:
        case Operation():
            data["operation"] = operation_to_json(node.function)
        case Table(shape, entries):
            data["table"] = {"shape": list(shape), "entries": list(entries)}
        case Comparison():
            data["comparison"] = node.function.value
        case Relation((keys, queries), entries):
            rows = ["".join("01"[x] for x in entries[k * queries : (k + 1) * queries]) for k in range(keys)]
            data["relation"] = rows
    if node.kind in ("full", "aggregate"):
        data["constant"] = to_json(node.constant)
    if node.kind == "written":
        data["constant"] = [node.constant[0], *map(to_json, node.constant[1:])]
    if node.kind == "pattern":
        data["constant"] = [node.constant[0], *(list(row) for row in node.constant[1:])]
    return data


def _values_to_json(values: ValueSet) -> dict[str, Any]:
    data: dict[str, Any] = {"undefined": values.undefined}
    numbers = values.values
    if numbers is not None and len(numbers) > 2 and consecutive(values):
        return {**data, "integers": [numbers[0], numbers[-1]]}
    if numbers is not None:
        return {**data, "list": [to_json(value) for value in numbers]}
    if isinstance(values.span, Span):
        ends = [str(values.span.low), str(values.span.high)]
        step = {} if values.span.step == 1 else {"step": str(values.span.step)}
        truths = {"truths": list(values.span.truths), "ambiguous": values.span.ambiguous} if values.span.truths else {}
        return {**data, "span": ends, "largest_denominator": values.span.largest_denominator, **step, **truths}
    return data


def graph_from_text(text: str | bytes) -> Graph:
    """The graph of a `program.json`; refuses whatever `graph_to_text` would not write.

    >>> from certiformer.rasp import tokens
    >>> from certiformer.rasp.program_to_graph import program_to_graph
    >>> graph = program_to_graph(tokens + 1, {1, 2}, 4)
    >>> graph_from_text(graph_to_text(graph)) == graph
    True
    """
    try:
        content = text.decode("ascii") if isinstance(text, bytes) else text
        data = json.loads(content)
    except (ValueError, RecursionError):
        raise BadInput("the program file is not JSON") from None
    try:
        graph = _read(data)
        written = graph_to_text(graph)
    except (TypeError, KeyError, IndexError, AttributeError, RecursionError):
        raise BadInput("the program file has not the structure of one") from None
    if written != content:
        raise BadInput("the program file is not what its own nodes give: a set, a number or the spelling differs")
    return graph


def _read(data: Any) -> Graph:
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise BadInput(f"the program file is not of the format {FORMAT}")
    nodes = data["nodes"]
    if not isinstance(nodes, list) or not 1 <= len(nodes) <= MAX_NODES:
        raise BadInput(f"a program file has 1 to {MAX_NODES:,} nodes")
    builder = GraphBuilder([from_json(token) for token in data["vocab"]], data["length"])
    for number, node in enumerate(nodes):
        if _add(builder, node) != number:
            raise BadInput(f"node {number} of the program file repeats an earlier one")
        if builder.problems and not builder.problems[-1].unproved:
            raise BadInput(f"node {number} of the program file {builder.problems[-1].problem}")
    output = data["output"]
    if type(output) is not int or not 0 <= output < len(nodes) or builder.nodes[output].is_selector:
        raise BadInput("the output of the program file is not one of its sequences")
    return builder.finish(output)


def _add(builder: GraphBuilder, data: dict[str, Any]) -> int:
    kind, inputs = data["kind"], tuple(data.get("inputs", ()))
    if kind not in SELECTORS | SEQUENCES or len(inputs) not in INPUTS.get(kind, (0,)):
        raise BadInput("a node of the program file has an unknown kind or a wrong number of inputs")
    if any(type(i) is not int or not 0 <= i < len(builder.nodes) for i in inputs):
        raise BadInput("a node of the program file reads one that does not come before it")
    reads_selectors = tuple(builder.nodes[i].is_selector for i in inputs)
    wanted = {"width": (True,), "aggregate": (True, False), "and": (True, True), "or": (True, True), "not": (True,)}
    if reads_selectors != wanted.get(kind, (False,) * len(inputs)):
        raise BadInput("a node of the program file reads a selector as a sequence, or a sequence as a selector")
    function, outputs = _function(builder, data, inputs)
    constant = _constant(data)
    if not isinstance(data["name"], str):
        raise BadInput("a node of the program file has no name")
    number = builder.add(kind, inputs, function, constant, name=data["name"], outputs=outputs)
    if data.get("numerical"):
        builder.add_wish(number, True)
    return number


def _constant(data: dict[str, Any]) -> Any:
    kind = data["kind"]
    if kind in ("full", "aggregate"):
        return from_json(data["constant"])
    if kind not in ("written", "pattern"):
        return None
    check_length, *rest = data["constant"]
    if type(check_length) is not bool:
        raise BadInput("a written node of the program file does not say whether its length is checked")
    if kind == "written":
        return (check_length, *map(from_json, rest))
    if any(len(row) != len(rest) or any(type(x) is not bool for x in row) for row in rest):
        raise BadInput("a written pattern of the program file is not a square of truth values")
    return (check_length, *(tuple(row) for row in rest))


def _function(builder: GraphBuilder, data: dict[str, Any], inputs: tuple[int, ...]) -> tuple[Any, Any]:
    sizes = tuple(len(builder.values(i).values or ()) for i in inputs)
    if data["kind"] == "select":
        if "comparison" in data:
            return Comparison(data["comparison"]) if data["comparison"] in _WORDS else _refuse("comparison"), None
        rows = data["relation"]
        if len(rows) != sizes[0] or any(len(row) != sizes[1] or set(row) - {"0", "1"} for row in rows):
            _refuse("relation")
        return Relation((sizes[0], sizes[1]), tuple(x == "1" for row in rows for x in row)), None
    if data["kind"] != "map":
        return None, None
    if "operation" in data:
        operation = operation_from_json(data["operation"])
        return operation if operation.arguments == len(inputs) else _refuse("operation"), None
    return _table(data, sizes)


def _table(data: dict[str, Any], sizes: tuple[int, ...]) -> tuple[Table, tuple[Value, ...]]:
    values, entries = data["values"], tuple(data["table"]["entries"])
    ends = values.get("integers")
    if ends is not None:
        if not all(type(x) is int for x in ends) or not 0 <= ends[1] - ends[0] <= len(entries):
            _refuse("table")
        outputs: tuple[Value, ...] = tuple(range(ends[0], ends[1] + 1))
    else:
        outputs = in_order(from_json(value) for value in values["list"])
    count = 1
    for size in sizes:
        count *= size
    legal = all(type(x) is int and -1 <= x < len(outputs) for x in entries)
    if len(entries) != count or not legal or set(entries) - {-1} != set(range(len(outputs))):
        _refuse("table")
    return Table(sizes, entries), outputs


def _refuse(what: str) -> Any:
    raise BadInput(f"a {what} of the program file does not fit the nodes it reads")


_WORDS = frozenset(word.value for word in Comparison)
