"""Prototype attention: the part of a model that is a softmax over fixed prototypes with affine scores.

One attention head on a data token is *prototype attention* when every score is an affine function of the input and every
value a constant:

    out(x) = sum_j w_j(x) v_j,     w(x) = softmax_j(A_j . x + b_j).

Constructed approximators (registers as prototypes) have this form, and closed formulas enclose it far more tightly and
cheaply than a general attention block. `as_prototypes` recognises it by exact zero tests on the stored weights; a
product that is zero for a deeper reason is not recognised, which costs speed only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from certiformer.enclose.approximate import Approximate, exact, rounded
from certiformer.enclose.weights import (
    attention_head,
    data_offsets,
    head_count,
    key_mask,
    readout_rows,
    score_bias_rows,
)
from certiformer.model import Transformer


@dataclass(frozen=True)
class PrototypeHead:
    """One softmax: scores slopes @ x + offsets, constant values; the errors bound the distance to the stored weights."""

    slopes: Float[np.ndarray, "prototypes D"]
    offsets: Float[np.ndarray, " prototypes"]
    values: Float[np.ndarray, "prototypes outputs"]
    slope_error: Float[np.ndarray, " D"]
    offset_error: float
    value_error: Float[np.ndarray, " outputs"]

    def __post_init__(self) -> None:
        count, dimension = self.slopes.shape
        if count == 0 or self.offsets.shape != (count,) or self.values.shape[0] != count:
            raise ValueError("a prototype head needs one slope, offset and value per prototype, and at least one")
        if self.slope_error.shape != (dimension,) or self.value_error.shape != self.values.shape[1:]:
            raise ValueError("the errors of a prototype head have one entry per input and per output")


@dataclass(frozen=True)
class PrototypeAttention:
    """A sum of prototype heads and an affine map: x -> x @ weight + bias + sum of heads."""

    heads: tuple[PrototypeHead, ...]
    weight: Approximate
    bias: Approximate

    @property
    def dimension(self) -> int:
        return self.weight.value.shape[0]

    @property
    def outputs(self) -> int:
        return self.weight.value.shape[1]


def as_prototypes(model: Transformer) -> PrototypeAttention | None:
    """The model as prototype attention, or None when it is not of that form."""
    config = model.config
    simple = config.input.kind == "continuous" and len(config.blocks) == 1 and config.loops == 1
    if not simple:
        return None
    block = config.blocks[0]
    if block.attention is None or block.ffn is not None or block.norm is not None or block.attention.kind != "softmax":
        return None
    heads: list[PrototypeHead] = []
    weight = bias = None
    for row, factor, place in readout_rows(config):
        out = _row_readout(model, factor, place)
        for group, head in head_count(block.attention):
            found = _prototype_head(model, row, group, head, out)
            if found is None:
                return None
            heads.extend(found)
        part_weight, part_bias = _affine_part(model, row, out)
        weight = part_weight if weight is None else weight.plus(part_weight)
        bias = part_bias if bias is None else bias.plus(part_bias)
    bias = bias.plus(_readout_bias(model))
    return PrototypeAttention(tuple(heads), weight, bias)


def _row_readout(model: Transformer, factor: Approximate, place: slice) -> Approximate:
    """How a token that is read out enters the outputs: (width, all outputs)."""
    weight = exact(model.tensors["readout.weight"])
    out = Approximate(*(np.zeros((model.config.width, model.output_size)) for _ in range(2)))
    scaled = weight.times(factor)
    out.value[:, place], out.error[:, place] = scaled.value, scaled.error
    return out


def _readout_bias(model: Transformer) -> Approximate:
    copies = model.output_size // model.config.outputs
    return exact(np.tile(np.asarray(model.tensors["readout.bias"]).astype(np.float64), copies))


def _affine_part(model: Transformer, row: int, out: Approximate) -> tuple[Approximate, Approximate]:
    """x -> (residual stream of the row, if kept, plus the attention's output bias) @ out."""
    config, attention = model.config, model.config.blocks[0].attention
    weight = Approximate(*(np.zeros((config.tokens * config.input.width, model.output_size)) for _ in range(2)))
    bias = Approximate(*(np.zeros(model.output_size) for _ in range(2)))
    if attention.residual:
        mapped = exact(model.tensors["embed.weight"]) @ out
        place = _inputs_of(config, row)
        weight.value[place], weight.error[place] = mapped.value, mapped.error
        bias = (data_offsets(model).at(slice(row, row + 1)) @ out).at(0)
    if attention.bias:
        bias = bias.plus((exact(model.tensors["blocks.0.attention.output_bias"][None]) @ out).at(0))
    return weight, bias


def _inputs_of(config, row: int) -> slice:
    return slice(row * config.input.width, (row + 1) * config.input.width)


def _prototype_head(
    model: Transformer, row: int, group: int, head: int, out: Approximate
) -> list[PrototypeHead] | None:
    """The softmax of one head at data token `row`; an empty list when the row attends nowhere; None if not affine."""
    config, attention = model.config, model.config.blocks[0].attention
    w = attention_head(model, 0, group, head)
    embed = np.asarray(model.tensors["embed.weight"]).astype(np.float64)
    allowed = key_mask(model, 0)[config.registers + row]
    data_allowed = allowed[config.registers :]
    moving_query, moving_key = _touches(embed, w.query.value), _touches(embed, w.key.value)
    quadratic = moving_query.any(0) & moving_key.any(0)
    moving_value = _touches(embed, w.value.value).any(0) & (w.output.value != 0).any(1)
    if data_allowed.any() and (quadratic.any() or moving_value.any()):
        return None
    if not allowed.any():
        return []
    tokens = _constant_tokens(model)
    keys = (tokens @ w.key).plus(w.key_bias)
    query = (data_offsets(model).at(slice(row, row + 1)) @ w.query).plus(w.query_bias)
    slope_query, slope_key = exact(embed) @ w.query, exact(embed) @ w.key
    scale = rounded(1.0 / math.sqrt(w.key.value.shape[1])) if attention.scale == "inverse-sqrt" else rounded(1.0, 0.0)
    offsets = (keys @ query.transposed).at((slice(None), 0)).times(scale)
    offsets = offsets.plus(score_bias_rows(model, 0, group, head, config.registers + row))
    slopes = Approximate(*(np.zeros((config.length, config.tokens * config.input.width)) for _ in range(2)))
    from_query = (keys @ slope_query.transposed).times(scale)
    place = _inputs_of(config, row)
    slopes.value[:, place], slopes.error[:, place] = from_query.value, from_query.error
    from_key = (query @ slope_key.transposed).times(scale)
    for token in np.flatnonzero(data_allowed):
        own = Approximate(*(np.zeros((1, slopes.value.shape[1])) for _ in range(2)))
        own.value[0, _inputs_of(config, token)] = from_key.value[0]
        own.error[0, _inputs_of(config, token)] = from_key.error[0]
        both = slopes.at(slice(config.registers + token, config.registers + token + 1)).plus(own)
        slopes.value[config.registers + token], slopes.error[config.registers + token] = both.value[0], both.error[0]
    values = (tokens @ w.value).plus(w.value_bias) @ (w.output @ out)
    return [
        PrototypeHead(
            slopes.value[allowed],
            offsets.value[allowed],
            values.value[allowed],
            slopes.error[allowed].max(0),
            float(offsets.error[allowed].max()),
            values.error[allowed].max(0),
        )
    ]


def _constant_tokens(model: Transformer) -> Approximate:
    """The part of every token that does not depend on the input: registers, then the offsets of the data tokens."""
    data = data_offsets(model)
    if not model.config.registers:
        return data
    registers = exact(model.tensors["registers"])
    return Approximate(*(np.concatenate(pair) for pair in zip(registers, data, strict=True)))


def _touches(left: Float[np.ndarray, "a b"], right: Float[np.ndarray, "b c"]) -> Bool[np.ndarray, "a c"]:
    """Which entries of left @ right have a term that is not exactly zero."""
    return ((left != 0).astype(float) @ (right != 0).astype(float)) > 0
