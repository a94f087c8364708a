"""One block that is told about positions in five ways; everything else is the transformer of Jiang and Li (2023).

* `none`: not at all. * `table`: an absolute code that is learned. * `sinusoidal`: an absolute code that is fixed.
* `relative`: a number for every distance i - j, added to the scores. * `rotary` (Su et al. 2021, arXiv 2104.09864):
queries and keys are turned, pair of coordinates by pair, by the angle position / 10000^(2 pair / size), so that scores
depend on content and distance.

The last one is no transformer of `certiformer.model`: it lives here, is trained and measured, and nothing is proved of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.model.attention import Rows
from certiformer.model.block import apply_block
from certiformer.model.config import Config
from certiformer.rates.sequence_models import Apply, Params, sequence_transformer, transformer_start
from certiformer.train import transformer_outputs

POSITIONS = ("none", "table", "sinusoidal", "relative", "rotary")
BASE = 10_000.0


def position_model(kind: str, length: int, width: int, hidden: int) -> tuple[Apply, Callable[[int], Params]]:
    """How a model with that kind of positions computes, and how it starts from a seed."""
    config = position_config(kind, length, width, hidden)
    return _outputs(kind, config), partial(transformer_start, config)


def position_config(kind: str, length: int, width: int, hidden: int) -> Config:
    """Its configuration; that of `rotary` is the one without positions, whose tensors it shares."""
    code = kind if kind in ("table", "sinusoidal") else "none"
    config = sequence_transformer(length, width, hidden, depth=1, code=code)
    if kind != "relative":
        return config
    blocks = tuple(
        block if block.attention is None else replace(block, attention=replace(block.attention, score_bias="toeplitz"))
        for block in config.blocks
    )
    return replace(config, blocks=blocks)


@cache
def _outputs(kind: str, config: Config) -> Apply:
    # One function for the same arguments: the training loop is compiled anew for every new function it is given.
    if kind != "rotary":
        return transformer_outputs(config)
    return lambda tensors, x: jax.vmap(partial(_rotary_forward, config, tensors))(x)


def _rotary_forward(config: Config, tensors: Params, x: Float[Array, "tokens 1"]) -> Float[Array, " tokens"]:
    rows = x @ tensors["embed.weight"] + tensors["embed.bias"]
    for index, block in enumerate(config.blocks):
        if block.attention is None:
            (rows,), _ = apply_block(block, tensors, f"blocks.{index}", (rows,), (Rows(0, rows),))
        else:
            rows = _rotary_head(tensors, f"blocks.{index}.attention.groups.0", rows)
    return (rows @ tensors["readout.weight"] + tensors["readout.bias"]).reshape(-1)


def _rotary_head(tensors: Params, name: str, rows: Float[Array, "tokens width"]) -> Float[Array, "tokens width"]:
    """Softmax attention without scale and residual, as in the other models."""
    query, key, value = (
        jnp.einsum("id,hdk->hik", rows, tensors[f"{name}.{role}"]) for role in ("query", "key", "value")
    )
    shares = jax.nn.softmax(jnp.einsum("hik,hjk->hij", turned(query), turned(key)), axis=-1)
    return jnp.einsum("hij,hjv,hvd->id", shares, value, tensors[f"{name}.output"])


def turned(vectors: Float[Array, "heads tokens size"]) -> Float[Array, "heads tokens size"]:
    """Vector number i turned by the angles of position i; the first half of the coordinates pairs with the second.

    >>> [f"{x:.4f}" for x in turned(jnp.array([[[1.0, 0.0], [1.0, 0.0]]]))[0, 1]]
    ['0.5403', '0.8415']
    """
    tokens, size = vectors.shape[-2:]
    angles = np.arange(tokens)[:, None] / BASE ** (2 * np.arange(size // 2) / size)
    cosine, sine = (jnp.asarray(part, vectors.dtype) for part in (np.cos(angles), np.sin(angles)))
    first, second = vectors[..., : size // 2], vectors[..., size // 2 :]
    return jnp.concatenate([first * cosine - second * sine, first * sine + second * cosine], axis=-1)
