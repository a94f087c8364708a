"""GPT-2, Llama and Phi-3 in NumPy, written from the definitions of the architectures, for folders of `transformers`.

Everything is computed in the type of the stored weights, norms of Llama and Phi-3 in float32, as their definition says.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import safetensors.numpy


def logits(folder: Path, ids: list[int]) -> np.ndarray:
    """The logits at every position, (tokens, vocabulary)."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    run = {"gpt2": gpt2, "llama": llama, "phi3": llama}[config["model_type"]]
    return run(config, tensors, ids)


def softmax(scores: np.ndarray) -> np.ndarray:
    """Causal, over the last axis of (heads, tokens, tokens)."""
    scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def split(x: np.ndarray, heads: int) -> np.ndarray:
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def gpt2(config: dict, w: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    heads = config["n_head"]

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        centred = x - x.mean(-1, keepdims=True)
        scale = np.sqrt((centred**2).mean(-1, keepdims=True) + x.dtype.type(config["layer_norm_epsilon"]))
        return centred / scale * w[f"{name}.weight"] + w[f"{name}.bias"]

    def affine(x: np.ndarray, name: str) -> np.ndarray:
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    x = w["transformer.wte.weight"][ids] + w["transformer.wpe.weight"][: len(ids)]
    for layer in range(config["n_layer"]):
        name = f"transformer.h.{layer}"
        q, k, v = (
            split(part, heads) for part in np.split(affine(norm(x, f"{name}.ln_1"), f"{name}.attn.c_attn"), 3, axis=-1)
        )
        mixed = softmax(q @ k.transpose(0, 2, 1) / np.sqrt(x.dtype.type(q.shape[-1]))) @ v
        x = x + affine(mixed.transpose(1, 0, 2).reshape(len(ids), -1), f"{name}.attn.c_proj")
        hidden = np.maximum(affine(norm(x, f"{name}.ln_2"), f"{name}.mlp.c_fc"), 0)
        x = x + affine(hidden, f"{name}.mlp.c_proj")
    return norm(x, "transformer.ln_f") @ w["lm_head.weight"].T


def llama(config: dict, w: dict[str, np.ndarray], ids: list[int]) -> np.ndarray:
    """Llama; Phi-3 differs in matrices that are stored together and in how much of a head is turned."""
    heads, kind = config["num_attention_heads"], w["lm_head.weight"].dtype.type
    size = config["hidden_size"] // heads
    rope = config["rope_parameters"]
    turned = int(size * rope.get("partial_rotary_factor", 1.0))
    frequency = rope["rope_theta"] ** -(np.arange(0, turned, 2, dtype=np.float32) / turned)
    angle = np.concatenate([np.outer(np.arange(len(ids)), frequency)] * 2, axis=1).astype(np.float32)

    def norm(x: np.ndarray, name: str) -> np.ndarray:
        y = x.astype(np.float32)
        y = y * (1 / np.sqrt((y**2).mean(-1, keepdims=True) + np.float32(config["rms_norm_eps"])))
        return w[f"{name}.weight"] * y.astype(kind)

    def rotate(x: np.ndarray) -> np.ndarray:
        part, rest = x[..., :turned], x[..., turned:]
        half = np.concatenate([-part[..., turned // 2 :], part[..., : turned // 2]], axis=-1)
        return np.concatenate([part * np.cos(angle).astype(kind) + half * np.sin(angle).astype(kind), rest], axis=-1)

    def project(x: np.ndarray, name: str, parts: tuple[str, ...], joined: str) -> list[np.ndarray]:
        if f"{name}.{joined}.weight" in w:
            return np.split(x @ w[f"{name}.{joined}.weight"].T, len(parts), axis=-1)
        return [x @ w[f"{name}.{part}.weight"].T for part in parts]

    x = w["model.embed_tokens.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        name = f"model.layers.{layer}"
        read = norm(x, f"{name}.input_layernorm")
        q, k, v = (
            split(y, heads) for y in project(read, f"{name}.self_attn", ("q_proj", "k_proj", "v_proj"), "qkv_proj")
        )
        mixed = softmax(rotate(q) @ rotate(k).transpose(0, 2, 1) * kind(size**-0.5)) @ v
        x = x + mixed.transpose(1, 0, 2).reshape(len(ids), -1) @ w[f"{name}.self_attn.o_proj.weight"].T
        read = norm(x, f"{name}.post_attention_layernorm")
        gate, up = project(read, f"{name}.mlp", ("gate_proj", "up_proj"), "gate_up_proj")
        x = x + (np.maximum(gate, 0) * up) @ w[f"{name}.mlp.down_proj.weight"].T
    return norm(x, "model.norm") @ w["lm_head.weight"].T
