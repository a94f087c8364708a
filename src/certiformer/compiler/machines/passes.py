"""Running the looped block in JAX: every cell at every pass, or only the cells that can change.

Both use the block of the one transformer (`model.block.apply_block`) and the stored tensors, and both count passes
until the machine stops, the head would leave the tape, or the passes are used up.

*Every cell.* The whole sequence is the argument of the block, pass after pass: the forward pass of the configuration
with `loops` passes, before its read-out.

*Near.* With the head on cell c, the queries are the rows c - 1, c, c + 1 and the keys the rows c - 2, ..., c + 2 (less
where the tape ends). This gives the same contents, bit by bit. Proof: by the theorem of `compiler.machines.looped_machine`
one pass turns the code of a configuration into the code of the next one; a step changes nothing beyond c - 1, c, c + 1,
so on all other rows the pass is the identity. On the three rows, the cells that they look at are among the five keys.
The theorem's bounds of the shares use only that the wanted cell leads every other key and that there are at most n
keys, so they hold for the five, and the hidden units give the same result for every arrival within these bounds.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from certiformer.compiler.machines.layout import Layout
from certiformer.model.attention import Rows
from certiformer.model.block import apply_block
from certiformer.model.config import Config

WINDOW = 5
_PREFIX = "blocks.0"


class Tape(NamedTuple):
    """The stream of all cells, the cell of the head (counted from the left end) and the passes made so far."""

    stream: Float[Array, "cells width"]
    head: Int[Array, ""]
    passes: Int[Array, ""]


class Track(NamedTuple):
    """After each pass: the cell of the head and which pair stands there; -1 where there was no pass."""

    heads: Int[np.ndarray, " passes"]
    pairs: Int[np.ndarray, " passes"]


def first_tape(tensors: dict[str, np.ndarray], tokens: Int[np.ndarray, " cells"], head: int) -> Tape:
    """The stream before the first pass."""
    stream = jnp.asarray(tensors["embed.weight"])[tokens] + jnp.asarray(tensors["code.table"])
    return Tape(stream, jnp.asarray(head), jnp.asarray(0))


@partial(jax.jit, static_argnames=("config", "layout", "near"))
def run_passes(
    config: Config,
    layout: Layout,
    tensors: dict[str, Any],
    stops: Bool[Array, " pairs"],
    tape: Tape,
    passes: Int[Array, ""],
    near: bool,
) -> Tape:
    """At most `passes` further passes; none once the head is on a pair of `stops` or off the tape."""
    advance = near_pass if near and layout.cells >= WINDOW else _full_pass
    last = tape.passes + passes

    def goes_on(now: Tape) -> Bool[Array, ""]:
        row = now.stream[now.head]
        stopped = jnp.any((row[layout.pairs] > 0.5) & stops) | (row[layout.off] > 0.5)
        return (now.passes < last) & ~stopped

    return jax.lax.while_loop(goes_on, lambda now: advance(config, layout, tensors, now), tape)


@partial(jax.jit, static_argnames=("config", "layout", "near", "passes"))
def track_passes(
    config: Config,
    layout: Layout,
    tensors: dict[str, Any],
    stops: Bool[Array, " pairs"],
    tape: Tape,
    passes: int,
    near: bool,
) -> tuple[Tape, Int[Array, " passes"], Int[Array, " passes"]]:
    """The same, with the place of the head and its pair after every pass."""

    def one(now: Tape, _: None) -> tuple[Tape, tuple[Array, Array]]:
        after = run_passes(config, layout, tensors, stops, now, jnp.asarray(1), near)
        pair = jnp.argmax(after.stream[after.head][layout.pairs])
        moved = after.passes > now.passes
        return after, (jnp.where(moved, after.head, -1), jnp.where(moved, pair, -1))

    final, (heads, pairs) = jax.lax.scan(one, tape, None, length=passes)
    return final, heads, pairs


def _full_pass(config: Config, layout: Layout, tensors: dict[str, Any], tape: Tape) -> Tape:
    (stream,), _ = apply_block(config.blocks[0], tensors, _PREFIX, (tape.stream,), (Rows(0, tape.stream),))
    head = jnp.argmax(jnp.sum(stream[:, layout.pairs], axis=1))
    return Tape(stream, head, tape.passes + 1)


def near_pass(config: Config, layout: Layout, tensors: dict[str, Any], tape: Tape) -> Tape:
    """One pass at the three cells around the head; the tape has at least `WINDOW` cells."""
    first_key = jnp.clip(tape.head - 2, 0, layout.cells - WINDOW)
    first_row = jnp.clip(tape.head - 1, 0, layout.cells - 3)
    keys = jax.lax.dynamic_slice_in_dim(tape.stream, first_key, WINDOW)
    rows = jax.lax.dynamic_slice_in_dim(tape.stream, first_row, 3)
    (after,), _ = apply_block(config.blocks[0], tensors, _PREFIX, (keys,), (Rows(0, rows),))
    stream = jax.lax.dynamic_update_slice_in_dim(tape.stream, after, first_row, 0)
    head = first_row + jnp.argmax(jnp.sum(after[:, layout.pairs], axis=1))
    return Tape(stream, head, tape.passes + 1)
