"""Greedy decoding in exact rationals: the definition of the one transformer, for causal `nearest` attention and ReLU.

No number is rounded here, so that a run shows what the weights do in real arithmetic. Rows are dictionaries of their
nonzero coordinates; each row of each block is computed once, as in `compiler.decode`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from fractions import Fraction

from certiformer.model.config import Config

Row = dict[int, Fraction]
Map = dict[int, list[tuple[int, Fraction]]]  # for each coordinate where it goes, and times what
Tensor = Mapping[tuple[int, ...], Fraction]


def decode_exactly(
    config: Config, tensors: Mapping[str, Tensor], prompt: list[int], writes: list[int], steps: int
) -> list[int]:
    """The outputs chosen after the prompt; output k writes the token `writes[k]`, a negative one ends, then -1 follows.

    Only what the encoder-decoder needs is known: no registers, norms or biases of heads, one head in each group.
    """
    maps = {name: _map(tensor) for name, tensor in tensors.items() if not name.endswith("bias")}
    kept: list[list[Row]] = [[] for _ in config.blocks]
    tokens, chosen = list(prompt), []
    while len(chosen) < steps:
        place = len(kept[0])
        row = _sum(_row(tensors["embed.weight"], tokens[place]), _row(tensors["code.table"], place))
        for index, block in enumerate(config.blocks):
            kept[index].append(row)
            name = f"blocks.{index}"
            if block.attention is not None:
                parts = [
                    _head(maps, f"{name}.attention.groups.{g}", kept[index], row)
                    for g in range(len(block.attention.heads))
                ]
                row = _sum(row, *parts)
            if block.ffn is not None:
                hidden = {unit: x for unit, x in _times(row, maps[f"{name}.ffn.up"]).items() if x > 0}
                row = _sum(row, _times(hidden, maps[f"{name}.ffn.down"]))
        if place + 1 < len(prompt):
            continue
        outputs = _times(row, maps["readout.weight"])
        for (output,), bias in tensors["readout.bias"].items():
            outputs[output] = outputs.get(output, Fraction(0)) + bias
        best = max(outputs.values())
        winners = [output for output, x in outputs.items() if x == best]
        if len(winners) != 1 or best <= 0:
            raise ValueError("no output is the largest")
        chosen.append(winners[0])
        if writes[winners[0]] < 0:
            break
        tokens.append(writes[winners[0]])
    return chosen + [-1] * (steps - len(chosen))


def _head(maps: Mapping[str, Map], name: str, rows: list[Row], row: Row) -> Row:
    """The average value of the rows with the smallest |query . key|."""
    query = _times(row, maps[f"{name}.query"])
    sizes = []
    for other in rows:
        key = _times(other, maps[f"{name}.key"])
        sizes.append(abs(sum((x * key[place] for place, x in query.items() if place in key), Fraction(0))))
    nearest = [place for place, size in enumerate(sizes) if size == min(sizes)]
    total = _sum(*(_times(rows[place], maps[f"{name}.value"]) for place in nearest))
    return _times({place: x / len(nearest) for place, x in total.items()}, maps[f"{name}.output"])


def _map(tensor: Tensor) -> Map:
    """A matrix, or the one head of a group, by its rows."""
    found: Map = defaultdict(list)
    for place, number in tensor.items():
        found[place[-2]].append((place[-1], number))
    return found


def _times(row: Row, matrix: Map) -> Row:
    found: Row = defaultdict(Fraction)
    for coordinate, x in row.items():
        for place, weight in matrix.get(coordinate, ()):
            found[place] += x * weight
    return {place: x for place, x in found.items() if x}


def _sum(*rows: Row) -> Row:
    found: Row = defaultdict(Fraction)
    for row in rows:
        for place, x in row.items():
            found[place] += x
    return {place: x for place, x in found.items() if x}


def _row(tensor: Tensor, row: int) -> Row:
    return {place[1]: number for place, number in tensor.items() if place[0] == row and number}
