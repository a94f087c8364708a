"""The (2,1) norm bound of one head: reference values, and growth with the logarithm of the length."""

from __future__ import annotations

import math

import numpy as np
import pytest
from flint import arb

from certiformer.bounds.edelman_head import HeadNorms, complexity, log_cover
from certiformer.bounds.numbers import above
from theorems.sine_matrices import READOUT, SCORES, VALUE, spectral

# In the layout (out, in) the value matrix of the reference is transposed.
HEAD = HeadNorms(
    float(np.linalg.norm(SCORES, axis=1).sum()), float(np.linalg.norm(VALUE, axis=0).sum()), spectral(VALUE), 8
)
NORM = float(np.linalg.norm(READOUT))


@pytest.mark.parametrize(("length", "wanted"), [(50, "2.1247e+08"), (200, "2.2636e+08"), (1000, "2.4247e+08")])
def test_reference_covers(length, wanted):
    assert f"{above(log_cover(HEAD, arb('0.1'), 10**4 * length, softmax=2)):.4e}" == wanted


@pytest.mark.parametrize(("sequences", "wanted"), [(10**6, None), (10**8, None), (10**10, 0.35892), (10**12, 0.06751)])
def test_reference_complexities(sequences, wanted):
    value = above(complexity(HEAD, NORM, sequences, 200, softmax=2))
    assert round(value, 5) == wanted if wanted else round(value, 6) == 0.866584


def test_the_length_enters_through_its_logarithm():
    covers = [above(log_cover(HEAD, arb("0.1"), 10**4 * 10**k)) for k in range(6)]
    steps = np.diff(covers)
    assert steps.min() > 0 and steps.max() / steps.min() < 1.01
    assert math.isclose(steps[0] / covers[0], math.log(10) / math.log(10**4 * 8e3), rel_tol=0.5)


def test_an_error_of_the_scores_moves_the_head_no_more_than_that():
    """Random heads with tokens of norm up to 3: the weight of the score map is |W_v| B^2."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(500):
        a, v, e = (rng.normal(size=(3, 3)) for _ in range(3))
        x = rng.normal(size=(3, 5))
        x *= 3 / np.linalg.norm(x, axis=0).max()

        def head(a, v=v, x=x):
            s = np.exp((s := x.T @ a @ x[:, 0]) - s.max())
            return v @ x @ (s / s.sum())

        moved = np.linalg.norm(head(a + 1e-6 * e) - head(a))
        worst = max(worst, moved / (spectral(v) * 9 * 1e-6 * np.linalg.norm(e @ x[:, 0])))
    assert 0.02 < worst <= 1
