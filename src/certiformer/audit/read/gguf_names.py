"""GGUF names and metadata as those of the model the file was converted from, so that its family reads it.

What converters do to the numbers, and what is done about it here. GPT-2: maps are turned to (out, in), which the family
sees by the shape. GPT-NeoX, BLOOM, Falcon: fused rows are sorted into three blocks (the families ask for the kind of
file). Gemma: the one is already added to the gains. Llama: the rows of each query and key head are permuted for another
order of rotary planes; the same permutation in both leaves q . k, norms and singular values as they were.
Activations and some scales are in the code of the runtime, not in the file; they are supplied here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from certiformer.audit.files import TensorFiles, TensorInfo
from certiformer.audit.read.gguf_rotary import ROTARY, rope_scaling
from certiformer.audit.read.origin import Origin
from certiformer.errors import BadInput

LLAMA_BLOCK = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "ffn_gate_inp": "block_sparse_moe.gate",
}
# One tensor (experts, out, in) for all experts of a layer.
EXPERTS = {"ffn_gate_exps": "w1", "ffn_down_exps": "w2", "ffn_up_exps": "w3"}
MOST_EXPERTS = 4096
GEMMA_BLOCK = LLAMA_BLOCK | {
    "ffn_norm": "pre_feedforward_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
PHI3_BLOCK = LLAMA_BLOCK | {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
GPT2_BLOCK = {
    "attn_qkv": "attn.c_attn",
    "attn_output": "attn.c_proj",
    "attn_norm": "ln_1",
    "ffn_norm": "ln_2",
    "ffn_up": "mlp.c_fc",
    "ffn_down": "mlp.c_proj",
}
BERT_BLOCK = {
    "attn_q": "attention.self.query",
    "attn_k": "attention.self.key",
    "attn_v": "attention.self.value",
    "attn_output": "attention.output.dense",
    "attn_output_norm": "attention.output.LayerNorm",
    "ffn_up": "intermediate.dense",
    "ffn_down": "output.dense",
    "layer_output_norm": "output.LayerNorm",
}
MEGATRON_BLOCK = {
    "attn_qkv": "attention.query_key_value",
    "attn_output": "attention.dense",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_up": "mlp.dense_h_to_4h",
    "ffn_down": "mlp.dense_4h_to_h",
}
BLOOM_BLOCK = MEGATRON_BLOCK | {"attn_qkv": "self_attention.query_key_value", "attn_output": "self_attention.dense"}
FALCON_NEW = BLOOM_BLOCK | {"attn_norm": "ln_mlp", "attn_norm_2": "ln_attn"}
LLAMA_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
BLOOM_TOP = {
    "token_embd": "word_embeddings",
    "token_embd_norm": "word_embeddings_layernorm",
    "output_norm": "ln_f",
    "output": "lm_head",
}
BERT_TOP = {
    "token_embd": "embeddings.word_embeddings",
    "position_embd": "embeddings.position_embeddings",
    "token_types": "embeddings.token_type_embeddings",
    "token_embd_norm": "embeddings.LayerNorm",
}
# Architecture -> where layers stand, the names in a layer, those outside, and what the code of the runtime knows.
LLAMA = ("model.layers", LLAMA_BLOCK, LLAMA_TOP, {"hidden_act": "silu"})
GEMMA = ("model.layers", GEMMA_BLOCK, LLAMA_TOP, {"hidden_act": "gelu_pytorch_tanh"})
ARCHITECTURES: dict[str, tuple[str, dict[str, str], dict[str, str], dict[str, Any]]] = {
    "llama": LLAMA,
    "qwen2": LLAMA,
    "qwen3": LLAMA,
    "gemma": ("model.layers", LLAMA_BLOCK, LLAMA_TOP, {"hidden_act": "gelu_pytorch_tanh"}),
    "gemma2": GEMMA,
    "gemma3": GEMMA,
    "phi3": ("model.layers", PHI3_BLOCK, LLAMA_TOP, {"hidden_act": "silu"}),
    "gpt2": (
        "h",
        GPT2_BLOCK,
        {"token_embd": "wte", "position_embd": "wpe", "output_norm": "ln_f", "output": "lm_head"},
        {"activation_function": "gelu_new"},
    ),
    "bert": ("encoder.layer", BERT_BLOCK, BERT_TOP, {"hidden_act": "gelu"}),
    "gptneox": (
        "layers",
        MEGATRON_BLOCK,
        {"token_embd": "embed_in", "output_norm": "final_layer_norm", "output": "embed_out"},
        {"hidden_act": "gelu"},
    ),
    "bloom": ("h", BLOOM_BLOCK, BLOOM_TOP, {}),
    "falcon": ("h", BLOOM_BLOCK, BLOOM_TOP, {}),
}
# Metadata, below the name of the architecture, and the entries of a config that it stands for.
ENTRIES = {
    "block_count": ("num_hidden_layers",),
    "embedding_length": ("hidden_size",),
    "context_length": ("max_position_embeddings", "seq_length"),
    "attention.head_count": ("num_attention_heads",),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon"),
    "attention.sliding_window": ("sliding_window",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "use_parallel_residual": ("use_parallel_residual",),
}
# Gemma's largest models divide scores by the root of width / heads, the others by that of the head size.
LARGEST_GEMMA = {"gemma2": 46, "gemma3": 62}
BLOCK_NAME = re.compile(r"blk\.(\d{1,6})\.(\w+)\.(weight|bias)$")
TOP_NAME = re.compile(r"(\w+)\.(weight|bias)$")


def translated(files: TensorFiles) -> tuple[TensorFiles, dict[str, Origin]]:
    """The tensors under the names of their family, with a config; names without a translation stay as they are."""
    said = files.metadata.get("general.architecture")
    if not isinstance(said, str) or said not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise BadInput(f"{files.place} is of the architecture {said!r}; of GGUF files those of {known} are read")
    layers, block, top, extra = ARCHITECTURES[said]
    if said == "falcon" and "blk.0.attn_norm_2.weight" in files.infos:
        block, extra = FALCON_NEW, {"new_decoder_architecture": True}
    stored: dict[str, tuple[str, int | None]] = {}
    for name, info in files.infos.items():
        for new, expert in _renamed(name, info, layers, block, top):
            if new in stored:
                raise BadInput(f"{files.place} has {stored[new][0]!r} and {name!r} for the same thing")
            stored[new] = name, expert

    def read(new: str) -> np.ndarray:
        name, expert = stored[new]
        return files.reader(name) if expert is None else files.reader(name)[expert]

    infos = {
        new: files.infos[name] if expert is None else replace(files.infos[name], shape=files.infos[name].shape[1:])
        for new, (name, expert) in stored.items()
    }
    origins = {
        new: Origin(name, "" if expert is None else f"expert {expert}")
        for new, (name, expert) in stored.items()
        if new != name
    }
    return replace(files, infos=infos, reader=read, config=config_of(said, files.metadata) | extra), origins


def _renamed(
    name: str, info: TensorInfo, layers: str, block: dict[str, str], top: dict[str, str]
) -> Iterator[tuple[str, int | None]]:
    """The names that a tensor goes by, several with the number of the expert where it holds those of all experts."""
    match = BLOCK_NAME.match(name)
    if match and match[2] in EXPERTS and len(info.shape) == 3 and info.shape[0] <= MOST_EXPERTS:
        for expert in range(info.shape[0]):
            yield f"{layers}.{match[1]}.block_sparse_moe.experts.{expert}.{EXPERTS[match[2]]}.weight", expert
    elif match and match[2] in block:
        yield f"{layers}.{match[1]}.{block[match[2]]}.{match[3]}", None
    elif (match := TOP_NAME.match(name)) and match[1] in top:
        yield f"{top[match[1]]}.{match[2]}", None
    else:
        yield name, None


def config_of(architecture: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """The entries of a config that the metadata of a file stand for."""
    config: dict[str, Any] = {"model_type": {"gptneox": "gpt_neox"}.get(architecture, architecture)}
    for key, entries in ENTRIES.items():
        value = metadata.get(f"{architecture}.{key}")
        if value is not None and not (key == "attention.sliding_window" and value == 0):  # 0 stands for no window
            config |= dict.fromkeys(entries, value)
    if architecture in ROTARY:
        config["rope_scaling"] = rope_scaling(architecture, metadata)
    largest = LARGEST_GEMMA.get(architecture)
    width, heads = config.get("hidden_size"), config.get("num_attention_heads")
    if (
        largest is not None
        and config.get("num_hidden_layers") == largest
        and type(width) is type(heads) is int
        and heads
    ):
        config["query_pre_attn_scalar"] = width / heads
    return config
