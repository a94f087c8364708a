"""The .bench format of the ISCAS benchmarks (Brglez and Fujiwara 1985): INPUT(x), OUTPUT(y), y = NAND(a, b).

DFF is refused: with state, a circuit is not a Boolean function of its inputs.
"""

from __future__ import annotations

import re

from certiformer.compiler.circuits.definitions import Definition, circuit_of
from certiformer.errors import BadInput
from certiformer.kernel.meanings.gates import Gates

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
