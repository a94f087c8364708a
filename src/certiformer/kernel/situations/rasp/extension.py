"""The two programs of a compiled program: the one of `program.json`, and that of the circuit with nodes added to it.

A program has no value on an input where a node that its output needs has none: a list that is written for another length,
or a mean of symbols. Such inputs are no part of the claim. A node that the output does not need must have a value on every
input: otherwise its cells would say nothing about inputs on which the program has one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from certiformer.kernel import Refused
from certiformer.kernel.meanings.rasp import SELECTORS, Node, Program, Table, is_number, read_program
from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.kernel.situations.rasp.domains import shown
from certiformer.kernel.situations.rasp.lemmas import Facts, known, listed
from certiformer.kernel.situations.rasp.variables import Variables


@dataclass(frozen=True)
class Programs:
    """The program, and what is known about the circuit's extension of it."""

    program: Program
    variables: Variables


def read_programs(program_text: str | bytes, circuit: Circuit) -> Programs:
    """Read both, and refuse what the rule cannot follow."""
    program, extended = read_program(program_text), read_program(circuit.extended)
    _require_extension(program_text, circuit.extended)
    _require_listed_arguments(extended)
    _require_references(circuit, extended)
    variables = Variables(extended, circuit.lemmas)
    _require_values(program, variables.facts)
    return Programs(program, variables)


def needs_whole_length(program: Program) -> bool:
    """Whether the program has a value on inputs of exactly its length only, because of what is written in it."""
    return any(_checks_length(program.nodes[number]) for number in program.needed(program.output))


def _checks_length(node: Node) -> bool:
    return node.kind in ("written", "pattern") and node.constant[0]


def _require_extension(program: str | bytes, extended: str) -> None:
    """The circuit's program begins with the nodes of the program itself, spelled alike, and has its inputs and output."""
    one, other = json.loads(program), json.loads(extended)
    other["nodes"] = other["nodes"][: len(one["nodes"])]
    if json.dumps(one, sort_keys=True) != json.dumps(other, sort_keys=True):
        raise Refused("the circuit speaks of another program than program.json, or of other inputs or another output")


def _require_values(program: Program, facts: Facts) -> None:
    """No node is without a value on an input of the claim."""
    needed = set(program.needed(program.output))
    for number, node in enumerate(facts.nodes):
        if number not in needed and (_checks_length(node) or not _has_means(facts, node)):
            own = "of program.json, which its output does not need,"
            whose = own if number < len(program.nodes) else "of the circuit"
            raise Refused(f"node {number} {whose} may have no value where the program has one")
        if _checks_length(node) and len(node.constant) - 1 != program.length:
            said = f"{shown(node.name)} is written for inputs of {len(node.constant) - 1} tokens"
            raise Refused(f"{said}, and the program claims inputs of up to {program.length}")


def _has_means(facts: Facts, node: Node) -> bool:
    """Whether a node is no aggregate, or one with a value on every input: of numbers, or of one value."""
    if node.kind != "aggregate":
        return True
    value = facts.nodes[node.inputs[1]]
    return facts.holds("same", *node.inputs) or (known(value) and all(map(is_number, listed(value) or ())))


def _require_listed_arguments(program: Program) -> None:
    """A table has an entry for every argument, so that the values of its arguments are listed."""
    for number, node in enumerate(program.nodes):
        if isinstance(node.function, Table) and any(listed(program.nodes[i]) is None for i in node.inputs):
            raise Refused(f"node {number} is a table of numbers that are too many to list")


def _require_references(circuit: Circuit, extended: Program) -> None:
    """Cells and identities speak of sequences of the extended program, heads of its selectors."""
    sequences = [cell.node for cell in circuit.cells] + [role.node for role in circuit.heads]
    sequences += [number for given in circuit.identities for number in (given.node, *(x for _, x in given.terms))]
    for numbers, selectors in ((sequences, False), ([role.selector for role in circuit.heads], True)):
        for number in numbers:
            if not 0 <= number < len(extended.nodes):
                raise Refused(f"the circuit speaks of node {number}, which the extended program does not have")
            if (extended.nodes[number].kind in SELECTORS) != selectors:
                raise Refused(f"the circuit takes node {number} for what it is not, a selector or a sequence")
