"""Combinational BLIF: `.model`, `.inputs`, `.outputs`, `.names` with its cover, `.end`; anything else is refused.

The format is that of SIS (Sentovich et al. 1992), which ABC, Yosys and VTR read and write. Latches and subcircuits make a
circuit that is not a plain Boolean function; they are refused rather than skipped.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from certiformer.compiler.circuits.definitions import Definition, circuit_of
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
