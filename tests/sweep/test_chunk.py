"""Rows survive the way into a Parquet file and back, bit by bit; what cannot is refused by name."""

from __future__ import annotations

import struct

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.sweep import Job
from certiformer.sweep.chunk import decode, encode

JOB = Job("package.module:name", {"a": 1})


def bits(value):
    """Floats by their bits, so that NaN equals itself and 0.0 differs from -0.0."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    return [bits(item) for item in value] if isinstance(value, list) else (type(value), value)


def same(left, right):
    as_bits = [[{name: bits(value) for name, value in row.items()} for row in rows] for rows in (left, right)]
    return as_bits[0] == as_bits[1]


def test_every_kind_of_value_comes_back():
    row = {
        "float": 0.1,
        "nan": float("nan"),
        "infinite": float("-inf"),
        "zero": -0.0,
        "tiny": 5e-324,
        "whole": -(2**63),
        "yes": True,
        "text": "größer",
        "list": [1.5, float("nan"), float("inf")],
        "wholes": [1, 2**62],
        "flags": [True, False],
        "nothing": None,
    }
    assert same(decode(encode(JOB, [row])), [row])


def test_the_comparison_sees_one_bit():
    assert not same([{"x": 0.1}], [{"x": np.nextafter(0.1, 1).item()}])
    assert not same([{"x": 0.0}], [{"x": -0.0}])
    assert not same([{"x": 1}], [{"x": 1.0}])
    assert not same([{"x": [0.1]}], [{"x": [float(np.float32(0.1))]}])


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.fixed_dictionaries({"x": st.floats(), "n": st.integers(-(2**63), 2**63 - 1), "l": st.lists(st.floats())})
    )
)
def test_any_floats_come_back(rows):
    assert same(decode(encode(JOB, rows)), rows)


def test_arrays_become_lists_and_single_precision_stays_exact():
    row = {
        "a": np.float32(0.1),
        "b": np.arange(3),
        "c": jnp.array([0.1], jnp.float32),
        "d": (1, 2),
        "e": jnp.float32(2),
    }
    wanted = {"a": float(np.float32(0.1)), "b": [0, 1, 2], "c": [float(np.float32(0.1))], "d": [1, 2], "e": 2.0}
    assert same(decode(encode(JOB, [row])), [wanted])


def test_no_rows_and_empty_lists():
    assert decode(encode(JOB, [])) == []
    assert decode(encode(JOB, [{"x": []}, {"x": [1.5]}])) == [{"x": []}, {"x": [1.5]}]


def test_whole_numbers_among_fractions_become_floats():
    assert same(decode(encode(JOB, [{"x": 1}, {"x": 0.5}])), [{"x": 1.0}, {"x": 0.5}])


def test_the_same_rows_give_the_same_bytes():
    rows = [{"x": 0.1, "y": [1.0, 2.0]}] * 3
    assert encode(JOB, rows) == encode(JOB, rows)
    assert encode(JOB, rows) != encode(JOB, [{"x": 0.1, "y": [1.0, np.nextafter(2.0, 3).item()]}] * 3)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"x": {"a": 1}}], "column 'x' of package.module:name holds a dict"),
        ([{"x": [[1.0]]}], "column 'x' of package.module:name holds a list"),
        ([{"x": 1j}], "holds a complex"),
        ([{"x": 1}, {"x": "a"}], "mixes kinds of values: int, text"),
        ([{"x": True}, {"x": 1}], "mixes kinds of values: bool, int"),
        ([{"x": [1]}, {"x": 1}], "holds lists in some rows"),
        ([{"x": 2**63}], "does not fit 64 bits"),
        ([{"x": 2**53 + 1}, {"x": 0.5}], "beyond 2**53"),
        ([{"x": 1}, {"y": 1}], "different names: x, y"),
        ([{}], "at least one name"),
        ({"x": 1}, "a list of rows"),
        (None, "a list of rows"),
    ],
)
def test_other_rows_are_refused_in_a_sentence(rows, words):
    with pytest.raises(BadInput, match=".*") as refusal:
        encode(JOB, rows)
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)
