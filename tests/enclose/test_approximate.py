"""Products of stored weights: the exact rational result lies within the carried error."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from certiformer.enclose.approximate import Approximate, exact, rounded


def holds(got: Approximate, truth) -> None:
    for value, error, t in zip(
        got.value.ravel(), got.error.ravel(), np.asarray(truth, dtype=object).ravel(), strict=True
    ):
        assert abs(Fraction(float(value)) - t) <= Fraction(float(error))


def fractions(array):
    return np.vectorize(Fraction, otypes=[object])(array)


def test_chains_of_products_and_sums():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 30)) * 10.0 ** rng.integers(-8, 8, (4, 30)), rng.normal(size=(30, 5))
    c, d = rng.normal(size=(5, 3)), rng.normal(size=3)
    truth = (fractions(a) @ fractions(b)) @ fractions(c) + fractions(d)
    got = ((exact(a) @ exact(b)) @ exact(c)).plus(exact(d))
    holds(got, truth)
    holds(got.times(rounded(1 / 3)), truth / 3)
    assert (got.error < 1e-12 * np.abs(a).max() * 100).all(), "the error must stay near the rounding"


def test_a_given_error_is_carried_through():
    """Any true left factor within its error gives a product within the error of the result."""
    left = Approximate(np.array([[1.0, 2.0]]), np.array([[0.1, 0.0]]))
    got = left @ exact(np.array([[3.0], [-1.0]]))
    for shift in (Fraction(-1, 10), Fraction(1, 10) - Fraction(1, 10**20)):
        holds(got, [[(1 + shift) * 3 - 2]])


def test_narrow_storage_is_exact():
    narrow = np.array([0.1, 1e-3], dtype=np.float32)
    assert (exact(narrow).value == narrow).all() and not exact(narrow).error.any()
