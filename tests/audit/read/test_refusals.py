"""What is odd gets one sentence or a right reading: configs of other models, missing parts, ambiguity, strange shapes."""

from __future__ import annotations

import numpy as np
import pytest

from audit.read import synthetic as one
from audit.read import synthetic_more as two
from audit.read.memory import in_memory
from audit.read.test_contract import MADE
from certiformer.audit.form import Checkpoint, Coverage
from certiformer.audit.read import read_tensors
from certiformer.errors import BadInput


def reading(made: one.Synthetic, drop=(), add=None, config=None, **given) -> tuple[Checkpoint, Coverage]:
    tensors = {name: array for name, array in made.tensors().items() if name not in drop} | (add or {})
    said = made.config if config is None else config
    return read_tensors(in_memory(tensors, said), **{**made.given, **given})


def sentence(*args, **kwargs) -> str:
    with pytest.raises(BadInput) as caught:
        reading(*args, **kwargs)
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_without_a_number_of_heads_the_maps_are_one_head_and_it_is_said():
    made = one.bert("")
    checkpoint, coverage = reading(made, config={})
    layer = checkpoint.layers[0]
    assert not layer.heads_known and layer.attention[0].scale is None
    assert layer.attention[0].query.shape == (1, one.D, one.D)
    assert coverage.accounted == coverage.total
    known, _ = reading(made, config={}, heads=one.H)
    assert known.layers[0].heads_known and known.layers[0].attention[0].query.shape == (one.H, one.E, one.D)


@pytest.mark.parametrize("name", ["neox", "bloom", "falcon-new", "falcon-multi-query"])
def test_fused_rows_that_need_the_number_of_heads_are_not_split_without_it(name):
    made = MADE[name]()
    config = {key: value for key, value in made.config.items() if key not in ("num_attention_heads", "n_head")}
    assert "--heads" in sentence(made, config=config)


def test_fewer_keys_than_queries_need_the_number_of_heads():
    made = one.llama()
    assert "--heads" in sentence(made, config={"model_type": "llama"})
    checkpoint, _ = reading(made, config={"model_type": "llama"}, head_size=one.E)
    assert checkpoint.layers[0].attention[0].query.shape[0] == one.H
    made = one.phi3()
    assert "--key-value-heads" in sentence(made, config={"num_attention_heads": one.H})


def test_gemma_and_llama_without_a_config_are_told_apart_or_refused():
    bare = {"num_attention_heads": one.H}
    assert reading(one.llama(), config=bare)[0].family == "llama"  # a head of its own: no Gemma
    assert reading(one.llama("gemma2", around=True), config=bare)[0].family == "gemma2"
    text = sentence(one.llama("gemma"), config=bare)
    assert "--model-type" in text and "Gemma" in text
    assert reading(one.llama("gemma"), config=bare, model_type="gemma")[0].embedding_scale > 1
    assert reading(one.llama("gemma"), config=bare, model_type="llama")[0].embedding_scale == 1


def test_models_with_the_names_of_llama_that_compute_something_else():
    made = one.llama()
    assert "--model-type llama" in sentence(made, config=made.config | {"model_type": "granite"})
    assert "'gemma9'" in sentence(made, config=made.config | {"model_type": "gemma9"})
    assert reading(made, config=made.config | {"model_type": "granite"}, model_type="llama")[0].family == "llama"
    mixed = one.llama("mixtral", experts=2)
    assert "no family" in sentence(mixed, config=mixed.config | {"model_type": "phimoe"})
    shifted = {"model.layers.0.input_layernorm.bias": np.ones(one.D)}
    assert "no family" in sentence(made, add=shifted)
    drop = [name for name in one.bert("").shapes if "attention.output.LayerNorm" in name]
    assert "no family" in sentence(one.bert(""), drop=drop)


def test_a_falcon_config_decides_the_layout_where_names_do_not():
    made = one.falcon(True)
    assert "--key-value-heads" in sentence(made, config={"num_attention_heads": one.H})


def test_albert_without_a_depth():
    made = one.albert()
    assert "--repeats" in sentence(made, config={"num_attention_heads": one.H})
    assert reading(made, config={"num_attention_heads": one.H}, repeats=7)[0].layers[0].repeats == 7


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("bert", {"num_attention_heads": 5}),
        ("bert", {"hidden_size": 16}),
        ("bert", {"num_hidden_layers": 12}),
        ("llama", {"num_key_value_heads": 4}),
        ("llama", {"head_dim": 4}),
        ("llama", {"num_attention_heads": 3}),
        ("gpt2", {"n_layer": 3}),
        ("gpt2", {"n_head": 5}),
        ("phi3", {"num_key_value_heads": 4}),
        ("neox", {"num_attention_heads": 5}),
        ("falcon-new", {"num_kv_heads": 3}),
        ("falcon-multi-query", {"new_decoder_architecture": True, "num_kv_heads": 4}),
        ("t5", {"d_kv": 4}),
        ("t5", {"num_decoder_layers": 2}),
        ("mixtral", {"num_local_experts": 8}),
        ("albert", {"num_hidden_groups": 2}),
        ("bert", {"num_attention_heads": "four"}),
        ("bert", {"num_attention_heads": -4}),
        ("bert", {"layer_norm_eps": 0.0}),
        ("gemma2", {"query_pre_attn_scalar": -1.0}),
    ],
)
def test_a_config_that_contradicts_the_tensors(name, change):
    made = MADE[name]()
    assert len(sentence(made, config=made.config | change)) < 260


def test_layers_that_are_missing():
    made = one.bert("")
    drop = {name for name in made.shapes if name.startswith("encoder.layer.1.output")}
    assert "encoder.layer.1.output.dense.weight" in sentence(made, drop=drop)
    renamed = {name.replace("layer.1", "layer.2"): array for name, array in made.tensors().items() if "layer.1" in name}
    drop = {name for name in made.shapes if "layer.1" in name}
    assert "layer.1." in sentence(made, drop=drop, add=renamed, config={"num_attention_heads": one.H})


def test_what_nobody_knows_is_named_and_not_accounted_for():
    extra = {"bert.encoder.adapter.weight": np.ones((3, 2))}
    _, coverage = reading(one.bert(), add=extra)
    assert coverage.missing == (("bert.encoder.adapter.weight", (3, 2)),)
    assert coverage.total - coverage.accounted == 6


def test_copies_of_tied_tensors_count_once():
    made = one.gpt2(False)
    plain, before = reading(made)
    table = made.tensors()["transformer.wte.weight"]
    tied, coverage = reading(made, add={"lm_head.weight": table.copy()})
    assert tied.head is None and tied.head_tied and coverage.copies == ("lm_head.weight",)
    assert (coverage.total, coverage.accounted) == (before.total, before.accounted)
    assert plain.head_tied
    other, coverage = reading(made, add={"lm_head.weight": table + 1.0})
    assert other.head is not None and not other.head_tied and not coverage.copies
    assert coverage.accounted == coverage.total == before.total + table.size


def test_the_head_of_bert_that_was_written_twice():
    made = one.bert_mlm()
    tensors = made.tensors()
    twice = {
        "cls.predictions.decoder.weight": tensors["bert.embeddings.word_embeddings.weight"].copy(),
        "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].copy(),
    }
    checkpoint, coverage = reading(made, add=twice)
    assert coverage.copies == tuple(sorted(twice)) and coverage.accounted == coverage.total
    assert checkpoint.head_tied and checkpoint.head_bias is not None
    assert (
        checkpoint.head_bias.source.tensor == "cls.predictions.bias" and "cls.predictions.bias" not in checkpoint.others
    )


def test_old_names_of_norms():
    made = one.bert("")
    tensors = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): array
        for name, array in made.tensors().items()
    }
    checkpoint, coverage = read_tensors(in_memory(tensors, made.config))
    assert coverage.accounted == coverage.total and checkpoint.layers[1].norms["ffn"].shift is not None


def test_buffers_are_listed_apart():
    masks = {
        "transformer.h.0.attn.bias": np.tril(np.ones((1, 1, 9, 9))),
        "transformer.h.0.attn.masked_bias": np.array(-1e4),
        "transformer.position_ids": np.arange(9),
    }
    _, coverage = reading(one.gpt2(True), add=masks)
    assert coverage.buffers == tuple(sorted(masks)) and coverage.accounted == coverage.total
    _, coverage = reading(one.llama(), add={"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(2)})
    assert coverage.buffers == ("model.layers.0.self_attn.rotary_emb.inv_freq",)
    # A bias with two axes is no mask.
    _, coverage = reading(one.gpt2(True), add={"transformer.h.0.attn.bias": np.ones((3, 2))})
    assert coverage.missing == (("transformer.h.0.attn.bias", (3, 2)),)


def test_two_models_in_one_file():
    made = one.bert("")
    both = {f"{side}.{name}": array for side in ("query", "document") for name, array in made.tensors().items()}
    with pytest.raises(BadInput, match="--prefix"):
        read_tensors(in_memory(both, made.config))
    checkpoint, coverage = read_tensors(in_memory(both, made.config), prefix="query.")
    assert checkpoint.family == "bert" and coverage.accounted == coverage.total // 2
    assert all(name.startswith("document.") for name, _ in coverage.missing)


def test_unknown_and_quantised_files():
    with pytest.raises(BadInput, match="no family"):
        read_tensors(in_memory({"conv.weight": np.ones((3, 3))}, {}))
    with pytest.raises(BadInput, match="quantised"):
        read_tensors(in_memory({"model.layers.0.self_attn.q_proj.qweight": np.ones((3, 3), np.int64)}, {}))


def test_a_fused_matrix_of_gpt2_that_is_neither_way_round():
    made = one.gpt2(True)
    name = "transformer.h.0.attn.c_attn.weight"
    assert "nanoGPT" in sentence(made, add={name: np.ones((one.D, 2 * one.D))})


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "timm"])
def test_not_finite_and_zero_weights_are_read_as_they_are(name):
    made = MADE[name]()
    for number in (np.nan, np.inf, 0.0):
        tensors = {key: np.full_like(array, number) for key, array in made.tensors().items()}
        checkpoint, coverage = read_tensors(in_memory(tensors, made.config), **made.given)
        assert coverage.accounted == coverage.total
        assert all(np.array_equal(w.read(), np.full(w.shape, number), equal_nan=True) for w in checkpoint.weights())


def test_heads_of_size_one():
    made = one.bert("")
    checkpoint, _ = reading(made, config=made.config | {"num_attention_heads": one.D})
    assert checkpoint.layers[0].attention[0].output.shape == (one.D, one.D, 1)
    shapes = {"h.0.attn.c_attn.weight": (3, 1), "h.0.attn.c_proj.weight": (1, 1), "h.0.mlp.c_fc.weight": (1, 1)}
    shapes |= {"h.0.mlp.c_proj.weight": (1, 1), "wte.weight": (2, 1)}
    tensors = {name: np.full(shape, 2.0) for name, shape in shapes.items()}
    checkpoint, coverage = read_tensors(in_memory(tensors, {"n_head": 1}))
    assert checkpoint.family == "nanogpt" and coverage.accounted == coverage.total == 8
    assert checkpoint.layers[0].attention[0].query.read().tolist() == [[[2.0]]]


def test_half_precision_is_read_in_float64():
    made = one.llama()
    tensors = {name: array.astype(np.float16) for name, array in made.tensors().items()}
    checkpoint, _ = read_tensors(in_memory(tensors, made.config))
    weight = checkpoint.layers[0].attention[0].key
    assert weight.stored == "F16" and weight.read().dtype == np.float64


def test_settings_for_text_of_a_model_of_several_kinds_of_input():
    made = one.llama("gemma3", inner_norms=True, around=True)
    checkpoint, _ = reading(made, config={"model_type": "gemma3", "text_config": made.config})
    assert checkpoint.layers[0].attention[0].query.shape[0] == one.H


JUNK = [None, -1, 0, 1.5, "x", [], {}, True, 10**30, float("nan")]


@pytest.mark.parametrize("name", MADE)
def test_no_config_entry_makes_a_reader_fall_over(name):
    made = MADE[name]()
    tensors = made.tensors()
    keys = {
        *made.config,
        "hidden_act",
        "sliding_window",
        "layer_types",
        "tie_word_embeddings",
        "text_config",
        "model_type",
        "head_dim",
    }
    for key in sorted(keys):
        for value in JUNK:
            try:
                read_tensors(in_memory(tensors, made.config | {key: value}), **made.given)
            except BadInput as problem:
                assert "\n" not in str(problem)


@pytest.mark.parametrize("name", MADE)
def test_no_shape_makes_a_reader_fall_over(name):
    """Every tensor in turn with another shape: one sentence, or a reading whose weights have the shapes they say."""
    made = MADE[name]()
    tensors = made.tensors()
    for key, array in tensors.items():
        for shape in {(), (0,), (1,), (0, 3), (3, 0), (2, 3, 4), array.shape[::-1], (*array.shape, 1), (7, 7)} - {
            array.shape
        }:
            try:
                checkpoint, coverage = read_tensors(
                    in_memory(tensors | {key: np.ones(shape)}, made.config), **made.given
                )
            except BadInput as problem:
                assert "\n" not in str(problem)
            else:
                assert all(weight.read().shape == weight.shape for weight in checkpoint.weights())
                assert coverage.accounted <= coverage.total


@pytest.mark.parametrize("name", MADE)
def test_no_missing_tensor_stays_unseen(name):
    """Every tensor in turn left out: one sentence, or a coverage that is smaller by it."""
    made = MADE[name]()
    tensors = made.tensors()
    for key, array in tensors.items():
        rest = {each: value for each, value in tensors.items() if each != key}
        try:
            _, coverage = read_tensors(in_memory(rest, made.config), **made.given)
        except BadInput:
            continue
        assert coverage.total == sum(value.size for value in tensors.values()) - array.size


def test_norms_that_are_not_told_in_sasrec():
    assert reading(two.sasrec())[0].norm_place is None and "--norm-first" in reading(two.sasrec())[0].notes[0]
    assert reading(two.sasrec(), norm_first=True)[0].norm_place == "pre"
    assert reading(two.sasrec(), norm_first=False)[0].norm_place == "post"


def test_a_graph_of_no_family_is_read_as_single_matrices():
    tensors = {
        "linear_0.w_0": np.ones((3, 5)),
        "conv.w": np.ones((2, 3, 1, 1)),
        "epsilon": np.array(1e-5),
        "axes": np.arange(2),
    }
    checkpoint, coverage = read_tensors(in_memory(tensors, None, "onnx"))
    assert (
        checkpoint.layers == ()
        and set(checkpoint.others) == {"linear_0.w_0", "conv.w", "epsilon"}
        and "neither heads" in checkpoint.notes[0]
    )
    assert coverage.accounted == coverage.total == 22 and coverage.buffers == ("axes",)
    with pytest.raises(BadInput, match="no family"):
        read_tensors(in_memory({"axes": np.arange(2)}, None, "onnx"))


def test_a_graph_that_kept_the_names_of_a_family_is_of_that_family():
    made = one.bert("")
    checkpoint, _ = read_tensors(in_memory(made.tensors(), None, "onnx"), heads=one.H)
    assert checkpoint.family == "bert" and checkpoint.layers[0].heads_known
