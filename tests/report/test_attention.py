"""Attention maps: the numbers are those of the model, whatever is left out is said."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer
from certiformer.report.attention import attention
from certiformer.search import report_attention
from certiformer.search.report_attention import MAX_HEADS, MAX_KEYS, attention_picture


def model(
    heads: int = 1, registers: int = 0, tokens: int = 2, readout: Readout | None = None, blocks: int = 1
) -> Transformer:
    block = Block(Attention((Heads(heads, 2, 2),)), FeedForward(3))
    shape = Input("continuous", tokens, width=1)
    return Transformer.random(
        Config(shape, 4, 1, readout or Readout("all"), blocks * (block,), registers=registers), seed=3
    )


PLACES = {"in the middle": np.array([0.1, 0.2]), "elsewhere": np.array([0.9, -0.4])}


def test_small_heads_are_shown_as_they_are():
    network = model(heads=2)
    picture = attention_picture(network, PLACES)
    assert [head["name"] for head in picture["heads"]] == ["Head 1", "Head 2"]
    for head, weights in zip(
        picture["heads"], network.attention_weights(PLACES["elsewhere"].reshape(2, 1))[0][0], strict=True
    ):
        drawn = head["maps"][1]
        assert (drawn["rows"], drawn["columns"]) == (["x1", "x2"], ["x1", "x2"])
        np.testing.assert_allclose(drawn["values"], weights, rtol=1e-12)
    assert "elsewhere" in attention(picture) and "gather" not in picture["caption"]


def test_many_registers_are_added_up():
    network = model(registers=50, readout=Readout("token", 1))
    (head,) = attention_picture(network, PLACES)["heads"]
    (drawn, _) = head["maps"]
    weights = network.attention_weights(PLACES["in the middle"].reshape(2, 1))[0][0][0, 51]
    assert drawn["rows"] == ["x2"] and len(drawn["columns"]) == MAX_KEYS and drawn["columns"][-1] == "43 others"
    assert sum(drawn["values"][0]) == pytest.approx(1.0, abs=1e-12)
    assert max(drawn["values"][0][:-1]) == pytest.approx(weights.max(), rel=1e-12)


def test_of_many_heads_those_that_change_are_shown():
    picture = attention_picture(model(heads=30), PLACES)
    assert len(picture["heads"]) == MAX_HEADS and "12 heads of 30" in picture["caption"]
    names = [int(head["name"].split()[1]) for head in picture["heads"]]
    assert names == sorted(names)


def test_heads_that_ignore_the_input_are_said_to_gather():
    network = model(heads=2)
    still = {name: np.zeros_like(t) if name.endswith(".query") else t for name, t in network.tensors.items()}
    assert "these heads gather" in attention_picture(Transformer(network.config, still), PLACES)["caption"]


def test_every_block_has_its_heads():
    picture = attention_picture(model(heads=1, blocks=2), PLACES)
    assert [head["name"] for head in picture["heads"]] == ["Head 1 of block 1", "Head 1 of block 2"]


def test_what_cannot_be_drawn_is_left_out(monkeypatch):
    plain = Config(Input("continuous", 2, width=1), 4, 1, Readout("all"), (Block(None, FeedForward(3)),))
    assert attention_picture(Transformer.random(plain, seed=0), PLACES) is None
    monkeypatch.setattr(report_attention, "MAX_WEIGHTS", 3)
    assert attention_picture(model(), PLACES) is None


def test_names_are_escaped_and_odd_weights_survive():
    drawn = {"rows": ["<q>"], "columns": ["<k>", "b"], "values": [[-0.25, 1.5]]}
    table = {"rows": ["<q>", "r"], "columns": ["<k>", "b"], "values": [[0.2, 0.8], [1.0, 0.0]]}
    text = attention(
        {"title": "t", "caption": "", "inputs": ["<i>", "j"], "heads": [{"name": "<h>", "maps": [drawn, table]}]}
    )
    assert not any(f"<{letter}>" in text for letter in "qkh") and "&lt;i&gt;" in text
    assert "width:0.0%" in text and "width:100.0%" in text and "opacity:0.800" in text
