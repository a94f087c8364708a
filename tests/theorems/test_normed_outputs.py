"""Outputs of a layer norm: in one hyperplane for all weights; with an affine map behind it, or an RMS norm, not."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from certiformer.expressivity.normed_outputs import MISSED, hyperplane, is_normed_output


def layer_norm(x, gain, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12) * gain + shift


@pytest.mark.parametrize("zero", [False, True])
def test_outputs_lie_in_the_hyperplane_and_miss_a_corner(zero):
    rng = np.random.default_rng(0)
    for _ in range(20):
        gain, shift = rng.normal(size=4), rng.normal(size=4)
        if zero:
            gain[1] = 0.0
        normal, level = hyperplane(gain, shift)
        corners = np.array(list(product((-1.0, 1.0), repeat=4)))
        # The outputs nearest to the corners among many: none comes near to all of them.
        outputs = layer_norm(rng.normal(size=(400, 4)) * 3, gain, shift)
        assert np.allclose(outputs @ normal, level) and np.isclose(np.abs(normal).sum(), 1)
        nearest = np.abs(corners[:, None] - outputs).max(-1).min(1)
        assert nearest.max() >= MISSED - 1e-12  # the rounding of the outputs


def test_a_constant_attains_it():
    assert max(abs(np.array(corner) - 0).max() for corner in product((-1.0, 1.0), repeat=3)) == MISSED


def test_what_lifts_it():
    """An affine map reaches the corners; so does an RMS norm, whose outputs are not in a hyperplane."""
    assert not is_normed_output("layer", affine_behind=True) and not is_normed_output("rms", affine_behind=False)
    assert not is_normed_output(None, affine_behind=False) and is_normed_output("layer", affine_behind=False)
    corners = np.array(list(product((-1.0, 1.0), repeat=3)))
    rms = corners * 1.0  # already of mean square 1
    assert np.allclose(rms / np.sqrt((rms**2).mean(1, keepdims=True)), corners)
    doubled = np.concatenate([corners, -corners], axis=1)
    assert np.allclose(layer_norm(doubled, 1.0, 0.0) @ np.eye(6)[:, :3], corners)
