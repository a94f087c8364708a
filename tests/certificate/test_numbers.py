"""Decimal text that is rounded in the stated direction, exactly."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.certificate import decimal_text

NUMBERS = st.fractions(min_value=0, max_value=10**12) | st.floats(
    min_value=0, max_value=1e300, allow_subnormal=True, allow_nan=False
).map(Fraction)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(NUMBERS, st.integers(1, 20))
def test_the_text_lies_on_the_stated_side_and_within_one_unit_of_its_last_digit(value, digits):
    up, down = (Fraction(decimal_text(value, up=side, digits=digits)) for side in (True, False))
    assert down <= value <= up
    assert up - down <= value * Fraction(10, 10**digits)


def test_exact_decimals_stay_exact_in_both_directions():
    for text in ("0", "0.1", "12.5", "1000000"):
        assert decimal_text(Fraction(text), up=True) == text == decimal_text(Fraction(text), up=False)


def test_doubles_are_taken_at_their_exact_value():
    # The double 0.1 is a little more than one tenth.
    assert decimal_text(0.1, up=True) == "0.100000001"
    assert decimal_text(0.1, up=False) == "0.1"


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_and_infinity_have_no_text(value):
    with pytest.raises((ValueError, OverflowError)):
        decimal_text(value, up=True)
