"""Lanczos steps: the value against a full decomposition, the error bar, and matrices that end the steps early."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.spectrum.lanczos import largest_by_lanczos, missed_share


@pytest.mark.parametrize("shape", [(300, 200), (200, 300), (1000, 90), (5, 5), (1, 7), (7, 1), (3, 200)])
@pytest.mark.parametrize("seed", range(3))
def test_the_largest_value_has_all_digits_and_is_inside_its_bar(shape, seed):
    w = np.random.default_rng(seed).normal(size=shape)
    exact = np.linalg.svd(w, compute_uv=False)[0]
    value, bar = largest_by_lanczos(w, seed=seed)
    assert value == pytest.approx(exact, rel=1e-9)  # 64 steps on these sizes
    assert value - bar <= exact <= value + bar
    single, wider = largest_by_lanczos(w.astype(np.float32), seed=seed)
    assert single - wider <= exact <= single + wider


def test_few_steps_miss_and_the_bar_says_so():
    """Negative control: with 4 steps the value is visibly too small, and nothing is claimed."""
    w = np.random.default_rng(0).normal(size=(400, 400))
    exact = np.linalg.svd(w, compute_uv=False)[0]
    value, bar = largest_by_lanczos(w, 4)
    assert value < 0.99 * exact and bar == np.inf
    value, bar = largest_by_lanczos(w, 40)
    assert exact <= value + bar < np.inf


def test_the_bound_shrinks_with_the_steps_and_grows_with_the_side():
    assert missed_share(4096, 128) < missed_share(4096, 64) < missed_share(1 << 20, 64)


@pytest.mark.parametrize("w", [np.zeros((4, 3)), np.ones((40, 30)), np.eye(30), np.outer(np.arange(9.0), np.ones(7))])
def test_matrices_of_few_directions(w):
    value, bar = largest_by_lanczos(w)
    assert value == pytest.approx(np.linalg.svd(w, compute_uv=False)[0], abs=1e-12) and bar < 1e-10


def test_a_tolerance_ends_the_steps_early_and_the_bar_knows():
    """A matrix with one large direction takes a few steps, one without needs them all; neither claims more than it did."""
    rng = np.random.default_rng(0)
    plain = rng.normal(size=(300, 200))
    for w, early in ((plain + 2.0, True), (plain, False)):
        exact = np.linalg.svd(w, compute_uv=False)[0]
        value, bar = largest_by_lanczos(w, 16, tolerance=1e-3)
        all_steps, narrower = largest_by_lanczos(w, 16)
        assert value == pytest.approx(exact, rel=1e-3) and exact <= value + bar
        assert (bar > narrower) == (value != all_steps) == early  # fewer steps prove less
