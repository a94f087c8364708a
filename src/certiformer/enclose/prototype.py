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
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from certiformer.enclose.approximate import Approximate, exact, rounded
from certiformer.enclose.weights import (
    HeadWeights,
    attention_head,
    data_offsets,
    head_count,
    key_mask,
    readout_rows,
    score_bias_rows,
)
from certiformer.model import Attention, Config, Transformer


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
    if config.input.kind != "continuous" or len(config.blocks) != 1 or config.loops != 1:
        return None
    if config.readout.kind == "register":  # prototypes are what a data token attends to
        return None
    block = config.blocks[0]
    if block.attention is None or block.ffn is not None or block.norm is not None or block.attention.kind != "softmax":
        return None
    heads: list[PrototypeHead] = []
    weight, bias = _zeros(_dimension(config), model.output_size), _readout_bias(model)
    for row, factor, place in readout_rows(config):
        out = _row_readout(model, factor, place)
        for group, head in head_count(block.attention):
            found = _prototype_head(model, block.attention, row, attention_head(model, 0, group, head), out)
            if found is None:
                return None
            scores, values, allowed = found
            scores = scores._replace(
                offsets=scores.offsets.plus(score_bias_rows(model, 0, group, head, config.registers + row))
            )
            if allowed.any():
                heads.append(_kept(scores, values, allowed))
        part_weight, part_bias = _affine_part(model, block.attention, row, out)
        weight, bias = weight.plus(part_weight), bias.plus(part_bias)
    return PrototypeAttention(tuple(heads), weight, bias)


class AffineScores(NamedTuple):
    """Scores slopes @ x + offsets of one row against every token of the sequence."""

    slopes: Approximate
    offsets: Approximate


def _prototype_head(
    model: Transformer, attention: Attention, row: int, w: HeadWeights, out: Approximate
) -> tuple[AffineScores, Approximate, Bool[np.ndarray, " length"]] | None:
    """Scores (without their bias), values and allowed keys of one head at data token `row`; None if not affine."""
    config = model.config
    embed = np.asarray(model.tensors["embed.weight"]).astype(np.float64)
    allowed = key_mask(model, 0)[config.registers + row]
    quadratic = _touches(embed, w.query.value).any(0) & _touches(embed, w.key.value).any(0)
    moving_value = _touches(embed, w.value.value).any(0) & (w.output.value != 0).any(1)
    if allowed[config.registers :].any() and (quadratic.any() or moving_value.any()):
        return None
    tokens = _constant_tokens(model)
    keys = (tokens @ w.key).plus(w.key_bias)
    query = (data_offsets(model).at(slice(row, row + 1)) @ w.query).plus(w.query_bias)
    scale = rounded(1.0 / math.sqrt(w.key.value.shape[1])) if attention.scale == "inverse-sqrt" else rounded(1.0, 0.0)
    offsets = (keys @ query.transposed).at((slice(None), 0)).times(scale)
    # (query + x_row EQ) . (key_j + x_j EK) without the quadratic term, which is zero: two linear terms.
    slopes = _zeros(config.length, _dimension(config))
    from_query = (keys @ (exact(embed) @ w.query).transposed).times(scale)
    slopes = _added(slopes, slice(None), _inputs_of(config, row), from_query)
    from_key = (query @ (exact(embed) @ w.key).transposed).times(scale)
    for token in range(config.tokens):
        place = config.registers + token
        slopes = _added(slopes, slice(place, place + 1), _inputs_of(config, token), from_key)
    values = (tokens @ w.value).plus(w.value_bias) @ (w.output @ out)
    return AffineScores(slopes, offsets), values, allowed


def _kept(scores: AffineScores, values: Approximate, allowed: Bool[np.ndarray, " length"]) -> PrototypeHead:
    """The head over the allowed keys; errors are bounded once for all of them."""
    slopes, offsets = scores
    return PrototypeHead(
        slopes.value[allowed],
        offsets.value[allowed],
        values.value[allowed],
        slopes.error[allowed].max(0),
        float(offsets.error[allowed].max()),
        values.error[allowed].max(0),
    )


def _row_readout(model: Transformer, factor: Approximate, place: slice) -> Approximate:
    """How a token that is read out enters the outputs: (width, all outputs)."""
    scaled = exact(model.tensors["readout.weight"]).times(factor)
    return _added(_zeros(model.config.width, model.output_size), slice(None), place, scaled)


def _readout_bias(model: Transformer) -> Approximate:
    copies = model.output_size // model.config.outputs
    return exact(np.tile(np.asarray(model.tensors["readout.bias"]).astype(np.float64), copies))


def _affine_part(
    model: Transformer, attention: Attention, row: int, out: Approximate
) -> tuple[Approximate, Approximate]:
    """x -> (residual stream of the row, if kept, plus the attention's output bias) @ out."""
    weight, bias = _zeros(_dimension(model.config), model.output_size), _zeros(model.output_size)
    if attention.residual:
        mapped = exact(model.tensors["embed.weight"]) @ out
        weight = _added(weight, _inputs_of(model.config, row), slice(None), mapped)
        bias = (data_offsets(model).at(slice(row, row + 1)) @ out).at(0)
    if attention.bias:
        bias = bias.plus((exact(model.tensors["blocks.0.attention.output_bias"][None]) @ out).at(0))
    return weight, bias


def _dimension(config: Config) -> int:
    return config.tokens * (config.input.width or 1)


def _inputs_of(config: Config, token: int) -> slice:
    """The places of a token's numbers among the inputs x1 .. xD."""
    size = config.input.width or 1
    return slice(token * size, (token + 1) * size)


def _zeros(*shape: int) -> Approximate:
    return exact(np.zeros(shape))


def _added(whole: Approximate, rows: slice, columns: slice, part: Approximate) -> Approximate:
    """`whole` with `part` added to some of its rows and columns."""
    value, error = whole.value.copy(), whole.error.copy()
    value[rows, columns], error[rows, columns] = whole.at((rows, columns)).plus(part)
    return Approximate(value, error)


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
