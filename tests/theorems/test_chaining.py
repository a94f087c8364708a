"""Chaining: the formula against plain floats, its limits, and a class whose complexity is known exactly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from flint import arb

from certiformer.bounds.chaining import Cover, chain, combine, linear_cover
from certiformer.bounds.numbers import above
from certiformer.errors import BadInput


def plain(largest, log_cover, points):
    best, total = largest, 0.0
    for k in range(1, 61):
        total += 2.0**-k * math.sqrt(max(log_cover(largest * 2.0**-k), 0.0))
        best = min(best, largest * 2.0**-k + 6 * largest / math.sqrt(points) * total)
    return best


@pytest.mark.parametrize("constant", [0.0, 1e-3, 25.0, 1e6])
@pytest.mark.parametrize("points", [1, 100, 10**9])
def test_it_is_the_formula_rounded_up(constant, points):
    value, wanted = above(chain(1.5, Cover(constant, 2), points)), plain(1.5, lambda e: constant / e**2 + 2, points)
    assert wanted * (1 - 1e-14) <= value <= wanted * (1 + 1e-12)  # plain floats err by some 1e-15
    assert value <= 1.5


def test_it_bounds_a_complexity_that_is_known():
    """Two functions, +1 and -1 everywhere: Rad = E |sum s_i| / m, computed exactly; they are a cover of size 2."""
    for m in (4, 8, 12):
        exact = sum(abs(m - 2 * k) * math.comb(m, k) for k in range(m + 1)) / 2**m / m
        assert exact <= above(chain(1, lambda _: arb(2).log(), m))


def test_a_negative_logarithm_never_helps():
    assert above(chain(1, lambda eps: arb(-5), 100)) >= above(chain(1, lambda eps: arb(0), 100))
    assert above(chain(2, lambda eps: arb.pos_inf(), 100)) == 2


def test_combining_is_optimal():
    """The split of eps that is used costs what is claimed, and no other split of a fine grid costs less."""
    sizes, slopes = (3.0, 0.5, 7.0), (1.0, 4.0, 0.2)
    whole = combine([(Cover(c, 1), b) for c, b in zip(sizes, slopes, strict=True)])
    claimed = above(whole.inverse_square)
    assert above(whole.constant) == 3
    g = sum(c ** (1 / 3) * b ** (2 / 3) for c, b in zip(sizes, slopes, strict=True))
    split = [(c / b) ** (1 / 3) / g for c, b in zip(sizes, slopes, strict=True)]
    assert math.isclose(sum(b * e for b, e in zip(slopes, split, strict=True)), 1)
    assert math.isclose(sum(c / e**2 for c, e in zip(sizes, split, strict=True)), claimed)
    for first, second in itertools.product(np.linspace(0.01, 0.98, 60), repeat=2):
        if first + second < 0.995:
            shares = (first, second, 1 - first - second)
            cost = sum(c / (s / b) ** 2 for c, b, s in zip(sizes, slopes, shares, strict=True))
            assert cost >= claimed * (1 - 1e-12)


def test_a_linear_map_is_near_an_average_of_corners():
    """Maurey, by its own random choice: the mean squared distance is at most l11^2 / k."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(3, 4))
    total, k = np.abs(w).sum(), 50
    draws = rng.choice(12, size=(4000, k), p=np.abs(w).ravel() / total)
    corners = np.zeros((12, 12))
    np.fill_diagonal(corners, total * np.sign(w).ravel())
    distance = ((corners[draws].mean(1) - w.ravel()) ** 2).sum(1).mean()
    assert distance <= total**2 / k
    cover = linear_cover(2.0, total, 3, 4)
    assert math.isclose(above(cover.inverse_square), (2 * total) ** 2 * math.log(25))
    assert math.isclose(above(cover.constant), math.log(25))


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="positive range"):
        chain(0, Cover(1), 10)
    with pytest.raises(BadInput, match="not negative"):
        combine([(Cover(-1), 1)])
    with pytest.raises(BadInput, match="rows is a positive number, not 0"):
        linear_cover(1, 1, 0, 3)
