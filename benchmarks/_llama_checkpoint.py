"""Writes a random checkpoint in the layout of Llama, bfloat16, in shards with an index: for the audit of a large model.

    python benchmarks/_llama_checkpoint.py FOLDER [--layers N]

With 32 layers it has the 6,738,415,616 parameters of Llama-2 7B, 13.5 GB. Numbers are slices of one random pool, whose
length is prime so that no two rows of a matrix agree; they are written as they are made, one tensor in memory at a time.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np

WIDTH, HIDDEN, HEADS, WORDS, LAYERS, CONTEXT = 4096, 11008, 32, 32000, 32, 4096
POOL = 33_554_467
SHARD = 4 << 30  # bytes


def shapes(layers: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes, in the order in which they are written."""
    yield "model.embed_tokens.weight", (WORDS, WIDTH)
    for number in range(layers):
        place = f"model.layers.{number}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield f"{place}.self_attn.{name}.weight", (WIDTH, WIDTH)
        for name in ("gate_proj", "up_proj"):
            yield f"{place}.mlp.{name}.weight", (HIDDEN, WIDTH)
        yield f"{place}.mlp.down_proj.weight", (WIDTH, HIDDEN)
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{place}.{name}.weight", (WIDTH,)
    yield "model.norm.weight", (WIDTH,)
    yield "lm_head.weight", (WORDS, WIDTH)


def write(folder: Path, layers: int = LAYERS, seed: int = 0) -> int:
    """Write the shards, the index and the config; returns the number of parameters."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    pool = (rng.standard_normal(POOL, dtype=np.float32) * 0.02).astype(ml_dtypes.bfloat16).view(np.uint16)
    one = np.ones(WIDTH, ml_dtypes.bfloat16).view(np.uint16)
    parts = split(list(shapes(layers)))
    places, total = {}, 0
    for number, part in enumerate(parts, 1):
        name = f"model-{number:05d}-of-{len(parts):05d}.safetensors"
        with open(folder / name, "wb") as file:
            file.write(header(part))
            for tensor, shape in part:
                places[tensor] = name
                total += int(np.prod(shape))
                file.writelines(one.tobytes() if len(shape) == 1 else chunk for chunk in _numbers(pool, shape, rng))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 2 * total}, "weight_map": places})
    )
    config = {"model_type": "llama", "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_attention_heads": HEADS}
    config |= {"num_key_value_heads": HEADS, "num_hidden_layers": layers, "vocab_size": WORDS, "rms_norm_eps": 1e-5}
    config |= {"max_position_embeddings": CONTEXT, "hidden_act": "silu", "tie_word_embeddings": False}
    (folder / "config.json").write_text(json.dumps(config))
    return total


def split(tensors: list[tuple[str, tuple[int, ...]]]) -> list[list[tuple[str, tuple[int, ...]]]]:
    """The tensors of each shard."""
    parts, size = [[]], 0
    for tensor, shape in tensors:
        own = 2 * int(np.prod(shape))
        if parts[-1] and size + own > SHARD:
            parts, size = [*parts, []], 0
        parts[-1].append((tensor, shape))
        size += own
    return parts


def header(part: list[tuple[str, tuple[int, ...]]]) -> bytes:
    """The length and the header of a safetensors file."""
    entries, end = {}, 0
    for tensor, shape in part:
        start, end = end, end + 2 * int(np.prod(shape))
        entries[tensor] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text


def _numbers(pool: np.ndarray, shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[bytes]:
    if len(shape) == 1:
        yield b""
        return
    left, start = int(np.prod(shape)), int(rng.integers(POOL))
    while left:
        taken = min(left, POOL - start)
        yield pool[start : start + taken].tobytes()
        left, start = left - taken, 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layers", type=int, default=LAYERS)
    chosen = parser.parse_args()
    print(f"{write(chosen.folder, chosen.layers):,} parameters")
