"""The folders opened by the libraries they are for: `transformers` and `transformer_lens`, against the interpreter."""

from __future__ import annotations

import json
import os
import re
import warnings

import numpy as np
import pytest

from certiformer import rasp
from certiformer.compiler.driver import compile_program
from certiformer.export import program_labels, to_onnx, to_torch, write
from certiformer.model import Transformer
from export.stock_cases import CASES, case, same_answers


def batches(this) -> dict[int, list[list]]:
    by_length: dict[int, list[list]] = {}
    for xs in this.inputs():
        by_length.setdefault(len(xs), []).append(xs)
    return by_length


@pytest.fixture
def transformers():
    pytest.importorskip(
        "torch", reason="PyTorch is not installed (pip install torch): the stock folders were not opened"
    )
    library = pytest.importorskip(
        "transformers", reason="transformers is not installed: the stock folders were not opened"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield library


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("kind", ["gpt2", "llama", "phi3"])
@pytest.mark.parametrize("name", CASES)
def test_transformers_gives_the_interpreters_tokens(tmp_path, transformers, kind, name, attention):
    import torch

    this = case(name)
    folder = this.export(kind, tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto", attn_implementation=attention)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    for rows in batches(this).values():
        ids = tokenizer([" ".join(map(str, xs)) for xs in rows], return_tensors="pt").input_ids
        assert ids.tolist() == [this.ids(xs) for xs in rows]
        with torch.no_grad():
            logits = model(ids).logits[:, 1:].double().numpy()
        for xs, row in zip(rows, logits, strict=True):
            assert same_answers(this.read(row), this.answers(xs)), xs
            if this.labels.kind == "logits":
                assert tokenizer.convert_ids_to_tokens(row.argmax(-1).tolist()) == this.answers(xs)


@pytest.mark.parametrize("kind", ["gpt2", "llama", "phi3"])
def test_transformer_lens_4_opens_the_folder(tmp_path, transformers, kind):
    bridges = pytest.importorskip("transformer_lens.model_bridge", reason="there is no TransformerBridge here")
    import torch

    this = case("shift")
    folder = this.export(kind, tmp_path / "out")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert "TransformerBridge.boot_transformers(" in readme
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="auto")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    boot = bridges.TransformerBridge.boot_transformers
    bridge = boot(str(folder), hf_model=model, tokenizer=tokenizer, dtype=model.dtype)
    for rows in batches(this).values():
        ids = tokenizer([" ".join(map(str, xs)) for xs in rows], return_tensors="pt").input_ids
        with torch.no_grad():
            logits, cache = bridge.run_with_cache(ids)
        assert "blocks.0.attn.hook_pattern" in cache
        for xs, row in zip(rows, logits[:, 1:].double().numpy(), strict=True):
            assert same_answers(this.read(row), this.answers(xs)), xs


def test_transformers_needs_no_code_of_ours(tmp_path, transformers):
    folder = case("shift").export("phi3", tmp_path / "out")
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False)
    assert type(model).__module__.startswith("transformers.models.phi3")


def mirror() -> tuple[rasp.SOp, tuple]:
    """Reverse, and how often the token stood to the left: a layer that looks ahead and one that does not."""
    tokens, indices = rasp.tokens, rasp.indices
    size = rasp.SelectorWidth(rasp.Select(tokens, tokens, rasp.Comparison.TRUE))
    reverse = rasp.Aggregate(rasp.Select(indices, size - indices - 1, rasp.Comparison.EQ), tokens)
    seen = rasp.Select(reverse, tokens, rasp.Comparison.EQ) & rasp.Select(indices, indices, rasp.Comparison.LEQ)
    return rasp.SelectorWidth(seen), ("a", "b")


@pytest.fixture(scope="module", params=["float32", "float64"])
def both_ways(request):
    program, vocab = mirror()
    compiled = compile_program(program, vocab, 7, dtype=request.param)
    masks = {block.attention.mask for block in compiled.config.blocks if block.attention}
    assert masks == {"none", "causal"}
    inputs = [list(xs) for n in (1, 2, 3, 5, 7) for xs in np.random.default_rng(n).choice(vocab, (12, n)).tolist()]
    return (
        program,
        Transformer(compiled.config, compiled.tensors),
        program_labels(compiled.graph, compiled.circuit),
        inputs,
    )


def agree(program, labels, inputs, outputs_of) -> None:
    for xs in inputs:
        places = outputs_of([["a", "b"].index(x) for x in xs]).argmax(-1)
        assert [labels.texts[labels.outputs[place]] for place in places] == [str(x) for x in rasp.evaluate(program, xs)]


def test_transformer_lens_gives_the_interpreters_tokens(tmp_path, both_ways):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("transformer_lens", reason="transformer_lens is not installed: its folder was not opened")
        lens = __import__("transformer_lens")
        if not hasattr(lens, "HookedTransformer"):
            pytest.skip("this transformer_lens has no HookedTransformer: its folder was not opened")
        import torch

        program, model, labels, inputs = both_ways
        write(model, "transformerlens", tmp_path / "out", {}, labels=labels)
        code = re.search(
            r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text(encoding="utf-8"), re.DOTALL
        )
        assert code is not None
        here, names = os.getcwd(), {}
        os.chdir(tmp_path / "out")
        try:
            exec(code[1], names)  # noqa: S102  (the lines that the README gives its readers)
        finally:
            os.chdir(here)

        def outputs_of(ids: list[int]) -> np.ndarray:
            with torch.no_grad():
                return names["model"](torch.tensor([[labels.start, *ids]]))[0, 1:].double().numpy()

        agree(program, labels, inputs, outputs_of)


@pytest.mark.parametrize("kind", ["torch", "hf", "onnx"])
def test_the_table_of_tokens_lies_beside_the_exported_model(tmp_path, both_ways, kind):
    program, model, labels, inputs = both_ways
    if kind == "onnx":
        onnx = pytest.importorskip("onnx", reason='the library onnx is not installed: pip install "certiformer[onnx]"')
        (path,) = write(model, kind, tmp_path / "out.onnx", {}, labels=labels)
        table = json.loads({entry.key: entry.value for entry in onnx.load(path).metadata_props}["tokens"])
    else:
        write(model, kind, tmp_path / "out", {}, labels=labels)
        table = json.loads((tmp_path / "out" / "tokens.json").read_text(encoding="utf-8"))
    ids = {entry["value"]: entry["id"] for entry in table["inputs"]}
    assert [entry["id"] for entry in table["outputs"]] == list(range(len(table["outputs"])))
    for xs in inputs:
        outputs = model.evaluate(np.array([[ids[x] for x in xs]])).reshape(len(xs), -1)
        answers = [table["outputs"][place]["text"] for place in outputs.argmax(-1)]
        assert answers == [str(x) for x in rasp.evaluate(program, xs)]


def test_torch_gives_the_interpreters_tokens(both_ways):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed (pip install torch): its export was not run")
    program, model, labels, inputs = both_ways
    module = to_torch(model)
    agree(program, labels, inputs, lambda ids: module(torch.tensor([ids])).detach().numpy().reshape(len(ids), -1))


def test_onnx_gives_the_interpreters_tokens(both_ways):
    pytest.importorskip("onnx", reason='the library onnx is not installed: pip install "certiformer[onnx]"')
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    program, model, labels, inputs = both_ways
    session = runtime.InferenceSession(to_onnx(model))
    agree(program, labels, inputs, lambda ids: session.run(None, {"points": np.array([ids])})[0].reshape(len(ids), -1))
