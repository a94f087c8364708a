"""A plain NumPy forward pass for compiled transformers, so that many small models can be run without compiling each.

`test_library` checks it against the one forward pass of `model.Transformer`.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from certiformer.compiler.driver import Compiled
from certiformer.kernel.situations.rasp.circuit import rational


def run(compiled: Compiled, ids: np.ndarray) -> np.ndarray:
    """The read-out for every row of ids: (rows, positions, outputs), in the stored type."""
    t, config = compiled.tensors, compiled.config
    n = ids.shape[1]
    data = t["embed.weight"][ids] + t["code.table"][None, :n]
    x = np.concatenate([np.broadcast_to(t["registers"], (len(ids), 1, config.width)), data], axis=1)
    for index, block in enumerate(config.blocks):
        if block.attention is not None:
            x = x + _attention(t, f"blocks.{index}.attention", block.attention, x)
        if block.ffn is not None:
            name = f"blocks.{index}.ffn"
            hidden = np.maximum(x @ t[f"{name}.up"] + t[f"{name}.up_bias"], 0)
            x = x + (hidden @ t[f"{name}.down"] + t[f"{name}.down_bias"])
    return x[:, 1:] @ t["readout.weight"] + t["readout.bias"]


def _attention(t: dict, name: str, attention, x: np.ndarray) -> np.ndarray:
    total = np.zeros_like(x)
    for group in range(len(attention.heads)):
        g = f"{name}.groups.{group}"
        q, k, v = (
            np.einsum("bid,hdk->bhik", x, t[f"{g}.{role}"]) + t[f"{g}.{role}_bias"][None, :, None]
            for role in ("query", "key", "value")
        )
        scores = q @ k.swapaxes(-1, -2)
        if attention.mask == "causal":
            scores = np.where(np.tri(x.shape[1], dtype=bool), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = weights / weights.sum(-1, keepdims=True)
        total = total + np.einsum("bhiv,hvd->bid", weights @ v, t[f"{g}.output"])
    return total + t[f"{name}.output_bias"]


def decoded(compiled: Compiled, outputs: np.ndarray) -> list[list]:
    """The values that the read-out names: rows of (positions, outputs)."""
    output, values = compiled.circuit.output, compiled.graph.nodes[compiled.graph.output].values
    listed = list(values.values or ()) + [None] * values.undefined
    if output.kind == "logits":
        return [[listed[place] for place in row] for row in outputs.argmax(-1).tolist()]
    numbers = outputs[..., 0].astype(np.float64)
    if output.feature is None:
        return numbers.tolist()
    held = [*output.feature, *([] if output.undefined is None else [output.undefined])]
    features = np.array([float(rational(f)) for f in held])
    order = np.argsort(features)
    middles = (features[order][1:] + features[order][:-1]) / 2
    return [[listed[order[place]] for place in row] for row in np.searchsorted(middles, numbers).tolist()]


def all_ids(vocabulary: int, length: int, limit: int = 10_000, seed: int = 0) -> np.ndarray:
    """All inputs of a length, or `limit` random ones when there are more."""
    if vocabulary**length <= limit:
        return np.array(list(product(range(vocabulary), repeat=length)))
    return np.random.default_rng(seed).integers(vocabulary, size=(limit, length))
