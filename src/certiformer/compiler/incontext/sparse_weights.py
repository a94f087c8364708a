"""Weights of heads and hidden units from their few entries that are not zero."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Entries = Mapping[tuple[int, int], float]
Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Head:
    """One head: entries (row, column) of its query, key, value and output matrix."""

    query: Entries
    key: Entries
    value: Entries
    output: Entries


def copies(source: int, count: int, to: int = 0, factor: float = 1.0) -> dict[tuple[int, int], float]:
    """Entries that take `count` coordinates from `source` on to the places from `to` on, times a factor."""
    return {(source + i, to + i): factor for i in range(count)}


def group_tensors(block: int, group: int, width: int, key: int, value: int, heads: Sequence[Head]) -> Tensors:
    """The tensors of a group of heads with the same sizes."""
    shapes = {"query": (width, key), "key": (width, key), "value": (width, value), "output": (value, width)}
    tensors = {}
    for role, shape in shapes.items():
        tensor = np.zeros((len(heads), *shape))
        for place, head in enumerate(heads):
            for (row, column), weight in getattr(head, role).items():
                tensor[place, row, column] = weight
        tensors[f"blocks.{block}.attention.groups.{group}.{role}"] = tensor
    return tensors


@dataclass(frozen=True)
class Unit:
    """One hidden unit: what it reads, and what it adds where."""

    ins: Mapping[int, float]
    outs: Mapping[int, float]
    bias: float = 0.0


def unit_tensors(block: int, width: int, units: Sequence[Unit]) -> Tensors:
    """The tensors of the hidden units of a block."""
    up, bias, down = np.zeros((width, len(units))), np.zeros(len(units)), np.zeros((len(units), width))
    for place, unit in enumerate(units):
        bias[place] = unit.bias
        for coordinate, weight in unit.ins.items():
            up[coordinate, place] = weight
        for coordinate, weight in unit.outs.items():
            down[place, coordinate] = weight
    name = f"blocks.{block}.ffn"
    return {f"{name}.up": up, f"{name}.up_bias": bias, f"{name}.down": down, f"{name}.down_bias": np.zeros(width)}


def erasers(coordinates: Sequence[int]) -> list[Unit]:
    """Units that set coordinates to zero: h - max(h, 0) + max(-h, 0) = 0, without any rounding."""
    return [Unit({c: sign}, {c: -sign}) for c in coordinates for sign in (1.0, -1.0)]
