"""Compression bounds: the published figures, the formulas, the range of a smoothed loss, and an experiment."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certiformer.bounds.compression import Bits, Sample, bound, penalty, smoothed_range
from certiformer.bounds.numbers import above
from certiformer.errors import BadInput


def test_the_published_values():
    """Two points of the figures in the papers, which were read as 4.29 and 12.24 bits."""
    large = bound(2.87, smoothed_range(0.1, 32_000), Bits(8 * 1_900_000_000, 2), Sample(1_200_000_000_000, 10_000))
    small = bound(10.6, smoothed_range(0.1, 50_257), Bits(8 * 16 * 1024, 7), Sample(8_009_762, 10_000))
    assert round(above(large), 6) == 4.293568
    assert round(above(small), 6) == 12.244904


@pytest.mark.parametrize(
    ("bits", "n", "wanted"),
    [
        (200_000 * 32, 10**6, 1.489),
        (200_000 * 8, 10**6, 0.745),
        (200_000 * 4, 10**6, 0.527),
        (32_000, 10**6, 0.105),
        (6_400, 10**6, 0.047),
        (32_000, 6_040, 1.356),
        (200_000 * 4, 10**9, 0.0167),
    ],
)
def test_reference_penalties(bits, n, wanted):
    value = above(penalty(Bits(bits, delimited=False), Sample(n)))
    assert round(value, 4 if wanted < 0.02 else 3) == wanted


def test_the_range_of_a_smoothed_loss():
    assert round(above(smoothed_range(0.1, 32_000)), 6) == 18.135714
    for a, vocabulary in ((0.05, 3706), (0.5, 2), (1.0, 10)):
        worst, best = -math.log2(a / vocabulary), -math.log2(1 - a + a / vocabulary)
        assert math.isclose(above(smoothed_range(a, vocabulary)), worst - best, abs_tol=1e-12)


def test_a_file_that_is_not_delimited_costs_more():
    assert above(Bits(1024, 3).total) == 1027
    assert math.isclose(above(Bits(1024, 3, delimited=False).total), 1047)


def test_subsampling_costs_more_than_evaluating_all():
    assert above(penalty(Bits(1000), Sample(10**6, 10**4))) > above(penalty(Bits(1000), Sample(10**6)))


def test_chosen_codes_stay_below_the_bound():
    """256 random labelings in 8 bits, the best on the sample is chosen: its risk is 1/2, whatever the sample says."""
    rng, failures = np.random.default_rng(0), 0
    for _ in range(400):
        best = (rng.uniform(size=(256, 60)) < 0.5).mean(1).min()
        failures += above(bound(float(best), 1, Bits(8), Sample(60))) < 0.5
    assert failures <= 20  # delta = 0.05
    assert best < 0.4  # the sample alone is far from the risk


def test_tokens_may_depend_on_each_other():
    """A stream whose coin depends on the last toss: the mean loss minus the mean conditional risk is a martingale."""
    rng, n, failures = np.random.default_rng(1), 200, 0
    for _ in range(400):
        state, losses, risks = 0, [], []
        for _ in range(n):
            chance = 0.9 if state else 0.1
            risks.append(chance)
            state = int(rng.uniform() < chance)
            losses.append(state)
        failures += np.mean(risks) > np.mean(losses) + above(penalty(Bits(1), Sample(n)))
    assert failures <= 20


def test_nonsense_is_refused():
    for make, sentence in (
        (lambda: Bits(0), "number of bits is a positive number, not 0"),
        (lambda: Bits(8, -1), "no negative number of bits"),
        (lambda: Sample(0), "number of examples is a positive number, not 0"),
        (lambda: smoothed_range(0, 10), "above 0 and at most 1, not 0"),
        (lambda: penalty(Bits(8), Sample(8), 2), "between 0 and 1, not 2"),
    ):
        with pytest.raises(BadInput, match=sentence):
            make()
