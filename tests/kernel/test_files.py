"""Canonical bytes and strict reading."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.kernel.files import canonical, digest, parse_json, read_bytes

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(PLAIN)
def test_reading_gives_back_what_was_written(data):
    assert parse_json(canonical(data), "a file") == data
    assert canonical(parse_json(canonical(data), "a file")) == canonical(data)


def test_equal_data_has_equal_bytes_whatever_the_order_of_its_keys():
    assert canonical({"a": 1, "b": {"c": 2, "d": 3}}) == canonical({"b": {"d": 3, "c": 2}, "a": 1})
    assert canonical({"a": 1}) != canonical({"a": 2})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_none_are_never_written(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical([value])


@pytest.mark.parametrize(
    "text",
    [
        "NaN", "Infinity", "-Infinity", "[1e999]", "[-1e999]", '{"a": 1, "a": 2}', "{'a': 1}", "[1,]", "", "[1] [2]",
        "\ufeff{}", "[" * 100_000, "1" * 5_000,
    ],
)  # fmt: skip
def test_what_is_not_one_plain_json_value_is_refused_in_one_sentence(text):
    with pytest.raises(BadInput, match="a file is not valid JSON"):
        parse_json(text.encode(), "a file")


def test_bytes_that_are_no_text_are_refused():
    with pytest.raises(BadInput, match="a file is not valid JSON"):
        parse_json(b"\xff\xfe", "a file")


def test_a_file_that_is_missing_or_a_folder_is_one_sentence(tmp_path):
    with pytest.raises(BadInput, match="does not exist"):
        read_bytes(tmp_path / "absent")
    with pytest.raises(BadInput, match="cannot be read"):
        read_bytes(tmp_path)


def test_digest_is_sha256():
    assert digest(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest(b"a") != digest(b"b")


def test_canonical_text_is_plain_ascii_json():
    data = {"text": "\u2212\u00e9\U0001f600", "number": 0.1}
    assert all(byte < 128 for byte in canonical(data))
    assert json.loads(canonical(data)) == data
