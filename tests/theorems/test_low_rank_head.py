"""The rank-dependent bound: values, the square root of the rank, and what cutting the rank costs."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.bounds.low_rank_head import complexity
from certiformer.bounds.numbers import above
from certiformer.bounds.trauger_one_layer import Head, trivial
from theorems.sine_matrices import spectral

HEAD = Head(64, 1.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(("rank", "wanted"), [(1, 0.155), (4, 0.309), (16, 0.619)])
def test_reference_values(rank, wanted):
    """The reference is the chain alone, with 9 F B_x = 45 and softmax folded in: half of our factor 2, a million points."""
    assert abs(above(complexity(HEAD, 5.0, rank, 4 * 10**6)) - wanted) < 0.005  # it leaves out log(2 d)


def test_it_grows_as_the_square_root_of_the_rank():
    values = [above(complexity(HEAD, 5.0, rank, 10**12)) for rank in (1, 4, 16, 64)]
    assert all(1.95 < b / a < 2.05 for a, b in zip(values, values[1:], strict=False))


def test_there_is_no_logarithm_of_the_sample():
    values = [above(complexity(HEAD, 5.0, 4, m)) * m**0.5 for m in (10**8, 10**10, 10**12)]
    assert max(values) / min(values) < 1.02


def test_a_cut_matrix_is_charged_for_what_was_cut():
    """Random heads: the outputs of a head with the cut matrix differ by at most c_s B_x^3 sigma_(r+1)."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(300):
        a, x = rng.normal(size=(4, 4)), rng.normal(size=(4, 6))
        x *= 1.5 / np.linalg.norm(x, axis=0).max()
        u, s, v = np.linalg.svd(a)
        cut = (u[:, :2] * s[:2]) @ v[:2]

        def mean(a, x=x):
            p = np.exp((z := x.T @ a @ x[:, 0]) - z.max())
            return x @ (p / p.sum())

        worst = max(worst, np.linalg.norm(mean(a) - mean(cut)) / (1.5**3 * spectral(a - cut)))
    assert 0.05 < worst <= 1
    assert above(complexity(HEAD, 5.0, 2, 10**8, left=0.1)) >= above(complexity(HEAD, 5.0, 2, 10**8)) + 0.1
    assert above(complexity(HEAD, 5.0, 2, 10**8, left=10.0)) == above(trivial(HEAD))
