"""The page: complete, self-contained, honest about what was checked, and safe with any text."""

from __future__ import annotations

import copy
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from certiformer.report.page import write
from certiformer.report.wording import NOT_CLAIMED
from report.live_page import live_data, without_script

AXIS = {"label": "x1", "low": 0.0, "high": 6.283, "low_text": "0", "high_text": "2*pi"}
DATA: dict[str, Any] = {
    "source": "sin(x1)",
    "sentence": "At every real point x1 of [0, 2*pi], the transformer's output differs from sin(x1) by at most 0.1.",
    "variables": 1,
    "outputs": 1,
    "domain": "[0, 2*pi]",
    "formulas": ["sin(x1)"],
    "epsilon": "0.1",
    "outcome": "proved",
    "level": 2,
    "checked": True,
    "reason": "",
    "method": "voronoi",
    "lower": "0.0412345",
    "upper": "0.0987654",
    "apriori": "0.0999",
    "witness": {"point": ["1/3"], "output": 0, "error": "0.0412345"},
    "sizes": {
        "blocks": 1,
        "heads": 1,
        "units": 0,
        "registers": 16,
        "width": 6,
        "nonzero": 59,
        "dense": 151,
        "bytes": 1940,
    },
    "proof": {
        "rule": "outputs",
        "bound": "0.0987654",
        "notes": [],
        "children": [{"rule": "boxes", "bound": "0.05", "notes": ["32 boxes"], "children": []}],
    },
    "assumptions": ["a thing that is believed"],
    "pictures": [
        {
            "kind": "curves",
            "title": "curve title",
            "caption": "c",
            "x": AXIS,
            "points": [0.0, 3.0, 6.283],
            "target": [0.0, 1.0, None],
            "model": [0.1, 0.9, 0.0],
            "error": [0.1, -0.1, None],
            "epsilon": 0.1,
        },
        {"kind": "steps", "title": "steps title", "caption": "", "x": AXIS, "values": [3, 3, 4, 5]},
        {
            "kind": "map",
            "title": "map title",
            "caption": "",
            "x": AXIS,
            "y": AXIS,
            "values": [[0.0, 0.5], [1.0, None]],
            "low": 0.0,
            "high": 1.0,
            "unit": "|T - f|",
            "palette": "error",
        },
    ],
    "seconds": {"search": 1.25},
    "versions": {"jax": "0.10.1"},
    "seals": {"model.safetensors": "ab" * 32},
    "directory": "runs/sine",
}


def page(**changes: Any) -> str:
    return without_script(write({**copy.deepcopy(DATA), **changes}))


class Reader(HTMLParser):
    """Every tag must be closed in order; attributes that could fetch something are kept."""

    EMPTY = ("meta", "img", "path", "rect", "link", "br")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.sources: list[str] = []
        self.tags: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.sources += [
            value or "" for name, value in attributes if name in ("src", "href", "action", "srcset", "data")
        ]
        assert not any(name.startswith("on") for name, _ in attributes)
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag


def read(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == []
    return reader


def test_everything_is_on_the_page():
    text = page()
    assert ">certified</span>" in text
    assert "At every real point x1 of [0, 2*pi]" in text
    assert "between 0.04123 and 0.09877" in text  # rounded outward
    for part in (
        "curve title",
        "steps title",
        "map title",
        "32 boxes",
        "a thing that is believed",
        "runs/sine",
        "0.10.1",
    ):
        assert part in text
    assert all(subject in text for subject, _ in NOT_CLAIMED)


def test_the_live_part_is_named_by_the_policy_and_holds_the_data():
    text = '</script><script>alert("x")</script>'
    data = live_data(write({**copy.deepcopy(DATA), "candidates": [{"method": text}, {"method": "b"}]}))
    assert data["kind"] == "build" and data["lower"] == DATA["lower"] and data["proof"] == DATA["proof"]
    assert data["candidates"][0]["method"] == text
    assert len(data["pictures"]) == len([p for p in DATA["pictures"] if p["kind"] != "sizes"])


def test_nothing_is_fetched_from_outside():
    text = page()
    reader = read(text)
    assert len(reader.sources) == 2  # the map and its scale
    assert all(source.startswith("data:image/png;base64,") for source in reader.sources)
    assert reader.tags.isdisjoint({"script", "link", "iframe", "object", "embed", "form", "base"})
    without_pictures = re.sub(r"data:image/png;base64,[A-Za-z0-9+/=]+", "", text)
    assert re.search(r"https?:|//[a-z]|url\(|@import", without_pictures) is None
    assert "default-src 'none'" in text


def test_light_dark_and_telephone():
    text = page()
    assert "prefers-color-scheme:dark" in text and "color-scheme:light dark" in text
    assert "width=device-width" in text and "@media (max-width" in text


@pytest.mark.parametrize("outcome", ["proved", "refuted", "undecided", "invalid"])
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("checked", [True, False])
def test_only_what_the_checker_accepted_is_called_certified(outcome, level, checked):
    text = page(outcome=outcome, level=level, checked=checked, reason="because")
    assert ("certified" in text) is (outcome == "proved" and level == 2 and checked)
    assert ("Because." in text) is (outcome != "proved")
    assert ("which covers every point" in text) is (outcome == "proved")
    assert read(text).open == []


def test_any_text_is_shown_and_never_executed():
    evil = '<script>alert("x")</script>&amp;'
    changes = {name: evil for name in ("source", "domain", "reason", "method", "directory")}
    pictures = copy.deepcopy(DATA["pictures"])
    for picture in pictures:
        picture.update(title=evil, caption=evil, x={**AXIS, "label": evil, "low_text": evil})
    proof = {**DATA["proof"], "notes": [evil]}
    text = page(**changes, outcome="refuted", formulas=[evil], pictures=pictures, proof=proof, assumptions=[evil])
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "script" not in read(text).tags


def test_sizes_heads_and_candidates_are_on_the_page_and_safe():
    evil = '<script>alert("x")</script>'
    sizes = {
        "kind": "sizes", "title": evil, "caption": evil, "name": evil, "x": [0.01, 1.0], "y": [1.0, 1e4],
        "curves": [{"label": evil, "style": "limit", "points": [(0.01, 100.0), (1.0, 1.0)]}],
        "dots": [{"label": evil, "style": "ours", "x": 0.1, "y": 50.0}],
    }  # fmt: skip
    drawn = {"rows": [evil], "columns": [evil], "values": [[1.0]]}
    heads = {
        "kind": "attention",
        "title": evil,
        "caption": evil,
        "inputs": [evil],
        "heads": [{"name": evil, "maps": [drawn]}],
    }
    row = {"method": evil, "nonzero": 3, "dense": 4, "heads": 1, "bound": 0.5, "outcome": evil}
    text = page(pictures=[sizes, heads], candidates=[row, row])
    assert "<script" not in text and text.count("&lt;script&gt;") >= 14
    reader = read(text)
    assert "script" not in reader.tags and reader.sources == []
    assert "Pictures" not in text  # both belong to the transformer
    assert "What was considered" in text


def test_missing_parts_are_said_to_be_missing():
    text = page(outcome="invalid", level=0, sizes=None, proof=None, pictures=[], lower=None, upper=None, witness=None)
    assert "No transformer was made" in text and "There is no proof" in text and "Pictures" not in text
    assert "no upper bound was proved" in page(outcome="undecided", level=0, upper=None)


def test_a_long_program_is_folded_away():
    text = page(formulas=["x1 + " * 200 + "x1"])
    assert "<summary>The recorded program</summary>" in text


def test_constant_and_empty_pictures_are_drawn():
    constant = {**DATA["pictures"][0], "target": [2.0] * 3, "model": [2.0] * 3, "error": [0.0] * 3}
    unknown = {**DATA["pictures"][0], "target": [None] * 3, "model": [None] * 3, "error": [None] * 3}
    flat = {**DATA["pictures"][2], "values": [[1.0, 1.0]], "low": 1.0, "high": 1.0}
    assert read(page(pictures=[constant, unknown, flat])).open == []


def test_a_page_drawn_from_a_folder_says_so_and_is_named_after_its_program():
    """The text of a target is whatever its file says; nothing depends on it."""
    text = page(recorded=True, checked=False, source="sin(x1), which this is not", formulas=["x1**2"])
    heading = text[text.index("<h1") : text.index("</h1>")]
    assert "x1**2" in heading and "which this is not" not in heading
    assert text.count("nothing of that was checked") == 1 and "<p>Recorded, not checked: The largest error" in text
    assert "The recorded proof" in text and ">certified<" not in text
    # Negative control: a page of whoever saw the proof accepted says none of this.
    fresh = page(source="sin(x1)")
    assert "ecorded" not in fresh[: fresh.index("What is not claimed")] and "sin(x1)" in fresh
