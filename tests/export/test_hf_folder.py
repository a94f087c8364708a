"""The Hugging Face folder: nothing is lost, and the names are those of TransformerLens."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import safetensors
import safetensors.numpy

from certiformer.export import to_hf
from certiformer.export.hf_folder import lens_names
from certiformer.model import Config, Transformer, load
from export.cases import CASES, case, expected, points_of


def read_back(folder) -> Transformer:
    """The original, from the files alone."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    stored = safetensors.numpy.load_file(folder / "model.safetensors")
    tensors = {config["tensors"][name]: tensor for name, tensor in stored.items()}
    return Transformer(Config.from_json(config["certiformer"]), tensors)


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_lost(tmp_path, name):
    model = case(name)
    to_hf(model, tmp_path / "out")
    again = read_back(tmp_path / "out")
    assert again.config == model.config
    assert all(again.tensors[n].tobytes() == np.asarray(t).tobytes() for n, t in model.tensors.items())


def test_a_build_computes_the_same_after_the_way_back(tmp_path, sines):
    model = load(sines)
    to_hf(model, tmp_path / "out")
    points = np.random.default_rng(0).uniform(0, 2 * np.pi, (10_000, 2))
    assert np.array_equal(read_back(tmp_path / "out").evaluate(points), model.evaluate(points))


def test_a_swapped_pair_of_names_is_noticed(tmp_path):
    """The negative control: queries and keys have the same shape, so only the numbers can tell."""
    model = case("plain")
    to_hf(model, tmp_path / "out")
    path = tmp_path / "out" / "config.json"
    text = (
        path.read_text(encoding="utf-8")
        .replace("groups.0.query", "groups.0.k")
        .replace("groups.0.key", "groups.0.query")
    )
    path.write_text(text.replace('groups.0.k"', 'groups.0.key"'), encoding="utf-8")
    assert np.abs(read_back(tmp_path / "out").evaluate(points_of(model.config)) - expected("plain")).max() > 0.1


def test_bfloat16_stays_bfloat16(tmp_path):
    wide = case("plain")
    model = Transformer(dataclasses.replace(wide.config, dtype="bfloat16"), wide.tensors)
    to_hf(model, tmp_path / "out")
    with safetensors.safe_open(tmp_path / "out" / "model.safetensors", "numpy") as file:
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"BF16"}  # noqa: SIM118
        assert file.get_slice("embed.W_E").get_shape() == [2, 5]


def test_the_names_of_transformer_lens():
    names = lens_names(case("ids").config)
    assert len(names) == len(case("ids").tensors)
    for new, old in {
        "embed.W_E": "embed.weight",
        "pos_embed.W_pos": "code.table",
        "blocks.0.attn.W_Q": "blocks.0.attention.groups.0.query",
        "blocks.0.attn.W_O": "blocks.0.attention.groups.0.output",
        "blocks.0.attn.mask": "blocks.0.attention.mask",
        "blocks.0.mlp.W_in": "blocks.0.ffn.up",
        "blocks.0.mlp.b_out": "blocks.0.ffn.down_bias",
        "blocks.1.attn.groups.1.W_V": "blocks.1.attention.groups.1.value",
        "unembed.b_U": "readout.bias",
    }.items():
        assert names[new] == old
    normed = lens_names(case("one block with registers").config)
    assert normed["blocks.0.ln1.w"] == "blocks.0.norm.attention.scale"
    assert normed["blocks.0.ln2.b"] == "blocks.0.norm.ffn.shift"
    assert normed["blocks.0.attn.b_O"] == "blocks.0.attention.output_bias"


def test_the_header_and_the_readme_carry_the_notes(tmp_path):
    notes = {"claim": "It is so.", "model_sha256": "ab"}
    to_hf(case("plain"), tmp_path / "out", notes)
    with safetensors.safe_open(tmp_path / "out" / "model.safetensors", "numpy") as file:
        header = file.metadata()
    assert header is not None and header["format"] == "pt" and header["claim"] == "It is so."
    assert Config.from_json(json.loads(header["certiformer_config"])) == case("plain").config
    readme = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert readme.startswith("---\nlibrary_name: certiformer\n") and "\n---\n" in readme
    assert "> It is so." in readme and "- model_sha256: ab" in readme
    to_hf(case("plain"), tmp_path / "bare")
    assert "Nothing: no proof" in (tmp_path / "bare" / "README.md").read_text(encoding="utf-8")
