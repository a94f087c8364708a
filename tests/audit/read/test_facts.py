"""What shapes and counts do not show: which norm is which, gate or up, windows, repeats, offsets, scales."""

from __future__ import annotations

import numpy as np
import pytest

from audit.read import synthetic as one
from audit.read import synthetic_more as two
from audit.read.memory import in_memory
from audit.read.test_contract import MADE
from certiformer.audit.form import Checkpoint
from certiformer.audit.read import read_tensors
from certiformer.audit.read.names import names_of
from certiformer.errors import BadInput


def reading(made: one.Synthetic, **more) -> Checkpoint:
    return read_tensors(in_memory(made.tensors(), made.config | more), **made.given)[0]


def tensors_of(norms) -> dict[str, str]:
    """The last two words of the tensor that every norm comes from."""
    return {key: norm.gain.source.tensor.split(".")[-2] for key, norm in norms.items()}


def test_norms_before_and_around():
    before = {"attention": "input_layernorm", "ffn": "post_attention_layernorm"}
    assert tensors_of(reading(MADE["llama"]()).layers[0].norms) == before
    assert tensors_of(reading(MADE["gemma3"]()).layers[0].norms) == {
        "attention": "input_layernorm",
        "attention_post": "post_attention_layernorm",
        "ffn": "pre_feedforward_layernorm",
        "ffn_post": "post_feedforward_layernorm",
    }
    assert tensors_of(reading(MADE["falcon-new"]()).layers[0].norms) == {"attention": "ln_attn", "ffn": "ln_mlp"}
    assert tensors_of(reading(MADE["falcon-multi-query"]()).layers[0].norms) == {"attention": "input_layernorm"}
    places = {
        name: reading(MADE[name]()).norm_place
        for name in ("llama", "gemma2", "bert", "gptj", "neox", "falcon-new", "gpt2")
    }
    assert places == {
        "llama": "pre", "gemma2": "sandwich", "bert": "post", "gptj": "parallel", "neox": "parallel", "falcon-new": "parallel",
        "gpt2": "pre",
    }  # fmt: skip
    assert reading(MADE["neox"](), use_parallel_residual=False).norm_place == "pre"
    assert reading(MADE["opt"](), do_layer_norm_before=False).norm_place == "post"


def test_norms_of_a_torch_decoder():
    made = two.torch_encoder()
    new = {name.replace("encoder.", "decoder."): array for name, array in made.tensors().items()}
    new["decoder.layers.0.multihead_attn.in_proj_weight"] = np.ones((3 * one.D, one.D))
    new["decoder.layers.0.multihead_attn.out_proj.weight"] = np.ones((one.D, one.D))
    new["decoder.layers.0.norm3.weight"] = np.ones(one.D)
    checkpoint, coverage = read_tensors(in_memory(new, None), heads=one.H)
    assert coverage.accounted == coverage.total
    assert tensors_of(checkpoint.layers[0].norms) == {"attention": "norm1", "cross": "norm2", "ffn": "norm3"}


def test_gates():
    made = MADE["phi3"]()
    both = made.tensors()["model.layers.0.mlp.gate_up_proj.weight"]
    ffn = reading(made).layers[0].ffn[0]
    assert np.array_equal(ffn.gate.read(), both[: one.F]) and np.array_equal(ffn.up.read(), both[one.F :])
    names = {"gate": "w1", "up": "w3", "down": "w2"}
    for number, ffn in enumerate(reading(MADE["mixtral"]()).layers[0].ffn):
        for role, name in names.items():
            assert getattr(ffn, role).source.tensor.endswith(f"experts.{number}.{name}.weight")
    ffn = reading(MADE["t5-gated"]()).layers[0].ffn[0]
    assert ffn.gate.source.tensor.endswith("wi_0.weight") and ffn.activation == "gelu-tanh"


def test_shared_layers():
    made = one.albert()
    assert reading(made).layers[0].repeats == 12
    # Seven layers in five groups: floor(5 j / 7) for j = 0, ..., 6 is 0, 0, 1, 2, 2, 3, 4.
    layer = {name: array for name, array in made.tensors().items() if "groups.0" in name}
    more = {name.replace("groups.0", f"groups.{i}"): array for i in range(1, 5) for name, array in layer.items()}
    config = made.config | {"num_hidden_layers": 7, "num_hidden_groups": 5}
    checkpoint, _ = read_tensors(in_memory(made.tensors() | more, config))
    assert [layer.repeats for layer in checkpoint.layers] == [2, 1, 2, 1, 1]


@pytest.mark.parametrize(
    ("name", "config", "window"),
    [
        ("mistral", {"sliding_window": 8}, 8),
        ("mistral", {"sliding_window": None}, None),
        ("qwen2", {"sliding_window": 8, "use_sliding_window": False}, None),
        ("gemma2", {"sliding_window": 8, "layer_types": ["full_attention"]}, None),
        ("gemma2", {"sliding_window": 8, "layer_types": ["sliding_attention"]}, 8),
        ("gemma2", {"sliding_window": 8}, 8),  # the second of every two layers has none
        ("gemma3", {"sliding_window": 8, "sliding_window_pattern": 1}, None),
    ],
)
def test_windows(name, config, window):
    assert reading(MADE[name](), **config).layers[0].attention[0].window == window


def test_scales_and_caps():
    assert (
        reading(MADE["gemma2"](), query_pre_attn_scalar=16, attn_logit_softcapping=50.0).layers[0].attention[0].scale
        == 0.25
    )
    assert reading(MADE["gemma2"](), attn_logit_softcapping=50.0).layers[0].attention[0].cap == 50.0
    assert reading(MADE["llama"]()).layers[0].attention[0].scale == one.E**-0.5
    assert reading(MADE["gpt2"](), scale_attn_weights=False).layers[0].attention[0].scale == 1.0
    t5 = reading(MADE["t5"]())
    assert [attention.scale for layer in t5.layers for attention in layer.attention] == [1.0, 1.0, 1.0]
    assert [attention.cross for layer in t5.layers for attention in layer.attention] == [False, False, True]
    assert [attention.causal for layer in t5.layers for attention in layer.attention] == [False, True, False]


def test_embeddings_and_contexts():
    found = {
        name: reading(MADE[name]()) for name in ("gemma", "roberta", "sasrec", "gsasrec", "opt", "gpt2", "vit", "llama")
    }
    assert found["gemma"].embedding_scale == found["sasrec"].embedding_scale == one.D**0.5
    assert found["llama"].embedding_scale == 1.0
    # RoBERTa keeps two rows before the first position, OPT too, SASRec one for padding.
    assert (found["roberta"].context, found["opt"].context, found["sasrec"].context) == (one.P - 2, one.P, one.P)
    assert found["gpt2"].context == found["vit"].context == one.P and found["gpt2"].vocabulary == one.V
    assert found["gsasrec"].norm_place == "queries" and found["sasrec"].norm_place is None


def test_causality():
    causal = {
        name: reading(MADE[name]()).layers[0].attention[0].causal
        for name in ("bert", "gpt2", "vit", "recbole-sasrec", "recbole-bert4rec", "torch-encoder")
    }
    assert causal == {
        "bert": False,
        "gpt2": True,
        "vit": False,
        "recbole-sasrec": True,
        "recbole-bert4rec": False,
        "torch-encoder": None,
    }
    assert reading(MADE["bert"](), is_decoder=True).layers[0].attention[0].causal


def test_a_norm_of_another_width_is_refused():
    made = MADE["llama"]()
    tensors = made.tensors() | {"model.layers.0.post_attention_layernorm.weight": np.ones(5)}
    with pytest.raises(BadInput, match=r"post_attention_layernorm.*\(5,\)"):
        read_tensors(in_memory(tensors, made.config))


def test_a_part_that_is_taken_twice_does_not_hide_one_that_is_not():
    names = names_of(in_memory({"a": np.arange(4.0), "b": np.ones(3)}, None))
    for part in ("first", "first", "second"):
        names.take("a", (2,), change=lambda array: array[:2], part=part)
    coverage = names.coverage()
    assert (coverage.total, coverage.accounted) == (7, 0)
    assert coverage.missing == (("a", (4,)), ("b", (3,)))
