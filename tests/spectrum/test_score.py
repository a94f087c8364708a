"""Scores that rank checkpoints: reference values of a deterministic family, and what the scores do and do not see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.spectrum.score import Map, ScoredLayer, spectrum_scores
from theorems.sine_matrices import matrix


def layers(count: int, scale: float = 1.0) -> list[ScoredLayer]:
    return [
        ScoredLayer(
            ((Map.of(scale * matrix(8, 8, 0.7 + 0.1 * i)), Map.of(scale * matrix(8, 8, 1.3 + 0.1 * i))),),
            Map.of(scale * matrix(8, 16, 2.1 + 0.1 * i)),
            Map.of(scale * matrix(16, 8, 2.9 + 0.1 * i)),
        )
        for i in range(count)
    ]


@pytest.mark.parametrize(
    ("count", "adaptive", "plain", "first"),
    [
        (1, "28.1922", "5.1036e+01", "1"),
        (2, "65.2832", "4.4653e+02", "6.5183"),
        (4, "130.0000", "1.9410e+04", "253.74"),
        (6, "194.4495", "1.3841e+06", "17968"),
    ],
)
def test_reference_values(count, adaptive, plain, first):
    found = spectrum_scores(layers(count), 8)
    digits = {"1": 0, "6.5183": 4, "253.74": 2, "17968": 0}[first]
    assert (f"{found.adaptive:.4f}", f"{found.plain:.4e}", f"{found.first_factor:.{digits}f}") == (
        adaptive,
        plain,
        first,
    )


def test_the_parts_of_one_layer():
    found = spectrum_scores(layers(1), 8)
    assert found.exponents == ((0.25, 2.0, 2.0, 2.0),)
    assert math.isclose(found.adaptive, 1 + 7.9323 + 6.4240 + 6.4035 + 6.4323, abs_tol=2e-4)  # four rounded parts


def test_deep_models_are_only_counted():
    """From four layers on the ranks decide: twice the weights make the plain score explode and the other stay below its cap."""
    assert spectrum_scores(layers(4), 8).adaptive <= 2 + 4 * 4 * 8
    large = spectrum_scores(layers(6, 2.0), 8)
    assert large.plain > 1e3 * spectrum_scores(layers(6), 8).plain
    assert large.adaptive <= math.sqrt(6) + 6 * 4 * 8
    assert all(p == 0 for layer in large.exponents[:-1] for p in layer)


def test_zero_and_overflowing_maps():
    zero = ScoredLayer(
        ((Map.of(np.zeros((4, 4))), Map.of(np.zeros((4, 4)))),), Map.of(np.zeros((4, 8))), Map.of(np.zeros((8, 4)))
    )
    assert spectrum_scores([zero], 4).adaptive == 1 and spectrum_scores([zero], 4).plain == 1
    for scale in (1e20, 1e60):
        huge = spectrum_scores(layers(6, scale), 8)
        assert math.isinf(huge.plain) and math.isfinite(huge.adaptive)


def test_nothing_is_refused():
    with pytest.raises(BadInput, match="at least one layer"):
        spectrum_scores([], 8)
