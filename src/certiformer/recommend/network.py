"""The recommender as the one transformer: ids of items in, a score for every item out, at every position.

Causal blocks with learned positions and norms after each sub-layer, as in the SASRec of RecBole; the read-out is the
transposed table of items. Training runs the same blocks (`model.block.apply_block`) on packed rows: the mask is then one of
owners, and the positions are those within a user. What a sub-layer adds, and the embedding, is dropped out at random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.errors import BadInput
from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    tensor_specs,
)
from certiformer.model.attention import Rows
from certiformer.model.block import NORMS, apply_block
from certiformer.train.products import with_fast_products

if TYPE_CHECKING:
    from certiformer.model import Transformer

LOSSES = ("cross-entropy", "sampled", "gbce")
TRUST = 0.75  # t of gBCE (Petrov and Macdonald 2023)
Tensors = Mapping[str, Array]


@dataclass(frozen=True)
class Shape:
    """How large the transformer is."""

    items: int
    length: int = 50
    width: int = 64
    blocks: int = 2
    heads: int = 2

    def __post_init__(self) -> None:
        for name in ("items", "length", "width", "blocks", "heads"):
            if getattr(self, name) < 1:
                raise BadInput(f"{name} is at least 1, not {getattr(self, name)}")
        if self.width % self.heads:
            raise BadInput(f"the width {self.width} is not a multiple of {self.heads} heads")

    @property
    def config(self) -> Config:
        """The configuration of the stored transformer."""
        size = self.width // self.heads
        block = Block(
            Attention((Heads(self.heads, size, size),), bias=True, mask="causal"),
            FeedForward(4 * self.width, "gelu"),
            Norm("post"),
        )
        given = Input("ids", tokens=self.length, vocabulary=self.items)
        return Config(
            given, self.width, self.items, Readout("all"), (block,) * self.blocks, code=Code("table"), dtype="float32"
        )


def first_weights(shape: Shape, seed: int) -> dict[str, np.ndarray]:
    """The weights before training, without the read-out, which is the table of items."""
    generator = np.random.default_rng(seed)
    tensors = {}
    for name, spec in tensor_specs(shape.config).items():
        role = name.rpartition(".")[2]
        if name.startswith("readout"):
            continue
        if role == "scale":
            tensors[name] = np.ones(spec.shape, np.float32)
        elif role.endswith("bias") or role == "shift":
            tensors[name] = np.zeros(spec.shape, np.float32)
        else:
            tensors[name] = (generator.standard_normal(spec.shape) * SPREAD).astype(np.float32)
    return tensors


SPREAD = 0.02


def with_readout(shape: Shape, tensors: Mapping[str, Any]) -> Transformer:
    """The stored transformer: the trained weights and the transposed table of items."""
    from certiformer.model import Transformer

    table = np.asarray(tensors["embed.weight"])
    full = {name: np.asarray(tensor) for name, tensor in tensors.items()}
    return Transformer(
        shape.config, {**full, "readout.weight": table.T, "readout.bias": np.zeros(shape.items, np.float32)}
    )


def without_readout(model: Transformer) -> dict[str, np.ndarray]:
    """The tensors that training knows."""
    return {name: np.asarray(tensor) for name, tensor in model.tensors.items() if not name.startswith("readout.")}


@cache
def states(shape: Shape, dropout: float = 0.0) -> Callable[..., Float[Array, "rows length width"]]:
    """The last states of packed rows: `states(tensors, ids, position, owner, key)`; with a key and dropout they are noisy.

    One function for each shape, so that all runs with it share their compilations.
    """
    config = shape.config
    attention, ffn, norm = config.blocks[0].attention, config.blocks[0].ffn, config.blocks[0].norm
    if attention is None or ffn is None or norm is None:
        raise ValueError("the blocks of a recommender have both sub-layers and norms")
    halves = {
        "attention": Block(attention=replace(attention, mask="table", residual=False)),
        "ffn": Block(ffn=replace(ffn, residual=False)),
    }
    threshold = round(dropout * 256)

    def one(tensors: Tensors, ids: Array, position: Array, owner: Array, noise: Array | None) -> Array:
        tokens = jnp.arange(ids.shape[0])
        sees = (owner[:, None] == owner[None, :]) & (tokens[None, :] <= tokens[:, None])
        masked = {**tensors, **{f"blocks.{index}.attention.mask": sees for index in range(shape.blocks)}}
        stream = jnp.take(tensors["embed.weight"], ids, axis=0) + jnp.take(tensors["code.table"], position, axis=0)
        if noise is not None:
            stream = stream * noise[0]
        for index in range(shape.blocks):
            for place, (name, half) in enumerate(halves.items()):
                rows, _ = apply_block(half, masked, f"blocks.{index}", (stream,), (Rows(0, stream),))
                added = rows[0] if noise is None else rows[0] * noise[1 + 2 * index + place]
                prefix = f"blocks.{index}.norm.{name}"
                stream = NORMS[norm.kind](stream + added, norm.epsilon)
                stream = stream * tensors[f"{prefix}.scale"] + tensors[f"{prefix}.shift"]
        return stream

    plain = with_fast_products(jax.vmap(lambda t, i, p, o: one(t, i, p, o, None), in_axes=(None, 0, 0, 0)))
    noisy = with_fast_products(jax.vmap(one, in_axes=(None, 0, 0, 0, 0)))

    def run(tensors: Tensors, ids: Array, position: Array, owner: Array, key: Array | None = None) -> Array:
        if key is None or threshold == 0:
            return plain(tensors, ids, position, owner)
        drawn = jax.random.bits(key, (ids.shape[0], 1 + 2 * shape.blocks, ids.shape[1], shape.width), jnp.uint8)
        return noisy(tensors, ids, position, owner, jnp.where(drawn >= threshold, 256 / (256 - threshold), 0.0))

    return run


def loss_of(shape: Shape, loss: str, negatives: int, dropout: float) -> Callable[..., Float[Array, ""]]:
    """`loss(tensors, (ids, position, owner, wanted, key))`, the mean over the tokens whose next item is wanted (>= 0)."""
    if loss not in LOSSES:
        raise BadInput(f"--loss is one of {', '.join(LOSSES)}, not {loss!r}")
    run = states(shape, dropout)

    def value(tensors: Tensors, batch: tuple[Array, ...]) -> Float[Array, ""]:
        ids, position, owner, wanted, key = batch
        hidden = run(tensors, ids, position, owner, key).reshape(-1, shape.width)
        table, wanted = tensors["embed.weight"], wanted.reshape(-1)
        counted = wanted >= 0
        right = jnp.maximum(wanted, 0)
        if loss == "cross-entropy":
            scores = hidden @ table.T
            own = jnp.take_along_axis(scores, right[:, None], axis=1)[:, 0]
            each = jax.nn.logsumexp(scores, axis=1) - own
        else:
            drawn = jax.random.randint(jax.random.fold_in(key, 1), (negatives,), 0, shape.items)
            own = jnp.sum(hidden * jnp.take(table, right, axis=0), axis=1)
            others = hidden @ jnp.take(table, drawn, axis=0).T
            others = jnp.where(drawn[None, :] == right[:, None], -jnp.inf, others)
            each = _sampled(own, others) if loss == "sampled" else _gbce(own, others, negatives / (shape.items - 1))
        return jnp.sum(jnp.where(counted, each, 0.0)) / jnp.maximum(jnp.sum(counted), 1)

    return value


def _sampled(own: Float[Array, " tokens"], others: Float[Array, "tokens drawn"]) -> Float[Array, " tokens"]:
    """The cross-entropy among the wanted item and those drawn."""
    return jnp.logaddexp(jax.nn.logsumexp(others, axis=1), own) - own


def _gbce(own: Float[Array, " tokens"], others: Float[Array, "tokens drawn"], share: float) -> Float[Array, " tokens"]:
    """Binary cross-entropy whose positive probability has the exponent beta of gBCE for this share of negatives."""
    beta = share * (TRUST * (1 - 1 / share) + 1 / share)
    return -beta * jax.nn.log_sigmoid(own) - jnp.sum(jax.nn.log_sigmoid(-others), axis=1)
