"""From complexity to risk: the formula, the cells of norms, and an experiment in which it must hold."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from certiformer.bounds.numbers import above
from certiformer.bounds.rademacher_gap import gap, stratify
from certiformer.errors import BadInput


def test_the_formula():
    wanted = 2 * 0.2 + 3 * 4 * math.sqrt(math.log(2 / 0.01) / 2e4)
    assert math.isclose(above(gap(0.2, 4, 10**4, 0.01)), wanted, rel_tol=1e-12)


def test_cells_hold_the_norms_and_their_probabilities_sum_to_delta():
    assert stratify([1.0, 1.0000001, 0.0, 8.0], [1.0, 1.0, 1.0, 2.0], 0.1)[0] == [1.0, 2.0, 1.0, 8.0]
    shares = [stratify([2.0**j], [1.0], 0.1)[1] / Fraction(1, 10) for j in range(30)]
    assert sum(shares) == 1 - Fraction(1, 31)  # telescopes; the rest belongs to larger norms
    assert stratify([3.0], [1.0], 0.1)[1] < Fraction(1, 10)


def test_a_threshold_learned_from_few_points_stays_below_the_bound():
    """Thresholds on [0, 1] have at most m + 1 behaviours: Rad <= sqrt(2 log(m + 1) / m) by Massart."""
    rng = np.random.default_rng(0)
    m, failures = 200, 0
    complexity = math.sqrt(2 * math.log(m + 1) / m)
    for _ in range(300):
        x = rng.uniform(size=m)
        y = (x > 0.5) ^ (rng.uniform(size=m) < 0.3)
        cuts = np.concatenate(([0.0], np.sort(x)))
        errors = np.array([np.mean((x > c) != y) for c in cuts])
        risks = 0.3 + 0.4 * np.abs(cuts - 0.5)
        failures += bool(np.any(risks > errors + above(gap(complexity, 1, m, 0.05))))
    assert failures <= 15  # at most 5 % by the theorem


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="between 0 and 1, not 1"):
        gap(0.1, 1, 10, 1)
    with pytest.raises(BadInput, match="number of examples is a positive number, not 0"):
        gap(0.1, 1, 0, 0.5)
    with pytest.raises(BadInput, match="a norm is a finite number, not nan"):
        stratify([math.nan], [1.0], 0.1)
