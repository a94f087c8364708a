"""The growing split tree: exact cover at every moment, survives a round trip through its checkpoint."""

from fractions import Fraction

import numpy as np
import pytest

from certiformer.verify import SplitTree
from kernel.trees import leaves


def grown(dimension: int, rounds: int, seed: int) -> SplitTree:
    random = np.random.default_rng(seed)
    tree = SplitTree(dimension)
    for _ in range(rounds):
        open_ = tree.leaves()
        chosen = open_[random.random(len(open_)) < 0.6]
        if len(chosen):
            tree.split(chosen, random.integers(0, dimension, len(chosen)))
    tree.set_bounds(tree.leaves(), random.random(len(tree.leaves())))
    return tree


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_bytes_cover_the_box_with_exactly_the_leaves_of_the_tree(dimension):
    tree = grown(dimension, 7, dimension)
    cells = list(leaves(tree.to_bytes(), dimension))
    depth, index = tree.cells(tree.leaves())
    expected = {tuple(zip(d, k, strict=True)) for d, k in zip(depth.tolist(), index.tolist(), strict=True)}
    assert set(cells) == expected
    assert sum((Fraction(1, 2 ** sum(m for m, _ in cell)) for cell in cells), Fraction(0)) == 1


def test_checkpoint_restores_the_same_tree_and_only_for_the_same_search(tmp_path):
    tree = grown(2, 6, 5)
    path = tmp_path / "search.checkpoint"
    tree.save(path, "abc")
    again = SplitTree.restore(path, "abc", 2)
    assert again is not None
    assert again.to_bytes() == tree.to_bytes()
    assert again.upper() == tree.upper()
    assert SplitTree.restore(path, "other", 2) is None
    assert SplitTree.restore(path, "abc", 3) is None


@pytest.mark.parametrize("damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b"\xff" * 40])
def test_a_damaged_checkpoint_is_ignored(tmp_path, damage):
    path = tmp_path / "search.checkpoint"
    grown(1, 5, 1).save(path, "abc")
    path.write_bytes(damage(path.read_bytes()))
    assert SplitTree.restore(path, "abc", 1) is None


def test_not_a_number_is_no_bound():
    tree = SplitTree(1)
    tree.set_bounds(np.array([0]), np.array([np.nan]))
    assert tree.upper() == np.inf
