"""Lipschitz constants of attention: reference values, and Jacobians of random and of nasty heads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certiformer.bounds.attention_lipschitz import sequence_lipschitz, token_lipschitz
from certiformer.bounds.numbers import above
from certiformer.errors import BadInput
from theorems.sine_matrices import SCORES, VALUE, spectral

A = SCORES / math.sqrt(8)
S, Q, R = spectral(VALUE), spectral(A), math.sqrt(8)


def test_reference_values():
    assert round(Q, 6) == 0.372585
    assert [round(above(x), 4) for x in sequence_lipschitz(S, Q, R, 50)] == [86.9060, 45.4957, 36.4532]
    assert [round(above(x), 4) for x in sequence_lipschitz(S, Q, R, 200)] == [173.4964, 90.3869, 69.4158]
    assert round(above(token_lipschitz(S, Q, R)), 4) == 8.1522


def head(x, a, v, causal):
    """Tokens are columns."""
    scores = (a @ x).T @ x
    if causal:
        scores = np.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(1, keepdims=True))
    return v @ x @ (p / p.sum(1, keepdims=True)).T


@pytest.mark.parametrize("causal", [False, True])
def test_jacobians_stay_below(causal):
    rng = np.random.default_rng(int(causal))
    worst = np.zeros(4)
    for trial in range(200):
        d, n = int(rng.integers(1, 4)), int(rng.integers(1, 7))
        a, v = rng.normal(size=(d, d)) * 2.0 ** rng.integers(-3, 3), rng.normal(size=(d, d))
        x = rng.normal(size=(d, n))
        if trial % 3 == 0:
            x = np.sign(x)  # tokens at the ends of the ball, far from their mean
        radius = np.linalg.norm(x, axis=0).max()
        x = x / radius * min(radius, 2.0)
        radius = np.linalg.norm(x, axis=0).max()
        step = 1e-6
        jacobian = np.array(
            [
                (head(x + e, a, v, causal) - head(x - e, a, v, causal)).ravel() / (2 * step)
                for e in (step * np.eye(d * n)).reshape(-1, d, n)
            ]
        )
        wanted = [above(each) for each in sequence_lipschitz(spectral(v), spectral(a), radius, n)]
        worst[:3] = np.maximum(worst[:3], spectral(jacobian) / np.array(wanted))
        tokenwise = jacobian.reshape(d, n, d, n)
        # In the largest norm of a token: at most the sum over input tokens of the norms of the blocks; at least the largest.
        lower = max(spectral(tokenwise[:, j, :, i]) for i in range(n) for j in range(n))
        worst[3] = max(worst[3], lower / above(token_lipschitz(spectral(v), spectral(a), radius)))
    assert (worst <= 1 + 1e-6).all()  # central differences of step 1e-6
    assert worst[2] > 0.3 and worst[3] > 0.3


def test_the_token_wise_constant_does_not_know_the_length():
    """Two directions of the largest growth are tried on long sequences."""
    rng, d = np.random.default_rng(3), 2
    a, v = np.array([[1.0, 0], [0, 1]]), np.eye(d)
    for n in (2, 10, 200):
        x = rng.normal(size=(d, n))
        x /= np.linalg.norm(x, axis=0)
        e = rng.normal(size=(d, n))
        e *= 1e-6 / np.linalg.norm(e, axis=0)
        moved = np.linalg.norm(head(x + e, a, v, False) - head(x, a, v, False), axis=0).max() / 1e-6
        assert moved <= above(token_lipschitz(1, 1, 1.0))


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="radius of the tokens is a positive number, not 0"):
        token_lipschitz(1, 1, 0)
