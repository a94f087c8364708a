"""The two programs that the rule margin reads: the one of `program.json`, and that of the circuit with nodes added to it.

A program has no value on an input where a node that its output needs has none: a list that is written for another length,
or a mean of symbols. Such inputs are no part of the claim. A node that the output does not need must have a value on every
input: otherwise its cells would say nothing about inputs on which the program has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from certiformer.checker.margin.domains import shown
from certiformer.kernel.refusal import Refused
from certiformer.rasp.circuit import Circuit
from certiformer.rasp.facts import selects_one_value
from certiformer.rasp.graph import Graph, Node, Relation, Table, node_key
from certiformer.rasp.graph_file import graph_from_text
from certiformer.rasp.value import is_number


@dataclass(frozen=True)
class Programs:
    """The program, and the circuit's extension of it."""

    program: Graph
    extended: Graph


def read_programs(program_text: str | bytes, circuit: Circuit) -> Programs:
    """Read both, and refuse what the rule cannot follow."""
    program, extended = graph_from_text(program_text), graph_from_text(circuit.extended)
    _require_extension(program, extended)
    _require_values(program, extended)
    _require_listed_arguments(extended)
    _require_references(circuit, extended)
    return Programs(program, extended)


def needs_whole_length(program: Graph) -> bool:
    """Whether the program has a value on inputs of exactly its length only, because of what is written in it."""
    return any(_checks_length(program.nodes[number]) for number in _needed(program))


def _needed(program: Graph) -> set[int]:
    """The nodes that the output is computed from."""
    open_ends, needed = [program.output], set()
    while open_ends:
        number = open_ends.pop()
        if number not in needed:
            needed.add(number)
            open_ends += program.nodes[number].inputs
    return needed


def _checks_length(node: Node) -> bool:
    return node.kind in ("written", "pattern") and node.constant[0]


def _require_extension(program: Graph, extended: Graph) -> None:
    """The circuit's program begins with the nodes of the program itself, and has its inputs and output."""
    count = len(program.nodes)
    keys = [[(node_key(node), node.values) for node in graph.nodes[:count]] for graph in (program, extended)]
    if keys[0] != keys[1]:
        raise Refused("the circuit speaks of another program than program.json")
    same = (program.output, program.length) == (extended.output, extended.length)
    if not same or Graph((), 0, program.vocab, 1) != Graph((), 0, extended.vocab, 1):
        raise Refused("the circuit has another output, length or vocabulary than program.json")


def _require_values(program: Graph, extended: Graph) -> None:
    """No node is without a value on an input of the claim."""
    needed = _needed(program)
    for number, node in enumerate(extended.nodes):
        if number not in needed and (_checks_length(node) or not _has_means(extended, node)):
            whose = (
                "of the circuit" if number >= len(program.nodes) else "of program.json, which its output does not need,"
            )
            raise Refused(f"node {number} {whose} may have no value where the program has one")
        if _checks_length(node) and len(node.constant) - 1 != program.length:
            said = f"{shown(node.name)} is written for inputs of {len(node.constant) - 1} tokens"
            raise Refused(f"{said}, and the program claims inputs of up to {program.length}")


def _has_means(graph: Graph, node: Node) -> bool:
    """Whether a node is no aggregate, or one with a value on every input: of numbers, or of one value."""
    if node.kind != "aggregate":
        return True
    values = graph.nodes[node.inputs[1]].values
    numbers = values is not None and values.known and (values.values is None or all(map(is_number, values.values)))
    return numbers or selects_one_value(graph.nodes, graph.nodes[node.inputs[0]], node.inputs[1])


def _require_listed_arguments(graph: Graph) -> None:
    """A table has an entry for every argument, so that the values of its arguments are listed."""
    for number, node in enumerate(graph.nodes):
        unlisted = any(getattr(graph.nodes[i].values, "values", None) is None for i in node.inputs)
        if isinstance(node.function, (Table, Relation)) and unlisted:
            raise Refused(f"node {number} is a table of numbers that are too many to list")


def _require_references(circuit: Circuit, extended: Graph) -> None:
    """Cells and identities speak of sequences of the extended program, heads of its selectors."""
    sequences = [cell.node for cell in circuit.cells] + [role.node for role in circuit.heads]
    sequences += [number for given in circuit.identities for number in (given.node, *(x for _, x in given.terms))]
    for numbers, selectors in ((sequences, False), ([role.selector for role in circuit.heads], True)):
        for number in numbers:
            if not 0 <= number < len(extended.nodes):
                raise Refused(f"the circuit speaks of node {number}, which the extended program does not have")
            if extended.nodes[number].is_selector != selectors:
                raise Refused(f"the circuit takes node {number} for what it is not, a selector or a sequence")
