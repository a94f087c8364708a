"""GPT-2, Llama and Phi-3 folders, run by our own NumPy versions of the architectures, against the interpreter."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import safetensors.numpy

from certiformer.errors import BadInput
from certiformer.export import write
from certiformer.export.gpt2_folder import gpt2_files
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer
from export import stock_reference
from export.stock_cases import CASES, LENGTH, case, same_answers, tokens_of

KINDS = ("gpt2", "llama", "phi3")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CASES)
def test_every_token_is_the_interpreters(tmp_path, kind, name):
    this = case(name)
    folder = this.export(kind, tmp_path / "out")
    for xs in this.inputs():
        logits = stock_reference.logits(folder, this.ids(xs))[1:]
        assert same_answers(this.read(logits), this.answers(xs)), xs


def test_float64_programs_become_gpt2(tmp_path):
    this = case("pairs seen", "float64")
    folder = this.export("gpt2", tmp_path / "out")
    assert all(
        same_answers(this.read(stock_reference.logits(folder, this.ids(xs))[1:]), this.answers(xs))
        for xs in this.inputs()
    )


@pytest.mark.parametrize("kind", ["llama", "phi3"])
def test_the_norms_of_llama_and_phi3_change_no_bit(tmp_path, kind):
    """The logits are those of the model itself, in float32, bit for bit: small integers and sums that are exact."""
    this = case("shift")
    folder = this.export(kind, tmp_path / "out")
    for xs in this.inputs():
        ids = np.array([this.ids(xs)[1:]])
        wanted = this.model.evaluate(ids).reshape(len(xs), -1)
        got = stock_reference.logits(folder, this.ids(xs))[1:, list(this.labels.outputs)]
        assert got.dtype == np.float32 and np.array_equal(got, wanted)


@pytest.mark.parametrize("kind", KINDS)
def test_without_the_pins_the_answers_are_wrong(tmp_path, kind):
    """The negative control: the same folder with constants of 1 is no identity any more."""
    this = case("hist of the prefix")
    folder = this.export(kind, tmp_path / "out")
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    name = "transformer.wte.weight" if kind == "gpt2" else "model.embed_tokens.weight"
    pins = np.abs(tensors[name]) > 1000.0  # no number of the program is so large
    assert pins.any()
    tensors[name] = np.where(pins, np.sign(tensors[name]), tensors[name])
    safetensors.numpy.save_file(tensors, folder / "model.safetensors")
    with np.errstate(over="ignore", invalid="ignore"):
        answers = [
            same_answers(this.read(stock_reference.logits(folder, this.ids(xs))[1:]), this.answers(xs))
            for xs in this.inputs()
        ]
    assert not all(answers)


@pytest.mark.parametrize("kind", KINDS)
def test_other_ids_never_win_and_outputs_that_are_no_inputs_poison(tmp_path, kind):
    this = case("hist of the prefix")
    folder = this.export(kind, tmp_path / "out")
    logits = stock_reference.logits(folder, this.ids(["a", "b"]))
    outputs = list(this.labels.outputs)
    others = [i for i in range(logits.shape[1]) if i not in outputs]
    assert others and logits[:, others].max() < logits[:, outputs].min()
    fed = [i for i in outputs if i > this.labels.start][0]
    with np.errstate(invalid="ignore"):
        assert np.isnan(stock_reference.logits(folder, [this.labels.start, fed])[1]).all()


def test_the_files_say_what_they_are(tmp_path):
    this = case("shift")
    for kind in KINDS:
        folder = this.export(kind, tmp_path / kind)
        assert sorted(p.name for p in folder.iterdir()) == [
            "README.md",
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "tokenizer_config.json",
            "tokens.json",
        ]
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        assert config["model_type"] == kind and "auto_map" not in config
        tokens = tokens_of(folder)
        assert [entry["value"] for entry in tokens["inputs"]] == ["a", "b", "c"] and tokens["start"] == 3
        assert tokens["outputs"][-1]["text"] == "<undefined>" and tokens["outputs"][0]["id"] == 0
        words = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
        assert words == {"a": 0, "b": 1, "c": 2, "<bos>": 3, "<undefined>": 4}


def _model(**changes) -> Transformer:
    """A small causal model over ids with random weights."""
    parts = {
        "input": Input("ids", 4, vocabulary=3),
        "width": 5,
        "outputs": 3,
        "readout": Readout("all"),
        "blocks": (Block(Attention((Heads(2, 4, 2), Heads(1, 1, 3)), bias=True, mask="causal"), FeedForward(6)),),
        "registers": 1,
        "code": Code("table"),
        **changes,
    }
    return Transformer.random(Config(**parts), 3)


def test_any_model_of_the_form_becomes_gpt2(tmp_path):
    """No program, random weights, groups of heads of different sizes, two loops."""
    model = _model(loops=2)
    write(model, "gpt2", tmp_path / "out", {})
    for ids in ([0], [2, 1], [1, 0, 2, 2]):
        wanted = model.evaluate(np.array([ids])).reshape(len(ids), 3)
        got = stock_reference.logits(tmp_path / "out", [3, *ids])[1:, :3]
        assert np.abs(got - wanted).max() < 1e-8  # float64; the README states a bound below 2^-10 of the largest logit


def test_biases_and_integer_positions_become_llama(tmp_path):
    """Random integers small enough that all sums are exact: output biases, value biases, several groups."""
    wide = _model(dtype="float32")
    generator = np.random.default_rng(0)
    tensors = {name: generator.integers(-2, 3, tensor.shape) for name, tensor in wide.tensors.items()}
    model = Transformer(wide.config, tensors)
    assert np.asarray(model.tensors["blocks.0.attention.output_bias"]).any()
    for kind in ("llama", "phi3"):
        write(model, kind, tmp_path / kind, {})
        for ids in ([0], [2, 1], [1, 0, 2, 2]):
            wanted = model.evaluate(np.array([ids])).reshape(len(ids), 3)
            got = stock_reference.logits(tmp_path / kind, [3, *ids])[1:, :3]
            assert np.abs(got - wanted).max() < 1e-4 * np.abs(wanted).max()  # float32 in another order


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"blocks": (Block(Attention((Heads(1, 1, 1),))),)}, "block 0 looks ahead"),
        ({"blocks": (Block(None, FeedForward(2), Norm("pre")),)}, "block 0 has a norm"),
        ({"blocks": (Block(Attention((Heads(1, 1, 1),), "hard", mask="causal")),)}, "hard attention"),
        ({"blocks": (Block(Attention((Heads(1, 3, 1),), mask="causal")),)}, "not a power of two"),
        ({"blocks": (Block(None, FeedForward(2, "gelu")),)}, "gelu units"),
        ({"blocks": (Block(None, FeedForward(2, residual=False)),)}, "without a residual"),
        ({"registers": 0}, "0 registers"),
        ({"readout": Readout("mean")}, "the read-out is mean"),
        ({"input": Input("continuous", 2, width=1), "code": Code()}, "not ids"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_is_refused_in_one_sentence(tmp_path, kind, changes, reason):
    with pytest.raises(BadInput, match=reason):
        write(_model(**changes), kind, tmp_path / "out", {})
    assert not (tmp_path / "out").exists()


def test_llama_refuses_float64_and_positions_without_a_grid(tmp_path):
    with pytest.raises(BadInput, match="--dtype float32"):
        write(_model(), "llama", tmp_path / "out", {})
    waves = _model(dtype="float32", code=Code("sinusoidal", offset=0, width=4))
    with pytest.raises(BadInput, match="cannot add up"):
        write(waves, "phi3", tmp_path / "out", {})


def test_gpt2_refuses_what_it_cannot_prove():
    """Weights so large that rounding drowns the logits."""
    model = _model(dtype="float64")
    large = {name: np.asarray(tensor) * 1e6 for name, tensor in model.tensors.items()}
    with pytest.raises(BadInput, match="cannot be"):
        gpt2_files(Transformer(model.config, large), {})


def test_labels_of_another_model_are_refused(tmp_path):
    this = case("shift")
    labels = dataclasses.replace(this.labels, outputs=this.labels.outputs[:-1])
    with pytest.raises(BadInput, match="4 outputs|3 outputs"):
        write(this.model, "gpt2", tmp_path / "out", {}, labels=labels)


def test_longer_programs_keep_their_answers(tmp_path):
    this = case("pairs seen", "float32", 40)
    folder = this.export("llama", tmp_path / "out")
    xs = ["a", "b", "b", "c"] * 10
    assert len(xs) > LENGTH
    assert this.read(stock_reference.logits(folder, this.ids(xs))[1:]) == this.answers(xs)
