"""Sums of ridges: the units built and compared, the code of the lower bound, and what `build` makes."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from certiformer.construct.gather_block import gather_transformer
from certiformer.construct.method import Shape, Task
from certiformer.construct.ridge import plan
from certiformer.errors import BadInput
from certiformer.expressivity.ridge_sums import (
    described_bits,
    needed_bits,
    needed_numbers,
    steps,
    units,
    weights,
)
from certiformer.target import Target, parse_domain, parse_formula

ONE = Fraction(1)


def interpolating(profiles, directions, n):
    """The transformer of (a): linear interpolations of profiles that vanish at 0, at n equal steps of [-1, 1]."""
    knots = np.linspace(-1, 1, n + 1)
    linear, constant, bends = np.zeros(directions.shape[1]), 0.0, []
    for profile, direction in zip(profiles, directions, strict=True):
        values = profile(knots)
        slopes = np.diff(values) * n / 2
        linear, constant = linear + slopes[0] * direction, constant + values[0] + slopes[0]
        bends.append(np.diff(slopes))
    count, dimension = directions.shape
    return gather_transformer(
        Shape(1, dimension, 1, 1, "token"), np.zeros(dimension), np.ones(dimension), linear[:, None], np.array([constant]),
        np.repeat(directions, n - 1, axis=0), np.tile(-knots[1:-1], count), np.concatenate(bends)[:, None])  # fmt: skip


def test_interpolating_units_reach_epsilon_and_nothing_is_left_over():
    """Random profiles, and saw teeth whose tips lie between the knots: all ridges at once then miss by epsilon."""
    generator, epsilon = np.random.default_rng(0), Fraction(3, 10)
    n = steps(3, ONE, epsilon)
    directions = generator.uniform(-1, 1, (3, 2))
    directions /= np.abs(directions).sum(1, keepdims=True)
    profiles = [lambda t, c=c: np.abs(t - c) - abs(c) for c in (0.123, -0.456, 0.789)]
    model = interpolating(profiles, directions, n)
    assert model.nonzero_count() <= weights(3, 2, ONE, epsilon) and units(3, ONE, epsilon) == 3 * (n - 1)
    points = generator.uniform(0, 1, (4000, 2))
    exact = sum(g(points @ a) for g, a in zip(profiles, directions, strict=True))
    assert np.abs(model.evaluate(points)[:, 0] - exact).max() <= float(epsilon)

    def tooth(t):
        return np.abs(t * n / 2 - np.round(t * n / 2)) * 2 / n

    model = interpolating([tooth] * 3, np.eye(3), n)
    worst = np.full((1, 3), 1 / n)
    assert abs(3 * tooth(worst[0, 0]) - model.evaluate(worst)[0, 0]) == pytest.approx(0.3, abs=1e-12)  # float64


@pytest.mark.parametrize(("formula", "ridges"), [("abs(x1-1/3)+abs(x2-1/2)", 2), ("exp(-x1)+sin(x2)+cos(x3)", 3)])
def test_what_build_makes_is_not_larger(formula, ridges):
    dimension = ridges
    target = Target(formula, parse_formula(formula, dimension), parse_domain(f"[0,1]^{dimension}"))
    for epsilon in (Fraction(1, 10), Fraction(1, 50)):
        made = plan(Task.of(target, epsilon))
        assert made.units <= units(ridges, ONE, epsilon)
        assert (
            made.realise().model.nonzero_count() <= weights(ridges, dimension, ONE, epsilon) + 40
        )  # heads of the gather


def test_the_code_of_the_lower_bound_keeps_functions_apart():
    """Four axes over the field with four elements: the largest difference over the box, for every pair of words."""
    axes, letters = 4, 2
    multiply = [[0, 0, 0, 0], [0, 1, 2, 3], [0, 2, 3, 1], [0, 3, 1, 2]]
    distance = (axes + 1) // 2
    dimension = axes // 2 + 1

    def word(message):
        values = []
        for point in range(axes):
            total, power = 0, 1
            for letter in message:
                total ^= multiply[letter][power]
                power = multiply[power][point]
            values.append(total)
        return values

    words = [word(message) for message in product(range(4), repeat=dimension)]
    assert len(words) == 2 ** (letters * dimension)
    n = 2 * letters
    for one, other in combinations(words, 2):
        total = 0
        for a, b in zip(one, other, strict=True):
            signs = [
                [(1 if (letter >> i) & 1 else -1) * s for i in range(letters) for s in (1, -1)] for letter in (a, b)
            ]
            total += max(x - y for x, y in zip(*signs, strict=True))
        assert total >= 2 * distance  # in heights L/(2n): together distance L/n
    epsilon = Fraction(distance, 2 * n) - Fraction(1, 10**6)
    assert needed_bits(axes, axes, ONE, epsilon) >= letters * dimension
    fine = Fraction(1, 100)
    assert (
        needed_bits(32, 32, ONE, fine) == 399 * 17 > needed_numbers(32, 32, ONE, fine)
    )  # 8/(0.01) - 1 parts, in pairs


def test_a_code_that_is_too_long_for_its_field_is_not_used():
    """Negative control: with one letter of one bit there is no such code of length 8; what is left is q n_1."""
    epsilon = Fraction(4, 2 * 3)  # ceil(d L/(2 eps)) - 1 = 2 parts, one bit
    assert needed_bits(8, 8, ONE, epsilon) == needed_numbers(8, 8, ONE, epsilon) == 0


def test_the_gap_in_bits_is_bounded_over_ridges_and_epsilon():
    """Measured over both: the factor settles, and does not grow with the number of ridges."""
    gaps = []
    for r in (2, 8, 32):
        for epsilon in (Fraction(1, 1000), Fraction(1, 10_000)):
            gaps.append(described_bits(r, r, ONE, epsilon) / needed_bits(r, r, ONE, epsilon))
    assert max(gaps) < 64 and min(gaps) >= 1
    fine = [
        described_bits(8, 8, ONE, Fraction(1, 10**k)) / needed_bits(8, 8, ONE, Fraction(1, 10**k)) for k in (3, 4, 5)
    ]
    assert fine == sorted(fine, reverse=True)


def test_rounded_interpolations_are_as_many_as_described():
    """Values walk from 0 by multiples of eta: the steps that occur are among the 2 m + 1 of the count."""
    generator, n, eta = np.random.default_rng(0), 8, 0.05
    m = math.ceil(2 / (n * eta))
    for _ in range(300):
        values = np.cumsum(generator.uniform(-2 / n, 2 / n, n))
        rounded = np.floor(np.concatenate([[0.0], values]) / eta + 0.5)
        assert np.abs(np.diff(rounded)).max() <= m


def test_small_sums_need_nothing_and_empty_ones_are_refused():
    assert described_bits(2, 2, ONE, Fraction(2)) == needed_bits(2, 2, ONE, Fraction(2)) == 0
    with pytest.raises(BadInput, match="at least one ridge"):
        steps(0, ONE, ONE)
