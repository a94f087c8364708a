"""Conditions on figures: what is a condition, what is not, and that nothing is ever evaluated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audit.checkpoints import bert_tensors, write_bert
from certiformer.audit import audit
from certiformer.audit.compare import comparison
from certiformer.audit.figures import NAMES, OF_HEADS, Figure, figure_values, figures, parse_condition, summary
from certiformer.errors import BadInput

DOCS = Path(__file__).resolve().parents[2] / "docs" / "audit.md"


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("alpha > 1", True),
        ("alpha>=1.5", True),
        (" alpha < 1.5 ", False),
        ("alpha <= 15e-1", True),
        ("alpha == 1.5", True),
        ("alpha != 1.5", False),
        ("alpha > -.5", True),
    ],
)
def test_a_condition_is_a_name_a_sign_and_a_number(text, met):
    assert parse_condition(text).is_met(Figure(1.5)) is met


@pytest.mark.parametrize(
    "text",
    [
        "",
        "alpha",
        "alpha >",
        "> 1",
        "alpha > x",
        "alpha > 1 or True",
        "alpha > nan",
        "alpha => 1",
        "__import__('os') > 1",
        "alpha > 1; 2",
        "alpha > 0x10",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(BadInput, match="a condition is"):
        parse_condition(text)


def test_an_unknown_name_and_an_unknown_value_are_refused():
    with pytest.raises(BadInput, match="there is no figure 'norm'.*spectral_norm"):
        parse_condition("norm > 1")
    with pytest.raises(BadInput, match="is not known for this checkpoint"):
        parse_condition("alpha > 1").is_met(Figure(None))


def test_figures_are_the_largest_of_what_was_measured(tmp_path):
    found = audit(write_bert(tmp_path))
    known = figure_values(found)
    assert list(known) == list(NAMES)
    heads = [head for layer in found.measurements.layers for head in layer.heads]
    assert known["qk_spectral"] == max(head.qk.spectral for head in heads)
    assert known["coverage"] == 1 and known["layers"] == 2 and known["not_finite"] == 0
    assert known["spectral_norm"] >= max(m.norms.spectral for m in found.measurements.matrices.values())


def test_an_extreme_figure_says_where_it_is(tmp_path):
    found = audit(write_bert(tmp_path))
    for name in ("qk_spectral", "vo_spectral"):
        figure = figures(found)[name]
        layer, head = (int(part.rpartition(" ")[2]) for part in figure.where.split(", "))
        product = getattr(found.measurements.layers[layer].heads[head], name.partition("_")[0])
        assert product.spectral == figure.value
    sentence = parse_condition("qk_spectral > 0").sentence(figures(found)["qk_spectral"])
    assert figures(found)["qk_spectral"].where in sentence and f"{figures(found)['qk_spectral'].value:.6g}" in sentence


def test_figures_of_heads_are_not_known_where_the_number_of_heads_is_not(tmp_path):
    """The gate that passed: maps read as one head have another norm than heads."""
    known, unknown = audit(write_bert(tmp_path / "known")), audit(write_bert(tmp_path / "bare", config={}))
    assert {name for name, figure in figures(unknown).items() if figure.value is None} >= set(OF_HEADS)
    assert figures(known)["qk_spectral"].value is not None
    for name in OF_HEADS:
        with pytest.raises(BadInput, match=f"{name} is not known .*--heads"):
            parse_condition(f"{name} > 0").is_met(figures(unknown)[name])
    assert parse_condition("coverage < 1").is_met(figures(unknown)["coverage"]) is False
    assert "No file says how many heads" in summary(unknown)[2] and "layer" in summary(known)[2]


def test_three_sentences_sum_it_up(tmp_path):
    read, theorems, _ = summary(audit(write_bert(tmp_path)))
    assert read == "Each of the 5,344 parameters of 2 layers is accounted for."
    numbers = [int(word) for word in theorems.replace(",", "").split() if word.isdigit()]
    assert numbers[0] == sum(numbers[1:]) > 10
    gap = {**bert_tensors(), "mystery.weight": np.ones((3, 2), np.float32)}
    assert summary(audit(write_bert(tmp_path / "gap", gap)))[0].startswith(
        "6 of 5,350 parameters are not accounted for"
    )


def test_every_figure_is_documented():
    page = DOCS.read_text(encoding="utf-8")
    assert [name for name in NAMES if f"| `{name}` |" not in page] == []


def test_two_checkpoints_are_compared_by_figures_layers_and_verdicts(tmp_path):
    tensors = bert_tensors()
    larger = {name: (tensor * 3 if "query.weight" in name else tensor) for name, tensor in tensors.items()}
    first, second = (audit(write_bert(tmp_path / name, each)) for name, each in (("a", tensors), ("b", larger)))
    found = comparison(first, second)
    ours, theirs = found["figures"]["qk_spectral"]
    assert theirs == pytest.approx(3 * ours, rel=1e-6)  # tripled in float32
    assert found["figures"]["vo_spectral"][0] == found["figures"]["vo_spectral"][1]
    assert len(found["layers"]) == 2
    changed = {each["id"] for each in found["theorems"]}
    assert "bounds.attention_lipschitz" in changed and "bounds.compression" not in changed
