"""The drawing of a circuit: complete, self-contained, and safe with any text."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from certiformer.report.circuit_page import write_circuit
from report.live_page import live_data, without_script

CELLS = [("indices", 0), ("tokens", 1), ("bos", 2), ("1/(1+w)", 3), ("length", 4), ("<reverse>", 3)]
DATA: dict[str, Any] = {
    "name": "reverse",
    "word": "certified",
    "sentence": "For every input of 1 to 8 tokens & more, the decoded output is that of the program.",
    "facts": [("blocks", "2"), ("heads", "2")],
    "width": 5,
    "sublayers": ["embedding", "attention 1", "feed-forward 1", "attention 2"],
    "cells": [
        {
            "id": number,
            "name": name,
            "coordinate": coordinate,
            "life": "embedding to the end",
            "values": "{0, 1}",
            "line": "reverse.py:3",
            "example": ["0", "1", "2"],
        }
        for number, (name, coordinate) in enumerate(CELLS)
    ],
    "steps": [
        {"sublayer": 0, "kind": "embedding", "text": "indices", "reads": {}, "writes": [0], "clears": []},
        {"sublayer": 0, "kind": "embedding", "text": "tokens", "reads": {}, "writes": [1], "clears": []},
        {"sublayer": 0, "kind": "embedding", "text": "the start", "reads": {}, "writes": [2], "clears": []},
        {
            "sublayer": 1,
            "kind": "head",
            "text": "how many positions everyone selects",
            "reads": {"value": [2]},
            "writes": [3],
            "clears": [],
        },
        {
            "sublayer": 2,
            "kind": "table",
            "text": "length from 1/(1+w)",
            "reads": {"value": [3]},
            "writes": [4],
            "clears": [],
        },
        {"sublayer": 2, "kind": "clear", "text": "1/(1+w)", "reads": {}, "writes": [], "clears": [3]},
        {
            "sublayer": 3,
            "kind": "head",
            "text": "<reverse>: tokens where indices = length - indices - 1",
            "reads": {"query": [0, 4], "key": [0], "value": [1]},
            "writes": [5],
            "clears": [],
        },
    ],
    "example": {"tokens": ["a", "b", "<c>"], "outputs": ["<c>", "b", "a"]},
    "patterns": {
        "kind": "attention",
        "title": "",
        "caption": "Row: the position that looks. Column: where it looks.",
        "inputs": ["a b <c>"],
        "heads": [
            {
                "name": "attention 2: <reverse>",
                "maps": [{"rows": ["a", "b"], "columns": ["BOS", "a", "b"], "values": [[0.0, 0, 1], [0, 1.0, 0]]}],
            }
        ],
    },
    "program": "0 indices\n1 tokens",
    "directory": "runs/rev erse",
}


class Tags(HTMLParser):
    """Every tag is closed in order; what links or loads is collected."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []
        self.count: dict[str, int] = {}

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        self.loads += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    return tags


def test_the_page_is_closed_and_loads_nothing():
    whole = write_circuit(DATA)
    assert live_data(whole)["cells"] == DATA["cells"]
    page = without_script(whole)
    tags = parsed(page)
    assert tags.loads == [] and "script" not in tags.count
    assert "<c>" not in page and "<reverse>" not in page and "&lt;reverse&gt;" in page
    assert "certiformer check &#x27;runs/rev erse&#x27;" in page


def test_every_variable_has_a_wire_and_every_step_a_row():
    page = write_circuit(DATA)
    assert page.count('class="wire"') == len(CELLS)
    assert page.count('class="label"') == len(DATA["steps"])
    # the coordinate 3 is cleared before it is written again: its first wire ends at the clearing row
    first, second = (part.split('"')[0] for part in page.split('class="wire" d="M100 ')[1:])
    assert float(first.split("V")[1]) < float(second.split("V")[0])


def test_a_transformer_without_heads_is_drawn():
    page = write_circuit({**DATA, "patterns": {**DATA["patterns"], "heads": []}, "steps": DATA["steps"][:3]})
    assert "There is no head" in page and parsed(page).count["svg"] >= 1
