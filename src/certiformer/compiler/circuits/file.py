"""Circuit files: our own small TOML or JSON, BLIF and ISCAS .bench; every mistake is one sentence.

    inputs = ["a", "b", "c"]
    outputs = ["sum", "carry"]
    gates = [
      ["half", "XOR", "a", "b"],          # name, operation, operands
      ["sum", "0110", "half", "c"],       # or a truth table: its bits for 00, 01, 10, 11
      ["carry", "00010111", "a", "b", "c"],
    ]

The gates may stand in any order. A truth table of one bit without operands is a constant.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from certiformer.compiler.circuits.bench import parse_bench
from certiformer.compiler.circuits.blif import parse_blif
from certiformer.compiler.circuits.definitions import LONGEST_TABLE, Definition, circuit_of
from certiformer.compiler.text_file import parse_toml, read_described
from certiformer.errors import BadInput
from certiformer.kernel.meanings.gates import Gates

_ENTRIES = ("inputs", "outputs", "gates")


def read_circuit(path: str | Path) -> Gates:
    """The circuit of a file; its ending says which format it has."""
    parsers = {".toml": parse_circuit, ".json": parse_circuit_json, ".blif": parse_blif, ".bench": parse_bench}
    parse = parsers.get(Path(path).suffix.lower())
    if parse is None:
        raise BadInput(f"{path}: a circuit file ends in {', '.join(parsers)}")
    return read_described(path, parse)


def parse_circuit(text: str) -> Gates:
    """The circuit that TOML text describes.

    >>> parse_circuit('inputs = ["a"]\\noutputs = ["y"]\\ngates = [["x", "NOT", "y"], ["y", "AND", "x", "a"]]')
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the circuit has a cycle: x feeds y feeds x
    """
    return _circuit(parse_toml(text))


def parse_circuit_json(text: str) -> Gates:
    """The same entries in JSON."""
    try:
        return _circuit(json.loads(text))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"this is not JSON: {error}") from None


def split_bits(text: str, circuit: Gates) -> tuple[int, ...]:
    """The bits of an input, with or without blanks between them.

    >>> from certiformer.kernel.meanings.gates import Gates
    >>> split_bits("1 0", Gates(("a", "b"), (), ("a",))), split_bits("10", Gates(("a", "b"), (), ("a",)))
    ((1, 0), (1, 0))
    """
    parts = text.split()
    if len(parts) == 1 and len(parts[0]) > 1:
        parts = list(parts[0])
    return circuit.check_bits(parts)


def _circuit(data: Any) -> Gates:
    if not isinstance(data, dict) or set(data) != set(_ENTRIES):
        present = ", ".join(map(str, data)) if isinstance(data, dict) else "something else"
        raise BadInput(f"a circuit file has the entries {', '.join(_ENTRIES)}, not {present or 'none'}")
    lists = {name: _texts(data[name], name) for name in ("inputs", "outputs")}
    if type(data["gates"]) is not list:
        raise BadInput("gates must be a list of gates")
    definitions = []
    for number, row in enumerate(data["gates"], 1):
        if type(row) is not list or len(row) < 2 or any(type(part) is not str for part in row):
            raise BadInput(f"gate {number} is not a list of texts: its name, an operation or truth table, its operands")
        definitions.append(_definition(row[0], row[1], tuple(row[2:])))
    return circuit_of(lists["inputs"], definitions, lists["outputs"])


def _definition(name: str, operation: str, operands: tuple[str, ...]) -> Definition:
    if not operation or set(operation) - {"0", "1"}:
        return Definition(name, operands, operation)
    if len(operands) > LONGEST_TABLE:
        raise BadInput(
            f"the gate {name} has a truth table of {len(operands)} operands; at most {LONGEST_TABLE} are read"
        )
    if len(operation) != 2 ** len(operands):
        raise BadInput(
            f"the truth table of the gate {name} has {len(operation)} bits; for {len(operands)} operands it needs"
            f" {2 ** len(operands)}"
        )
    return Definition(name, operands, table=operation)


def _texts(value: Any, name: str) -> list[str]:
    if type(value) is not list or any(type(part) is not str for part in value):
        raise BadInput(f"{name} must be a list of texts")
    return value
