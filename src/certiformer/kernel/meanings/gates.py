"""A Boolean circuit as data: inputs, gates with at most two operands in an order in which they can be computed, outputs.

`gates.json` holds one; the compiler makes weights from it and the checker compares the weights with it. Files that people
write (any order, any number of operands) are read by `compiler.circuits`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from certiformer.errors import BadInput
from certiformer.kernel.meanings.description import canonical_text, read_entries, require_canonical, require_entries

FORMAT = "certiformer-gates-1"
MAX_SIGNALS = 100_000


class Gate(NamedTuple):
    """`table` has one bit for each content of the operands, read as a binary number, the first operand in front.

    >>> Gate("y", "0111", ("a", "b")).value((0, 1))   # or
    1
    """

    name: str
    table: str
    operands: tuple[str, ...]

    def value(self, bits: Sequence[int]) -> int:
        return int(self.table[int("".join(map(str, bits)) or "0", 2)])

    @property
    def table_of_two(self) -> str:
        """The same table for two operands; what it does not have does not matter."""
        return "".join(bit * (4 // len(self.table)) for bit in self.table)


@dataclass(frozen=True)
class Gates:
    """`gates` may use inputs and earlier gates; `outputs` are inputs or gates.

    >>> half = Gates(("a", "b"), (Gate("sum", "0110", ("a", "b")), Gate("carry", "0001", ("a", "b"))), ("carry", "sum"))
    >>> half.values((1, 1))
    {'a': 1, 'b': 1, 'sum': 0, 'carry': 1}
    """

    inputs: tuple[str, ...]
    gates: tuple[Gate, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        _names(self.inputs, "input")
        _names(self.outputs, "output")
        known = set(self.inputs)
        if len(known) != len(self.inputs):
            raise BadInput(f"the input {_twice(self.inputs)} is listed twice")
        if not self.outputs:
            raise BadInput("the circuit has no outputs")
        if len(self.inputs) + len(self.gates) > MAX_SIGNALS:
            raise BadInput(f"a circuit has at most {MAX_SIGNALS:,} inputs and gates together")
        for gate in self.gates:
            _check_gate(gate)
            if gate.name in known:
                what = "an input" if gate.name in self.inputs else "another gate"
                raise BadInput(f"the gate {gate.name} is defined twice: {what} has that name")
            for operand in gate.operands:
                if operand not in known:
                    raise BadInput(f"the gate {gate.name} uses {operand}, which is not an input or an earlier gate")
            known.add(gate.name)
        for output in self.outputs:
            if output not in known:
                raise BadInput(f"the output {output} is neither an input nor a gate")

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each signal stands in the sequence of the decoder: 0 is the token `start`."""
        names = [*self.inputs, *(gate.name for gate in self.gates)]
        return {name: place for place, name in enumerate(names, 1)}

    def values(self, bits: Sequence[int]) -> dict[str, int]:
        """Every signal for the given inputs: the plain simulator, gate by gate."""
        found = dict(zip(self.inputs, self.check_bits(bits), strict=True))
        for gate in self.gates:
            found[gate.name] = gate.value([found[name] for name in gate.operands])
        return found

    def check_bits(self, bits: Iterable[Any]) -> tuple[int, ...]:
        """The bits, if they are 0 and 1 and as many as there are inputs."""
        checked = tuple(bits)
        for place, bit in enumerate(checked, 1):
            if str(bit) not in ("0", "1"):
                raise BadInput(f"bit {place} of the input is {str(bit)[:40]!r}, which is not 0 or 1")
        if len(checked) != len(self.inputs):
            raise BadInput(f"the circuit has {len(self.inputs):,} inputs, and {len(checked):,} bits are given")
        return tuple(int(str(bit)) for bit in checked)

    def to_text(self) -> str:
        """The canonical content of `gates.json`."""
        data = {
            "format": FORMAT,
            "inputs": list(self.inputs),
            "gates": [[gate.name, gate.table, *gate.operands] for gate in self.gates],
            "outputs": list(self.outputs),
        }
        return canonical_text(data)

    @staticmethod
    def from_text(text: str | bytes) -> Gates:
        """The circuit that `to_text` wrote; only the canonical bytes are accepted."""
        data = read_entries(text, "gates.json")
        require_entries(data, "gates.json", FORMAT, ("inputs", "gates", "outputs"))
        if any(type(row) is not list or len(row) < 2 for row in data["gates"]):
            raise BadInput("gates.json has a gate that is not a list of its name, its table and its operands")
        gates = tuple(Gate(row[0], row[1], tuple(row[2:])) for row in data["gates"])
        found = Gates(tuple(data["inputs"]), gates, tuple(data["outputs"]))
        require_canonical(found.to_text(), text, "gates.json")
        return found


def _check_gate(gate: Gate) -> None:
    _names((gate.name, *gate.operands), "name of a gate")
    if len(gate.operands) > 2:
        raise BadInput(f"the gate {gate.name} has {len(gate.operands)} operands; here a gate has at most two")
    size = 2 ** len(gate.operands)
    if type(gate.table) is not str or len(gate.table) != size or set(gate.table) - {"0", "1"}:
        raise BadInput(f"the gate {gate.name} needs a truth table of {size} bits, not {gate.table!r}")


def _names(names: Iterable[Any], what: str) -> None:
    for name in names:
        if type(name) is not str or not name or name.split() != [name] or not name.isprintable():
            raise BadInput(f"the {what} is a text without blanks, not {name!r}")


def _twice(names: Sequence[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
