"""The forward pass: from one input to the outputs, driven by the configuration alone.

The sequence is kept in pieces (registers first, then data tokens; see `attention`). All passes but the last update
every token; the last block of the last pass updates only the rows that the read-out sees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from certiformer.model.attention import Rows, Scores
from certiformer.model.block import apply_block
from certiformer.model.codes import code_rows
from certiformer.model.config import Block, Config

Tensors = Mapping[str, Array]
Sequence = tuple[Float[Array, "_ width"], ...]
Inputs = Float[Array, "tokens size"] | Int[Array, " tokens"]


def forward(
    config: Config, tensors: Tensors, x: Inputs, tokens: Int[Array, ""] | None = None
) -> Float[Array, " outputs"]:
    """The outputs of the model for one input, in the precision of the tensors and the input.

    With `tokens`, only so many rows of `x` are the input: no token looks at the fillers after them, and what the read-out
    `all` says about fillers means nothing. So inputs of many lengths share one compilation.
    """
    present = None if tokens is None else config.registers + tokens
    tensors, sequence = _start(config, tensors, x)
    if config.loops > 1 and config.blocks:
        sequence = jax.lax.fori_loop(
            0, config.loops - 1, lambda _, s: _full_pass(config, tensors, s, present), sequence
        )
    for index in range(len(config.blocks) - 1):
        sequence, _ = _full_block(config, tensors, index, sequence, present)
    rows = _rows_read(config, sequence)
    if config.blocks:
        last = len(config.blocks) - 1
        (values,), _ = apply_block(config.blocks[last], tensors, f"blocks.{last}", sequence, (rows,), present)
    else:
        values = rows.values
    return _read_out(config, tensors, values)


def trace_weights(config: Config, tensors: Tensors, x: Inputs) -> list[list[Float[Array, "heads length length"]]]:
    """The attention weights of every block with attention, in the order of application; by block, then by group."""
    tensors, sequence = _start(config, tensors, x)
    collected = []
    for _ in range(config.loops):
        for index, block in enumerate(config.blocks):
            sequence, weights = _full_block(config, tensors, index, sequence)
            if block.attention is not None:
                collected.append([jnp.concatenate(pieces, axis=1) for pieces in zip(*weights, strict=True)])
    return collected


def trace_states(config: Config, tensors: Tensors, x: Inputs) -> list[Float[Array, "length width"]]:
    """The whole sequence, registers first: before the first block, then after every sub-layer as it is applied."""
    tensors, sequence = _start(config, tensors, x)
    states = [jnp.concatenate(sequence)]
    for _ in range(config.loops):
        for index, block in enumerate(config.blocks):
            for half in (replace(block, ffn=None), replace(block, attention=None)):
                if half.attention is not None or half.ffn is not None:
                    sequence, _weights = _apply(half, tensors, index, sequence, config.registers)
                    states.append(jnp.concatenate(sequence))
    return states


def _start(config: Config, tensors: Tensors, x: Inputs) -> tuple[Tensors, Sequence]:
    """The tensors in the precision of the computation, and the sequence before the first block."""
    floating = [t.dtype for t in tensors.values() if jnp.issubdtype(t.dtype, jnp.floating)]
    dtype = jnp.result_type(*floating, *([x.dtype] if config.input.kind == "continuous" else []))
    tensors = {
        name: jnp.asarray(t, dtype) if jnp.issubdtype(t.dtype, jnp.floating) else jnp.asarray(t)
        for name, t in tensors.items()
    }
    data = _embed(config, tensors, x, dtype)
    return tensors, (tensors["registers"], data) if config.registers else (data,)


def _embed(config: Config, tensors: Tensors, x: Inputs, dtype: jnp.dtype) -> Float[Array, "tokens width"]:
    weight = tensors["embed.weight"]
    if config.input.kind == "continuous":
        data = jnp.matmul(jnp.asarray(x, dtype), weight, precision="highest") + tensors["embed.bias"]
    else:
        # An id outside the vocabulary becomes NaN, never a neighbour's row.
        outside = (x < 0) | (x >= weight.shape[0])
        data = jnp.where(outside[:, None], jnp.nan, jnp.take(weight, jnp.where(outside, 0, x), axis=0))
    code = tensors["code.table"] if config.code.kind == "table" else code_rows(config)
    return data if code is None else data + jnp.asarray(code[: data.shape[0]], dtype)


def _full_pass(config: Config, tensors: Tensors, sequence: Sequence, present: Int[Array, ""] | None = None) -> Sequence:
    for index in range(len(config.blocks)):
        sequence, _ = _full_block(config, tensors, index, sequence, present)
    return sequence


def _full_block(
    config: Config, tensors: Tensors, index: int, sequence: Sequence, present: Int[Array, ""] | None = None
) -> tuple[Sequence, list[list[Scores]]]:
    return _apply(config.blocks[index], tensors, index, sequence, config.registers, present)


def _apply(
    block: Block,
    tensors: Tensors,
    index: int,
    sequence: Sequence,
    registers: int,
    present: Int[Array, ""] | None = None,
) -> tuple[Sequence, list[list[Scores]]]:
    """Block number `index`, or a half of it, at every token."""
    starts = (0, registers)
    queries = tuple(Rows(start, piece) for start, piece in zip(starts, sequence, strict=False))
    rows, weights = apply_block(block, tensors, f"blocks.{index}", sequence, queries, present)
    return tuple(rows), weights


def _rows_read(config: Config, sequence: Sequence) -> Rows:
    """The rows that the read-out sees: data tokens, or one register."""
    data = sequence[-1]
    if config.readout.kind == "register" and config.readout.token is not None:
        register = config.readout.token
        return Rows(register, sequence[0][register : register + 1])
    if config.readout.kind == "token" and config.readout.token is not None:
        token = config.readout.token
        return Rows(config.registers + token, data[token : token + 1])
    return Rows(config.registers, data)


def _read_out(config: Config, tensors: Tensors, rows: Float[Array, "_ width"]) -> Float[Array, " outputs"]:
    kind = config.readout.kind
    if kind == "mean":
        rows = jnp.mean(rows, axis=0, keepdims=True)
    elif kind == "sum":
        rows = jnp.sum(rows, axis=0, keepdims=True)
    return (jnp.matmul(rows, tensors["readout.weight"], precision="highest") + tensors["readout.bias"]).reshape(-1)
