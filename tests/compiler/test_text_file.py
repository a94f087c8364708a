"""What the files of automata, machines and circuits share: the sentences about mistakes, and nothing that is let through."""

from __future__ import annotations

import pytest

from certiformer.compiler.text_file import (
    as_list,
    as_text,
    as_texts,
    parse_entries,
    parse_toml,
    read_described,
    split_symbols_of,
    start_state,
    transition_rows,
)
from certiformer.errors import BadInput


def refusal(function, *arguments) -> str:
    with pytest.raises(BadInput) as caught:
        function(*arguments)
    return str(caught.value)


def test_files_are_named_in_every_complaint(tmp_path):
    path = tmp_path / "computation.toml"
    assert refusal(read_described, path, str) == f"{path} cannot be read: No such file or directory"
    path.write_bytes(b"\xff\xfe\x00")
    assert refusal(read_described, path, str) == f"{path} is not a text file"
    path.write_text("a = ", encoding="utf-8")
    assert refusal(read_described, path, parse_toml).startswith(f"{path}: this is not TOML: ")
    path.write_text('a = "ä"', encoding="utf-8")
    assert read_described(path, parse_toml) == {"a": "ä"}


def test_other_errors_are_not_hidden(tmp_path):
    path = tmp_path / "computation.toml"
    path.write_text("", encoding="utf-8")
    with pytest.raises(ZeroDivisionError):
        read_described(path, lambda text: 1 // len(text))


def test_entries():
    needed, optional = ("start", "rows"), ("missing",)
    assert parse_entries("start = 1\nrows = []", "machine", needed, optional) == {"start": 1, "rows": []}
    assert parse_entries("start = 1\nrows = []\nmissing = 2", "machine", needed, optional)["missing"] == 2
    assert refusal(parse_entries, "start = 1", "machine", needed, optional) == (
        "the machine file has no entry 'rows'; it needs start, rows"
    )
    assert refusal(parse_entries, "start = 1\nrows = 1\nx = 2", "machine", needed, optional) == (
        "the machine file has an entry 'x'; known are start, rows, missing"
    )


def test_one_start_state():
    assert start_state({"start": "A"}, "a machine") == "A"
    assert refusal(start_state, {"start": ["A", "B"]}, "a machine") == "a machine has one start state, not 2 (A, B)"
    assert refusal(start_state, {"start": 3}, "a machine") == "start holds 3, which is not a text in quotation marks"


def test_kinds_of_values():
    assert as_text("x", "name") == "x" and as_list([1], "name") == [1] and as_texts(["a", "b"], "name") == ("a", "b")
    for wrong in (1, True, None, ["x"]):
        assert refusal(as_text, wrong, "halt") == f"halt holds {wrong!r}, which is not a text in quotation marks"
    for wrong in ("abc", 1, ("a",), {}):
        assert refusal(as_list, wrong, "halt") == f"halt must be a list, not {wrong!r}"
    assert "holds 1" in refusal(as_texts, ["a", 1], "halt")


def test_rows():
    meaning = "three: state, symbol, next state"
    assert transition_rows([["a", "0", "b"], ["b", "1", "a"]], 3, meaning) == (("a", "0", "b"), ("b", "1", "a"))
    assert transition_rows([], 3, meaning) == ()
    for wrong in (["a", "0"], ["a", "0", "b", "c"], "abc"):
        assert (
            refusal(transition_rows, [["a", "0", "b"], wrong], 3, meaning) == f"transition 2 is not a list of {meaning}"
        )
    assert refusal(transition_rows, [["a", 0, "b"]], 3, meaning).startswith("transition 1 holds 0, ")
    assert refusal(transition_rows, "abc", 3, meaning) == "transitions must be a list, not 'abc'"


@pytest.mark.parametrize(
    ("text", "symbols", "parts"),
    [
        ("1 0 1", ("0", "1"), ["1", "0", "1"]),
        ("101", ("0", "1"), ["1", "0", "1"]),
        ("1", ("0", "1"), ["1"]),
        ("", ("0", "1"), []),
        ("10", ("1", "10"), ["10"]),  # a symbol of two letters is not taken apart
        ("11", ("1", "10"), ["11"]),  # nor is anything, as letters could be joined in two ways
        ("10 1", ("0", "1"), ["10", "1"]),
    ],
)
def test_symbols(text, symbols, parts):
    assert split_symbols_of(text, symbols) == parts
