"""The rank of a table of scores: the bound against singular values, attained to a factor, and nothing where it is silent."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.score_rank import hard_scores, score_limit


@pytest.mark.parametrize(("width", "items", "biased"), [(3, 8, False), (3, 16, True), (1, 2, False), (7, 100, True)])
def test_no_table_comes_nearer(width, items, biased):
    limit = score_limit(width, items, biased)
    assert limit is not None and limit.squared == 1 - Fraction(width + biased, limit.items)
    assert limit.items <= items < 2 * limit.items
    target = hard_scores(limit.items)
    assert (target @ target.T == limit.items * np.eye(limit.items)).all()
    left, sizes, right = np.linalg.svd(target)
    best = (left[:, : limit.rank] * sizes[: limit.rank]) @ right[: limit.rank]
    rng = np.random.default_rng(0)
    nearby = [best + 0.1 * rng.normal(size=(limit.items, limit.rank)) @ right[: limit.rank] for _ in range(50)]
    for scores in (best, *nearby):
        # In float64; the distance itself is computed with a rounding of 1e-15.
        assert np.abs(scores - target).max() >= limit.error - 1e-12
    assert limit.error <= math.sqrt(limit.squared)


def test_one_column_of_two_attains_it_up_to_the_maximum():
    """Rank 1 against the Hadamard matrix of order 2: the mean of the squares is attained."""
    limit = score_limit(1, 2, biased=False)
    target = hard_scores(2)
    left, sizes, right = np.linalg.svd(target)
    found = np.abs(target - sizes[0] * np.outer(left[:, 0], right[0]))
    assert limit is not None and math.isclose(np.sqrt((found**2).mean()), limit.error)


def test_a_wide_table_is_not_limited():
    assert score_limit(8, 8, biased=False) is None and score_limit(7, 8, biased=True) is None
    assert score_limit(7, 8, biased=False) is not None
    exact = np.eye(8) @ hard_scores(8)  # h_k = e_k: a table of width 8 has these scores
    assert (exact == hard_scores(8)).all()
    with pytest.raises(BadInput, match="rows and columns"):
        score_limit(0, 8, biased=False)
    with pytest.raises(BadInput, match="power of two"):
        hard_scores(6)


def test_two_coordinates_put_any_item_on_top():
    """What is not certified: the order."""
    angles = 2 * np.pi * np.arange(100) / 100
    table = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert ((table @ table.T).argmax(axis=1) == np.arange(100)).all()
