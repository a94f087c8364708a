"""Decimal text that is rounded in the stated direction, exactly."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.kernel.meanings.learner import larger_reading, smaller_reading, written
from certiformer.kernel.programs import decimal_text, exact_text, range_text, rounded_text
from certiformer.report.numbers import json_number

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


VALUES = (
    st.fractions()
    | st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True).map(Fraction)
    | st.floats(allow_nan=False, allow_infinity=False, width=32).map(Fraction)
    | st.decimals(allow_nan=False, allow_infinity=False, places=12).map(Fraction)
    | st.integers(-(10**400), 10**400).map(Fraction)
    | st.integers(1, 10**400).map(lambda n: Fraction(1, n))
)


def parsed(text: str) -> Fraction:
    """The number of a text, in plain arithmetic."""
    text = re.sub(r" \(about .*\)$", "", text)
    for sign, power in (("/2^", -1), ("*2^", 1)):
        if sign in text:
            first, second = text.split(sign)
            return Fraction(first) * Fraction(2) ** (power * int(second))
    return Fraction(text)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(VALUES)
def test_an_exact_text_is_the_number(value):
    text = exact_text(value)
    assert parsed(text) == value
    about = re.search(r"\(about (.*)\)$", text)
    assert about is None or abs(Fraction(about[1]) - value) <= abs(value) / 10**5


@settings(max_examples=400, deadline=None, derandomize=True)
@given(VALUES)
def test_rounded_texts_enclose_the_number_tightly(value):
    down, up = (Fraction(rounded_text(value, up=side)) for side in (False, True))
    assert down <= value <= up and up - down <= abs(value) / 10**8
    least, *most = (Fraction(part) for part in range_text([value]).removeprefix("between ").split(" and "))
    assert (least == value and not most) or least <= value <= most[0] <= least + abs(value) / 10**8


@settings(max_examples=300, deadline=None, derandomize=True)
@given(VALUES)
def test_texts_have_one_form(value):
    """Digits, a point between digits, and a short exponent: nothing that a reader or a parser could take otherwise."""
    plain = r"-?(0|[1-9][0-9]*)(\.[0-9]*[1-9])?(e-?[1-9][0-9]*)?"
    for side in (False, True):
        assert re.fullmatch(plain, rounded_text(value, up=side))
    assert re.fullmatch(rf"{plain}|-?[0-9]+(/2\^|\*2\^|/)?[0-9]+( \(about {plain}\))?", exact_text(value))
    short = rounded_text(value, up=True)
    assert len(short) <= 9 + len("-0.000") + len("e-") + 4


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.floats(allow_nan=False, allow_infinity=False, allow_subnormal=True))
def test_both_readings_of_a_float_lie_between_the_smaller_and_the_larger(value):
    as_json = Fraction(json.dumps(value))
    assert written(value) == as_json and exact_text(written(value)).count("(about") == 0
    assert {smaller_reading(value), larger_reading(value)} == {as_json, Fraction(value)}
    assert smaller_reading(value) <= larger_reading(value)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(VALUES)
def test_a_number_in_json_is_exact_or_stays_text(value):
    for text in (str(value), rounded_text(value, up=True)):
        number = json_number(text)
        assert Fraction(json.loads(json.dumps(number), parse_float=str)) == Fraction(text)


def test_the_words_of_a_reader():
    assert [exact_text(Fraction(t)) for t in ("0.1", "1e-3", "1e-4", "1e-5", "1000000", "1e15", "1e16", "-2.5e-9")] == [
        "0.1", "0.001", "0.0001", "1e-5", "1000000", "1000000000000000", "1e16", "-2.5e-9",
    ]  # fmt: skip
    assert exact_text(2.0**-1074) == "1/2^1074 (about 4.94065e-324)" and exact_text(0.0) == "0"
    assert exact_text(2.0**1023).startswith("1*2^1023 (about 8.98846e307)")
    assert json_number("nonsense") == "nonsense" and json_number("1e999") == "1e999" and json_number("1/0") == "1/0"


def test_what_formatting_did_is_caught():
    """The controls: `:g` says 0.1 for a number above it, and `round` may round either way."""
    value = Fraction("0.1000004")
    assert parsed(f"{float(value):g}") != value and not Fraction(f"{float(value):g}") >= value
    assert not Fraction(str(round(2 / 3, 3))) <= Fraction(2 / 3) and not Fraction(str(round(1 / 3, 3))) >= Fraction(
        1 / 3
    )
