"""Small checkpoints in the layouts of real ones, written by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

WIDTH, HEADS, HIDDEN, WORDS, POSITIONS = 16, 4, 32, 40, 12


def bert_config(**changes: object) -> dict[str, object]:
    config = {
        "model_type": "bert",
        "num_attention_heads": HEADS,
        "hidden_size": WIDTH,
        "num_hidden_layers": 2,
        "max_position_embeddings": POSITIONS,
        "layer_norm_eps": 1e-12,
        "hidden_act": "gelu",
    }
    return {**config, **changes}


def bert_tensors(seed: int = 0, layers: int = 2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape, scale=0.3).astype(np.float32)

    tensors = {
        "embeddings.word_embeddings.weight": normal(WORDS, WIDTH),
        "embeddings.position_embeddings.weight": normal(POSITIONS, WIDTH),
        "embeddings.token_type_embeddings.weight": normal(2, WIDTH),
    }
    norms = ["embeddings.LayerNorm"]
    for number in range(layers):
        place = f"encoder.layer.{number}"
        for name in ("query", "key", "value"):
            tensors[f"{place}.attention.self.{name}.weight"] = normal(WIDTH, WIDTH)
            tensors[f"{place}.attention.self.{name}.bias"] = normal(WIDTH)
        for name, rows, columns in (
            ("attention.output.dense", WIDTH, WIDTH),
            ("intermediate.dense", HIDDEN, WIDTH),
            ("output.dense", WIDTH, HIDDEN),
        ):
            tensors[f"{place}.{name}.weight"], tensors[f"{place}.{name}.bias"] = normal(rows, columns), normal(rows)
        norms += [f"{place}.attention.output.LayerNorm", f"{place}.output.LayerNorm"]
    for name in norms:
        tensors[f"{name}.weight"] = 1 + normal(WIDTH)
        tensors[f"{name}.bias"] = normal(WIDTH)
    return tensors


def write_bert(folder: Path, tensors: dict[str, np.ndarray] | None = None, config: dict | None = None) -> Path:
    """A folder with `model.safetensors` and `config.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(bert_tensors() if tensors is None else tensors, folder / "model.safetensors")
    if config is None or config:
        (folder / "config.json").write_text(json.dumps(bert_config() if config is None else config))
    return folder


def write_llama(folder: Path, seed: int = 0, layers: int = 1, **changes: object) -> Path:
    """A folder in the layout of Llama, with four query heads that share two keys and values."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape, scale=0.3).astype(np.float32)

    tensors = {"model.embed_tokens.weight": normal(WORDS, WIDTH), "lm_head.weight": normal(WORDS, WIDTH)}
    tensors["model.norm.weight"] = 1 + normal(WIDTH)
    for number in range(layers):
        place = f"model.layers.{number}"
        half = WIDTH // 2
        for name, rows, columns in (
            ("self_attn.q_proj", WIDTH, WIDTH),
            ("self_attn.k_proj", half, WIDTH),
            ("self_attn.v_proj", half, WIDTH),
            ("self_attn.o_proj", WIDTH, WIDTH),
            ("mlp.gate_proj", HIDDEN, WIDTH),
            ("mlp.up_proj", HIDDEN, WIDTH),
            ("mlp.down_proj", WIDTH, HIDDEN),
        ):
            tensors[f"{place}.{name}.weight"] = normal(rows, columns)
        for name in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{place}.{name}.weight"] = 1 + normal(WIDTH)
    save_file(tensors, folder / "model.safetensors")
    config = {"model_type": "llama", "num_attention_heads": HEADS, "num_key_value_heads": 2, "hidden_size": WIDTH}
    config |= {"num_hidden_layers": layers, "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu"}
    (folder / "config.json").write_text(json.dumps({**config, **changes}))
    return folder
