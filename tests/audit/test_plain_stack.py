"""The sentence on bounds for bare attention names what the model has that the proof has not, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audit.pre_norm_checkpoint import checkpoint, part, weight
from audit.read.memory import in_memory
from audit.read.test_contract import MADE
from certiformer.audit import audit
from certiformer.audit.form import Checkpoint, Norm
from certiformer.audit.plain_stack import EDELMAN, LAYERS, LOW_RANK, MASKED, ONE_LAYER, STACKS, plain_stacks
from certiformer.audit.read import read_tensors
from certiformer.audit.verdict import Verdict
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer, save

WHOLE = checkpoint(layers=1)
RESIDUAL = {"blocks": [{"attention": {"residual": True}, "ffn": None}], "readout": {"kind": "token"}}
BARE = {"blocks": [{"attention": {"residual": False}, "ffn": None}], "readout": {"kind": "token"}}


def bare(**changes: object) -> Checkpoint:
    """One head of one layer, with one output and nothing beside it."""
    layer = WHOLE.layers[0]
    maps = {name: weight(getattr(layer.attention[0], name).read()[:1]) for name in ("query", "key", "value", "output")}
    attention = replace(layer.attention[0], query_bias=None, **maps)
    plain = replace(
        WHOLE,
        family="certiformer",
        layers=(replace(layer, attention=(attention,), ffn=(), norms={}),),
        norm_place=None,
        final_norm=None,
        head=weight(np.ones((1, 4))),
        config=BARE,
    )
    return replace(plain, **changes)


def verdicts(model: Checkpoint) -> dict[str, Verdict]:
    return {each.id: each for each in plain_stacks(model)}


def without(model: Checkpoint, name: str = ONE_LAYER) -> str:
    found = verdicts(model)[name]
    assert found.verdict == "does-not-apply" and found.sentence.endswith(", which this model has.")
    return found.sentence.partition("without ")[2].removesuffix(", which this model has.")


def test_bare_attention_fails_no_assumption_of_one_layer():
    found = verdicts(bare())
    assert list(found) == [name for name, _ in STACKS]
    for name in (ONE_LAYER, EDELMAN, LOW_RANK):
        assert found[name].verdict == "holds-if" and found[name].needs and "residual" not in found[name].sentence
    # Layers that project their tokens onto a ball are in no file.
    for name in (LAYERS, MASKED):
        assert without(bare(), name) == "tokens that no projection keeps in the unit ball"


NORM = Norm("rms", weight(np.ones(2)))
CASES = {
    "residuals": bare(config=RESIDUAL),
    "an output that is read from several tokens": bare(config=BARE | {"readout": {"kind": "mean"}}),
    "hidden units between the layers": bare(layers=(replace(bare().layers[0], ffn=WHOLE.layers[0].ffn),)),
    "true norms": bare(final_norm=WHOLE.final_norm),
    "true norms (pre-norm)": bare(final_norm=WHOLE.final_norm, norm_place="pre"),
    "biases": part(bare(), "attention", value_bias=weight(np.ones((1, 2)))),
    "capped scores": part(bare(), "attention", cap=50.0),
    "norms of queries and keys": part(bare(), "attention", key_norm=NORM),
    "weights that are not softmax": part(bare(), "attention", softmax=False),
    "attention to another sequence": part(bare(), "attention", cross=True),
    "rotary positions": bare(positions="rope"),
    "score biases": bare(positions="alibi"),
    "a second layer": bare(layers=(replace(bare().layers[0], repeats=2),)),
    "a second output": bare(head=weight(np.ones((2, 4)))),
}


@pytest.mark.parametrize("what", CASES)
def test_the_one_assumption_that_fails_is_the_one_that_is_named(what):
    assert without(CASES[what]) == what


def test_a_key_bias_leaves_the_softmax():
    assert verdicts(part(bare(), "attention", key_bias=weight(np.ones((1, 2)))))[ONE_LAYER].verdict == "holds-if"


def test_heads_are_added_up_by_some_theorems():
    layer = bare().layers[0]
    two = bare(layers=(replace(layer, attention=layer.attention * 2),))
    assert without(two, EDELMAN) == "a second head in a layer" and without(two, LAYERS).startswith("a second head")
    assert verdicts(two)[ONE_LAYER].verdict == verdicts(two)[LOW_RANK].verdict == "holds-if"
    assert "head" not in without(two, MASKED)


def test_a_theorem_on_predicted_tokens_has_many_outputs():
    assert "output" not in without(bare(head=weight(np.ones((9, 4)))), MASKED)
    assert without(bare(head=None, head_tied=True, vocabulary=9)) == "a second output"


def test_what_no_file_says_is_no_property_of_the_model():
    unknown = bare(layers=(replace(bare().layers[0], heads_known=False),))
    assert all("number of heads" in each.sentence for each in plain_stacks(unknown))
    assert all("needs attention" in each.sentence for each in plain_stacks(bare(layers=())))


def test_published_families_have_residuals_and_what_their_files_show():
    made = {name: MADE[name]() for name in ("gpt2", "llama", "t5", "gemma2")}
    read = {name: read_tensors(in_memory(each.tensors(), each.config))[0] for name, each in made.items()}
    assert all(without(each).endswith("hidden units between the layers and residuals") for each in read.values())
    assert "rotary" in without(read["llama"]) and "rotary" not in without(read["gpt2"])
    assert "score biases" in without(read["t5"]) and "another sequence" in without(read["t5"])
    assert "biases, true" in without(read["gpt2"]) and "biases" not in without(read["llama"])
    assert "(sandwich-norm)" in without(read["gemma2"])


@pytest.mark.parametrize("residual", [True, False])
def test_the_config_of_our_models_says_whether_they_have_residuals(residual, tmp_path):
    block = Block(Attention((Heads(1, 2, 2),), residual=residual), FeedForward(3, residual=residual))
    config = Config(Input("continuous", 3, width=2), 4, 1, Readout("token", 0), (block,))
    save(Transformer.random(config, 0), tmp_path)
    found = {each.id: each.sentence for each in audit(tmp_path).verdicts}[ONE_LAYER]
    assert "hidden units" in found and ("residuals" in found) == residual
