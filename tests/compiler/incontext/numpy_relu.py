"""A plain NumPy forward pass of ReLU transformers, so that many contexts can be run without compiling; in the stored type.

`tests/cli/test_incontext_relu.py` checks it against the one forward pass of `model.Transformer`.
"""

from __future__ import annotations

import numpy as np


def run(compiled, points: np.ndarray) -> np.ndarray:
    """The read-out for every point, (points, outputs)."""
    t, config = compiled.tensors, compiled.config
    dtype = t["embed.weight"].dtype
    x = points.astype(dtype).reshape(len(points), config.tokens, -1) @ t["embed.weight"] + t["embed.bias"]
    for _ in range(config.loops):
        for index, block in enumerate(config.blocks):
            if block.attention is not None:
                x = x + _attention(t, f"blocks.{index}.attention", len(block.attention.heads), x)
            if block.ffn is not None:
                name = f"blocks.{index}.ffn"
                hidden = np.maximum(x @ t[f"{name}.up"] + t[f"{name}.up_bias"], 0)
                x = x + (hidden @ t[f"{name}.down"] + t[f"{name}.down_bias"])
    return x[:, config.readout.token] @ t["readout.weight"] + t["readout.bias"]


def _attention(t: dict, name: str, groups: int, x: np.ndarray) -> np.ndarray:
    total = np.zeros_like(x)
    for group in range(groups):
        q, k, v = (x[:, None] @ t[f"{name}.groups.{group}.{role}"] for role in ("query", "key", "value"))
        mixed = np.maximum(q @ k.swapaxes(-1, -2), 0) @ v
        total = total + (mixed @ t[f"{name}.groups.{group}.output"]).sum(1)
    return total
