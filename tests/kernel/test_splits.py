"""Split trees: whatever the bytes, a tree that is accepted covers the box exactly.

Exactness is checked twice, by rational volumes together with disjointness, and by membership of random points.
"""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations
from math import prod

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.rules import LEAF, MAX_DEPTH, halves, root, subtree_ends, subtrees
from kernel.trees import encode, leaves


def random_tree(rng: random.Random, dimension: int, size: int) -> bytes:
    """A random tree with about `size` inner nodes."""
    axes, open_cells = {}, [root(dimension)]
    for _ in range(size):
        cell = open_cells.pop(rng.randrange(len(open_cells)))
        axes[cell] = rng.randrange(dimension)
        open_cells.extend(halves(cell, axes[cell]))
    return encode(dimension, axes)


def interval(m: int, k: int) -> tuple[Fraction, Fraction]:
    return Fraction(k, 2**m), Fraction(k + 1, 2**m)


def volume(cell) -> Fraction:
    return prod((Fraction(1, 2**m) for m, _ in cell), start=Fraction(1))


def overlap(a, b) -> bool:
    """Whether the interiors of two cells meet."""
    ends = [(interval(*x), interval(*y)) for x, y in zip(a, b, strict=True)]
    return all(max(p[0], q[0]) < min(p[1], q[1]) for p, q in ends)


def is_exact_cover(cells: list, dimension: int, rng: random.Random) -> bool:
    """Cells inside the unit box, disjoint, of total volume 1, and every sampled point (faces included) in one of them."""
    if any(not 0 <= k < 2**m for cell in cells for m, k in cell):
        return False
    if sum(map(volume, cells)) != 1 or any(overlap(a, b) for a, b in combinations(cells, 2)):
        return False
    for _ in range(20):
        point = [Fraction(rng.randrange(65), 64) for _ in range(dimension)]
        inside = [
            all(low <= x <= high for x, (low, high) in zip(point, map(lambda c: interval(*c), cell), strict=True))
            for cell in cells
        ]
        if not any(inside):
            return False
    return True


@pytest.mark.parametrize("dimension", [1, 2, 3, 5])
@pytest.mark.parametrize("size", [0, 1, 2, 9, 40])
def test_the_leaves_of_a_tree_cover_the_box_exactly(dimension, size):
    rng = random.Random(100 * dimension + size)
    tree = random_tree(rng, dimension, size)
    cells = list(leaves(tree, dimension))
    assert len(cells) == size + 1 == tree.count(LEAF)
    assert is_exact_cover(cells, dimension, rng)


def test_the_cover_test_itself_notices_a_missing_a_doubled_and_a_moved_cell():
    rng = random.Random(1)
    cells = list(leaves(random_tree(rng, 2, 12), 2))
    assert is_exact_cover(cells, 2, rng)
    assert not is_exact_cover(cells[1:], 2, rng)
    assert not is_exact_cover([*cells, cells[0]], 2, rng)
    (m, k), other = cells[0]
    assert not is_exact_cover([((m, k ^ 1), other), *cells[1:]], 2, rng)
    same_volume = [*cells[1:], cells[1]]  # a sum of volumes alone would be fooled by a doubled cell of the right size
    if volume(cells[0]) == volume(cells[1]):
        assert sum(map(volume, same_volume)) == 1
    assert not is_exact_cover(same_volume, 2, rng)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_every_change_of_one_byte_is_refused_or_still_an_exact_cover(dimension):
    rng = random.Random(dimension)
    tree = random_tree(rng, dimension, 10)
    refused = accepted = 0
    candidates = [tree[:i] + tree[i + 1 :] for i in range(len(tree))]
    for byte in (*range(dimension + 1), 254, LEAF):
        candidates += [tree[:i] + bytes([byte]) + tree[i:] for i in range(len(tree) + 1)]
        candidates += [tree[:i] + bytes([byte]) + tree[i + 1 :] for i in range(len(tree))]
    for candidate in candidates:
        try:
            cells = list(leaves(candidate, dimension))
        except BadInput:
            refused += 1
            continue
        accepted += 1
        assert is_exact_cover(cells, dimension, rng)
    # Deletions and insertions change the number of nodes by one, which no tree allows; most changes are refused too.
    assert refused > 3 * len(tree)
    assert accepted < refused


def test_no_deletion_or_insertion_of_one_byte_gives_a_tree():
    # A tree with n bisections has 2n + 1 bytes: an even number of bytes is never one.
    tree = random_tree(random.Random(3), 2, 8)
    for i in range(len(tree)):
        with pytest.raises(BadInput, match="malformed"):
            subtree_ends(tree[:i] + tree[i + 1 :], 2)
        for byte in (0, 1, LEAF):
            with pytest.raises(BadInput, match="malformed"):
                subtree_ends(tree[:i] + bytes([byte]) + tree[i:], 2)


@pytest.mark.parametrize(
    "tree", [b"", b"\x00", b"\x00\xff", b"\xff\xff", b"\x01\xff\xff", b"\x00\xff\xff\xff", b"\xfe", b"\x02\xff\xff"]
)
def test_malformed_trees_are_refused(tree):
    with pytest.raises(BadInput, match="the split tree is malformed"):
        list(leaves(tree, 1))


def test_an_axis_can_be_bisected_only_so_often():
    deepest = b"\x00" * MAX_DEPTH + b"\xff" * (MAX_DEPTH + 1)
    assert max(cell[0][0] for cell in leaves(deepest, 1)) == MAX_DEPTH
    with pytest.raises(BadInput, match="more than 60 times"):
        list(leaves(b"\x00" * (MAX_DEPTH + 1) + b"\xff" * (MAX_DEPTH + 2), 1))


@pytest.mark.parametrize("largest", [0, 1, 3, 10, 1000])
def test_pieces_put_together_are_the_tree(largest):
    rng = random.Random(largest)
    tree = random_tree(rng, 2, 30)
    pieces = list(subtrees(tree, 2, largest))
    assert is_exact_cover([cell for cell, _ in pieces], 2, rng)
    assert sum(part.count(LEAF) for _, part in pieces) == tree.count(LEAF)
    assert all(len(part) <= max(1, largest) for _, part in pieces)
    # Each piece, read on its own, gives the leaves of the tree that lie in its cell.
    whole = list(leaves(tree, 2))
    found = []
    for cell, part in pieces:
        for inner in leaves(part, 2):
            found.append(tuple((m + p, (k << p) + q) for (m, k), (p, q) in zip(cell, inner, strict=True)))
    assert found == whole


def test_encoding_gives_back_the_cells_that_were_bisected():
    rng = random.Random(9)
    for dimension in (1, 2, 4):
        tree = random_tree(rng, dimension, 15)
        axes, stack, position = {}, [root(dimension)], 0
        for position in range(len(tree)):  # preorder, read independently of the library
            cell = stack.pop()
            if tree[position] != LEAF:
                axes[cell] = tree[position]
                stack.extend(reversed(halves(cell, tree[position])))
        assert encode(dimension, axes) == tree
