"""Models that we saved ourselves: every weight is found, and the form computes what our model computes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from audit.read import evaluate
from certiformer.audit.read import read_checkpoint
from certiformer.errors import BadInput
from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    Transformer,
    save,
)


def made(**changes) -> Transformer:
    heads = (Heads(2, 3, 4), Heads(1, 2, 5))
    attention = Attention(heads, bias=True, mask="causal", **changes)
    block = Block(attention, FeedForward(7), Norm("pre"))
    config = Config(Input("ids", tokens=5, vocabulary=9), 6, 2, Readout("mean"), (block,), code=Code("table"), loops=2)
    return Transformer.random(config, 1)


def test_the_form_computes_the_attention_of_our_model(tmp_path):
    model = made()
    save(model, tmp_path)
    checkpoint, coverage = read_checkpoint(tmp_path)
    assert checkpoint.family == "certiformer" and coverage.accounted == coverage.total == model.parameter_count()
    assert [layer.repeats for layer in checkpoint.layers] == [2] and checkpoint.norm_place == "pre"
    assert checkpoint.embeddings["word"].shape == (9, 6) and checkpoint.head.shape == (2, 6)
    ids = np.array([1, 0, 8, 3, 3])
    (x, between, end, *_), weights = model.states(ids), model.attention_weights(ids)[0]
    layer = checkpoint.layers[0]
    seen = evaluate.normed(layer.norms["attention"], x)
    total = x
    for attention, theirs in zip(layer.attention, weights, strict=True):
        # The model is stored and runs in float64: sums in another order are all that differs.
        assert np.abs(evaluate.weights(attention, seen) - theirs).max() < 1e-13
        total = total + evaluate.output(attention, theirs, seen)
    assert np.abs(total - between).max() < 1e-13
    after = total + evaluate.hidden(layer.ffn[0], evaluate.normed(layer.norms["ffn"], total))
    assert np.abs(after - end).max() < 1e-13


def test_tables_of_score_biases_and_masks(tmp_path):
    model = made(score_bias="toeplitz")
    save(model, tmp_path)
    checkpoint, coverage = read_checkpoint(tmp_path)
    assert coverage.accounted == coverage.total == model.parameter_count()
    assert checkpoint.layers[0].others.keys() == {"score_bias_0", "score_bias_1"}


def test_a_config_of_ours_that_is_not_legal(tmp_path):
    save(made(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(config | {"loops": 0}))
    with pytest.raises(BadInput, match="loops"):
        read_checkpoint(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(config | {"width": 7}))
    with pytest.raises(BadInput):
        read_checkpoint(tmp_path)
