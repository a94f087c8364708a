"""Circuit files: our own small TOML or JSON, BLIF and ISCAS .bench; every mistake is one sentence.

    inputs = ["a", "b", "c"]
    outputs = ["sum", "carry"]
    gates = [
      ["half", "XOR", "a", "b"],          # name, operation, operands
      ["sum", "0110", "half", "c"],       # or a truth table: its bits for 00, 01, 10, 11
      ["carry", "00010111", "a", "b", "c"],
    ]

The gates may stand in any order. A truth table of one bit without operands is a constant.

*.bench* is the format of the ISCAS benchmarks (Brglez and Fujiwara 1985): INPUT(x), OUTPUT(y), y = NAND(a, b). DFF is
refused: with state, a circuit is not a Boolean function of its inputs.

*BLIF*, the combinational part: `.model`, `.inputs`, `.outputs`, `.names` with its cover, `.end`; anything else is
refused. The format is that of SIS (Sentovich et al. 1992), which ABC, Yosys and VTR read and write. Latches and
subcircuits make a circuit that is not a plain Boolean function; they are refused rather than skipped.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from certiformer.compiler.circuits.definitions import LONGEST_TABLE, Definition, circuit_of
from certiformer.compiler.text_file import parse_toml, read_described
from certiformer.errors import BadInput
from certiformer.kernel.meanings.gates import Gates


@dataclass
class _Names:
    """One `.names` with the rows that follow it."""

    line: int
    signals: list[str]
    rows: list[str] = field(default_factory=list)
    outputs: set[str] = field(default_factory=set)

    def definition(self) -> Definition:
        *operands, name = self.signals
        if len(self.outputs) > 1:
            raise BadInput(f"line {self.line}: the cover of {name} mixes rows for 0 and for 1")
        covers = next(iter(self.outputs), "1")
        return Definition(name, tuple(operands), rows=tuple(self.rows), covers=covers)


def parse_blif(text: str) -> Gates:
    """The circuit of a BLIF file.

    >>> parse_blif(".model and\\n.inputs a b\\n.outputs y\\n.names a b y\\n11 1\\n.end").gates[0].table
    '0001'
    """
    lists: dict[str, list[str]] = {".inputs": [], ".outputs": []}
    names: list[_Names] = []
    models, open_names = 0, False
    for number, line in _lines(text):
        word, *parts = line.split()
        if word == ".end":
            break
        if word == ".model":
            models += 1
            if models > 1:
                raise BadInput(f"line {number}: the file has a second .model, and one is read")
        elif word in lists:
            lists[word] += parts
        elif word == ".names":
            if not parts:
                raise BadInput(f"line {number}: .names needs the name of a signal")
            names.append(_Names(number, parts))
        elif word.startswith("."):
            raise BadInput(f"line {number}: {word} is not part of a plain Boolean circuit")
        else:
            if not open_names:
                raise BadInput(f"line {number}: {line[:40]!r} does not belong to any .names")
            _add_row(names[-1], number, [word, *parts])
        open_names = word == ".names" or (open_names and not word.startswith("."))
    return circuit_of(lists[".inputs"], [entry.definition() for entry in names], lists[".outputs"])


def _add_row(entry: _Names, number: int, parts: list[str]) -> None:
    pattern, output = ("", parts[0]) if len(parts) == 1 else (parts[0], parts[1])
    if len(parts) > 2 or output not in ("0", "1") or set(pattern) - set("01-"):
        raise BadInput(f"line {number}: a row of a cover is a pattern of 0, 1 and -, then 0 or 1")
    if len(pattern) != len(entry.signals) - 1:
        raise BadInput(f"line {number}: the row has {len(pattern)} places for {len(entry.signals) - 1} operands")
    entry.rows.append(pattern)
    entry.outputs.add(output)


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines that say something, with the number of their first part: comments are cut off, `\\` joins the next line."""
    found, pending, first = [], "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].rstrip()
        first = first if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        if (pending + line).strip():
            found.append((first, pending + line))
        pending = ""
    if pending.strip():
        found.append((first, pending))
    return found


_NAME = r"[^\s(),=]+"
_END = re.compile(rf"(INPUT|OUTPUT)\s*\(\s*({_NAME})\s*\)", re.IGNORECASE)
_GATE = re.compile(rf"({_NAME})\s*=\s*({_NAME})\s*\(\s*({_NAME}(?:\s*,\s*{_NAME})*)\s*\)")
_CONSTANT = re.compile(rf"({_NAME})\s*=\s*(gnd|vdd)", re.IGNORECASE)


def parse_bench(text: str) -> Gates:
    """The circuit of a .bench file.

    >>> parse_bench("INPUT(a)\\nOUTPUT(y)\\ny = NOT(a)").values((0,))
    {'a': 0, 'y': 1}
    """
    inputs: list[str] = []
    outputs: list[str] = []
    definitions: list[Definition] = []
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].strip()
        if not line:
            continue
        if end := _END.fullmatch(line):
            (inputs if end[1].upper() == "INPUT" else outputs).append(end[2])
        elif gate := _GATE.fullmatch(line):
            if gate[2].upper() == "DFF":
                raise BadInput(f"line {number}: DFF is not part of a plain Boolean circuit")
            operands = tuple(part.strip() for part in gate[3].split(","))
            definitions.append(Definition(gate[1], operands, gate[2]))
        elif constant := _CONSTANT.fullmatch(line):
            definitions.append(Definition(constant[1], (), table="1" if constant[2].lower() == "vdd" else "0"))
        else:
            raise BadInput(f"line {number}: {line[:60]!r} is not INPUT(x), OUTPUT(y) or y = GATE(a, b)")
    return circuit_of(inputs, definitions, outputs)


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
