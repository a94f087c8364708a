"""The page of an audit: complete, self-contained, and safe with any text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from audit.checkpoints import bert_tensors, write_bert, write_llama
from certiformer.audit import Given, audit
from certiformer.report.audit_page import write_audit
from certiformer.report.audit_pictures import bite, waterfall
from report.live_page import live_data, without_script


class Tags(HTMLParser):
    """Checks that tags close in order and collects what a browser would fetch."""

    void = ("meta", "img", "br", "wbr", "path", "rect")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.pictures = 0

    def handle_starttag(self, tag, attrs):
        self.pictures += tag in ("svg", "img")
        self.links += [value for name, value in attrs if name in ("src", "href") and not value.startswith("data:")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.void:
            assert self.open.pop() == tag


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    return tags


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> dict:
    return audit(write_bert(tmp_path_factory.mktemp("bert")), Given(tokens=1000, loss=0.2)).to_json()


def test_the_page_is_complete_and_asks_for_nothing_outside(data):
    assert [t["id"] for t in live_data(write_audit(data))["theorems"]] == [t["id"] for t in data["theorems"]]
    page = without_script(write_audit(data))
    tags = parsed(page)
    assert tags.links == [] and "<script" not in page and "url(" not in page
    assert tags.pictures >= 4 + 4  # two pairs of maps, two spectra for each layer
    text = re.sub(r"<[^>]+>", "", page)
    for each in data["theorems"]:
        assert each["id"].rpartition(".")[2] in text
    for each in data["diagnostics"]:
        assert each["name"] in text
    assert "Each of the 5,344 parameters" in text


def test_text_from_a_file_is_never_markup(data):
    evil = json.loads(json.dumps(data).replace("encoder.layer.0", "<b onload=x>"))
    evil["path"] = evil["family"] = "<script>alert(1)</script>"
    page = without_script(write_audit(evil))
    assert "<script" not in page and "<b onload" not in page
    assert parsed(page).links == []


def test_gaps_are_red_and_named(tmp_path):
    found = audit(write_bert(tmp_path, {**bert_tensors(), "mystery.weight": np.ones((3, 2), np.float32)}))
    page = write_audit(found.to_json())
    assert 'class="claim bad"' in page and "mystery.weight (3, 2)" in page


def test_nan_and_zero_have_a_page_too(tmp_path):
    tensors = bert_tensors()
    tensors["encoder.layer.0.attention.self.query.weight"][:] = np.nan
    zeros = {name: np.zeros_like(tensor) for name, tensor in bert_tensors().items()}
    for name, each in (("nan", tensors), ("zero", zeros)):
        page = write_audit(audit(write_bert(tmp_path / name, each)).to_json())
        assert parsed(page).links == [] and ">nan<" not in page


def test_a_deep_model_shows_some_of_its_layers(tmp_path):
    page = write_audit(audit(write_llama(tmp_path, layers=15)).to_json())
    assert "12 of 15 layers are drawn" in page


def test_what_would_make_a_bound_bite(data):
    compression = next(each for each in data["theorems"] if each["id"] == "bounds.compression")
    assert compression["verdict"] == "vacuous"
    said = bite(compression, 0.2)
    samples = float(re.search(r"about ([\d.e+]+) samples", said)[1])
    # Right to the two digits that are printed: the same bound with that many samples is no longer vacuous.
    bits = compression["factors"][0]["value"]
    assert 0.2 + np.sqrt((bits * np.log(2) + np.log(1 / 0.05)) / (2 * samples)) == pytest.approx(1, rel=0.05)
    layers = [{"name": f"layer {k} attention", "value": 100.0} for k in range(4)]
    vacuous = {"id": "bounds.x", "verdict": "vacuous", "value": 1e4, "trivial": 1.0, "factors": layers}
    assert "about 10 times smaller: 10 in the mean, where it is 100 now" in bite(vacuous)
    assert bite({**vacuous, "verdict": "holds"}) == "" and "<table" in waterfall(vacuous)
    assert waterfall({**vacuous, "factors": []}) == ""


def test_causes_above_all_floats_are_drawn_as_powers_of_ten_with_what_mends_them():
    """A value that JSON cannot hold is null; its logarithm is not."""
    causes = [
        {"name": "1/sqrt(epsilon)", "value": None, "log10": 400.0, "mend": "no command mends it"},
        {"name": "gains", "value": 10.0, "log10": 1.0, "mend": "train with the constraint gain <= 1"},
    ]
    drawn = waterfall(
        {"id": "bounds.normed_stack", "verdict": "vacuous", "value": 401.0, "trivial": 0.5, "factors": causes}
    )
    assert "10^400.0" in drawn and "gain &lt;= 1" in drawn and "multiply to the bound" in drawn
    assert "times too large" not in drawn and "width:0.2%" in drawn
