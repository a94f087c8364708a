"""The small model and the three tasks of the study `control`, and the norms that the bounds of a trained member need.

One block with norms before its parts reads n tokens; the last token is read out. Attention is one of three: `softmax` of
products; `distance`, softmax of -|q - k|^2 with tied queries and keys (Kim et al. 2021, arXiv 2006.04710), here without
the tying of values; `top-k`, softmax over the k largest scores of a row. Bounds are proved for `softmax` alone.

| task | what is to be said about a sequence |
|---|---|
| `largest` | the largest of its numbers; squared error |
| `lookup` | the value beside the key that the last token repeats; squared error |
| `next item` | a made-up shop: users of four tastes, the next item of ten; cross entropy |
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.bounds.stack_norms import (
    AttentionNorms,
    HiddenNorms,
    MapNorms,
    NormNorms,
    StackHead,
    StackLayer,
    StackNorms,
    TableNorms,
    VectorNorms,
)

TASKS = ("largest", "lookup", "next item")
ATTENTIONS = ("softmax", "distance", "top-k")
TOKENS, ITEMS, TASTES, WIDTH, HEADS, SIZE, UNITS, NEAREST = 6, 10, 4, 16, 2, 4, 32, 2
NOISE = 0.3  # of the answers that are learned from, in standard deviations
EPSILON = 1.0  # of the norms: with a small one no bound is worth comparing
GELU = 1.12905
Tensors = dict[str, Any]


def outputs_of(task: str) -> int:
    """How many numbers are read out."""
    return ITEMS if task == "next item" else 1


def sample(task: str, count: int, seed: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of tokens with ITEMS numbers each, and the answers; for `next item` one-hot tokens and answers."""
    rng = np.random.default_rng(seed)
    x = np.zeros((count, TOKENS, ITEMS), np.float32)
    if task == "next item":
        liked = np.random.default_rng(0).dirichlet(np.full(ITEMS, 0.3), size=(TASTES, ITEMS))
        taste = rng.integers(0, TASTES, count)
        items = np.zeros((count, TOKENS + 1), int)
        items[:, 0] = rng.integers(0, ITEMS, count)
        for step in range(1, TOKENS + 1):
            shares = np.cumsum(liked[taste, items[:, step - 1]], axis=1)
            items[:, step] = np.minimum((rng.random((count, 1)) > shares).sum(1), ITEMS - 1)
        x[np.arange(count)[:, None], np.arange(TOKENS), items[:, :-1]] = 1.0
        return x, np.eye(ITEMS, dtype=np.float32)[items[:, -1]]
    numbers = rng.normal(size=(count, TOKENS)).astype(np.float32)
    x[:, :, 0] = numbers
    if task == "largest":
        y = numbers.max(1, keepdims=True)
    else:
        keys = np.argsort(rng.random((count, TOKENS)), axis=1)
        asked = rng.integers(0, TOKENS - 1, count)
        keys[:, -1] = keys[np.arange(count), asked]
        x[np.arange(count)[:, None], np.arange(TOKENS), 1 + keys] = 1.0
        x[:, -1, 0] = 0.0
        y = numbers[np.arange(count), asked][:, None]
    return x, (y + noise * rng.normal(size=y.shape)).astype(np.float32)


def start(task: str, attention: str, seed: int) -> Tensors:
    """Random weights by the names that constraints know; without `key` where queries and keys are tied."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int, fan: int) -> np.ndarray:
        return (rng.normal(size=shape) / math.sqrt(fan)).astype(np.float32)

    group, made = "blocks.0.attention.groups.0", {"embed.weight": normal(ITEMS, WIDTH, fan=1)}
    made["code.table"] = normal(TOKENS, WIDTH, fan=4)
    made |= {f"{group}.{name}": normal(HEADS, WIDTH, SIZE, fan=WIDTH) for name in ("query", "key", "value")}
    if attention == "distance":
        del made[f"{group}.key"]
    made[f"{group}.output"] = normal(HEADS, SIZE, WIDTH, fan=SIZE * HEADS)
    made |= {"blocks.0.ffn.up": normal(WIDTH, UNITS, fan=WIDTH), "blocks.0.ffn.down": normal(UNITS, WIDTH, fan=UNITS)}
    for name in ("attention", "ffn", "last"):
        made[f"blocks.0.norm.{name}.scale"] = np.ones(WIDTH, np.float32)
    made["readout.weight"] = normal(WIDTH, outputs_of(task), fan=WIDTH)
    return made


@cache
def outputs(attention: str) -> Callable[[Tensors, Array], Float[Array, "batch outputs"]]:
    """The model with this kind of attention."""
    group = "blocks.0.attention.groups.0"

    def normed(tensors: Tensors, name: str, x: Array) -> Array:
        centred = x - x.mean(-1, keepdims=True)
        return (
            centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + EPSILON) * tensors[f"blocks.0.norm.{name}.scale"]
        )

    def apply(tensors: Tensors, x: Array) -> Array:
        stream = x @ tensors["embed.weight"] + tensors["code.table"]
        inside = normed(tensors, "attention", stream)
        query = jnp.einsum("bnd,hde->bhne", inside, tensors[f"{group}.query"])
        key = query if attention == "distance" else jnp.einsum("bnd,hde->bhne", inside, tensors[f"{group}.key"])
        value = jnp.einsum("bnd,hde->bhne", inside, tensors[f"{group}.value"])
        scores = jnp.einsum("bhne,bhme->bhnm", query, key) / math.sqrt(SIZE)
        if attention == "distance":
            squares = (key**2).sum(-1) / math.sqrt(SIZE)
            scores = 2 * scores - squares[:, :, None, :] - squares[:, :, :, None]
        elif attention == "top-k":
            least = jnp.sort(scores, axis=-1)[..., -NEAREST][..., None]
            scores = jnp.where(scores >= least, scores, -jnp.inf)
        heard = jnp.einsum("bhnm,bhme,hed->bnd", jax.nn.softmax(scores, -1), value, tensors[f"{group}.output"])
        stream = stream + heard
        hidden = jax.nn.gelu(normed(tensors, "ffn", stream) @ tensors["blocks.0.ffn.up"], approximate=False)
        stream = stream + hidden @ tensors["blocks.0.ffn.down"]
        return normed(tensors, "last", stream)[:, -1] @ tensors["readout.weight"]

    return apply


def norms_of(tensors: Tensors) -> StackNorms:
    """The norms of a trained member with softmax attention, in float64: a measurement, not stratified."""
    group = "blocks.0.attention.groups.0"
    held = {name: np.asarray(tensor, np.float64) for name, tensor in tensors.items()}

    def map_of(matrix: np.ndarray, rank: int) -> MapNorms:
        rows, columns = matrix.shape
        sizes = float(np.linalg.norm(matrix, 2)), float(np.linalg.norm(matrix)), float(np.abs(matrix).sum())
        return MapNorms(sizes[0], sizes[1], sizes[2], rows, columns, rank)

    def table(matrix: np.ndarray) -> TableNorms:
        (rows, columns), squares = matrix.shape, float((np.abs(matrix).sum(1) ** 2).sum())
        return TableNorms(rows, columns, squares, float(np.linalg.norm(matrix, axis=1).max()))

    def norm(name: str) -> NormNorms:
        gain = held[f"blocks.0.norm.{name}.scale"]
        sizes = float(np.abs(gain).sum()), float(np.linalg.norm(gain)), float(np.abs(gain).max())
        return NormNorms(EPSILON, VectorNorms(sizes[0], sizes[1], sizes[2], WIDTH))

    heads = []
    for h in range(HEADS):
        query, key, value = (held[f"{group}.{name}"][h] for name in ("query", "key", "value"))
        used = [max(1, int(w.any(axis=0).sum())) for w in (query, value)]
        scores = map_of(query @ key.T / math.sqrt(SIZE), used[0])
        heads.append(StackHead(map_of((value @ held[f"{group}.output"][h]).T, used[1]), scores))
    up, down = held["blocks.0.ffn.up"].T, held["blocks.0.ffn.down"].T
    hidden = HiddenNorms(map_of(up, min(up.shape)), map_of(down, min(down.shape)), slope=GELU)
    layer = StackLayer(AttentionNorms(tuple(heads)), hidden, norm("attention"), norm("ffn"))
    tables = (table(held["embed.weight"]), table(held["code.table"]))
    return StackNorms("pre", WIDTH, (layer,), tables, final_norm=norm("last"), readout=table(held["readout.weight"].T))
