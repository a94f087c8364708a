"""Descriptions are read strictly: each way to be wrong has its sentence."""

from __future__ import annotations

import pytest

from certiformer.errors import BadInput
from certiformer.kernel.meanings.description import canonical_text, read_entries, require_canonical, require_entries


def test_what_was_written_is_read():
    text = canonical_text({"format": "f", "b": [1, "é"], "a": 0.5})
    assert read_entries(text, "x.json") == {"format": "f", "b": [1, "é"], "a": 0.5}
    require_canonical(text, text.encode(), "x.json")
    with pytest.raises(BadInput, match="not in its canonical form"):
        require_canonical(text, text.replace(":", ": "), "x.json")
    with pytest.raises(ValueError, match="JSON compliant"):
        canonical_text({"a": float("nan")})


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, b"\xff"])
def test_what_is_not_json_is_refused(text):
    with pytest.raises(BadInput, match="x.json is not valid JSON"):
        read_entries(text, "x.json")
    with pytest.raises(BadInput, match="x.json is not a JSON object"):
        read_entries("[]", "x.json")


def test_entries_are_exactly_those_of_the_format():
    good = {"format": "f", "a": [], "b": 1}
    require_entries(good, "x.json", "f", ["a"], ["b"])
    for bad in ({**good, "format": "g"}, {**good, "c": 1}, {"format": "f", "a": []}):
        with pytest.raises(BadInput, match="does not have exactly the entries of f"):
            require_entries(bad, "x.json", "f", ["a"], ["b"])
    with pytest.raises(BadInput, match="should be a list and is not"):
        require_entries({**good, "a": {}}, "x.json", "f", ["a"], ["b"])
