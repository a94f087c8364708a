"""A plain NumPy forward pass of causal models with softmax or nearest attention: many small ones without compiling each."""

from __future__ import annotations

import numpy as np

from certiformer.kernel.weights import Tensor


def arrays(tensors: dict[str, Tensor], dtype: str = "float64") -> dict[str, np.ndarray]:
    """What the checker read, as arrays."""
    return {name: np.array(tensor.data, dtype).reshape(tensor.shape) for name, tensor in tensors.items()}


def outputs(config: dict, t: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    """(batch, tokens, outputs) for rows of token ids, in the type of the arrays."""
    x = t["embed.weight"][tokens] + t["code.table"][: tokens.shape[1]]
    if config["registers"]:
        x = np.concatenate([np.broadcast_to(t["registers"], (len(x), *t["registers"].shape)), x], axis=1)
    seen = np.tri(x.shape[1], dtype=bool)
    for index, block in enumerate(config["blocks"]):
        attention, name = block["attention"], f"blocks.{index}"
        if attention is not None:
            total = np.zeros_like(x)
            for group in range(len(attention["heads"])):
                g = f"{name}.attention.groups.{group}"
                q, k, v = (np.einsum("bid,hdk->bhik", x, t[f"{g}.{role}"]) for role in ("query", "key", "value"))
                scores = np.einsum("bhik,bhjk->bhij", q, k)
                scores = np.where(seen, scores if attention["kind"] == "softmax" else -np.abs(scores), -np.inf)
                top = scores.max(axis=-1, keepdims=True)
                weights = np.exp(scores - top) if attention["kind"] == "softmax" else (scores == top).astype(x.dtype)
                weights = weights / weights.sum(axis=-1, keepdims=True)
                total = total + np.einsum("bhij,bhjv,hvd->bid", weights, v, t[f"{g}.output"])
            x = x + total
        if block["ffn"] is not None:
            hidden = np.maximum(x @ t[f"{name}.ffn.up"] + t[f"{name}.ffn.up_bias"], 0)
            x = x + (hidden @ t[f"{name}.ffn.down"] + t[f"{name}.ffn.down_bias"])
    return x[:, config["registers"] :] @ t["readout.weight"] + t["readout.bias"]
