"""From what a circuit file says, in any order and with any number of operands, to gates with at most two in order.

A definition with more than two operands becomes several gates, which are named after it with `~1`, `~2` and so on:

- an operation (AND, XOR, ...) a chain, the last gate of which carries the negation of NAND, NOR and XNOR;
- a truth table the choice between its two halves by the first operand (Shannon), down to two operands;
- a cover (rows of 0, 1 and -, as in BLIF) a chain of conjunctions for each row and one chain of disjunctions.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from certiformer.errors import BadInput
from certiformer.kernel.meanings.gates import Gate, Gates

# For each operation the table that joins two operands, and whether the result is negated at the end.
OPERATIONS = {
    "AND": ("0001", False), "NAND": ("0001", True), "OR": ("0111", False), "NOR": ("0111", True),
    "XOR": ("0110", False), "XNOR": ("0110", True), "BUF": ("0011", False), "NOT": ("0011", True),
}  # fmt: skip
ALIASES = {"BUFF": "BUF", "INV": "NOT"}
LONGEST_TABLE = 10  # operands


@dataclass(frozen=True)
class Definition:
    """A signal, what it depends on, and how: an operation by name, a truth table, or rows of a cover with their output."""

    name: str
    operands: tuple[str, ...]
    operation: str = ""
    table: str | None = None
    rows: tuple[str, ...] | None = None
    covers: str = "1"


def circuit_of(inputs: Sequence[str], definitions: Sequence[Definition], outputs: Sequence[str]) -> Gates:
    """The circuit of the definitions, in an order in which it can be computed.

    >>> found = circuit_of("abc", [Definition("y", ("x", "c"), "NAND"), Definition("x", ("a", "b"), "XOR")], ["y"])
    >>> [gate.name for gate in found.gates]
    ['x', 'y']
    """
    known: set[str] = set()
    for name in (*inputs, *(definition.name for definition in definitions)):
        if name in known:
            raise BadInput(f"{name} is defined twice")
        known.add(name)
    for definition in definitions:
        for operand in definition.operands:
            if operand not in known:
                raise BadInput(f"the gate {definition.name} uses {operand}, which is neither an input nor a gate")
    builder = _Builder(known)
    for definition in _ordered(definitions):
        builder.add(definition)
    return Gates(tuple(inputs), tuple(builder.gates), tuple(outputs))


def _ordered(definitions: Sequence[Definition]) -> list[Definition]:
    """Operands first, otherwise as in the file."""
    place = {definition.name: number for number, definition in enumerate(definitions)}
    sorter = TopologicalSorter({d.name: [name for name in d.operands if name in place] for d in definitions})
    try:
        sorter.prepare()
    except CycleError as error:
        circle = error.args[1]
        shown = circle if len(circle) <= 8 else [*circle[:4], "...", *circle[-3:]]
        raise BadInput(f"the circuit has a cycle: {' feeds '.join(shown)}") from None
    waiting: list[int] = []
    found = []
    while sorter.is_active():
        for name in sorter.get_ready():
            heapq.heappush(waiting, place[name])
        definition = definitions[heapq.heappop(waiting)]
        found.append(definition)
        sorter.done(definition.name)
    return found


class _Builder:
    """Gates, collected one by one; helpers get names that nobody uses."""

    def __init__(self, taken: set[str]):
        self.gates: list[Gate] = []
        self._taken, self._counts = taken, dict.fromkeys(taken, 0)

    def add(self, definition: Definition) -> None:
        name, operands = definition.name, definition.operands
        if definition.table is not None:
            self._table(name, definition.table, operands, last=name)
        elif definition.rows is not None:
            self._cover(name, definition.rows, operands, definition.covers)
        else:
            self._operation(name, definition.operation, operands)

    def _emit(self, owner: str, last: str | None, table: str, *operands: str) -> str:
        name = last or self._fresh(owner)
        self.gates.append(Gate(name, table, operands))
        return name

    def _fresh(self, owner: str) -> str:
        while True:
            self._counts[owner] += 1
            name = f"{owner}~{self._counts[owner]}"
            if name not in self._taken:
                self._taken.add(name)
                return name

    def _operation(self, name: str, operation: str, operands: tuple[str, ...]) -> None:
        word = ALIASES.get(operation.upper(), operation.upper())
        if word not in OPERATIONS:
            raise BadInput(f"the gate {name} is a {operation!r}; known are {', '.join(OPERATIONS)} and truth tables")
        table, negated = OPERATIONS[word]
        if not operands or (word in ("BUF", "NOT") and len(operands) != 1):
            wanted = "one operand" if word in ("BUF", "NOT") else "at least one operand"
            raise BadInput(f"the gate {name} is a {word} of {len(operands)} operands; it needs {wanted}")
        if len(operands) == 1:
            self._emit(name, name, "10" if negated else "01", *operands)
            return
        so_far = operands[0]
        for number, operand in enumerate(operands[1:], 2):
            final = number == len(operands)
            so_far = self._emit(
                name, name if final else None, _negated(table) if final and negated else table, so_far, operand
            )

    def _table(self, owner: str, table: str, operands: tuple[str, ...], last: str | None = None) -> str:
        if len(operands) <= 2:
            return self._emit(owner, last, table, *operands)
        half = len(table) // 2
        low, high = table[:half], table[half:]
        if low == high:
            return self._table(owner, low, operands[1:], last)
        off, on = (self._table(owner, part, operands[1:]) for part in (low, high))
        off = self._emit(owner, None, "0100", operands[0], off)
        on = self._emit(owner, None, "0001", operands[0], on)
        return self._emit(owner, last, "0111", off, on)

    def _cover(self, name: str, rows: tuple[str, ...], operands: tuple[str, ...], covers: str) -> None:
        """The rows say where the signal is `covers`."""
        literals = [[(operands[k], sign) for k, sign in enumerate(row) if sign != "-"] for row in rows]
        if not rows or any(not row for row in literals):
            # No row: never `covers`. A row without literals: always.
            self._emit(name, name, covers if rows else _negated(covers))
            return
        terms = []
        for number, row in enumerate(literals):
            whole = number == 0 and len(rows) == 1
            (first, sign), *others = row
            wanted = sign == "1"
            so_far = first
            for place, (operand, sign) in enumerate(others, 2):
                # Index 2 a + b of the one place where both literals hold; later the left one is a conjunction.
                table = ["0"] * 4
                table[2 * wanted + (sign == "1")] = "1"
                final = whole and place == len(row)
                text = "".join(table)
                so_far = self._emit(
                    name, name if final else None, _negated(text) if final and covers == "0" else text, so_far, operand
                )
                wanted = True
            terms.append((so_far, wanted))
        if len(terms) == 1:
            if len(literals[0]) == 1:
                (operand, wanted) = terms[0]
                self._emit(name, name, "01" if wanted == (covers == "1") else "10", operand)
            return
        so_far, wanted = terms[0]
        for number, (term, sign) in enumerate(terms[1:], 2):
            table = ["1"] * 4
            table[2 * (not wanted) + (not sign)] = "0"
            final, text = number == len(terms), "".join(table)
            so_far = self._emit(
                name, name if final else None, _negated(text) if final and covers == "0" else text, so_far, term
            )
            wanted = True


def _negated(table: str) -> str:
    return table.translate(str.maketrans("01", "10"))
