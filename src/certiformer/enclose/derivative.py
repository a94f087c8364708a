"""Enclosures of the derivatives of a transformer on a box: every entry of its Jacobian, at every point of the box.

A Taylor form asserts nothing about derivatives, so the slopes of `enclose_model` prove no Lipschitz constant. Here the
derivative is computed beside the value, by the rules of differentiation in forms: each row of the sequence carries a
second form with one more axis, the D directions of the input.

| layer | derivative in direction t |
|---|---|
| x -> W x + b | W t |
| relu | the step of x (1, 0, or anything between where the box does not decide), times t |
| gelu | (Phi(x) + x phi(x)) t |
| scores u_i M u_j | t_i M u_j + u_i M t_j |
| layer norm, c the centred row, r = 1 / sqrt(mean c^2 + eps) | g (r t_c - r^3 c mean(c t_c)), t_c the centred t |
| softmax average of v_j | sum_j p_j (t of v_j) + sum_j p_j (t of s_j - mean of it) (v_j - v_0), v_0 any vector |

At a kink of a relu the derivative does not exist, and the enclosure holds every limit of derivatives nearby. The network is
Lipschitz on the box, so it is the integral of its derivative along almost every segment, and on every segment by
continuity: |f(x) - f(y)| <= sup |J| |x - y|.
"""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.enclose.approximate import Approximate, exact, rounded
from certiformer.enclose.attention import softmax_attention
from certiformer.enclose.compose import elementary
from certiformer.enclose.network import Network
from certiformer.enclose.prototype_form import BoxFunction
from certiformer.enclose.space import Space
from certiformer.enclose.taylor import (
    Form,
    add,
    affine,
    constant,
    enclosed_range,
    join,
    product,
    rearranged,
    scale,
    shift,
    sub,
    total,
    variables,
)
from certiformer.enclose.weights import attention_head, key_mask
from certiformer.errors import BadInput
from certiformer.interval import Interval, apart
from certiformer.model import Attention, FeedForward, Norm, Transformer

Pair = tuple[Form, Form]
"""A form (rows, width) and its derivatives (D, rows, width)."""


def enclose_jacobian(model: Transformer, order: int) -> BoxFunction:
    """A function of (centre, radius) that encloses the derivatives (D, outputs) of a continuous-input model on that box.

    Softmax attention, layer norms, relu and gelu units; another kind of attention is refused.
    """
    config = model.config
    if config.input.kind != "continuous" or config.input.width is None:
        raise BadInput("only a model with continuous inputs has derivatives on a box; this one reads token ids")
    for block in config.blocks:
        if block.attention is not None and block.attention.kind != "softmax":
            raise BadInput(f"derivatives are enclosed for softmax attention, not for the kind {block.attention.kind}")
    space = Space(config.tokens * config.input.width, order)
    network = Derivatives(model, space)

    def enclose(centre: Float[Array, " D"], radius: Float[Array, " D"]) -> Form:
        return network.jacobian(variables(space, centre, radius))

    return enclose


class Derivatives:
    """The layers of one model as operations on pairs of forms of one space."""

    def __init__(self, model: Transformer, space: Space) -> None:
        self.model, self.space, self.config = model, space, model.config
        self.network = Network(model, space)

    def jacobian(self, x: Form) -> Form:
        sequence = list(zip(self.network.embed(x), self.embedded(), strict=True))
        starts = [0, self.config.registers] if self.config.registers else [0]
        passes = [index for _ in range(self.config.loops) for index in range(len(self.config.blocks))]
        for index in passes[:-1]:
            pieces = zip(starts, sequence, strict=True)
            sequence = [self.block(index, sequence, start, piece) for start, piece in pieces]
        start, rows = self.read_rows(sequence)
        if passes:
            rows = self.block(passes[-1], sequence, start, rows)
        return self.read_out(rows[1])

    def embedded(self) -> list[Form]:
        """Direction (token t, coordinate k) moves row t by row k of the embedding; registers do not move."""
        weight, tokens = self.network.stored("embed.weight").value, self.config.tokens
        moves = np.einsum("ts,kd->tksd", np.eye(tokens), weight).reshape(self.space.dimension, tokens, -1)
        data = Form(jnp.asarray(moves)[None], jnp.zeros(moves.shape), None, self.space)
        if not self.config.registers:
            return [data]
        still = jnp.zeros((self.space.dimension, self.config.registers, self.config.width))
        return [Form(still[None], still, None, self.space), data]

    def read_rows(self, sequence: list[Pair]) -> tuple[int, Pair]:
        start, rows = self.network.read_rows([value for value, _ in sequence])
        if self.config.readout.kind in ("token", "register"):
            place = self.config.readout.token or 0
            piece = sequence[-1 if self.config.readout.kind == "token" else 0][1]
            return start, (rows, piece[:, place : place + 1])
        return start, (rows, sequence[-1][1])

    def read_out(self, slopes: Form) -> Form:
        """As `Network.read_out`, without the bias: (D, outputs)."""
        kind = self.config.readout.kind
        if kind in ("mean", "sum"):
            slopes = rearranged(total(slopes, 1), lambda a: a[:, None])
        if kind == "mean":
            slopes = product(slopes, self.network.known(rounded(np.float64(1.0 / self.config.tokens))))
        out = affine(slopes, self.network.stored("readout.weight"))
        return rearranged(out, lambda a: a.reshape(a.shape[0], -1))

    def block(self, index: int, sequence: list[Pair], start: int, rows: Pair) -> Pair:
        block, prefix = self.config.blocks[index], f"blocks.{index}"
        if block.attention is not None:
            name = f"{prefix}.norm.attention"
            normed = [self.norm(block.norm, "pre", name, piece) for piece in sequence]
            out = self.attend(index, block.attention, normed, start, self.norm(block.norm, "pre", name, rows))
            rows = _added(rows, out) if block.attention.residual else out
            rows = self.norm(block.norm, "post", name, rows)
        if block.ffn is not None:
            name = f"{prefix}.norm.ffn"
            out = self.feed_forward(block.ffn, f"{prefix}.ffn", self.norm(block.norm, "pre", name, rows))
            rows = _added(rows, out) if block.ffn.residual else out
            rows = self.norm(block.norm, "post", name, rows)
        return rows

    def norm(self, norm: Norm | None, place: str, prefix: str, rows: Pair) -> Pair:
        """Layer norm of each row if it stands at `place`, otherwise the identity."""
        if norm is None or norm.place != place:
            return rows
        network, width = self.network, self.config.width
        centring = rounded(np.eye(width) - 1.0 / width)
        centred, moved = affine(rows[0], centring), affine(rows[1], centring)
        squares = network.contracted(centred, centred, "im,im->i")
        most = enclosed_range(squares).hi
        squares = Form(squares.coef, squares.rem, Interval(jnp.zeros_like(most), jnp.maximum(most, 0.0)), self.space)
        inverse = elementary("rsqrt", network.shifted_scale(squares, 1.0 / width, norm.epsilon))
        cube = product(product(inverse, inverse), inverse)
        along = product(
            network.contracted(centred, moved, "im,aim->ai"), network.known(rounded(np.float64(-1 / width)))
        )
        turned = rearranged(product(cube, along), lambda a: a[..., None])
        slope = add(product(moved, rearranged(inverse, lambda a: a[:, None])), product(centred, turned))
        return network.norm(norm, place, prefix, rows[0]), product(
            slope, network.known(network.stored(f"{prefix}.scale"))
        )

    def attend(self, block: int, attention: Attention, sequence: list[Pair], start: int, queries: Pair) -> Pair:
        network, stop = self.network, start + queries[0].shape[0]
        values_only = [value for value, _ in sequence]
        out = network.attend(block, attention, values_only, start, queries[0])
        allowed = key_mask(self.model, block)[start:stop]
        moved = None
        for group, heads in enumerate(attention.heads):
            scores = network.scores(block, group, attention, values_only, slice(start, stop), queries[0])
            keys = scores.shape[2]
            one = jnp.broadcast_to(jnp.eye(keys), (heads.count, keys, keys))
            shares = softmax_attention(scores, Form(one[None], jnp.zeros(one.shape), None, self.space), allowed)
            values = join([network.values(block, group, heads.count, piece) for piece in values_only], 1)
            part = self.average(shares, values, *self.slopes(block, group, attention, sequence, queries))
            flat = rearranged(part, lambda a: jnp.moveaxis(a, 1, 2).reshape(a.shape[0], a.shape[2], -1))
            weight = np.asarray(self.model.tensors[f"blocks.{block}.attention.groups.{group}.output"])
            one_group = affine(flat, exact(weight.reshape(-1, weight.shape[-1])))
            moved = one_group if moved is None else add(moved, one_group)
        if moved is None:
            raise BadInput("an attention layer without heads has no derivative")
        return out, moved

    def slopes(
        self, block: int, group: int, attention: Attention, sequence: list[Pair], queries: Pair
    ) -> tuple[Form, Form]:
        """Derivatives of the scores, (D, heads, rows, keys), and of the values, (D, heads, keys, size)."""
        network, heads = self.network, attention.heads[group]
        weights = [attention_head(self.model, block, group, h) for h in range(heads.count)]
        factor = rounded(1.0 / math.sqrt(heads.key)) if attention.scale == "inverse-sqrt" else rounded(1.0, 0.0)
        bilinear = [(w.query @ w.key.transposed).times(factor) for w in weights]
        toward_key = [
            (Approximate(*(b[None] for b in w.query_bias)) @ w.key.transposed).times(factor).at(0) for w in weights
        ]
        left = network.mapped(queries[0], bilinear, toward_key)
        moved = self.mapped(queries[1], bilinear)
        scores, values = [], []
        for value, slope in sequence:
            by_query = network.contracted(moved, value, "aihm,jm->ahij")
            scores.append(add(by_query, network.contracted(left, slope, "ihm,ajm->ahij")))
            values.append(rearranged(self.mapped(slope, [w.value for w in weights]), lambda a: jnp.moveaxis(a, 2, 1)))
        return join(scores, 3), join(values, 2)

    def mapped(self, rows: Form, matrices: list[Approximate]) -> Form:
        """Rows of every direction times the matrix of each head: (D, rows, heads, size)."""
        both = Approximate(*(np.concatenate(part, 1) for part in zip(*matrices, strict=True)))
        return rearranged(affine(rows, both), lambda a: a.reshape(*a.shape[:2], len(matrices), -1))

    def average(self, shares: Form, values: Form, scores: Form, moves: Form) -> Form:
        """The last line of the table: (D, heads, rows, size); values are centred at their own mean over the keys."""
        network = self.network
        mean = rearranged(network.contracted(shares, scores, "hij,ahij->ahi"), lambda a: a[..., None])
        change = product(rearranged(shares, lambda a: a[None]), sub(scores, mean))
        centred = shift(values, -values.coef[0].mean(1, keepdims=True))
        by_scores = network.contracted(change, centred, "ahij,hjv->ahiv")
        return add(by_scores, network.contracted(shares, moves, "hij,ahjv->ahiv"))

    def feed_forward(self, ffn: FeedForward, prefix: str, rows: Pair) -> Pair:
        network = self.network
        out = network.feed_forward(ffn, prefix, rows[0])
        hidden = affine(rows[0], network.stored(f"{prefix}.up"), network.stored(f"{prefix}.up_bias"))
        slope = apart(SLOPE[ffn.kind], hidden)
        moved = product(rearranged(slope, lambda a: a[None]), affine(rows[1], network.stored(f"{prefix}.up")))
        return out, affine(moved, network.stored(f"{prefix}.down"))


def _added(rows: Pair, out: Pair) -> Pair:
    return add(rows[0], out[0]), add(rows[1], out[1])


def relu_slope(x: Form) -> Form:
    """1 where x > 0, 0 where x < 0, [0, 1] where the box does not decide; nothing where the range is not a number."""
    r = enclosed_range(x)
    low = jnp.where(r.lo > 0, 1.0, 0.0) + 0 * (r.lo + r.hi)
    return constant(x.space, Interval(low, jnp.where(r.hi < 0, 0.0, 1.0) + 0 * (r.lo + r.hi)))


def gelu_slope(x: Form) -> Form:
    """Phi(x) + x phi(x) = (1 + erf(x / sqrt 2)) / 2 + x exp(-x^2 / 2) / sqrt(2 pi)."""

    def known(value: float) -> Form:
        exact = rounded(np.float64(value))
        return Form(jnp.asarray(exact.value)[None], jnp.asarray(exact.error), None, x.space)

    cumulative = scale(
        shift(elementary("erf", product(x, known(1 / math.sqrt(2)))), jnp.float64(1.0)), jnp.float64(0.5)
    )
    density = product(elementary("exp", scale(product(x, x), jnp.float64(-0.5))), known(1 / math.sqrt(2 * math.pi)))
    return add(cumulative, product(x, density))


SLOPE = {
    "relu": relu_slope,
    "gelu": gelu_slope,
    "identity": lambda x: Form(jnp.ones_like(x.coef[:1]), jnp.zeros_like(x.rem), None, x.space),
}
