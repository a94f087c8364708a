"""Enclosure of a whole transformer on a box of its inputs.

The sequence is kept in two pieces, registers and data tokens, as in `model`: before the first attention the registers
are constants, shared by every box of a batch. All passes but the last update every token; the last block computes only
the rows that the read-out sees.

Scores are bilinear: s_ij = u_i M u_j + (WK bq) . u_j + terms that do not depend on the key. M = scale WQ WK^T is formed
once in float64 with its rounding charged, so that the remainder of u_i meets |M u_j| and not |WQ| |k_j|; measured, this
makes first-order forms of a small transformer 6 to 18 times tighter than propagating queries and keys apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.enclose.approximate import Approximate, exact, rounded
from certiformer.enclose.attention import hard_attention, linear_attention, softmax_attention
from certiformer.enclose.compose import elementary, or_interval
from certiformer.enclose.prototype_form import BoxFunction
from certiformer.enclose.select import relu
from certiformer.enclose.space import Space
from certiformer.enclose.taylor import (
    Form,
    add,
    affine,
    contract,
    enclosed_range,
    join,
    product,
    rearranged,
    total,
    variables,
)
from certiformer.enclose.weights import attention_head, data_offsets, key_mask, score_bias_rows
from certiformer.errors import BadInput
from certiformer.interval import Interval, apart, arithmetic
from certiformer.interval.padding import slack
from certiformer.model import Attention, FeedForward, Norm, Transformer

ATTENTION: dict[str, Callable[[Form, Form, np.ndarray], Form]] = {
    "softmax": softmax_attention,
    "hard": hard_attention,
    "linear": linear_attention,
    "relu": lambda scores, values, allowed: linear_attention(apart(relu, scores), values, allowed),
}
ACTIVATION: dict[str, Callable[[Form], Form]] = {
    "relu": relu,
    "gelu": lambda x: elementary("gelu", x),
    "identity": lambda x: x,
}

Sequence = list[Form]


def enclose_model(model: Transformer, order: int) -> BoxFunction:
    """A function of (centre, radius) that encloses all outputs of a continuous-input model on that box."""
    config = model.config
    if config.input.kind != "continuous" or config.input.width is None:
        raise BadInput("only a model with continuous inputs has an enclosure on a box; this one reads token ids")
    space = Space(config.tokens * config.input.width, order)
    network = Network(model, space)

    def enclose(centre: Float[Array, " D"], radius: Float[Array, " D"]) -> Form:
        return network.outputs(variables(space, centre, radius))

    return enclose


class Network:
    """The layers of one model as operations on forms of one space."""

    def __init__(self, model: Transformer, space: Space) -> None:
        self.model, self.space, self.config = model, space, model.config

    def outputs(self, x: Form) -> Form:
        sequence = self.embed(x)
        starts = [0, self.config.registers] if self.config.registers else [0]
        passes = [index for _ in range(self.config.loops) for index in range(len(self.config.blocks))]
        for index in passes[:-1]:
            pieces = zip(starts, sequence, strict=True)
            sequence = [self.block(index, sequence, start, piece) for start, piece in pieces]
        start, rows = self.read_rows(sequence)
        if passes:
            rows = self.block(passes[-1], sequence, start, rows)
        return self.read_out(rows)

    def embed(self, x: Form) -> Sequence:
        config = self.config
        tokens = rearranged(x, lambda a: a.reshape(config.tokens, config.input.width))
        data = add(affine(tokens, self.stored("embed.weight")), self.known(data_offsets(self.model)))
        if not config.registers:
            return [data]
        return [self.known(self.stored("registers")), data]

    def read_rows(self, sequence: Sequence) -> tuple[int, Form]:
        """Place in the sequence and values of the rows that are read out."""
        registers, data = self.config.registers, sequence[-1]
        if self.config.readout.kind == "token":
            token = self.config.readout.token or 0
            return registers + token, data[token : token + 1]
        if self.config.readout.kind == "register":
            register = self.config.readout.token or 0
            return register, sequence[0][register : register + 1]
        return registers, data

    def read_out(self, rows: Form) -> Form:
        kind = self.config.readout.kind
        if kind in ("mean", "sum"):
            rows = total(rows, 0)[None]
        if kind == "mean":
            rows = product(rows, self.known(rounded(np.float64(1.0 / self.config.tokens))))
        out = affine(rows, self.stored("readout.weight"), self.stored("readout.bias"))
        return rearranged(out, lambda a: a.reshape(-1))

    def block(self, index: int, sequence: Sequence, start: int, rows: Form) -> Form:
        """Rows of the sequence, the first at place `start`, after block `index`."""
        block, prefix = self.config.blocks[index], f"blocks.{index}"
        if block.attention is not None:
            normed = [self.norm(block.norm, "pre", f"{prefix}.norm.attention", piece) for piece in sequence]
            queries = self.norm(block.norm, "pre", f"{prefix}.norm.attention", rows)
            out = self.attend(index, block.attention, normed, start, queries)
            rows = add(rows, out) if block.attention.residual else out
            rows = self.norm(block.norm, "post", f"{prefix}.norm.attention", rows)
        if block.ffn is not None:
            out = self.feed_forward(
                block.ffn, f"{prefix}.ffn", self.norm(block.norm, "pre", f"{prefix}.norm.ffn", rows)
            )
            rows = add(rows, out) if block.ffn.residual else out
            rows = self.norm(block.norm, "post", f"{prefix}.norm.ffn", rows)
        return rows

    def attend(self, block: int, attention: Attention, sequence: Sequence, start: int, queries: Form) -> Form:
        out = None
        stop = start + queries.shape[0]
        allowed = key_mask(self.model, block)[start:stop]
        for group, heads in enumerate(attention.heads):
            scores = self.scores(block, group, attention, sequence, slice(start, stop), queries)
            values = join([self.values(block, group, heads.count, piece) for piece in sequence], 1)
            if attention.kind not in ATTENTION:
                raise BadInput(f"{attention.kind} attention has no enclosure here")
            average = ATTENTION[attention.kind](scores, values, allowed)
            flat = rearranged(average, lambda a: jnp.moveaxis(a, 0, 1).reshape(a.shape[1], -1))
            weight = self.model.tensors[f"blocks.{block}.attention.groups.{group}.output"]
            part = affine(flat, exact(np.asarray(weight).reshape(-1, weight.shape[-1])))
            out = part if out is None else add(out, part)
        if out is None:
            raise BadInput("an attention layer without heads has no enclosure")
        if attention.bias:
            out = add(out, self.known(self.stored(f"blocks.{block}.attention.output_bias")))
        return out

    def scores(
        self, block: int, group: int, attention: Attention, sequence: Sequence, rows: slice, queries: Form
    ) -> Form:
        """(heads, rows, keys), up to terms that are equal for all keys where the attention is softmax or hard."""
        count, size = attention.heads[group].count, attention.heads[group].key
        heads = [attention_head(self.model, block, group, h) for h in range(count)]
        factor = rounded(1.0 / math.sqrt(size)) if attention.scale == "inverse-sqrt" else rounded(1.0, 0.0)
        if attention.kind in ("linear", "relu"):
            left = self.mapped(
                queries, [h.query.times(factor) for h in heads], [h.query_bias.times(factor) for h in heads]
            )
            keys = [self.mapped(piece, [h.key for h in heads], [h.key_bias for h in heads]) for piece in sequence]
            parts = [self.contracted(left, key, "ihm,jhm->hij") for key in keys]
        else:
            bilinear = [(h.query @ h.key.transposed).times(factor) for h in heads]
            toward_key = [
                (Approximate(*(b[None] for b in h.query_bias)) @ h.key.transposed).times(factor).at(0) for h in heads
            ]
            left = self.mapped(queries, bilinear, toward_key)
            parts = [self.contracted(left, piece, "ihm,jm->hij") for piece in sequence]
        scores = join(parts, 2)
        if attention.score_bias != "none":
            biases = [score_bias_rows(self.model, block, group, h, rows) for h in range(count)]
            scores = add(scores, self.known(Approximate(*(np.stack(part) for part in zip(*biases, strict=True)))))
        return scores

    def values(self, block: int, group: int, count: int, piece: Form) -> Form:
        """(heads, keys, size)."""
        heads = [attention_head(self.model, block, group, h) for h in range(count)]
        mapped = self.mapped(piece, [h.value for h in heads], [h.value_bias for h in heads])
        return rearranged(mapped, lambda a: jnp.moveaxis(a, 1, 0))

    def feed_forward(self, ffn: FeedForward, prefix: str, rows: Form) -> Form:
        hidden = affine(rows, self.stored(f"{prefix}.up"), self.stored(f"{prefix}.up_bias"))
        active = apart(ACTIVATION[ffn.kind], hidden)
        return affine(active, self.stored(f"{prefix}.down"), self.stored(f"{prefix}.down_bias"))

    def norm(self, norm: Norm | None, place: str, prefix: str, rows: Form) -> Form:
        """Layer norm of each row if it stands at `place`, otherwise the identity."""
        if norm is None or norm.place != place:
            return rows
        width = self.config.width
        # Subtracting the mean as one matrix cancels what all coordinates have in common.
        centring = rounded(np.eye(width) - 1.0 / width)
        centred = affine(rows, centring)
        coef, rem = contract(self.space, (centred.coef, centred.rem), (centred.coef, centred.rem), "im,im->i")
        squares = arithmetic.square(enclosed_range(centred))
        pad = slack(width, squares.hi.sum(-1))
        sum_of_squares = Form(
            coef, rem, Interval(jnp.maximum(squares.lo.sum(-1) - pad, 0.0), squares.hi.sum(-1) + pad), self.space
        )
        variance = self.shifted_scale(sum_of_squares, 1.0 / width, norm.epsilon)
        inverse = elementary("rsqrt", variance)
        normed = product(centred, rearranged(inverse, lambda a: a[:, None]))
        # |h_i - mean| <= sqrt(width - 1) times the standard deviation, for any numbers h_1 .. h_width.
        limit = jnp.full(normed.shape, math.sqrt(width) * (1 + 1e-12)) + 0 * normed.rem
        normed = or_interval(self.space, normed.coef, normed.rem, Interval(-limit, limit))
        scaled = product(normed, self.known(self.stored(f"{prefix}.scale")))
        return add(scaled, self.known(self.stored(f"{prefix}.shift")))

    def shifted_scale(self, x: Form, factor: float, shift_by: float) -> Form:
        """x * factor + shift, keeping the interval; both numbers are positive and rounded (a decimal in the file)."""
        scaled = add(
            product(x, self.known(rounded(np.float64(factor)))), self.known(rounded(np.float64(shift_by), 1.0))
        )
        interval = None
        if x.interval is not None:
            interval = x.interval * Interval(*(jnp.float64(factor * (1 + s * 2.0**-50)) for s in (-1, 1)))
            interval = interval + Interval(*(jnp.float64(shift_by * (1 + s * 2.0**-51)) for s in (-1, 1)))
        return Form(scaled.coef, scaled.rem, interval, self.space)

    def mapped(self, rows: Form, matrices: list[Approximate], biases: list[Approximate]) -> Form:
        """rows @ matrix + bias for each head: (rows, heads, size)."""
        both = Approximate(*(np.concatenate(part, 1) for part in zip(*matrices, strict=True)))
        bias = Approximate(*(np.concatenate(part) for part in zip(*biases, strict=True)))
        return rearranged(affine(rows, both, bias), lambda a: a.reshape(a.shape[0], len(matrices), -1))

    def contracted(self, a: Form, b: Form, pattern: str) -> Form:
        coef, rem = apart(lambda x, y: contract(self.space, x, y, pattern), (a.coef, a.rem), (b.coef, b.rem))
        return Form(coef, rem, None, self.space)

    def known(self, value: Approximate) -> Form:
        return Form(jnp.asarray(value.value)[None], jnp.asarray(value.error), None, self.space)

    def stored(self, name: str) -> Approximate:
        return exact(self.model.tensors[name])
