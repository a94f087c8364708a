"""Constructed models: the table of expected slopes, ends at the rank of the target, and the diagonal."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.rates.slopes import excluded, fit_slope
from certiformer.rates.targets import SineTarget, attend, sines
from certiformer.rates.truncation import exponents, truncation_errors

SMALL, LARGE = tuple(range(2, 17)), (16, 23, 32, 45, 64, 91, 128)
# alpha, R, slopes of the MSE and of the L1 error with the diagonal masked, of the MSE with it kept: measured beforehand
# by an independent program for exact POD truncation, tau = 16.
TABLE = [
    (0.55, 128, SMALL, -0.48, -0.30, -1.01),
    (0.75, 128, SMALL, -0.82, -0.45, -0.84),
    (1.0, 128, SMALL, -0.98, -0.57, -0.71),
    (1.5, 64, SMALL, -1.86, -0.99, -1.48),
    (2.0, 64, SMALL, -2.84, -1.46, -2.45),
    pytest.param(1.5, 2048, LARGE, -1.90, -1.15, -1.13, marks=pytest.mark.slow),
    pytest.param(2.0, 2048, LARGE, -2.82, -1.59, -2.06, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("alpha", "terms", "kept", "mse", "l1", "mse_kept"), TABLE)
def test_slopes_are_those_of_the_table(alpha, terms, kept, mse, l1, mse_kept):
    """Within 0.1, of which sampling is less than 0.05 (half the width of the interval, checked here)."""
    samples = 256 if terms < 1000 else 1536  # errors at m = 128 have heavy tails
    masked = truncation_errors(SineTarget(alpha, cut=terms), kept, samples)
    whole = truncation_errors(SineTarget(alpha, masked=False, cut=terms), kept, samples)
    slope, slope_l1, slope_kept = fit_slope(kept, masked.mse), fit_slope(kept, masked.l1), fit_slope(kept, whole.mse)
    for found, wanted in ((slope, mse), (slope_l1, l1), (slope_kept, mse_kept)):
        assert abs(found.value - wanted) < 0.1
        assert found.interval[1] - found.interval[0] < 0.2
    assert "founding_note" in excluded(exponents(alpha, True), slope, slope_l1)


@pytest.mark.parametrize("alpha", [1.0, 1.5, 2.0])
def test_the_exponents_of_the_theorem_are_seen_with_the_diagonal_masked(alpha):
    errors = truncation_errors(SineTarget(alpha, cut=128 if alpha == 1 else 64), SMALL, samples=256)
    assert abs(fit_slope(SMALL, errors.mse).value + 2 * alpha - 1) < 0.2
    assert abs(fit_slope(SMALL, errors.l1).value + alpha - 0.5) < 0.15


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [1.5, 2.0])
def test_the_kept_diagonal_lowers_the_exponent_far_out(alpha):
    errors = truncation_errors(SineTarget(alpha, masked=False, cut=2048), LARGE)
    assert abs(fit_slope(LARGE, errors.mse).value + 2 * (alpha - 1)) < 0.2


@pytest.mark.parametrize(("rank", "masked"), [(2, True), (6, True), (6, False)])
def test_finite_ranks_end_at_their_rank(rank, masked):
    errors = truncation_errors(SineTarget(1.0, rank, masked), range(1, rank + 3), samples=64, replicates=2)
    assert (errors.mse[:, : rank - 1] > 1e-6).all()
    assert (errors.mse[:, rank - 1 :] == 0).all()
    # Not by definition alone: the sum in pieces is the same up to rounding.
    target = SineTarget(1.0, rank, masked)
    x = target.draw(np.random.default_rng(0), 50)
    pieces = sum(target.scores(x, k, k) for k in range(1, rank + 1))
    assert np.abs(attend(pieces, x, masked) - target.outputs(x)).max() < 1e-14


def test_the_first_order_law_holds_to_a_quarter_at_sixteen_tokens():
    """MSE ~ Var(x)/tau sum_{k>m} sigma_k^2; known beforehand for alpha = 1.5: 1.26e-4 predicted, 1.14e-4 found at m = 4."""
    target = SineTarget(1.5, cut=64)
    found = truncation_errors(target, (4, 16)).mse.mean(axis=0)
    predicted = np.array([target.tail(4), target.tail(16)]) / 12 / 16
    assert predicted == pytest.approx([1.26e-4, 8.9e-6], rel=0.03)
    assert np.abs(found / predicted - 1).max() < 0.25


def test_errors_in_chunks_are_the_errors_of_the_whole(monkeypatch):
    target = SineTarget(1.0, 3, length=5)
    whole = truncation_errors(target, (1, 2), samples=37, replicates=2, seed=4)
    monkeypatch.setattr("certiformer.rates.truncation.CHUNK", 5 * 3 * 8)
    parts = truncation_errors(target, (2, 1), samples=37, replicates=2, seed=4)
    assert parts.mse[:, ::-1] == pytest.approx(whole.mse, rel=1e-12)
    assert whole.standard_error > 0


def test_outputs_are_means_with_the_softmax_as_weights():
    """Against the formula written out for one input."""
    target = SineTarget(1.5, 4, masked=True, length=3)
    x = [0.1, 0.45, 0.8]
    for t in range(3):
        scores = {
            s: sum(k**-1.5 * 2 * np.sin(2 * np.pi * k * x[t]) * np.sin(2 * np.pi * k * x[s]) for k in range(1, 5))
            for s in range(3)
            if s != t
        }
        total = sum(np.exp(score) for score in scores.values())
        wanted = sum(np.exp(score) * x[s] for s, score in scores.items()) / total
        assert target.outputs(np.array([x]))[0, t] == pytest.approx(wanted, abs=1e-14)


def test_the_sines_are_orthonormal():
    nodes = (np.arange(64) + 0.5) / 64
    features = sines(nodes, 1, 8)
    assert features.T @ features / 64 == pytest.approx(np.eye(8), abs=1e-13)


def test_impossible_targets_and_truncations_are_refused():
    for bad in ({"alpha": np.nan}, {"alpha": 1.0, "rank": 0}, {"alpha": 1.0, "length": 1}):
        with pytest.raises(BadInput):
            SineTarget(**bad)
    for kept, samples in (((), 5), ((-1,), 5), ((1,), 0)):
        with pytest.raises(BadInput, match="truncation"):
            truncation_errors(SineTarget(1.0, 2), kept, samples)
