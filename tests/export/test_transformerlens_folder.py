"""The folder for TransformerLens: names, shapes and directions; what `HookedTransformer` makes of it is tested elsewhere."""

from __future__ import annotations

import json

import numpy as np
import safetensors.numpy

from certiformer.export import write
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer


def exported(tmp_path, *masks: str) -> tuple[dict, dict, Transformer]:
    blocks = tuple(
        Block(Attention((Heads(1, 4, 2), Heads(1, 1, 3)), bias=True, mask=mask), FeedForward(2)) for mask in masks
    )
    shape = (Input("ids", 4, vocabulary=3), 5, 2, Readout("all"), (*blocks, Block(None, FeedForward(6))))
    model = Transformer.random(Config(*shape, registers=1, code=Code("table"), dtype="float32"), 0)
    write(model, "transformerlens", tmp_path / "out", {"claim": "It is so."})
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    return config, safetensors.numpy.load_file(tmp_path / "out" / "model.safetensors"), model


def test_parameters_have_their_names_and_shapes(tmp_path):
    config, tensors, model = exported(tmp_path, "causal")
    sizes = config["hooked_transformer"]
    assert (sizes["n_heads"], sizes["d_head"], sizes["d_mlp"], sizes["d_vocab"], sizes["n_ctx"]) == (2, 4, 6, 4, 5)
    assert sizes["normalization_type"] is None and sizes["act_fn"] == "relu" and config["dtype"] == "float32"
    assert tensors["embed.W_E"].shape == (4, 5) and not tensors["pos_embed.W_pos"][0].any()
    assert np.array_equal(tensors["embed.W_E"][3], model.tensors["registers"][0])
    assert tensors["blocks.0.attn.W_Q"].shape == (2, 5, 4) and tensors["blocks.1.mlp.W_in"].shape == (5, 6)
    # A head of size 4 divided its scores by 2, which the queries now do; TransformerLens divides by nothing.
    query = np.asarray(model.tensors["blocks.0.attention.groups.0.query"])[0]
    assert np.array_equal(tensors["blocks.0.attn.W_Q"][0], query / 2) and not sizes["use_attn_scale"]
    assert not tensors["blocks.1.attn.W_O"].any() and tensors["blocks.0.mlp.b_in"][2:].tolist() == [0, 0, 0, 0]


def test_directions_of_single_layers_are_kept(tmp_path):
    config, _, _ = exported(tmp_path / "one", "causal", "causal")
    assert config["hooked_transformer"]["attention_dir"] == "causal" and config["causal_layers"] == []
    config, _, _ = exported(tmp_path / "other", "none", "causal")
    assert config["hooked_transformer"]["attention_dir"] == "bidirectional" and config["causal_layers"] == [1]


def test_the_readme_carries_the_claim_and_at_most_a_dozen_lines_of_code(tmp_path):
    exported(tmp_path, "none")
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "> It is so." in readme and 8 <= readme.split("```")[1].count("\n") <= 14
