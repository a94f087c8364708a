"""The pointwise certificate: never exceeded, attained by two levels, and what it must refuse."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.errors import BadInput
from certiformer.rates.kernels import nearest_point_factors
from certiformer.rates.pruned_layers import output_change, truncated_change
from certiformer.rates.targets import SineTarget


def softmax(scores: np.ndarray) -> np.ndarray:
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def exact_output(scores: np.ndarray, values: np.ndarray) -> arb:
    """The output for the stored numbers, as a ball."""
    powers = [arb(float(score)).exp() for score in scores]
    total = sum(powers, arb(0))
    return sum((power * arb(float(value)) for power, value in zip(powers, values, strict=True)), arb(0)) / total


def test_no_change_of_output_exceeds_the_certificate():
    """Zero tolerance: true changes as balls of 53 bits and more, over sizes from tiny to saturated."""
    generator = np.random.default_rng(0)
    for _ in range(300):
        tokens = int(generator.integers(2, 9))
        values = generator.normal(size=tokens)
        before = generator.normal(size=tokens) * 10.0 ** generator.uniform(-3, 1)
        after = before + generator.normal(size=tokens) * 10.0 ** generator.uniform(-6, 1.5)
        change = abs(exact_output(after, values) - exact_output(before, values))
        assert change < arb(float(output_change(values, before, after)))


@pytest.mark.parametrize("size", [1e-6, 0.5, 2.0, 8.0, 30.0])
@pytest.mark.parametrize("tokens", [2, 6])
def test_two_levels_attain_it(size, tokens):
    """Half of the tokens go from -size/4 to +size/4 around the others; the bound is then exact up to its own margin."""
    up = np.arange(tokens) < tokens // 2
    values, change = up * 1.0, np.where(up, size, 0.0)
    before = np.where(up, -size / 2, 0.0)
    moved = exact_output(before + change, values) - exact_output(before, values)
    bound = arb(float(output_change(values, before, before + change)))
    assert moved < bound
    # The balls have 53 bits of outputs of size 1/2, which is 1e-9 of a change of 2.5e-7.
    assert float((bound - moved) / bound) < 2e-9
    # The planted fault: a quarter replaced by nearly a quarter is no bound, except where both are 1 to rounding.
    assert size == 30 or moved > (arb(size) / 4 * arb(0.999)).tanh()


def test_constants_and_equal_values_change_nothing():
    scores = np.array([1.0, -2.0, 0.5])
    assert output_change(np.ones(3), scores, scores + np.array([5.0, 0, 0])) < 1e-300
    assert output_change(np.arange(3.0), scores, scores + 7.0) < 1e-15
    assert output_change(np.arange(3.0), scores, scores, lipschitz=3.0) < 1e-300


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_proves_nothing(bad):
    good = np.array([0.0, 1.0])
    for arguments in (
        (np.array([0, bad]), good, good),
        (good, np.array([bad, 0]), good),
        (good, good, np.array([0, bad])),
    ):
        with pytest.raises(BadInput, match="finite"):
            output_change(*arguments)
    with pytest.raises(BadInput, match="finite"):
        output_change(good, good, good, lipschitz=bad)


def test_truncated_targets_stay_within_their_certificates():
    target = SineTarget(1.5, masked=False, cut=32)
    x = target.draw(np.random.default_rng(1), 200)
    whole, left_out = target.scores(x, 1, 32), target.scores(x, 5, 32)
    values = np.broadcast_to(x[:, None, :], whole.shape)
    change = np.abs(np.einsum("its,its->it", softmax(whole) - softmax(whole - left_out), values))
    bound = truncated_change(values, left_out)
    assert (change <= bound).all()
    assert (change > bound / 50).any()  # it is not vacuous


def test_adding_a_function_of_the_query_changes_nothing():
    generator = np.random.default_rng(2)
    scores, shift = generator.normal(size=(6, 6)), generator.normal(size=(6, 1)) * 5
    assert np.abs(softmax(scores + shift) - softmax(scores)).max() < 1e-15


def test_log_masses_give_the_centre_of_gravity_exactly():
    """softmax(log m) = m / sum m: as balls around the rational value, and with one query of size 1."""
    masses, places = [3, 5, 11], [Fraction(1, 2), Fraction(-4), Fraction(7, 3)]
    powers = [arb(mass).log().exp() for mass in masses]
    for power, mass in zip(powers, masses, strict=True):
        assert power.contains(arb(mass))
    weights = softmax(np.log(np.array(masses, float)))
    wanted = sum(m * p for m, p in zip(masses, places, strict=True)) / sum(masses)
    assert weights @ np.array([float(p) for p in places]) == pytest.approx(float(wanted), abs=1e-15)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_nearest_point_needs_keys_of_size_d_plus_one(size):
    points = np.random.default_rng(size).uniform(size=(7, size))
    sharpness = 50_000.0
    queries, keys = nearest_point_factors(points, sharpness)
    assert queries.shape[1] == keys.shape[1] == size + 1
    scores = queries @ keys.T
    distances = ((points[:, None] - points[None]) ** 2).sum(-1)
    rows = scores + sharpness * distances
    assert np.abs(rows - rows[:, :1]).max() < 1e-9  # a constant of each row, out of scores of size 10^5
    scores[np.eye(7, dtype=bool)] = -np.inf
    distances[np.eye(7, dtype=bool)] = np.inf
    assert (softmax(scores).argmax(1) == distances.argmin(1)).all()
    assert softmax(scores).max(1).min() > 0.9
    assert softmax(scores / sharpness).max(1).max() < 0.5  # and not at sharpness 1
