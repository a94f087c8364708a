"""Universality of small checkpoints of four families as the audit says it, with numbers and negative controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audit.checkpoints import WORDS, bert_tensors, write_bert, write_llama
from certiformer.audit import audit, limits
from certiformer.audit.form import Checkpoint
from certiformer.audit.measure import measure
from certiformer.audit.read import read_checkpoint
from certiformer.audit.universality_checks import IDS, universality_checks
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


def verdicts(checkpoint: Checkpoint, tokens: int | None = 12) -> dict:
    answers = {each.id.rpartition(".")[2]: each for each in universality_checks(checkpoint, tokens)}
    assert [f"expressivity.{name}" for name in answers] == list(IDS)
    return answers


@pytest.fixture(scope="module")
def bert(tmp_path_factory) -> Checkpoint:
    return read_checkpoint(write_bert(tmp_path_factory.mktemp("bert")))[0]


def test_bert_without_a_head_is_false_and_with_one_holds(bert):
    bare = verdicts(bert)
    assert bare["words_in_normed_blocks"].verdict == "false" and bare["normed_outputs"].verdict == "holds"
    assert bare["words_in_normed_blocks"].details["because"] == "expressivity.normed_outputs"
    assert bare["score_rank"].verdict == "does-not-apply"
    tied = verdicts(replace(bert, head_tied=True))
    assert tied["words_in_normed_blocks"].verdict == "holds" and tied["normed_outputs"].verdict == "does-not-apply"
    assert f"{2 * (WORDS + 8):,}" in tied["words_in_normed_blocks"].sentence
    # 32 items of 40, rank 16: the root of a half.
    assert tied["score_rank"].value == pytest.approx(0.5**0.5) and tied["score_rank"].value <= 0.5**0.5


def test_llama_depends_on_its_start_token(tmp_path):
    folder = write_llama(tmp_path, layers=2)
    answers = {each.id: each for each in audit(folder).verdicts}
    said = answers["expressivity.words_in_normed_blocks"]
    assert said.verdict == "holds-if" and said.value == 63 / 128
    for start, verdict in ((True, "holds"), (False, "false")):
        again = {each.id: each for each in audit(folder, start_token=start).verdicts}
        assert again["expressivity.words_in_normed_blocks"].verdict == verdict
    shallow = read_checkpoint(write_llama(tmp_path / "one"))[0]
    assert "needs 2" in verdicts(shallow)["words_in_normed_blocks"].sentence


def test_a_wide_table_lifts_the_limit_of_ranks(bert):
    for capped in ({"family": "gemma2"}, {"config": {"final_logit_softcapping": 30.0}}):
        assert "soft cap" in verdicts(replace(bert, head_tied=True, **capped))["score_rank"].sentence
    wide = replace(bert, head_tied=True, width=64)
    assert verdicts(wide)["score_rank"].verdict == "does-not-apply"


def test_our_own_models(tmp_path):
    norm = Norm("pre")
    block = Block(Attention((Heads(2, 4, 4),)), FeedForward(8, "gelu"), norm)
    vectors = Config(Input("continuous", 5, width=1), 8, 1, Readout("all"), blocks=(block,))
    words = Config(Input("ids", 5, vocabulary=3), 8, 2, Readout("all"), blocks=(block,))
    causal = replace(block, attention=Attention((Heads(2, 4, 4),), mask="causal"))
    for name, config, verdict in (
        ("vectors", vectors, "open"),
        ("words", words, "false"),
        ("causal", replace(words, blocks=(causal, causal)), "false"),
        ("registers", replace(words, blocks=(causal, causal), registers=1), "open"),
    ):
        save(Transformer.random(config, seed=0), tmp_path / name)
        answer = next(iter(universality_checks(read_checkpoint(tmp_path / name)[0], 5)))
        assert answer.verdict == verdict, name


@pytest.mark.parametrize(
    "code", [Code("one-hot", offset=0), Code("circle", offset=0, period=7), Code("sinusoidal", offset=0, width=2)]
)
def test_codes_that_are_added_keep_equal_tokens_apart(tmp_path, code):
    """Whatever is not trained is still added: no theorem about equal tokens is about such a model."""
    block = Block(Attention((Heads(1, 4, 4),), mask="causal"), FeedForward(8, "gelu"), Norm("post"))
    config = Config(Input("ids", 5, vocabulary=3), 8, 1, Readout("all"), blocks=(block,), code=code)
    model = Transformer.random(config, seed=0)
    assert len(np.unique(np.round(np.asarray(model(np.zeros(5, int))), 6))) > 1
    save(model, tmp_path / "own")
    said = {each.id.rpartition(".")[2]: each.verdict for each in audit(tmp_path / "own").verdicts}
    assert said["relative_bias_not_universal"] == said["permutation_equivariance"] == "does-not-apply"
    assert said["words_in_normed_blocks"] == "open"
    save(Transformer.random(replace(config, code=Code("circle", offset=0, period=1)), seed=0), tmp_path / "still")
    still = {each.id.rpartition(".")[2]: each.verdict for each in audit(tmp_path / "still").verdicts}
    assert still["relative_bias_not_universal"] == "holds"  # the control: one angle for all tokens says nothing


@pytest.mark.parametrize("kind", ["mean", "sum"])
def test_a_read_out_of_all_tokens_is_another_shape(tmp_path, kind):
    block = Block(Attention((Heads(1, 4, 4),), mask="causal"), FeedForward(8, "gelu"), Norm("post"))
    config = Config(Input("ids", 5, vocabulary=3), 8, 2, Readout("all"), blocks=(block,), code=Code("table"))
    for name, readout, verdict in (("all", Readout("all"), "holds"), (kind, Readout(kind), "open")):
        save(Transformer.random(replace(config, readout=readout), seed=0), tmp_path / name)
        assert verdicts(read_checkpoint(tmp_path / name)[0])["words_in_normed_blocks"].verdict == verdict


def test_maps_between_layers_and_read_out_are_another_shape(tmp_path):
    tensors = {f"bert.{name}": tensor for name, tensor in bert_tensors().items()}
    tensors["cls.predictions.bias"] = np.zeros(WORDS, np.float32)
    for name, verdict in (("bare", "holds"), ("transformed", "open")):
        if name == "transformed":
            tensors["cls.predictions.transform.dense.weight"] = np.ones((16, 16), np.float32)
        answer = verdicts(read_checkpoint(write_bert(tmp_path / name, tensors))[0])["words_in_normed_blocks"]
        assert answer.verdict == verdict


def test_unknown_places_of_norms_are_asked_for(bert):
    answer = verdicts(replace(bert, norm_place=None, head_tied=True))["words_in_normed_blocks"]
    assert answer.verdict == "holds-if" and "--norm-first" in answer.needs[0]


def test_a_checkpoint_that_is_not_finite_gets_no_verdict(tmp_path):
    tensors = bert_tensors()
    tensors["encoder.layer.0.output.dense.bias"][0] = float("nan")
    assert {each.verdict for each in audit(write_bert(tmp_path, tensors)).verdicts} == {"does-not-apply"}


def sharpness(folder, **changes) -> tuple:
    """The verdict on how sharp attention can be, and its value, of a model with norms behind the parts."""
    block = Block(Attention((Heads(1, 4, 4),), mask="causal"), FeedForward(8, "gelu"), changes.pop("norm", Norm("pre")))
    blocks = (block, replace(block, attention=replace(block.attention, **changes)))
    config = Config(Input("ids", 5, vocabulary=3), 8, 2, Readout("all"), blocks=blocks, code=Code("table"))
    save(Transformer.random(config, seed=0), folder)
    answer = {each.id: each for each in audit(folder).verdicts}["expressivity.softmax_temperature_limit"]
    return answer.verdict, answer.value


def test_how_sharp_attention_can_be_is_said_of_all_heads_or_not_at_all(tmp_path):
    verdict, value = sharpness(tmp_path / "pre")
    assert verdict in ("holds", "vacuous") and value > 0  # the control
    # Nothing bounds what the first block reads where norms stand behind the parts alone.
    assert sharpness(tmp_path / "post", norm=Norm("post"))[0] == "holds-if"
    assert sharpness(tmp_path / "hard", kind="hard")[0] == "does-not-apply"


def test_scores_under_rotary_codes_that_scale_are_larger(tmp_path):
    plain, scaled, unknown = (
        read_checkpoint(write_llama(tmp_path / str(number), rope_scaling=said))[0]
        for number, said in enumerate((None, {"type": "yarn", "attention_factor": 1.5}, {"type": "odd"}))
    )
    bounds = [measure(each).layers[0].heads[0].score_bound for each in (plain, scaled, unknown)]
    assert bounds[1] == pytest.approx(1.5**2 * bounds[0]) and bounds[2] is None


def test_a_window_is_all_that_a_head_sees(bert):
    layer = bert.layers[0]
    near = replace(layer, attention=tuple(replace(one, window=3) for one in layer.attention))
    values = [limits.sharpness(each, measure(bert), 12).value for each in (bert, replace(bert, layers=(near,)))]
    assert values[1] == limits.sharpness(bert, measure(bert), 3).value < values[0]


@pytest.mark.parametrize("readout", [Readout("token", 2), Readout("mean"), Readout("register", 0)])
def test_a_model_with_one_output_is_judged_as_one(tmp_path, readout):
    """Reading one token out sees the order; pooling does not. Neither has rows that could be equal."""
    registers = int(readout.kind == "register")
    block = Block(Attention((Heads(1, 4, 4),)), FeedForward(8, "relu"))
    config = Config(Input("ids", 5, vocabulary=3), 8, 1, readout, blocks=(block,), registers=registers)
    model = Transformer.random(config, seed=0)
    save(model, tmp_path / "own")
    said = {each.id.rpartition(".")[2]: each.verdict for each in audit(tmp_path / "own").verdicts}
    blind = readout.kind != "token"
    assert np.allclose(model(np.array([0, 1, 2, 0, 1])), model(np.array([2, 1, 0, 0, 1])), atol=1e-9) == blind
    assert said["permutation_equivariance"] == ("holds" if blind else "does-not-apply")
    assert said["relative_bias_not_universal"] == "does-not-apply" and said["words_in_normed_blocks"] == "open"
