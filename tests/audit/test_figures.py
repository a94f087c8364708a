"""Conditions on figures: what is a condition, what is not, and that nothing is ever evaluated."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.checkpoints import bert_tensors, write_bert
from certiformer.audit import audit
from certiformer.audit.compare import comparison
from certiformer.audit.figures import NAMES, figures, parse_condition
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
    assert parse_condition(text).is_met({"alpha": 1.5}) is met


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
        parse_condition("alpha > 1").is_met({"alpha": None})


def test_figures_are_the_largest_of_what_was_measured(tmp_path):
    found = audit(write_bert(tmp_path))
    known = figures(found)
    assert list(known) == list(NAMES)
    heads = [head for layer in found.measurements.layers for head in layer.heads]
    assert known["qk_spectral"] == max(head.qk.spectral for head in heads)
    assert known["coverage"] == 1 and known["layers"] == 2 and known["not_finite"] == 0
    assert known["spectral_norm"] >= max(m.norms.spectral for m in found.measurements.matrices.values())


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
