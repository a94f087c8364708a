"""Split trees for tests: their bytes, and their leaves."""

from __future__ import annotations

from collections.abc import Iterator

from certiformer.kernel.balls import Cell
from certiformer.kernel.rules import LEAF, halves, root, subtrees


def leaves(tree: bytes, dimension: int) -> Iterator[Cell]:
    """The leaf cells of `tree` in preorder; raises `BadInput` if the bytes are not one well-formed tree."""
    return (cell for cell, _ in subtrees(tree, dimension, 0))


def encode(dimension: int, axes: dict[Cell, int]) -> bytes:
    """The preorder bytes of the tree whose inner nodes are the keys of `axes` (cell -> bisected axis)."""
    result, stack = bytearray(), [root(dimension)]
    while stack:
        cell = stack.pop()
        axis = axes.get(cell)
        result.append(LEAF if axis is None else axis)
        if axis is not None:
            stack.extend(reversed(halves(cell, axis)))
    return bytes(result)
