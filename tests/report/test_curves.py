"""Curves keep their peaks when they are thinned, and ticks are where they say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from certiformer.report.curves import COLUMNS, thinned
from certiformer.report.frame import axis_ticks, round_numbers


def test_a_spike_of_one_sample_survives_thinning():
    count = 20 * COLUMNS
    samples = [(k / count, 1.0 if k == 7777 else 0.0) for k in range(count)]
    kept = thinned(samples)
    assert len(kept) <= 2 * COLUMNS + 1
    assert (7777 / count, 1.0) in kept
    assert [at for at, _ in kept] == sorted(at for at, _ in kept)


def test_a_gap_survives_thinning():
    count = 4 * COLUMNS
    kept = thinned([(k / count, None if k == 100 else 0.5) for k in range(count)])
    assert any(height is None for _, height in kept)


@given(st.floats(-1e9, 1e9), st.floats(1e-6, 1e9), st.integers(2, 6))
def test_round_numbers_lie_inside_and_are_few(low, span, wanted):
    numbers = round_numbers(low, low + span, wanted)
    slack = 1e-6 * (abs(low) + span)  # a tick at the very end may be off by rounding
    assert all(low - slack <= number <= low + span + slack for number in numbers)
    assert len(numbers) <= wanted + 2


def test_ticks_begin_and_end_with_the_users_own_words():
    axis = {"label": "x", "low": -1.0, "high": 2.718, "low_text": "-1", "high_text": "exp(1) + 0*1000000"}
    ticks = axis_ticks(axis)
    assert ticks[0] == (0.0, "-1") and ticks[-1][0] == 1.0 and len(ticks[-1][1]) <= 12
    assert all(0 <= at <= 1 for at, _ in ticks)
