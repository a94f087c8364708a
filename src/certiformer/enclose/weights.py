"""Reading a model's tensors for enclosures: each as exact doubles, or as computed numbers with their error bounds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool

from certiformer.enclose.approximate import Approximate, exact, rounded
from certiformer.model import Attention, Config, Transformer
from certiformer.model.codes import code_rows

CODE_UNITS = 64.0
"""Error of a computed position code in units of 2^-52 (1 + |angle|): sin, cos, pow and the quotient, four times over."""


class HeadWeights(NamedTuple):
    """The matrices of one attention head; absent biases are zero."""

    query: Approximate
    key: Approximate
    value: Approximate
    output: Approximate
    query_bias: Approximate
    key_bias: Approximate
    value_bias: Approximate


def head_count(attention: Attention) -> Iterator[tuple[int, int]]:
    """Every head as (group, position in the group)."""
    for group, heads in enumerate(attention.heads):
        for head in range(heads.count):
            yield group, head


def attention_head(model: Transformer, block: int, group: int, head: int) -> HeadWeights:
    name = f"blocks.{block}.attention.groups.{group}"
    matrices = [exact(model.tensors[f"{name}.{role}"][head]) for role in ("query", "key", "value", "output")]
    biases = []
    for role, matrix in zip(("query", "key", "value"), matrices, strict=False):
        stored = model.tensors.get(f"{name}.{role}_bias")
        biases.append(exact(np.zeros(matrix.value.shape[1]) if stored is None else stored[head]))
    return HeadWeights(*matrices, *biases)


def data_offsets(model: Transformer) -> Approximate:
    """What data token t is besides x_t @ embed.weight: the embedding bias plus its position code, (tokens, width)."""
    config = model.config
    bias = exact(np.broadcast_to(np.asarray(model.tensors["embed.bias"]), (config.tokens, config.width)))
    if config.code.kind == "table":
        return bias.plus(exact(model.tensors["code.table"]))
    code = code_rows(config)
    return bias if code is None else bias.plus(_computed_code(config, code))


def _computed_code(config: Config, code: np.ndarray) -> Approximate:
    if config.code.kind == "one-hot":
        return exact(code)
    largest_angle = 2 * np.pi * config.tokens  # circle: 2 pi t / period with period >= 1; sinusoidal: at most t
    error = np.where(code == 0, 0.0, CODE_UNITS * 2.0**-52 * (1 + largest_angle))
    offset = config.code.offset or 0
    width = config.code.width or 2
    error[:, offset : offset + width] = CODE_UNITS * 2.0**-52 * (1 + largest_angle)
    return Approximate(code, error)


def key_mask(model: Transformer, block: int) -> Bool[np.ndarray, "length length"]:
    """Which key (column) each token (row) may attend to, in the full sequence."""
    config, attention = model.config, model.config.blocks[block].attention
    if attention is not None and attention.mask == "causal":
        return np.tril(np.ones((config.length, config.length), dtype=bool))
    if attention is not None and attention.mask == "table":
        return np.asarray(model.tensors[f"blocks.{block}.attention.mask"]) != 0
    return np.ones((config.length, config.length), dtype=bool)


def score_bias_rows(model: Transformer, block: int, group: int, head: int, rows: int | slice) -> Approximate:
    """The additive score bias of the given rows (all keys), zero when there is none."""
    attention, position = model.config.blocks[block].attention, np.arange(model.config.length)
    offsets = position[rows][..., None] - position
    if attention is None or attention.score_bias == "none":
        return exact(np.zeros(offsets.shape))
    stored = np.asarray(model.tensors[f"blocks.{block}.attention.groups.{group}.score_bias"][head])
    return exact(stored[rows] if attention.score_bias == "table" else stored[offsets + len(position) - 1])


def readout_rows(config: Config) -> list[tuple[int, Approximate, slice]]:
    """The data tokens that are read out: (token, factor, its place in the flat outputs)."""
    if config.readout.kind == "token":
        return [(config.readout.token or 0, rounded(1.0, 0.0), slice(0, config.outputs))]
    if config.readout.kind == "mean":
        return [(t, rounded(1.0 / config.tokens), slice(0, config.outputs)) for t in range(config.tokens)]
    if config.readout.kind == "sum":
        return [(t, rounded(1.0, 0.0), slice(0, config.outputs)) for t in range(config.tokens)]
    size = config.outputs
    return [(t, rounded(1.0, 0.0), slice(t * size, (t + 1) * size)) for t in range(config.tokens)]
