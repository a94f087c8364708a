"""The language model of the page on generalization: its printed bounds follow from the coded file, and they hold."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from certiformer.bounds import compression
from certiformer.bounds.code_length import read
from certiformer.bounds.numbers import above
from certiformer.errors import BadInput

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script():
    specification = importlib.util.spec_from_file_location("small_language", ROOT / "benchmarks" / "small_language.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def result(script):
    return script.result(script.CODED.read_bytes())


def test_the_bounds_hold_and_are_not_vacuous(script, result):
    """The conditional risk along the stream is what the theorem bounds, and here it is known."""
    assert result.losses.expected_wrong <= result.wrong_bound < 0.2 < 1 - 1 / script.LETTERS
    assert result.losses.bits < result.bits_bound < 1.5 < math.log2(script.LETTERS)
    # No predictor does better than noise, and the stream is near its expectation: 4 standard deviations.
    assert result.losses.expected_wrong >= 0.0875
    assert abs(result.losses.wrong - result.losses.expected_wrong) < 4 * 0.5 / math.sqrt(script.TOKENS)


def test_every_bit_that_depends_on_the_data_is_counted(script, result):
    size = script.CODED.stat().st_size
    assert 8 * (size - 1) < result.bits.file <= 8 * size
    assert result.bits.settings == 4 and result.bits.delimited
    by_hand = math.sqrt(((result.bits.file + 4) * math.log(2) + math.log(1 / 0.025)) / (2 * script.TOKENS))
    assert math.isclose(result.wrong_bound, result.losses.wrong + by_hand, rel_tol=1e-12)


def test_the_page_prints_what_the_file_gives(script, result):
    page = (ROOT / "docs" / "generalization.md").read_text(encoding="utf-8")
    for line in script.report(result).splitlines():
        assert line in page


def test_the_stream_follows_its_law(script):
    letters = script.stream()
    rule = script.table()[letters[2:-1], letters[:-3]]
    agree = (letters[3:] == rule).mean()
    assert abs(agree - (0.9 + 0.1 / 8)) < 4 * 0.33 / math.sqrt(script.TOKENS)  # four standard deviations
    assert set(np.unique(letters)) == set(range(8))


def test_a_prediction_sees_the_past_only(script):
    """Change the last letter of a row: no logit at an earlier place moves."""
    symbols, levels = read(script.CODED.read_bytes(), script.frame().dimension, script.LEVELS)
    model = script.model_of(script.frame().restore(levels[symbols]))
    seen, wanted = script.rows(script.stream())
    assert (seen[:, script.BEFORE + 1 :] == wanted[:, :-1]).all() and (wanted[:-1, -1] == seen[1:, script.BEFORE]).all()
    other = seen[:4096].copy()
    other[:, -1] = (other[:, -1] + 1) % 8
    before, after = (script.logits_of(model, x) for x in (seen[:4096], other))
    assert (before[:, :-1] == after[:, :-1]).all() and (before[:, -1] != after[:, -1]).any()


def test_another_file_is_refused(script):
    with pytest.raises(BadInput, match="file of weights"):
        script.result(script.CODED.read_bytes()[:-1])


def test_a_float_file_of_the_same_model_costs_more(script, result):
    """32 bits for each weight: still not vacuous for this stream, but more than three times the price."""
    stored = above(compression.penalty(compression.Bits(32 * result.weights), compression.Sample(script.TOKENS), 0.025))
    assert 3 < stored / (result.wrong_bound - result.losses.wrong) < 4
