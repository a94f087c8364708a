"""Greedy decoding with the one transformer, a row at a time: what a chain of thought runs on.

A causal model is asked for its next token again and again. Its forward pass over the whole sequence would compute every
row every time; here each row of each block is computed once and kept. Both give the same tokens. Proof: under a causal
mask row p of a block is a function of the rows 0, ..., p before the block. The token at p is chosen before any later one
is known, so by induction over the blocks row p after each block is the same function of the same tokens in every
forward pass that contains them, and it may be kept. In a run the two may add up in another order; the certificates of
the compiled decoders hold for every order, so the tokens agree there too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from certiformer.model.attention import Rows
from certiformer.model.block import apply_block
from certiformer.model.codes import code_rows
from certiformer.model.config import Config


class Progress(NamedTuple):
    """Tokens so far (the rest is padding), what goes into each block row by row, the next row, the outputs chosen."""

    tokens: Int[Array, " tokens"]
    streams: Float[Array, "blocks length width"]
    row: Int[Array, ""]
    chosen: Int[Array, " tokens"]
    stopped: Bool[Array, ""]


def greedy(
    config: Config,
    tensors: Mapping[str, np.ndarray],
    prompts: Int[np.ndarray, "batch prompt"],
    writes: Int[np.ndarray, " outputs"],
    steps: int,
) -> Int[np.ndarray, "batch steps"]:
    """The outputs that are chosen after each prompt, one after the other: the largest wins, and output k writes the token
    `writes[k]`, which is the next input; a negative one ends the decoding, and -1 fills up what is left.

    The run is in the type of the tensors.
    """
    masks = {(a.mask, a.score_bias) for a in (block.attention for block in config.blocks) if a is not None}
    if config.loops != 1 or not masks <= {("causal", "none")}:
        raise ValueError("only a causal model without loops and score biases is decoded token by token")
    prompt = prompts.shape[1]
    if not prompt >= 1 or prompt + steps > config.tokens + 1:
        raise ValueError(f"{prompt} tokens and {steps} more do not fit into the {config.tokens} tokens of this model")
    if steps == 0:
        return np.zeros((len(prompts), 0), np.int64)
    with jax.enable_x64(True):
        tokens = np.zeros((len(prompts), config.tokens), np.int64)
        tokens[:, :prompt] = prompts
        on_device = {name: jnp.asarray(tensor) for name, tensor in tensors.items()}
        chosen = _decoded(config, on_device, jnp.asarray(tokens), jnp.asarray(writes), prompt, steps)
        return np.asarray(chosen)[:, prompt - 1 : prompt - 1 + steps]


@partial(jax.jit, static_argnames=("config",))
def _decoded(config: Config, tensors: dict[str, Any], tokens: Array, writes: Array, prompt: Any, steps: Any) -> Array:
    start = _registers(config, tensors)

    def decode(first: Int[Array, " tokens"]) -> Int[Array, " tokens"]:
        begun = Progress(first, start, jnp.asarray(0), jnp.full(config.tokens, -1), jnp.asarray(False))
        last = prompt - 1 + steps
        ended = jax.lax.while_loop(
            lambda now: (now.row < last) & ~now.stopped,
            lambda now: _advance(config, tensors, writes, prompt, now),
            begun,
        )
        return ended.chosen

    return jax.vmap(decode)(tokens)


def _registers(config: Config, tensors: dict[str, Any]) -> Float[Array, "blocks length width"]:
    """What goes into each block at the registers, which see no token after them."""
    streams = jnp.zeros((len(config.blocks), config.length, config.width), tensors["embed.weight"].dtype)
    if not config.registers:
        return streams
    rows = tensors["registers"]
    for index, block in enumerate(config.blocks):
        streams = streams.at[index, : config.registers].set(rows)
        (rows,), _ = apply_block(block, tensors, f"blocks.{index}", (rows,), (Rows(0, rows),))
    return streams


def _advance(config: Config, tensors: dict[str, Any], writes: Array, prompt: Any, now: Progress) -> Progress:
    """One more row through all blocks; from the end of the prompt on it decides the next token."""
    code = tensors["code.table"] if config.code.kind == "table" else code_rows(config)
    row = tensors["embed.weight"][now.tokens[now.row]]
    row = (row if code is None else row + jnp.asarray(code, row.dtype)[now.row])[None]
    place, streams = config.registers + now.row, now.streams
    for index, block in enumerate(config.blocks):
        streams = jax.lax.dynamic_update_slice(streams, row[None], (index, place, 0))
        (row,), _ = apply_block(block, tensors, f"blocks.{index}", (streams[index],), (Rows(place, row),))
    outputs = jnp.matmul(row[0], tensors["readout.weight"], precision="highest") + tensors["readout.bias"]
    # A NaN would be the largest of all: it chooses nothing and stops.
    best = jnp.where(jnp.any(jnp.isnan(outputs)), -1, jnp.argmax(outputs))
    given = now.row + 1 < prompt
    following = jnp.where(best < 0, -1, writes[best])
    chosen = now.chosen.at[now.row].set(jnp.where(given, -1, best))
    written = now.tokens.at[now.row + 1].set(following, mode="drop")
    tokens = jnp.where(given | (following < 0), now.tokens, written)
    return Progress(tokens, streams, now.row + 1, chosen, ~given & (following < 0))
