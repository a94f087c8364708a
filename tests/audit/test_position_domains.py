"""Disjoint domains: the search against all pairs, and both answers on a checkpoint."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from audit.checkpoints import POSITIONS, WIDTH, bert_tensors, write_bert
from certiformer.audit import Given
from certiformer.audit.measure import measure
from certiformer.audit.position_domains import disjoint_positions, nearest_pair
from certiformer.audit.read import read_checkpoint

TABLE = "embeddings.position_embeddings.weight"


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_pair_is_that_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    codes, sides = rng.normal(size=(9, 4)), rng.uniform(0.01, 0.05, 4)  # far apart: the search may not stop early
    every = {(s, t): (abs(codes[s] - codes[t]) / sides).max() for s, t in combinations(range(9), 2)}
    found, pair = nearest_pair(codes, sides)
    assert (found, pair) == (min(every.values()), min(every, key=every.__getitem__))
    lengths = {(s, t): np.linalg.norm(codes[s] - codes[t]) for s, t in combinations(range(9), 2)}
    assert nearest_pair(codes, None)[1] == min(lengths, key=lengths.__getitem__)


def test_a_coordinate_without_extent_separates_what_differs_in_it():
    sides = np.array([1.0, 0.0])
    assert nearest_pair(np.array([[0.0, 0.0], [0.0, 1e-9]]), sides)[0] == np.inf
    assert nearest_pair(np.array([[0.0, 0.0], [0.5, 0.0]]), sides)[0] == 0.5


def table(spread: float) -> np.ndarray:
    codes = np.zeros((POSITIONS, WIDTH), np.float32)
    codes[:, 0] = spread * np.arange(POSITIONS)
    return codes


@pytest.mark.parametrize(("spread", "verdict"), [(100.0, "holds"), (1e-3, "does-not-apply")])
def test_far_codes_are_disjoint_and_near_ones_are_not(tmp_path, spread, verdict):
    checkpoint = read_checkpoint(write_bert(tmp_path, {**bert_tensors(), TABLE: table(spread)}))[0]
    found = disjoint_positions(checkpoint, measure(checkpoint), Given())
    assert found.verdict == verdict and (found.value > 1) == (verdict == "holds")


def test_the_stated_ball_decides(tmp_path):
    checkpoint = read_checkpoint(write_bert(tmp_path, {**bert_tensors(), TABLE: table(3.0)}))[0]
    assert disjoint_positions(checkpoint, measure(checkpoint), Given(radius=1.4)).verdict == "holds"
    assert disjoint_positions(checkpoint, measure(checkpoint), Given(radius=1.6)).verdict == "does-not-apply"
