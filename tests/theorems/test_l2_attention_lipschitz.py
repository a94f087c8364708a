"""Attention by distances: reference values, Jacobians, and the remembered form that fails."""

from __future__ import annotations

import math

import numpy as np

from certiformer.bounds.l2_attention_lipschitz import fixed_point, lipschitz
from certiformer.bounds.numbers import above
from theorems.sine_matrices import spectral


def test_the_fixed_point():
    for n, wanted in ((50, 2.134), (200, 3.147), (512, 3.880), (1000, 4.421)):
        t = above(fixed_point(n))
        assert round(t, 3) == wanted and math.isclose(t * math.exp(t + 1), n - 1, rel_tol=1e-12)
    assert above(fixed_point(1)) == 0


def head(x, w, v):
    e = w.shape[0]
    k = w @ x
    scores = -((k[:, :, None] - k[:, None, :]) ** 2).sum(0) / math.sqrt(e)
    p = np.exp(scores - scores.max(1, keepdims=True))
    return v @ (w.T @ w / math.sqrt(e)) @ x @ (p / p.sum(1, keepdims=True)).T


def test_jacobians_stay_below_and_violate_the_remembered_form():
    rng, worst, remembered = np.random.default_rng(0), 0.0, 0.0
    for scale in (0.3, 1, 3, 10):
        for _ in range(40):
            d, n = 2, int(rng.integers(2, 6))
            w, v = rng.normal(size=(d, d)) * scale, rng.normal(size=(d, d))
            x = rng.normal(size=(d, n)) * 3 / scale
            step = 1e-6 / scale
            jacobian = np.array(
                [
                    (head(x + e, w, v) - head(x - e, w, v)).ravel() / (2 * step)
                    for e in (step * np.eye(d * n)).reshape(-1, d, n)
                ]
            )
            bound = above(lipschitz([spectral(w)], [spectral(v)], 1, d, n))
            worst = max(worst, spectral(jacobian) / bound)
            remembered = max(remembered, spectral(jacobian) / (bound / spectral(w)))
    assert worst <= 1
    assert remembered > 1
