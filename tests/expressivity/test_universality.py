"""Verdicts on shapes: each hypothesis on a shape where it holds and on one where it fails, with the error that is lost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.expressivity.universality import ModelShape, judge, needed_width
from certiformer.expressivity.word_network import FLOATS, NormedShape, outputs
from certiformer.expressivity.words_in_normed_blocks import word_network

LAYER, RMS = frozenset({"layer"}), frozenset({"rms"})
BERT = ModelShape(
    "post", LAYER, frozenset({"gelu"}), False, "learned", 12, 768, 64, 64, "tied", 30_522, "layer", 30_522, 512
)
GPT2 = replace(BERT, place="pre", units=frozenset({"gelu-tanh"}), causal=True, outputs=50_257, letters=50_257)
LLAMA = ModelShape(
    "pre", RMS, frozenset({"silu"}), True, "rope", 32, 4096, 128, 128, "own", 32_000, "rms", 32_000, 4096
)
SASREC = ModelShape(
    "pre", LAYER, frozenset({"relu"}), True, "learned", 2, 50, 50, 50, "tied", 12_101, "layer", 12_101, 50
)
GSASREC = replace(SASREC, place="queries", projected=False)


@pytest.mark.parametrize("shape", [BERT, GPT2, SASREC, GSASREC, replace(LLAMA, start=True)])
def test_the_families_hold_and_name_what_grows(shape):
    answer = judge(shape)
    assert answer.verdict == "holds" and answer.missed is None
    assert f"{needed_width(shape):,}" in answer.sentence and "hidden units" in answer.sentence
    assert ("prefix map" in answer.sentence) == shape.causal


def test_llama_needs_its_start_token():
    unknown, without = judge(LLAMA), judge(replace(LLAMA, start=False))
    assert unknown.verdict == "holds-if" and "--set start_token=true" in unknown.needs[0]
    assert without.verdict == "false" and without.because == "expressivity.relative_bias_not_universal"
    assert unknown.missed == without.missed == 4095 / 8192


@pytest.mark.parametrize(
    ("change", "missed"),
    [
        ({"positions": "none"}, 511 / 1024),
        ({"positions": "rope", "start": False}, 511 / 1024),
        ({"read_out": "none"}, 1.0),
        ({"windows": (40,) * 12}, 0.5),
    ],
)
def test_false_with_a_number(change, missed):
    answer = judge(replace(BERT, **change))
    assert (answer.verdict, answer.missed) == ("false", missed)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"positions": "sinusoidal"}, "sinusoidal"),
        ({"positions": "rope"}, "all tokens in sight"),
        ({"place": "sandwich"}, "sandwich"),
        ({"units": frozenset({"elu"})}, "elu units"),
        ({"units": frozenset()}, "no units"),
        ({"norms": LAYER | RMS}, "several kinds"),
        ({"value_size": 1}, "heads of size 64 and 1"),
        ({"value_size": 3, "projected": False}, "heads of size 64 and 3"),
        ({"layers": 1, "place": "parallel"}, "needs 2"),
        ({"windows": (400,) * 12}, "windows"),
        ({"oddities": ("experts",)}, "experts"),
        ({"positions": "none", "windows": (400,) * 12}, "none positions"),
        ({"positions": "none", "score_biases": True}, "none positions"),
    ],
)
def test_open_names_what_is_in_the_way(change, word):
    answer = judge(replace(BERT, **change))
    assert answer.verdict == "open" and word in answer.sentence


@pytest.mark.parametrize("fact", ["place", "causal", "positions", "key_size"])
def test_what_no_file_says_is_asked_for(fact):
    answer = judge(replace(BERT, **{fact: None}))
    assert answer.verdict == "holds-if" and len(answer.needs) == 1


def test_an_rms_norm_at_the_end_needs_no_read_out():
    assert judge(replace(LLAMA, start=True, read_out="none")).verdict == "holds"


def test_the_number_of_the_window_is_lost_by_a_real_network():
    """Two words that differ where the last token cannot hear have equal outputs there: half of the spread is lost."""
    shape = NormedShape("pre", "layer", 1e-5, "gelu", causal=True)
    network = word_network(shape, lambda w, i: (w[0],), letters=2, longest=2)
    alone = [outputs(network, word[1:], FLOATS)[-1] for word in [(0, 1), (1, 1)]]  # window 1: itself only
    assert np.array_equal(alone[0], alone[1])
    assert max(abs(alone[0][0] - 0), abs(alone[1][0] - 1)) >= 0.5
