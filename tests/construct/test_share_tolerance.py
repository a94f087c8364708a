"""Sharing a tolerance: errors add up to no more than it, and the totals are those of the best split."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.construct.share_tolerance import Profile, shared


def sine() -> Profile:
    return Profile(np.sin, 0.0, 2 * np.pi)


@pytest.mark.parametrize(("tolerance", "units"), [(0.01, 32), (0.001, 106)])
def test_two_sines_need_no_more_than_the_free_knot_optimum(tolerance, units):
    """(1/4) integral sqrt|sin| / sqrt(tolerance / 2) rounds up to 17 and 54 pieces each: 34 and 108 together.

    A unit fewer than pieces is needed, since the first slope is free, and shares need not be equal.
    """
    one = sine()
    paths = shared([one, one], tolerance)
    assert sum(path.pieces - 1 for path in paths) == units
    assert sum(path.error for path in paths) <= tolerance * (1 - 1e-4)


def test_unequal_profiles_get_unequal_shares():
    """c_i of s^2 and 64 s^2 differ by 8, so their best shares differ by 8^(2/3) = 4, their pieces by 8 / 2 = 4."""
    small, large = shared([Profile(np.square, 0, 1), Profile(lambda s: 64 * s**2, 0, 1)], 0.01)
    assert large.pieces / small.pieces == pytest.approx(4, rel=0.15)  # whole numbers, near 8 and 32
    # Pieces by the formula: (sum c^(2/3))^(3/2) / sqrt(tau) with c = sqrt(2)/4 and 8 sqrt(2)/4: 39.5; a piece of rounding.
    assert 39 <= small.pieces + large.pieces <= 41
    equal = sum(p.pieces for p in (shared([Profile(lambda s, k=k: k * s**2, 0, 1)], 0.005)[0] for k in (1, 64)))
    assert small.pieces + large.pieces < equal


def test_exact_profiles_cost_nothing():
    paths = shared([Profile(np.abs, -1.0, 1.0), sine(), Profile(lambda s: 3 * s, 0, 1)], 0.005)
    assert [path.pieces for path in paths] == [2, 17, 1]
    assert paths[0].error == 0.0


def test_nothing_to_share():
    assert shared([], 0.1) == []


@pytest.mark.parametrize("tolerance", [0.3, 0.2, 0.15, 0.1])
def test_a_curve_that_fewer_pieces_meet_exactly_is_no_jump(tolerance):
    """At 0.2 one piece is enough, and two are exact: the search for their smallest error ends above rounding."""
    curve = Profile(lambda s: np.abs(s - 0.3), 0.0, 1.0)
    (path,) = shared([curve], tolerance)
    s = np.linspace(0.0, 1.0, 10_001)
    assert np.abs(path(s) - np.abs(s - 0.3)).max() <= tolerance
    assert curve.best(2, tolerance).error <= 1e-11
