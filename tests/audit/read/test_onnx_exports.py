"""Real exports: what is read from the ONNX file is, number by number, what is read from the safetensors of the same model.

Tiny random models of `transformers` and torch are exported by torch.jit and by torch.export. The readers of safetensors
are compared with running models elsewhere; here the graph has to lead to the same weights in the same places."""

from __future__ import annotations

import numpy as np
import pytest

from audit.read.transformer_cases import CASES, TOKENS
from certiformer.audit.read import onnx_uses, read_checkpoint

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
onnx = pytest.importorskip("onnx")
pytestmark = pytest.mark.filterwarnings("ignore")

# All families of the readers whose names both exporters keep. Gemma is not among them: its gains 1 + w are computed by the
# exporter. Nor is Mixtral: `transformers` 5 has its experts in one tensor.
SCRIPTED = ("bert", "roberta", "distilbert", "albert", "gpt2", "llama", "mistral", "qwen2", "qwen3", "phi3", "neox", "bloom",
            "falcon-new", "falcon-old", "opt", "gptj", "vit")  # fmt: skip
EXPORTED = ("bert", "albert", "gpt2", "llama")


def model_of(name: str, folder, trained: bool = True):
    """A tiny model with the usual numbers of an untrained one, or with others; saved in a folder."""
    case = CASES[name]
    torch.manual_seed(0)
    config = getattr(transformers, case.config)(**case.sizes, attn_implementation="eager")
    model = getattr(transformers, case.model)(config).eval()
    with torch.no_grad():
        for weight in model.parameters() if trained else ():
            weight.copy_(torch.randn_like(weight))
    model.save_pretrained(folder)
    model.config.use_cache = False  # caches cannot be exported
    return model


def export(model, folder, name: str = "", dynamo: bool = False, **options):
    """The folder with the graph and the config."""
    folder.mkdir()
    model.config.save_pretrained(folder)
    if name == "vit":
        inputs, more = torch.randn(1, 3, 8, 8), {}
    else:
        inputs = torch.randint(2, 40, (2, TOKENS))
        more = {"attention_mask": torch.ones_like(inputs)}
    if dynamo:
        pytest.importorskip("onnxscript")
        # Sides that may change: with fixed ones the exporter computes tables of positions away.
        sides = {0: torch.export.Dim("batch"), 1: torch.export.Dim("tokens", min=2, max=16)}
        options |= {"external_data": False, "dynamic_shapes": {"input_ids": sides, "attention_mask": sides}}
    torch.onnx.export(
        model, (inputs,), f=str(folder / "model.onnx"), kwargs=more, dynamo=dynamo, verbose=False, **options
    )
    return folder


def assert_same(exported, saved, **given) -> None:
    (mine, coverage), (theirs, whole) = (read_checkpoint(each, **given) for each in (exported, saved))
    assert mine.family == theirs.family
    for one, other in zip(mine.weights(), theirs.weights(), strict=True):
        assert one.stored == other.stored and np.array_equal(one.read(), other.read()), other.source.tensor
    assert coverage.accounted == coverage.total == whole.total and not coverage.missing
    assert [(layer.repeats, layer.heads_known) for layer in mine.layers] == [
        (layer.repeats, layer.heads_known) for layer in theirs.layers
    ]
    for field in ("width", "positions", "norm_place", "context", "vocabulary", "head_tied"):
        assert getattr(mine, field) == getattr(theirs, field), field


@pytest.mark.parametrize("name", SCRIPTED)
def test_torch_jit(name, tmp_path):
    model = model_of(name, tmp_path / "saved")
    assert_same(export(model, tmp_path / "exported", name), tmp_path / "saved")


@pytest.mark.parametrize("name", EXPORTED)
def test_torch_export(name, tmp_path):
    model = model_of(name, tmp_path / "saved")
    assert_same(export(model, tmp_path / "exported", name, dynamo=True), tmp_path / "saved")


# torch.export leaves out a bias of zeros where it writes a Gemm, so that an untrained GPT-2 has lost some of its own.
@pytest.mark.parametrize(
    ("name", "dynamo"), [("bert", False), ("llama", False), ("gpt2", False), ("bert", True), ("llama", True)]
)
def test_untrained_models_whose_equal_vectors_are_stored_once(name, dynamo, tmp_path):
    model = model_of(name, tmp_path / "saved", trained=False)
    exported = export(model, tmp_path / "exported", dynamo=dynamo)
    assert_same(exported, tmp_path / "saved")
    made = [weight.source.made for weight in read_checkpoint(exported)[0].weights()]
    assert made.count("equal numbers, stored once") >= 4


OPTIONS = {
    "sides that change": {
        "input_names": ["input_ids", "attention_mask"],
        "dynamic_axes": {"input_ids": {0: "b", 1: "s"}, "attention_mask": {0: "b", 1: "s"}},
    },
    "an opset without layer norms": {"opset_version": 13},
    "matrices as they are": {"do_constant_folding": False},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("name", ["bert", "llama"])
def test_options_of_the_exporter(name, options, tmp_path):
    model = model_of(name, tmp_path / "saved")
    assert_same(export(model, tmp_path / "exported", **options), tmp_path / "saved")


def test_an_encoder_and_a_decoder(tmp_path):
    class Plain(transformers.T5ForConditionalGeneration):
        def forward(self, input_ids, decoder_input_ids):
            masks = {"attention_mask": torch.ones_like(input_ids), "decoder_attention_mask": torch.ones_like(input_ids)}
            return super().forward(input_ids, decoder_input_ids=decoder_input_ids, use_cache=False, **masks).logits

    torch.manual_seed(0)
    sizes = {"d_model": 24, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4, "vocab_size": 40}
    model = Plain(transformers.T5Config(**sizes, attn_implementation="eager")).eval()
    model.save_pretrained(tmp_path / "saved")
    ids = torch.randint(2, 40, (1, TOKENS))
    (tmp_path / "exported").mkdir()
    model.config.save_pretrained(tmp_path / "exported")
    torch.onnx.export(model, (ids, ids), str(tmp_path / "exported" / "model.onnx"), dynamo=False, verbose=False)
    assert_same(tmp_path / "exported", tmp_path / "saved")


@pytest.mark.parametrize("level", ["ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED"])
@pytest.mark.parametrize("name", ["bert", "llama", "gpt2"])
def test_graphs_that_the_runtime_rewrote(name, level, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    exported = export(model_of(name, tmp_path / "saved"), tmp_path / "exported", **OPTIONS["sides that change"])
    options = runtime.SessionOptions()
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.optimized_model_filepath = str(tmp_path / "rewritten.onnx")
    runtime.InferenceSession(str(exported / "model.onnx"), options, providers=["CPUExecutionProvider"])
    (tmp_path / "rewritten.onnx").rename(exported / "model.onnx")
    assert_same(exported, tmp_path / "saved")


def test_half_precision(tmp_path):
    model = model_of("llama", tmp_path / "whole").half()
    model.save_pretrained(tmp_path / "saved")
    assert_same(export(model, tmp_path / "exported"), tmp_path / "saved")


@pytest.mark.parametrize("dynamo", [False, True], ids=["torch.jit", "torch.export"])
def test_the_encoder_of_torch(dynamo, tmp_path):
    from safetensors.torch import save_file

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(24, 4, 48, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn_like(weight))
    (tmp_path / "saved").mkdir()
    save_file(model.state_dict(), tmp_path / "saved" / "model.safetensors")
    if dynamo:
        pytest.importorskip("onnxscript")
    options = {"external_data": False} if dynamo else {}
    torch.onnx.export(
        model, (torch.randn(2, 7, 24),), str(tmp_path / "m.onnx"), dynamo=dynamo, verbose=False, **options
    )
    assert_same(tmp_path / "m.onnx", tmp_path / "saved", heads=4, norm_first=False)


def test_the_wrong_way_round_is_seen(tmp_path, monkeypatch):
    """The maps of attention are square: without the transposition every shape fits, and the weights are others."""
    model = model_of("bert", tmp_path / "saved")
    exported = export(model, tmp_path / "exported")
    rule = onnx_uses._use

    def wrong(*args):
        use = rule(*args)
        return use._replace(turned=False) if use is not None and ".self." in use.module else use

    monkeypatch.setattr(onnx_uses, "_use", wrong)
    with pytest.raises(AssertionError, match=r"self\.query\.weight"):
        assert_same(exported, tmp_path / "saved")


def test_gains_that_the_exporter_computed(tmp_path):
    """Gemma's gains are stored as 1 + w: nothing is read that would add the one again."""
    model = model_of("gemma", tmp_path / "saved")
    checkpoint, coverage = read_checkpoint(export(model, tmp_path / "exported"))
    assert checkpoint.family == "onnx" and coverage.accounted == coverage.total
