"""Figures of maps and heads: large maps against decomposed ones, and what the controls are."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from audit.checkpoints import write_bert, write_llama
from certiformer.audit import controls, head_figures, matrix_figures
from certiformer.audit import measure as module
from certiformer.audit.controls import (
    largest_of_products,
    shuffled,
    shuffled_heads,
    shuffled_norm,
    spectral_to_compare,
)
from certiformer.audit.form import Source, Weight
from certiformer.audit.head_figures import product_figures, sizes
from certiformer.audit.matrix_figures import folded_norm
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint
from certiformer.errors import BadInput
from certiformer.spectrum import norms, products, sums


def weight(array: np.ndarray) -> Weight:
    return Weight(Source("t", "f"), array.shape, "F32", lambda: array)


def test_a_large_map_has_the_same_figures_up_to_its_bar(monkeypatch):
    array = np.random.default_rng(0).normal(size=(150, 90)).astype(np.float32)
    gain = np.linspace(0.5, 2, 90)
    whole = matrix_figures.matrix_figures([(weight(array), gain)], np.random.default_rng(1), [])[0]
    monkeypatch.setattr(matrix_figures, "MANY_VALUES", 50)
    large = matrix_figures.matrix_figures([(weight(array), gain)], np.random.default_rng(1), [])[0]
    assert large.ranks is None and large.decay is None and whole.ranks is not None
    # Products are in float32 there; 64 of 90 steps have converged, the 24 of the comparisons nearly.
    assert large.norms.spectral == pytest.approx(whole.norms.spectral, rel=1e-5)
    assert large.norms.spectral + large.norms.spectral_error >= whole.norms.spectral
    assert large.folded_spectral == pytest.approx(whole.folded_spectral, rel=1e-2)
    assert large.shuffled_spectral == pytest.approx(whole.shuffled_spectral, rel=1e-2)
    assert replace(large.norms, spectral=0, spectral_error=0) == replace(whole.norms, spectral=0, spectral_error=0)


def test_a_shuffled_copy_keeps_the_entries_of_each_column_and_not_their_order():
    array = np.arange(60.0).reshape(20, 3)
    rows = {tuple(row) for row in array}
    for columns in (array.T, np.ascontiguousarray(array.T)):
        copy = shuffled(columns, np.random.default_rng(0))
        assert copy.shape == (3, 20)
        assert np.array_equal(np.sort(copy, 1), np.sort(array.T, 1))
        assert not rows & {tuple(row) for row in copy.T}


def test_what_rows_have_in_common_does_not_survive_the_shuffle():
    """Rank one with columns of one length: sqrt(300 * 40) = 110, and sqrt(300) + sqrt(40) = 24 for the copy."""
    rng = np.random.default_rng(0)
    array = np.outer(rng.normal(size=300), rng.choice([-1.0, 1.0], 40))
    found = matrix_figures.matrix_figures([(weight(array), None)], rng, [])[0]
    assert found.shuffled_spectral < 0.3 * found.norms.spectral
    random = matrix_figures.matrix_figures([(weight(rng.normal(size=(300, 40))), None)], rng, [])[0]
    assert random.shuffled_spectral == pytest.approx(random.norms.spectral, rel=0.15)
    assert random.gaussian_spectral == pytest.approx(random.norms.spectral, rel=0.1)


def test_random_heads_are_like_their_control_and_aligned_ones_are_not():
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(2, 6, 80, 8))
    for figures in product_figures(products(left, right), None, None, 1.0, rng):
        assert 0.6 < figures.spectral / figures.gaussian_spectral < 1.6
    common = 3 * np.outer(rng.normal(size=80), np.ones(8))  # queries and keys that share one direction
    for figures in product_figures(products(left + common, right + common), None, None, 1.0, rng):
        assert figures.spectral > 2 * figures.gaussian_spectral
        assert figures.spectral > 2 * figures.shuffled_spectral


def test_the_norms_of_products_are_those_of_the_whole_matrices(monkeypatch):
    rng = np.random.default_rng(0)
    left, right = rng.normal(size=(4, 30, 5)), rng.normal(size=(4, 20, 5))
    whole = [norms(0.5 * a @ b.T) for a, b in zip(left, right, strict=True)]
    names = ("spectral", "frobenius", "l21_columns", "l21_rows", "l11", "largest_row_l1", "largest_column_l1")
    for found, wanted in zip(product_figures(products(left, right), None, None, 0.5, rng), whole, strict=True):
        assert found.l11_is_exact
        for name in names:
            assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-12), name
    exact = sizes(left, right)
    monkeypatch.setattr(head_figures, "WIDE", 25)
    assert (sizes(left, right) >= exact).all() and not (sizes(left, right) == exact).all()


def test_many_large_heads_share_a_few_draws(monkeypatch):
    monkeypatch.setattr(controls, "CHUNK", 1)
    rng = np.random.default_rng(0)
    figures = product_figures(products(*rng.normal(size=(2, 9, 30, 4))), None, None, 1.0, rng)
    assert len({each.gaussian_spectral for each in figures}) == 4


def test_the_same_seed_gives_the_same_figures(tmp_path):
    checkpoint = read_checkpoint(write_bert(tmp_path))[0]
    assert measure(checkpoint, seed=3) == measure(checkpoint, seed=3) != measure(checkpoint, seed=4)


def test_progress_counts_layers_and_ends(tmp_path):
    seen = []
    measure(read_checkpoint(write_llama(tmp_path, layers=3))[0], lambda *state: seen.append(state))
    assert [done for done, _, _ in seen] == [1, 2, 3, 4] and {total for _, total, _ in seen} == {4}


def test_the_largest_value_of_products_is_that_of_the_decomposition():
    rng = np.random.default_rng(0)
    pairs = [tuple(rng.normal(size=(2, heads, 40, 6))) for heads in (5, 3)]
    exact = [np.linalg.norm(left @ right.swapaxes(1, 2), ord=2, axis=(1, 2)) for left, right in pairs]
    found = largest_of_products(pairs)
    assert [len(each) for each in found] == [5, 3]
    for each, wanted in zip(found, exact, strict=True):
        assert each == pytest.approx(wanted, rel=1e-7)  # Gram matrices keep half the digits
    pairs[0][0][0] = 0.0  # no Cholesky factor
    found = largest_of_products(pairs)
    assert found[0][0] == 0.0 and found[1] == pytest.approx(exact[1], rel=1e-12)


@pytest.mark.parametrize("mean", [0.0, 0.1, 0.5])
def test_the_control_of_a_long_table_is_that_of_the_whole(mean):
    rng = np.random.default_rng(0)
    array = (rng.normal(size=(30_000, 100)) + mean).astype(np.float32)
    whole = np.linalg.norm(shuffled(array.T, rng), 2)
    assert shuffled_norm(array, rng) == pytest.approx(whole, rel=0.04)
    # Negative control: a sample that is only made longer misses random tables, whose norm has a part that does not grow.
    if not mean:
        sample = shuffled(array[: controls.LONG].T, rng)
        assert np.linalg.norm(sample, 2) * np.sqrt(30_000 / controls.LONG) > 1.05 * whole


@pytest.mark.parametrize("shape", [(300, 200), (40, 600), (3, 2), (1, 7)])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_controls_are_known_to_a_few_digits(shape, shift):
    """Also where the largest values are close together, as those of a random matrix are; never from above."""
    array = np.random.default_rng(1).normal(size=shape) + shift
    exact = np.linalg.norm(array, 2)
    assert 0.99 * exact < spectral_to_compare(array) < exact * (1 + 1e-5)


def test_heads_are_shuffled_each_in_itself():
    array = np.arange(2 * 7 * 3.0).reshape(2, 7, 3)
    copy = shuffled_heads(array, np.random.default_rng(0))
    assert np.array_equal(np.sort(copy, 1), array) and not np.array_equal(copy, array)


@pytest.mark.parametrize("shape", [(300, 140), (140, 300), (60, 40), (40, 60), (200, 200)])
def test_the_folded_norm_is_that_of_the_folded_matrix(shape):
    """For maps with and without a Gram matrix, of either orientation."""
    rng = np.random.default_rng(0)
    array, gain = rng.normal(size=shape), rng.uniform(0.2, 3.0, shape[1])
    wanted = np.linalg.norm(array * gain, 2)
    for gram in (True, False):
        assert folded_norm(array, sums(array, gram), gain) == pytest.approx(wanted, rel=1e-9)
    # The gain belongs to the columns: folded into the rows, it gives something else.
    assert abs(np.linalg.norm((array.T * rng.permutation(np.resize(gain, shape[0]))).T, 2) / wanted - 1) > 1e-3


def test_threads_do_not_change_the_figures(tmp_path, monkeypatch):
    checkpoint = read_checkpoint(write_bert(tmp_path))[0]
    several = measure(checkpoint)
    monkeypatch.setattr(module, "_workers", lambda width: 1)
    assert measure(checkpoint) == several
    monkeypatch.setattr(module, "WIDE", 8)  # one after the other
    one_by_one = measure(checkpoint)
    assert [layer.name for layer in one_by_one.layers] == [layer.name for layer in several.layers]
    assert one_by_one.matrices == several.matrices


def test_a_tensor_may_be_called_like_a_part_of_the_work(tmp_path):
    checkpoint = read_checkpoint(write_bert(tmp_path))[0]
    others = {"unmeasured": weight(np.ones((3, 2))), "0 maps": weight(np.ones((2, 2)))}
    found = measure(replace(checkpoint, others=others))
    assert found.matrices["unmeasured"].shape == (3, 2) and found.matrices["0 maps"].norms.spectral == pytest.approx(2)


def test_what_is_not_begun_when_a_part_fails_is_not_done(tmp_path, monkeypatch):
    checkpoint = read_checkpoint(write_bert(tmp_path))[0]
    monkeypatch.setattr(module, "_workers", lambda wide: 1)
    begun = []

    def broken() -> np.ndarray:
        raise BadInput("broken")

    def load() -> np.ndarray:
        begun.append(1)
        time.sleep(0.2)
        return np.ones((2, 2))

    slow = {f"slow {number}": replace(weight(np.ones((2, 2))), load=load) for number in range(20)}
    with pytest.raises(BadInput, match="broken"):
        measure(replace(checkpoint, embeddings={"word": replace(weight(np.ones((2, 2))), load=broken), **slow}))
    assert len(begun) < 20
