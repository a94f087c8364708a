"""Levels, starts and subspaces: the same bits everywhere, nearest levels, and k-means that is never worse than its start."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.bounds.quantise import (
    Subspace,
    Whole,
    clustered_levels,
    nearest_level,
    seeded_signs,
    seeded_words,
    uniform_levels,
)
from certiformer.errors import BadInput


def test_the_words_are_those_of_the_published_generator():
    """SplitMix64 in plain integers, as its author writes it."""

    def words(state, count):
        for _ in range(count):
            state = (state + 0x9E3779B97F4A7C15) % 2**64
            z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
            yield z ^ (z >> 31)

    for seed in (0, 1234567, 2**64 - 1, -1):
        assert seeded_words(seed, 100).tolist() == list(words(seed % 2**64, 100))


def test_signs_are_fair_and_belong_to_the_seed():
    signs = seeded_signs(3, 100_001)
    assert len(signs) == 100_001 and set(signs.tolist()) == {-1.0, 1.0}
    assert abs(signs.mean()) < 4 / np.sqrt(len(signs))  # four standard deviations
    assert (seeded_signs(3, 50) == signs[:50]).all() and (seeded_signs(4, 50) != signs[:50]).any()


def test_the_nearest_level_is_the_nearest():
    rng = np.random.default_rng(0)
    values, levels = rng.normal(size=500), rng.normal(size=7)
    found = nearest_level(values, levels)
    distance = np.abs(values[:, None] - found.levels)
    assert (np.abs(values - found.values) == distance.min(1)).all()
    assert set(found.levels) == set(levels.astype(np.float16).astype(float))


def test_clusters_beat_uniform_levels_on_weights_with_tails():
    values = np.random.default_rng(1).standard_t(3, size=3000)

    def error(levels):
        return ((values - nearest_level(values, levels).values) ** 2).mean()

    assert error(clustered_levels(values, 9)) < 0.5 * error(uniform_levels(values, 9))
    assert error(clustered_levels(values, 9)) <= error(np.quantile(values, (np.arange(9) + 0.5) / 9))
    assert clustered_levels(np.array([1.0, 1.0]), 3).tolist() == [1.0, 1.0, 1.0]


def test_weights_are_restored_around_their_start():
    """From an earlier checkpoint: what did not change is the level 0 and costs next to nothing."""
    rng = np.random.default_rng(2)
    start, scale = rng.normal(size=200), np.full(200, 0.5)
    weights = start.copy()
    weights[:5] += 1.0
    frame = Whole(start, scale)
    found = nearest_level(frame.coordinates(weights), np.array([0.0, 2.0]))
    assert np.allclose(frame.restore(found.values), weights, atol=1e-12)  # x - y + y
    assert np.bincount(found.symbols).tolist() == [195, 5]


def test_a_subspace_moves_all_weights_by_few_numbers():
    frame = Subspace(np.zeros(300), np.full(300, 2.0), 20, seed=5)
    code = np.random.default_rng(3).normal(size=20)
    assert (frame.restore(np.zeros(20)) == 0).all()
    assert np.linalg.matrix_rank(frame.directions) == 20 and frame.directions.shape == (300, 20)
    # Signs over sqrt d: each weight moves by scale |u| on average.
    size = np.sqrt((frame.restore(code) ** 2).mean()) / (2.0 * np.linalg.norm(code) / np.sqrt(20))
    assert 0.8 < size < 1.2
    assert (frame.restore(code) != Subspace(np.zeros(300), np.full(300, 2.0), 20, seed=6).restore(code)).any()


def test_nonsense_is_refused():
    for make, sentence in (
        (lambda: nearest_level(np.array([np.nan]), np.zeros(2)), "are finite"),
        (lambda: nearest_level(np.zeros(1), np.array([1e9])), "at most 65504"),
        (lambda: uniform_levels(np.zeros(3), 0), "number of levels is a positive number, not 0"),
        (lambda: Subspace(np.zeros(3), np.ones(3), 0), "dimension of the subspace is a positive number, not 0"),
    ):
        with pytest.raises(BadInput, match=sentence):
            make()
