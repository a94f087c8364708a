"""Where the heads look: attention weights at the middle of the box and at the point of largest known error.

With many keys only those with the largest weights are named and the rest is one entry; with many heads, those whose
weights differ most between the inputs are shown.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from certiformer.model import Config, Transformer

MAX_HEADS, MAX_KEYS, MAX_QUERIES = 12, 10, 10
MAX_WEIGHTS = 16_000_000  # attention weights of one input, 128 MB

Weights = Float[np.ndarray, "inputs queries keys"]


def attention_picture(model: Transformer, places: dict[str, Float[np.ndarray, " inputs"]]) -> dict[str, Any] | None:
    """The picture of all heads at the named inputs; None when there is no attention or too much of it."""
    config = model.config
    groups = [group for block in config.blocks if block.attention for group in block.attention.heads]
    count = sum(group.count for group in groups) * config.loops
    if not count or config.input.kind != "continuous" or count * config.length**2 > MAX_WEIGHTS:
        return None
    with jax.enable_x64(True):
        inputs = [jnp.asarray(point.reshape(config.tokens, -1)) for point in places.values()]
    traced = [model.attention_weights(point) for point in inputs]
    heads: list[tuple[str, Weights]] = []
    several = len(traced[0]) > 1
    for block, by_group in enumerate(zip(*traced, strict=True)):
        number = 0
        for group in zip(*by_group, strict=True):
            stacked = np.stack(group)[:, :, queries(config, last=block + 1 == len(traced[0]))]
            for head in range(stacked.shape[1]):
                number += 1
                name = f"Head {number}" + (f" of block {block + 1}" if several else "")
                heads.append((name, stacked[:, head]))
    changes = [float(np.abs(weights - weights[:1]).max(initial=0.0)) for _, weights in heads]
    shown = sorted(sorted(range(len(heads)), key=lambda h: -changes[h])[:MAX_HEADS])
    rows = queries(config, last=len(traced[0]) == 1)
    return {
        "kind": "attention",
        "title": "Where the heads look",
        "caption": _caption(len(heads), max(changes)),
        "inputs": list(places),
        "heads": [{"name": heads[h][0], "maps": _maps(config, rows, heads[h][1])} for h in shown],
    }


def queries(config: Config, *, last: bool) -> list[int]:
    """The rows whose attention matters: all, but in the last block those that the read-out sees."""
    if not last:
        return list(range(config.length))
    readout = config.readout
    if readout.kind == "register":
        return [readout.token or 0]
    if readout.kind == "token":
        return [config.registers + (readout.token or 0)]
    return list(range(config.registers, config.length))


def _caption(count: int, change: float) -> str:
    text = "Attention weights of every row that is read, in float64."
    if change < 1e-9:
        text += " They are the same at every input: these heads gather, the feed-forward part computes."
    if count > MAX_HEADS:
        text += f" {MAX_HEADS} heads of {count:,} are shown, those whose weights change most between the inputs."
    return text


def _maps(config: Config, rows: list[int], weights: Weights) -> list[dict[str, Any]]:
    rows = rows if len(rows) == weights.shape[1] else list(range(weights.shape[1]))
    kept = rows[:MAX_QUERIES]
    return [_one_map(config, kept, table[: len(kept)]) for table in weights]


def _one_map(config: Config, rows: list[int], table: Float[np.ndarray, "queries keys"]) -> dict[str, Any]:
    names = [token_name(config, row) for row in rows]
    keys = np.arange(table.shape[1])
    if len(keys) <= MAX_KEYS:
        columns, values = [token_name(config, k) for k in keys], table
    else:
        top = np.sort(np.argsort(-table.max(axis=0), kind="stable")[: MAX_KEYS - 1])
        rest = table.sum(axis=1, keepdims=True) - table[:, top].sum(axis=1, keepdims=True)
        columns = [*(token_name(config, k) for k in top), f"{len(keys) - len(top):,} others"]
        values = np.concatenate([table[:, top], np.maximum(rest, 0.0)], axis=1)
    return {"rows": names, "columns": columns, "values": values.tolist()}


def token_name(config: Config, place: int) -> str:
    """`r3` is register 3; a data token that carries one variable has its name.

    >>> from certiformer.model import Config, Input, Readout
    >>> config = Config(Input("continuous", tokens=2, width=1), 1, 1, Readout("sum"), registers=3)
    >>> [token_name(config, place) for place in range(5)]
    ['r1', 'r2', 'r3', 'x1', 'x2']
    """
    if place < config.registers:
        return f"r{place + 1}"
    number, width = place - config.registers + 1, config.input.width or 1
    if width == 1:
        return f"x{number}"
    return "data" if config.tokens == 1 else f"token {number}"
