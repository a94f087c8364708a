"""GGUF names lead to the same reading as the file that was converted.

The changes that the converter of llama.cpp makes to names and numbers are written here a second time."""

from __future__ import annotations

import numpy as np
import pytest

from audit.read import synthetic as one
from audit.read.memory import in_memory
from certiformer.audit.read import read_tensors
from certiformer.errors import BadInput

LLAMA = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "self_attn.qkv_proj": "attn_qkv",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "mlp.gate_up_proj": "ffn_up",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "embed_tokens": "token_embd", "lm_head": "output",
}  # fmt: skip
AROUND = LLAMA | {
    "pre_feedforward_layernorm": "ffn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GPT2 = {
    "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down", "ln_1": "attn_norm",
    "ln_2": "ffn_norm", "ln_f": "output_norm", "wte": "token_embd", "wpe": "position_embd",
}  # fmt: skip
BERT = {
    "attention.self.query": "attn_q", "attention.self.key": "attn_k", "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output", "attention.output.LayerNorm": "attn_output_norm", "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down", "output.LayerNorm": "layer_output_norm", "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd", "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
}  # fmt: skip
FUSED = {
    "query_key_value": "attn_qkv", "dense_h_to_4h": "ffn_up", "dense_4h_to_h": "ffn_down", "attention.dense": "attn_output",
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "ln_mlp": "attn_norm", "ln_attn": "attn_norm_2",
    "word_embeddings_layernorm": "token_embd_norm", "word_embeddings": "token_embd", "embed_in": "token_embd",
    "embed_out": "output", "ln_f": "output_norm", "final_layer_norm": "output_norm",
}  # fmt: skip


def renamed(name: str, words: dict[str, str]) -> str:
    stem, _, end = name.rpartition(".")
    layer = next((part for part in stem.split(".") if part.isdigit()), None)
    if stem == "model.norm":
        return f"output_norm.{end}"
    found = max((word for word in words if stem.endswith(word)), key=len)
    return f"blk.{layer}.{words[found]}.{end}" if layer is not None else f"{words[found]}.{end}"


def permuted(array: np.ndarray, heads: int) -> np.ndarray:
    """Halves of a head side by side, as the runtime of Llama wants its rotary planes."""
    rows = array.shape[0] // heads
    return array.reshape(heads, 2, rows // 2, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def sorted_rows(array: np.ndarray, made: one.Synthetic) -> np.ndarray:
    """All queries, all keys, all values."""
    count, groups, size = made.heads
    by_group = array.reshape(groups, count // groups + 2, size, *array.shape[1:])
    parts = (by_group[:, :-2], by_group[:, -2], by_group[:, -1])
    return np.concatenate([part.reshape(-1, *array.shape[1:]) for part in parts])


def converted(architecture: str, made: one.Synthetic, words: dict[str, str]):
    tensors = {}
    for name, array in made.tensors().items():
        if architecture == "gpt2" and array.ndim == 2 and ".c_" in name:
            array = array.T
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            array = array + 1.0
        if architecture in ("gptneox", "bloom", "falcon") and "query_key_value" in name and made.heads[1] > 1:
            array = sorted_rows(array, made)
        if architecture == "llama" and ("q_proj" in name or "k_proj" in name):
            array = permuted(array, made.heads["k_proj" in name])
        tensors[renamed(name, words)] = array
    count, groups, size = made.heads
    said = {"block_count": 1 + (architecture == "bert"), "embedding_length": one.D, "attention.head_count": count}
    said |= {"attention.head_count_kv": groups, "attention.key_length": size, "attention.sliding_window": 0}
    said |= {"attention.layer_norm_rms_epsilon": 1e-6, "attention.layer_norm_epsilon": 1e-5}
    metadata = {f"{architecture}.{key}": value for key, value in said.items()} | {"general.architecture": architecture}
    return in_memory(tensors, None, "gguf", metadata)


def llama() -> one.Synthetic:
    """With heads of an even size, since rotary planes come in pairs."""
    made = one.llama("llama", inner_norms=False)
    made.heads = (2, 1, 6)
    made.config |= {"num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 6}
    return made


CASES = {
    "llama": (llama, LLAMA),
    "qwen2": (lambda: one.llama("qwen2", bias=True), LLAMA),
    "qwen3": (lambda: one.llama("qwen3", inner_norms=True), LLAMA),
    "gemma": (lambda: one.llama("gemma"), LLAMA),
    "gemma2": (lambda: one.llama("gemma2", around=True), AROUND),
    "gemma3": (lambda: one.llama("gemma3", inner_norms=True, around=True), AROUND),
    "phi3": (one.phi3, LLAMA),
    "gpt2": (lambda: one.gpt2(True), GPT2),
    "bert": (lambda: one.bert(""), BERT),
    "gptneox": (one.neox, FUSED),
    "bloom": (one.bloom, FUSED),
    "falcon": (lambda: one.falcon(True), FUSED),
    "falcon-multi-query": (lambda: one.falcon(False), FUSED),
}


@pytest.mark.parametrize("name", CASES)
def test_a_converted_file_reads_like_its_original(name):
    make, words = CASES[name]
    made = make()
    files = converted(name.removesuffix("-multi-query"), made, words)
    mine, coverage = read_tensors(files)
    original, before = read_tensors(in_memory(made.tensors(), made.config))
    assert mine.family == original.family and mine.norm_place == original.norm_place
    assert coverage.accounted == coverage.total == before.total and not coverage.missing
    for layer, wanted in zip(mine.layers, original.layers, strict=True):
        assert layer.heads_known and layer.norms.keys() == wanted.norms.keys()
        for key, norm in layer.norms.items():
            # In Gemma the one was added before it was stored, and is added after it was read.
            assert np.array_equal(norm.gain.read(), wanted.norms[key].gain.read())
        a, b = layer.attention[0], wanted.attention[0]
        assert a.scale == b.scale and a.query.shape == b.query.shape
        share = a.query.shape[0] // a.key.shape[0]
        for h in range(a.query.shape[0]):
            scores = [each.query.read()[h].T @ each.key.read()[h // share] for each in (a, b)]
            assert np.abs(scores[0] - scores[1]).max() < 1e-14  # rows in another order are summed in another order
        assert np.array_equal(a.value.read(), b.value.read()) and np.array_equal(a.output.read(), b.output.read())
        assert np.array_equal(layer.ffn[0].up.read(), wanted.ffn[0].up.read())
        assert np.array_equal(layer.ffn[0].down.read(), wanted.ffn[0].down.read())
    # Provenance speaks of the names in the file.
    assert {weight.source.tensor for weight in mine.weights()} == set(files.infos)


def test_fused_rows_of_a_converted_file_are_not_split_like_the_original(monkeypatch):
    from certiformer.audit.read import blocks, heads

    rule = heads.fused_rows
    monkeypatch.setattr(blocks, "fused_rows", lambda found, layout: rule(found, "groups"))
    make, words = CASES["gptneox"]
    mine, _ = read_tensors(converted("gptneox", make(), words))
    monkeypatch.undo()
    original, _ = read_tensors(in_memory(make().tensors(), make().config))
    assert np.abs(mine.layers[0].attention[0].value.read() - original.layers[0].attention[0].value.read()).max() > 0.1


def test_architectures_that_are_not_read():
    tensors = {"blk.0.attn_q.weight": np.ones((2, 2))}
    with pytest.raises(BadInput, match="'mamba'"):
        read_tensors(in_memory(tensors, None, "gguf", {"general.architecture": "mamba"}))
    with pytest.raises(BadInput, match="architecture None"):
        read_tensors(in_memory(tensors, None, "gguf", {}))


def test_the_scale_of_the_largest_gemma():
    from certiformer.audit.read.gguf_names import config_of

    sizes = {"gemma2.block_count": 46, "gemma2.embedding_length": 4608, "gemma2.attention.head_count": 32}
    assert config_of("gemma2", sizes)["query_pre_attn_scalar"] == 144
    assert "query_pre_attn_scalar" not in config_of("gemma2", sizes | {"gemma2.block_count": 42})


def test_metadata_that_is_nonsense():
    make, words = CASES["llama"]
    files = converted("llama", make(), words)
    for key in list(files.metadata):
        for value in (None, -1, 0, 1.5, "x", [1, 2], 10**30):
            files.metadata.update({key: value})
            try:
                read_tensors(files)
            except BadInput as problem:
                assert "\n" not in str(problem)
        files = converted("llama", make(), words)


def test_all_experts_in_one_tensor():
    made = one.llama("mixtral", experts=3)
    kept = {name: array for name, array in made.tensors().items() if "block_sparse_moe" not in name}
    experts = {}
    for name, stored in (("w1", "ffn_gate_exps"), ("w2", "ffn_down_exps"), ("w3", "ffn_up_exps")):
        each = [made.tensors()[f"model.layers.0.block_sparse_moe.experts.{k}.{name}.weight"] for k in range(3)]
        experts[f"blk.0.{stored}.weight"] = np.stack(each)
    experts["blk.0.ffn_gate_inp.weight"] = made.tensors()["model.layers.0.block_sparse_moe.gate.weight"]
    tensors = {renamed(name, LLAMA): array for name, array in kept.items()} | experts
    count, groups, size = made.heads
    said = {"attention.head_count": count, "attention.head_count_kv": groups, "attention.key_length": size}
    metadata = {f"llama.{key}": value for key, value in said.items()} | {"general.architecture": "llama"}
    mine, coverage = read_tensors(in_memory(tensors, None, "gguf", metadata))
    original, before = read_tensors(in_memory(made.tensors(), made.config))
    assert mine.family == "mixtral" and coverage.accounted == coverage.total == before.total
    assert "router" in mine.layers[0].others and len(mine.layers[0].ffn) == 3
    for number, (ffn, wanted) in enumerate(zip(mine.layers[0].ffn, original.layers[0].ffn, strict=True)):
        for role in ("gate", "up", "down"):
            assert np.array_equal(getattr(ffn, role).read(), getattr(wanted, role).read())
        assert ffn.up.source.tensor == "blk.0.ffn_up_exps.weight" and ffn.up.source.made == f"expert {number}"
