"""The file that says which direction each coordinate has become, and the lemma of two models that are one function."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from certiformer import BadInput
from certiformer.compiler import compile_program
from certiformer.compiler.realistic.basis import Basis, Reader, rotation
from certiformer.compiler.realistic.stream import as_stored, bias_of, in_basis, is_conjugate, reads, writes
from certiformer.model import Norm
from certiformer.rasp.library import catalogue


@pytest.fixture(scope="module")
def reverse():
    return compile_program(catalogue()["reverse"].make(), ("a", "b"), 3)


def random_basis(generator, own, width, states):
    readers = [
        Reader(generator.normal(size=(width, own)), generator.normal(size=own), generator.random(own))
        for _ in range(states)
    ]
    return Basis(generator.normal(size=(own, width)), tuple(readers))


def test_the_file_gives_back_every_number():
    basis = random_basis(np.random.default_rng(0), 3, 2, 4)
    again = Basis.from_bytes(basis.to_bytes())
    assert (again.directions == basis.directions).all() and len(again.readers) == 4
    for one, other in zip(again.readers, basis.readers, strict=True):
        assert (one.matrix == other.matrix).all() and (one.offset == other.offset).all()
        assert (one.deviation == other.deviation).all()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"certiformer-basis-1", b"certiformer-basis-2"),
        (b'"directions": [[1.0, 0.0]', b'"directions": [[1.0]'),
        (b'"offset": [0.0, 0.0]', b'"offset": [0.0]'),
        (b'"offset": [0.0, 0.0]', b'"offset": [0.0, NaN]'),
        (b'"readers": [', b'"others": ['),
        (b'"matrix": [[1.0, 0.0], [0.0, 1.0]]', b'"matrix": [[1.0, 0.0]]'),
    ],
)
def test_anything_else_is_refused(old, new):
    good = Basis.identity(2).to_bytes()
    assert old in good
    with pytest.raises(BadInput, match="has not the structure of one"):
        Basis.from_bytes(good.replace(old, new))


def test_one_basis_after_another_reads_what_both_do():
    generator = np.random.default_rng(1)
    first, second = random_basis(generator, 3, 2, 4), random_basis(generator, 2, 5, 1)
    both = first.then(second)
    states = [generator.normal(size=(6, 5)) for _ in range(4)]
    wanted = first.coordinates(second.coordinates(states))
    for found, want in zip(both.coordinates(states), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=0, atol=1e-13)  # numbers of size 10, 5 terms: 5e-15 of rounding
    np.testing.assert_allclose(both.directions, first.directions @ second.directions)


def test_a_basis_of_another_model_is_noticed():
    with pytest.raises(BadInput, match="belongs to another transformer"):
        Basis.identity(3).coordinates([np.zeros((2, 4))])
    with pytest.raises(BadInput, match="belongs to another transformer"):
        random_basis(np.random.default_rng(2), 3, 3, 2).coordinates([np.zeros((2, 3))] * 3)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 21])
def test_an_exact_rotation_is_orthogonal_without_any_rounding(width):
    basis = rotation(width, "exact", seed=width)
    rows = [[Fraction(x) for x in row] for row in basis.directions.tolist()]
    columns = [[Fraction(x) for x in column] for column in basis.readers[0].matrix.T.tolist()]
    for i, row in enumerate(rows):
        assert [sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] == [
            i == j for j in range(width)
        ]
    assert (basis.directions != 0).all() and width <= basis.width < max(3, 2 * width)


def test_a_given_rotation_must_be_one():
    turned = np.array([[0.6, 0.8], [-0.8, 0.6]])
    assert np.allclose(rotation(2, turned, 0).readers[0].matrix, turned.T)
    with pytest.raises(BadInput, match="must be orthogonal"):
        rotation(2, np.array([[1.0, 0.0], [0.5, 1.0]]), 0)
    with pytest.raises(BadInput, match="matrix with 3 rows"):
        rotation(3, turned, 0)
    with pytest.raises(BadInput, match="one of exact, random, not 'small'"):
        rotation(3, "small", 0)


def test_every_tensor_has_a_known_part(reverse):
    known = {bias_of(name) for name in reverse.tensors if reads(name)}
    for name in reverse.tensors:
        assert writes(name) + reads(name) + (name in known) == 1, name


def dyadic(compiled):
    """The tensors with multiples of 1/4 instead of fractions that the stored type rounds."""
    return {name: np.round(tensor * 4) / 4 for name, tensor in compiled.tensors.items()}


def test_models_in_two_bases_are_compared_exactly(reverse):
    basis, old = rotation(reverse.config.width, "exact", seed=5), dyadic(reverse)
    _, turned = in_basis(reverse.config, old, basis)
    new = as_stored(turned, "float32")
    assert is_conjugate(old, new, basis.directions)
    assert not is_conjugate(old, new, rotation(reverse.config.width, "exact", seed=6).directions)
    for name, tensor in new.items():  # one weight moved by one unit in the last place
        moved = tensor.copy()
        moved.flat[-1] = np.nextafter(moved.flat[-1], np.float32(np.inf))
        assert not is_conjugate(old, {**new, name: moved}, basis.directions), name
    assert not is_conjugate(old, {**new, "extra": np.zeros(1)}, basis.directions)


def test_a_random_rotation_is_not_called_the_same_function(reverse):
    basis = rotation(reverse.config.width, "random", seed=5)
    _, turned = in_basis(reverse.config, reverse.tensors, basis)
    assert not is_conjugate(reverse.tensors, as_stored(turned, "float32"), basis.directions)


def test_a_model_with_norms_is_refused(reverse):
    blocks = tuple(replace(block, norm=Norm("pre")) for block in reverse.config.blocks)
    with pytest.raises(BadInput, match="without norms"):
        in_basis(replace(reverse.config, blocks=blocks), reverse.tensors, Basis.identity(reverse.config.width))
