"""The eight diagnostics: ids, numbers, and each warning on a model that deserves it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from audit.checkpoints import write_bert, write_llama
from certiformer.audit import Given, audit
from certiformer.audit.diagnostics import diagnostics
from certiformer.audit.result import Audit

DOCS = Path(__file__).resolve().parents[2] / "docs" / "diagnostics.md"


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Audit:
    return audit(write_bert(tmp_path_factory.mktemp("bert")))


def again(found: Audit, checkpoint=None, **given) -> dict:
    chosen = found.checkpoint if checkpoint is None else checkpoint
    all_eight = diagnostics(chosen, found.measurements, found.verdicts, Given(**given))
    return {each.id: each for each in all_eight}


def test_there_are_eight_and_each_has_its_entry(bert):
    assert [each.id for each in bert.diagnostics] == [f"E{number}" for number in range(1, 9)]
    entries = re.findall(r"^## (E\d): (.+)$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert entries == [(each.id, each.name) for each in bert.diagnostics]


def test_no_positions_is_a_warning(bert):
    assert again(bert)["E2"].level == "note"
    assert again(bert, replace(bert.checkpoint, positions="none"))["E2"].level == "warning"
    assert again(bert, replace(bert.checkpoint, positions=None))["E2"].level == "warning"


def test_soft_is_not_hard(bert):
    """1/(1 + (n-1) e^(-2S)) at the score bound of the model."""
    layers = tuple(
        replace(layer, heads=tuple(replace(head, score_bound=1.5) for head in layer.heads))
        for layer in bert.measurements.layers
    )
    soft = {
        each.id: each
        for each in diagnostics(bert.checkpoint, replace(bert.measurements, layers=layers), (), Given(length=8))
    }["E3"]
    assert soft.level == "warning"
    assert soft.numbers["left_over"] == pytest.approx(1 - 1 / (1 + 7 * 2.718281828459045**-3), rel=1e-12)


def test_a_longer_input_than_it_was_made_for_is_a_warning(bert):
    assert again(bert, length=12)["E4"].level == "note"
    longer = again(bert, length=13)["E4"]
    assert longer.level == "warning" and "no code" in longer.sentence


@pytest.mark.parametrize(
    ("score", "said", "unsaid"),
    [
        (5.0, "no float type overflows", "float16"),
        (50.0, "float16", "float32"),
        (100.0, "float32", "scores overflow"),
        (1e5, "scores overflow in float16", "scores overflow in float16, float32"),
    ],
)
def test_overflow_is_said_by_float_type(bert, score, said, unsaid):
    layers = tuple(
        replace(layer, heads=tuple(replace(head, score_bound=score) for head in layer.heads))
        for layer in bert.measurements.layers
    )
    found = {
        each.id: each for each in diagnostics(bert.checkpoint, replace(bert.measurements, layers=layers), (), Given())
    }["E5"]
    assert said in found.sentence and unsaid not in found.sentence


def test_quadratic_cost_is_counted(bert):
    cost = again(bert, length=100)["E7"].numbers
    heads, size, layers = 4, 4, 2
    assert cost["scores"] == layers * heads * 100**2
    assert cost["attention"] == layers * heads * 100**2 * 2 * (size + size)
    assert cost["maps"] == layers * 2 * 100 * (4 * 16 * 16 + 2 * 16 * 32)
    assert again(bert, length=100)["E7"].level == "warning" and again(bert, length=10)["E7"].level == "note"


def test_more_context_than_a_token_can_carry_is_a_warning(bert):
    assert again(bert, length=12)["E8"].level == "note"
    assert again(bert, length=1000)["E8"].level == "warning"


def test_unknown_heads_are_said(tmp_path):
    found = audit(write_bert(tmp_path, config={}))
    assert {each.id: each for each in found.diagnostics}["E8"].level == "warning"


def test_random_weights_are_told(tmp_path):
    """Weights that are Gaussian by construction: most products look random, as they are."""
    numbers = audit(write_llama(tmp_path, layers=3)).diagnostics[0].numbers
    assert numbers["like_random"] >= 0.6 * numbers["products"]
