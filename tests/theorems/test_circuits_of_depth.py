"""Circuits of a depth: all functions counted at small sizes, the decoder compiled, weights counted."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest

from certiformer.compiler.circuits.compiled import gate_writer
from certiformer.errors import BadInput
from certiformer.expressivity.circuits_of_depth import (
    described_bits,
    full_tree,
    gates,
    needed_bits,
    place_bits,
    weights,
)


def functions(inputs: int, depth: int) -> set[int]:
    """All truth tables of the class, as numbers: every gate applied to every pair, level by level."""
    rows = list(product((0, 1), repeat=inputs))
    size = len(rows)
    known = {sum(row[k] << place for place, row in enumerate(rows)) for k in range(inputs)}
    everything = (1 << size) - 1
    for _ in range(depth):
        level = set(known)
        for a, b in product(known, repeat=2):
            parts = (~a & ~b & everything, ~a & b, a & ~b, a & b)
            for table in range(16):
                level.add(sum(part for bit, part in enumerate(parts) if table >> bit & 1))
        known = level
    return known


@pytest.mark.parametrize(("inputs", "depth"), [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2), (3, 3), (4, 1), (4, 2)])
def test_the_class_is_as_large_as_stated(inputs, depth):
    count = len(functions(inputs, depth))
    assert 2 ** needed_bits(inputs, depth) <= count <= 2 ** described_bits(inputs, depth)


def test_all_functions_are_reached_and_counted_at_the_depth_of_the_statement():
    assert len(functions(3, 3)) == 256 and described_bits(3, 3) == 8
    for inputs in (1, 2, 3, 5):
        deep = inputs + max(1, (inputs - 1).bit_length())
        assert needed_bits(inputs, deep) == described_bits(inputs, deep) == 2**inputs
    assert needed_bits(5, 4) < 32  # and not at every depth


@pytest.mark.parametrize(("inputs", "depth"), [(8, 3), (64, 6), (1000, 9)])
def test_the_gap_with_many_inputs(inputs, depth):
    assert described_bits(inputs, depth) <= (2 + 8 / np.log2(inputs)) * needed_bits(inputs, depth)


@pytest.mark.parametrize(("inputs", "depth", "seed"), [(1, 1, 0), (3, 2, 1), (4, 3, 2), (9, 4, 3)])
def test_a_full_tree_is_compiled_proved_and_as_large_as_stated(inputs, depth, seed):
    random = Random(seed)
    leaves = [random.randrange(inputs) for _ in range(2**depth)]
    tables = [f"{random.randrange(16):04b}" for _ in range(2**depth - 1)]
    compiled = gate_writer(full_tree([f"x{k}" for k in range(inputs)], leaves, tables))
    assert gates(inputs, depth) == len(tables) and compiled.config.width == 3 * place_bits(inputs, depth) + 8
    assert sum(int(np.count_nonzero(tensor)) for tensor in compiled.tensors.values()) <= weights(inputs, depth)
    assert compiled.certified().certified
    row = [random.randrange(2) for _ in range(inputs)]
    level, waiting = [row[leaf] for leaf in leaves], iter(tables)
    while len(level) > 1:
        level = [int(next(waiting)[2 * a + b]) for a, b in zip(level[::2], level[1::2], strict=True)]
    assert compiled.answers(row) == level


def test_the_number_of_weights_is_attained():
    """A tree whose tables are all 1 has the very number, with all its leaves different from their places."""
    compiled = gate_writer(full_tree("abcd", [0, 1, 2, 3], ["1111"] * 3))
    assert sum(int(np.count_nonzero(tensor)) for tensor in compiled.tensors.values()) == weights(4, 2)


def test_shannons_tree_has_the_stated_number_of_gates():
    """S(n) = 2 S(n-1) + 3, and from there on depth no longer costs gates."""
    assert [gates(n, 40) for n in (1, 2, 3, 4)] == [1, 1, 5, 13]
    assert gates(10, 3) == 7
    with pytest.raises(BadInput, match="at least one input"):
        gates(0, 3)


def test_a_tree_that_is_not_full_is_refused():
    with pytest.raises(BadInput, match="full tree"):
        full_tree("ab", [0, 1, 1], ["0001", "0001"])
