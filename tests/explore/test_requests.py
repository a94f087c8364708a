"""What a page may ask: known entries of known kinds, and one sentence for anything else."""

from __future__ import annotations

import pytest

from certiformer import BadInput
from certiformer.explore.requests import choice, number, optional, read_entries, read_object, run_name, text, whole
from certiformer.explore.rooms import approximate

GOOD = {"formula": "x1", "box": "[0,1]", "epsilon": "0.1", "method": "auto", "seconds": 1}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "not an object"),
        (b'{"a": NaN}', "not JSON"),
        (b"[" * 60_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "not JSON"),
    ],
)
def test_a_body_that_is_no_object_is_refused(body, sentence):
    with pytest.raises(BadInput, match=sentence):
        read_object(body)


@pytest.mark.parametrize(
    ("reader", "value"),
    [
        (text(3), "abcd"),
        (text(3), 3),
        (text(9), "a\x1b[2J"),
        (text(9), "a\u202eb"),
        (text(9), "a\nb"),
        (choice("a"), "b"),
        (choice("a"), ["a"]),
        (whole(1, 3), 4),
        (whole(0, 3), True),
        (whole(0, 3), 1.0),
        (number(0, 1), 2),
        (number(0, 1), "0"),
        (run_name, "../../etc"),
        (run_name, "A" * 32),
        (optional(whole(0, 1)), 2),
    ],
)
def test_an_entry_of_the_wrong_kind_is_refused(reader, value):
    with pytest.raises(BadInput):
        reader(value, "it")


def test_unknown_and_missing_entries_are_refused():
    assert approximate.read(GOOD) == {**GOOD, "seconds": 1.0}
    for wrong in ({**GOOD, "out": "/tmp/x"}, {k: v for k, v in GOOD.items() if k != "box"}):
        with pytest.raises(BadInput):
            approximate.read(wrong)


def test_a_name_of_a_file_is_no_formula(tmp_path, monkeypatch):
    """What `certiformer build` would open as a file is parsed as a formula here, and refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x1").mkdir()
    (tmp_path / "target.py").write_text("raise SystemExit('was run')")
    for name in ("target.py:f", "data.csv", "sort", "/tmp", "./x1"):
        with pytest.raises(BadInput, match="formula"):
            approximate.run({**GOOD, "formula": name}, str(tmp_path / "run"), lambda event, **facts: None)
    assert not (tmp_path / "run").exists()
    assert read_entries({}) == {}
