"""`target.json`: canonical bytes, strict reading."""

from __future__ import annotations

import json

import pytest

from certiformer.errors import BadInput
from certiformer.target import Domain, Target, any_target_from_text, any_target_to_text, parse_domain, parse_formula

SOURCE = "sin(x1) + 0.1*x2"
TARGET = Target(SOURCE, parse_formula(SOURCE), parse_domain("[0,2*pi]x[-1,2]"))


def data():
    return json.loads(any_target_to_text(TARGET))


def test_round_trip_with_the_same_bytes():
    text = any_target_to_text(TARGET)
    again = any_target_from_text(text)
    assert again == TARGET
    assert any_target_to_text(again) == text
    assert any_target_from_text(text.encode()) == TARGET
    assert text.isascii() and text.endswith("}\n")
    assert data()["domain"] == [["0", [["const", "2"], ["const", "pi"], ["mul", 0, 1]]], ["-1", "2"]]


def test_the_source_may_hold_any_text():
    strange = Target('file "ä".py:f\n', TARGET.program, TARGET.domain)
    assert any_target_from_text(any_target_to_text(strange)) == strange


@pytest.mark.parametrize(
    "change",
    [
        {"format": "certiformer-target-1"},
        {"format": None},
        {"norm": "mean"},
        {"source": 3},
        {"extra": 1},
        {"program": {}},
        {"program": "sin(x1)"},
        {"domain": []},
        {"domain": "[0,1]^2"},
        {"domain": [["0", "1"]]},
        {"domain": [["0", "1"], ["0", 1]]},
        {"domain": [["0", "1"], ["0", "1", "2"]]},
        {"domain": [["0", "1"], ["1", "0"]]},
        {"domain": [["0", "1"], ["0", "inf"]]},
        {"domain": [["0", "1"], ["0", "x1"]]},
        {"domain": [["0", "1"], ["0", "1)"]]},
        {"domain": [["0", "1"], ["0", "1" + " " * 2000]]},
        {"domain": [["0", "1"]] * 300},
        {"domain": [["0", [["const", "1"]]], ["-1", "2"]]},  # a second spelling of 1
        {"domain": [["0", "2*pi"], ["-1", "2"]]},
        {"domain": [["0", [["const", "2"], ["var", 0]]], ["-1", "2"]]},
        {"domain": [["0", []], ["-1", "2"]]},
        {"domain": [["0", "0.5"], ["-1", "2"]]},
        {"domain": [["0", [["const", "pi"], ["log", 7]]], ["-1", "2"]]},
    ],
)
def test_a_changed_file_is_refused(change):
    with pytest.raises(BadInput):
        any_target_from_text(json.dumps({**data(), **change}))


@pytest.mark.parametrize("key", ["format", "source", "program", "domain", "norm"])
def test_a_missing_key_is_refused(key):
    without = {k: v for k, v in data().items() if k != key}
    with pytest.raises(BadInput, match="keys|format"):
        any_target_from_text(json.dumps(without))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "\x00",
        b"\xff\xfe",
        "[" * 100_000,
        any_target_to_text(TARGET)[:-5],
        '{"format":1,"format":2}',
    ],
)
def test_what_is_not_such_a_file_is_refused(text):
    with pytest.raises(BadInput):
        any_target_from_text(text)


def test_a_repeated_key_is_refused():
    text = any_target_to_text(TARGET).replace('{"domain"', '{"norm":"max","domain"', 1)
    assert json.loads(text) == data()  # a careless reader sees nothing wrong
    with pytest.raises(BadInput, match="JSON"):
        any_target_from_text(text)


def test_box_and_program_must_agree():
    with pytest.raises(BadInput, match="1 axes but the target has 2 variables"):
        Target(SOURCE, TARGET.program, Domain((("0", "1"),)))
