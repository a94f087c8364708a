"""Fewest pieces: the counts are optimal against an independent dynamic programme, and the error stays inside the tube."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.construct.curve_samples import sample
from certiformer.construct.piecewise_linear import MARGIN, fewest_pieces, shortest_path, units


def fewest_by_search(curve, low, high, tolerance, columns=61, levels=21):
    """The fewest links of a path with its knots on a lattice inside the tube: a naive dynamic programme.

    Every path it finds is a path in the tube, so the optimum is at most this; the lattice costs it some tolerance.
    """
    s = np.linspace(low, high, columns)
    heights = np.linspace(-tolerance, tolerance, levels)
    values = curve(s)[:, None] + heights
    fine = np.linspace(0, 1, 41)
    links = np.full((columns, levels), 10**6)
    links[0] = 0
    for i in range(columns):
        if not (links[i] < 10**6).any():
            continue
        for j in range(i + 1, columns):
            line = values[i][:, None, None] * (1 - fine) + values[j][None, :, None] * fine
            inside = np.abs(line - curve(s[i] + (s[j] - s[i]) * fine)).max(-1) <= tolerance * (1 + 1e-9)
            reach = np.where(inside, links[i][:, None] + 1, 10**6).min(0)
            links[j] = np.minimum(links[j], reach)
    return int(links[-1].min())


CURVES = [
    (np.sin, 0.0, 2 * np.pi, 0.05),
    (np.square, -1.0, 1.0, 0.022),
    (np.exp, -1.0, 2.0, 0.2),
    (lambda s: np.abs(s - 0.3) + 0.3 * np.sin(3 * s), -1.0, 2.0, 0.05),
    (lambda s: s**3 - s, -1.5, 1.5, 0.1),
    (lambda s: np.tanh(5 * s), -1.0, 1.0, 0.04),
]


@pytest.mark.parametrize(("curve", "low", "high", "tolerance"), CURVES)
def test_no_path_has_fewer_pieces(curve, low, high, tolerance):
    found = fewest_pieces(curve, low, high, tolerance).pieces
    assert found <= fewest_by_search(curve, low, high, tolerance)
    # The lattice path exists with 15 % more tolerance: rounding a free path to the lattice moves its knots by at most
    # half a column and half a level. So the optimum is not below what the lattice needs then.
    assert found >= fewest_by_search(curve, low, high, tolerance * 1.15)


@pytest.mark.parametrize(("curve", "low", "high", "tolerance"), CURVES)
def test_the_path_stays_in_the_tube_and_one_piece_less_does_not(curve, low, high, tolerance):
    path = fewest_pieces(curve, low, high, tolerance)
    s = np.linspace(low, high, 200_001)
    error = np.abs(path(s) - curve(s)).max()
    # The margin that a proof needs; and the path's own estimate is as good as the chords of its samples.
    assert error <= tolerance * (1 - MARGIN)
    assert abs(error - path.error) <= 2 * MARGIN * tolerance
    samples = sample(curve, low, high, MARGIN * path.error / 2)
    # The smallest error for this many pieces: 1 % less (ten times the accuracy of the bisection) needs another piece.
    assert shortest_path(samples, 0.99 * path.error).pieces > path.pieces


@pytest.mark.parametrize(("tolerance", "pieces"), [(0.005, 17), (0.0005, 55)])
def test_sine_reaches_the_known_optimum(tolerance, pieces):
    """(1/4) integral sqrt|sin| / sqrt(tolerance) = 16.94 and 53.6 pieces; an even number splits the inflection badly."""
    path = fewest_pieces(np.sin, 0.0, 2 * np.pi, tolerance)
    assert path.pieces == pieces
    assert len(units(path).knots) == pieces - 1


def test_a_parabola_needs_what_theory_says():
    """n pieces leave exactly c h^2/16 = 1/(8 n^2) of s^2 on [0, 1]: one more is needed just below."""
    for n in (1, 2, 5, 11):
        best = 1 / (8 * n * n)
        assert fewest_pieces(np.square, 0.0, 1.0, best * 1.002).pieces == n
        assert fewest_pieces(np.square, 0.0, 1.0, best * 0.998).pieces == n + 1


@pytest.mark.parametrize(
    ("curve", "low", "high", "knots"),
    [
        (np.abs, -1.0, 2.0, [0.0]),
        (lambda s: np.maximum(np.abs(s - 0.25), 0.5), -1.0, 1.0, [-0.25, 0.75]),
        (lambda s: 3.0 + 0 * s, 0.0, 1.0, []),
        (lambda s: 2 * s + 1, 0.0, 1.0, []),
        (lambda s: 7 * np.abs(s - 0.1) - s, 0.0, 1.0, [0.1]),
    ],
)
def test_piecewise_linear_curves_are_reproduced(curve, low, high, knots):
    path = fewest_pieces(curve, low, high, 0.01)
    assert path.knots[1:-1].tolist() == knots
    assert path.error <= 4e-16 * 10  # a few roundings of values up to 10


def test_units_are_the_path():
    path = fewest_pieces(lambda s: np.sin(3 * s) + s, -2.0, 3.0, 0.01)
    s = np.linspace(-2.0, 3.0, 1_001)
    bent = units(path)
    # One addition of rounding per unit, values up to about 20 in between.
    assert np.abs(bent(s) - path(s)).max() <= 2e-16 * 20 * len(bent.knots)
    assert abs(bent.slope) == np.abs(np.diff(path.values) / np.diff(path.knots)).min()
    wrong = path.__class__(path.knots, path.values + 1e-6 * (np.arange(len(path.knots)) == 3), 0.0)
    assert np.abs(units(wrong)(s) - path(s)).max() > 1e-7


def test_hopeless_curves_are_refused():
    with pytest.raises(ValueError, match="jumps"):
        fewest_pieces(np.sign, -1.0, 1.0, 0.1)
    with pytest.raises(ValueError, match="no finite value"), np.errstate(all="ignore"):
        fewest_pieces(lambda s: 1 / s, 0.0, 1.0, 0.1)
    with pytest.raises(ValueError, match="proper interval"):
        fewest_pieces(np.sin, 1.0, 1.0, 0.1)
