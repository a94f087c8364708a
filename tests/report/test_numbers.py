"""Shown bounds stay bounds: they are rounded outward, whatever the number."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from certiformer.report.numbers import bound_text

POSITIVE = st.fractions(min_value=0, max_value=10**8) | st.floats(1e-300, 1e300).map(Fraction)


@given(POSITIVE)
def test_a_shown_bound_is_on_the_right_side_and_close(value):
    text = f"{value.numerator}/{value.denominator}"
    below, above = Fraction(bound_text(text, up=False)), Fraction(bound_text(text, up=True))
    assert below <= value <= above
    # Four digits: the two ends differ by at most one unit in the fourth digit, a thousandth of the number.
    assert above - below <= value / 1000
