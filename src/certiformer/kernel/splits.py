"""Split trees: covers of a box that are exact by construction.

A tree is stored in preorder, one byte a node: `LEAF`, or the axis that is bisected (then the lower half's tree and the
upper half's tree follow). Whatever the bytes are, the leaves of a well-formed tree cover the root box exactly: a cover
cannot be faked by a wrong sum of areas, and cutting a leaf makes the tree malformed or moves a bisection.

A leaf is a *cell*: per axis the pair (m, k) meaning the real interval a + (b - a) [k, k + 1] / 2^m.
"""

from __future__ import annotations

from collections.abc import Iterator

from certiformer.errors import BadInput

LEAF = 255
MAX_DEPTH = 60  # per axis; (b - a) / 2^60 is far below any useful box

Cell = tuple[tuple[int, int], ...]


def root(dimension: int) -> Cell:
    """The cell that is the whole box.

    >>> root(2)
    ((0, 0), (0, 0))
    """
    return ((0, 0),) * dimension


def halves(cell: Cell, axis: int) -> tuple[Cell, Cell]:
    """The lower and the upper half of `cell` along `axis`."""
    m, k = cell[axis]
    if m >= MAX_DEPTH:
        raise BadInput(f"the split tree bisects an axis more than {MAX_DEPTH} times")
    low = (*cell[:axis], (m + 1, 2 * k), *cell[axis + 1 :])
    high = (*cell[:axis], (m + 1, 2 * k + 1), *cell[axis + 1 :])
    return low, high


def leaves(tree: bytes, dimension: int) -> Iterator[Cell]:
    """The leaf cells of `tree` in preorder; raises `BadInput` if the bytes are not one well-formed tree.

    >>> list(leaves(bytes([0, 255, 255]), 1))
    [((1, 0),), ((1, 1),)]
    """
    for cell, _ in subtrees(tree, dimension, 0):
        yield cell


def subtrees(tree: bytes, dimension: int, largest: int) -> Iterator[tuple[Cell, bytes]]:
    """Cut `tree` into (cell, subtree) pieces of at most `largest` bytes each (single leaves if 0).

    Together the pieces are the whole tree: their cells cover the root box exactly.
    """
    ends = subtree_ends(tree, dimension)
    stack: list[tuple[Cell, int]] = [(root(dimension), 0)]
    while stack:
        cell, start = stack.pop()
        if tree[start] == LEAF or ends[start] - start <= largest:
            yield cell, tree[start : ends[start]]
            continue
        low, high = halves(cell, tree[start])
        stack.append((high, ends[start + 1]))
        stack.append((low, start + 1))


def subtree_ends(tree: bytes, dimension: int) -> list[int]:
    """For every node the position after its subtree; raises when the bytes are not exactly one tree."""
    ends = [0] * len(tree)
    for position in range(len(tree) - 1, -1, -1):
        byte = tree[position]
        if byte == LEAF:
            ends[position] = position + 1
        elif byte < dimension and position + 1 < len(tree) and ends[position + 1] < len(tree):
            ends[position] = ends[ends[position + 1]]
        else:
            raise BadInput("the split tree is malformed: a bisection lacks a half or names an axis that does not exist")
    if not tree or ends[0] != len(tree):
        raise BadInput("the split tree is malformed: it is empty or has bytes left over")
    return ends


def encode(dimension: int, axes: dict[Cell, int]) -> bytes:
    """The preorder bytes of the tree whose inner nodes are the keys of `axes` (cell -> bisected axis).

    >>> encode(1, {root(1): 0})
    b'\\x00\\xff\\xff'
    """
    result = bytearray()
    stack = [root(dimension)]
    while stack:
        cell = stack.pop()
        axis = axes.get(cell)
        if axis is None:
            result.append(LEAF)
        else:
            result.append(axis)
            stack.extend(reversed(halves(cell, axis)))
    return bytes(result)
