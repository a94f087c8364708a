"""Counting parameters: reference values, the logarithm of the Lipschitz constant, and the net behind it."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.bounds.numbers import above
from certiformer.bounds.parameter_count import complexity
from certiformer.errors import BadInput


def test_reference_values():
    assert above(complexity(200_000, 10.0, 1e30, 1.0, 10**6)) == 1
    assert round(above(complexity(200_000, 10.0, 1e30, 1.0, 10**9)), 3) == 0.727
    assert round(above(complexity(10_000, 10.0, 1e30, 1.0, 10**8)), 3) == 0.514


def test_depth_enters_through_a_logarithm():
    """Twice the exponent of the Lipschitz constant is about sqrt 2, never twice."""
    values = [above(complexity(1000, 1.0, 10.0**k, 1.0, 10**12)) for k in (50, 100, 200)]
    assert all(1.3 < b / a < 1.42 for a, b in zip(values, values[1:], strict=False))


def test_a_greedy_net_is_not_larger_than_claimed():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6000, 2))
    points /= np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True))
    for eps in (0.2, 0.5):
        net: list[np.ndarray] = []
        for point in points:
            if all(np.linalg.norm(point - other) > eps for other in net):
                net.append(point)
        assert 3 < len(net) <= (1 + 2 / eps) ** 2


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="lipschitz constant is a positive number, not inf"):
        complexity(10, 1.0, float("inf"), 1.0, 10)
