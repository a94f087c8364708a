"""The bill of a compiled transformer: layers, width, parameters, bytes, and which expression causes how many of them.

A parameter is charged to the variable that needs it: a head to what it computes, hidden units to what they write, the rows
of embedding and position tables to what they hold, the read-out to the output. Matrices are charged whole, zeros included,
because they are stored.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from certiformer.kernel.situations.rasp.circuit import Circuit
from certiformer.model.config import Config
from certiformer.model.layout import tensor_specs

BYTES = {"float64": 8, "float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class Bill:
    """What a transformer costs; `causes` are (expression, parameters), the dearest first."""

    layers: int
    width: int
    heads: int
    units: int
    parameters: int
    bytes: int
    causes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        parts = [_count(self.layers, "layer"), f"width {self.width:,}", _count(self.heads, "head")]
        parts += [_count(self.units, "hidden unit"), _count(self.parameters, "parameter")]
        return ", ".join(parts)


def bill_of(config: Config, circuit: Circuit) -> Bill:
    """The bill of a configuration and its circuit; the weights are not needed."""
    parameters = sum(math.prod(spec.shape) for spec in tensor_specs(config).values())
    heads = [group.count for block in config.blocks if block.attention for group in block.attention.heads]
    units = sum(block.ffn.width for block in config.blocks if block.ffn)
    charged: Counter[str] = Counter()
    for head in circuit.heads:
        attention = config.blocks[head.block].attention
        if attention is not None:
            size = attention.heads[head.group]
            charged[_name(circuit, head.writes)] += 2 * (config.width + 1) * size.key
            charged[_name(circuit, head.writes)] += (2 * config.width + 1) * size.value
    for unit in circuit.units:
        charged[_name(circuit, unit.cells)] += unit.count * (2 * config.width + 1)
    tables = len(circuit.cells) and (config.tokens + (config.input.vocabulary or 0) + config.registers)
    for cell in circuit.cells:
        if cell.written[1] == "embedding":
            charged[cell.name] += tables
    charged["the output"] += (config.width + 1) * config.outputs
    causes = tuple(charged.most_common())
    return Bill(
        len(config.blocks), config.width, sum(heads), units, parameters, parameters * BYTES[config.dtype], causes
    )


def _name(circuit: Circuit, cells: tuple[int, ...]) -> str:
    return circuit.cells[cells[0]].name if cells else "nothing"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
