"""One path of a mixing process: reference values, the choice of the gap, and a Markov chain."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certiformer.bounds.mixing_path import best_blocks, blocks_at, finite_complexity
from certiformer.bounds.numbers import above
from certiformer.errors import BadInput


def test_reference_values():
    found = [best_blocks(10**6, rho) for rho in (0.5, 0.9)]
    assert [(b.gap, b.blocks, round(above(b.term), 4)) for b in found] == [(23, 21739, 0.0309), (133, 3759, 0.0747)]


def test_the_best_gap_is_the_best_of_all():
    for complexity in (lambda _: 0, lambda u: 1 / math.sqrt(u)):
        best = best_blocks(5000, 0.7, complexity=complexity)

        def value(found, complexity=complexity):
            return 2 * complexity(found.blocks) + above(found.term)

        others = [blocks_at(5000, gap, 0.7) for gap in range(1, 2501)]
        assert math.isclose(value(best), min(value(each) for each in others if each is not None), rel_tol=1e-12)


def test_independent_examples_still_pay_for_the_blocks():
    assert best_blocks(1000, 0.0).gap == 1 and best_blocks(1000, 0.0).blocks == 500


def test_a_predictor_learned_on_one_markov_path_stays_below_the_bound():
    """Two states, second eigenvalue rho; the four predictors of the next state from the last. Rad by Massart."""
    rng, stay, failures = np.random.default_rng(0), 0.8, 0
    rho, steps = 2 * stay - 1, 4000
    complexity = lambda u: math.sqrt(2 * math.log(4) / u)  # noqa: E731
    found = best_blocks(steps, rho, scale=0.5, complexity=complexity)
    margin = 2 * complexity(found.blocks) + above(found.term)
    for _ in range(200):
        flips = rng.uniform(size=steps) > stay
        path = np.concatenate(([int(rng.integers(2))], flips)).cumsum() % 2
        for rule in ((0, 0), (0, 1), (1, 0), (1, 1)):
            loss = (np.array(rule)[path[:-1]] != path[1:]).mean()
            risk = np.mean([1 - stay if rule[s] == s else stay for s in (0, 1)])
            failures += risk > loss + margin
    assert failures <= 10  # at most 5 % of 200 paths by the theorem
    assert margin < 1


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="at least 0 and below 1, not 1"):
        best_blocks(100, 1)
    with pytest.raises(BadInput, match="a path of 1 steps has no two blocks"):
        best_blocks(1, 0.5)


def test_finitely_many_models_are_no_more_complex_than_massart_says():
    """Sixteen vectors of losses in [0, 1]: the mean over signs of the largest correlation, by sampling."""
    rng, worst = np.random.default_rng(2), 0.0
    for u in (5, 50, 500):
        losses = (rng.uniform(size=(16, u)) < 0.5).astype(float)
        signs = rng.choice([-1.0, 1.0], size=(4000, u))
        found = (signs @ losses.T / u).max(1).mean()
        worst = max(worst, found / above(finite_complexity(4, u)))
    # Sixteen normal numbers have a largest one of 1.77 on average; half of it over sqrt(2 log 16) = 2.35 is 0.376.
    assert 0.36 < worst <= 1
