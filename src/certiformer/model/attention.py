"""The attention sub-layer, for every kind of weights.

The sequence arrives in pieces (registers, data tokens), and outputs are computed for any consecutive rows of it. Both
are there for prototype attention with thousands of registers: under `vmap` over inputs the registers of the first
block do not depend on the input, so their keys and values are computed once for a whole batch; and the last
block needs no outputs that the read-out never sees.

The heads of a group are one array axis. What turns scores into weights is looked up in `WEIGHTS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from certiformer.model.config import Attention

SHORT = 8  # registers that are joined with the data tokens, though their keys may be the same for a whole batch

Scores = Float[Array, "heads rows keys"]
Allowed = Bool[Array, "rows keys"] | None


class Rows(NamedTuple):
    """Consecutive tokens of the whole sequence; `start` is the place of the first one."""

    start: int | Int[Array, ""]
    values: Float[Array, "rows width"]


def _softmax(scores: Scores, allowed: Allowed) -> Scores:
    if allowed is None:
        weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True))
        return weights / jnp.sum(weights, axis=-1, keepdims=True)
    scores = jnp.where(allowed, scores, -jnp.inf)
    top = jnp.max(scores, axis=-1, keepdims=True)
    # Without an allowed key the maximum is -inf, and -inf - (-inf) would be NaN instead of the weight 0.
    weights = jnp.exp(scores - jnp.where(top == -jnp.inf, 0.0, top))
    return weights / _total(weights, allowed)


def _hard(scores: Scores, allowed: Allowed) -> Scores:
    # The maximum must be one of the very numbers it is compared with. Without the barrier XLA may compute the scores twice,
    # rounded differently (seen on CPU with jax 0.12.0 from batches of 128 on: half of the rows wrong).
    scores = jax.lax.optimization_barrier(scores)
    if allowed is not None:
        scores = jnp.where(allowed, scores, -jnp.inf)
    best = scores == jnp.max(scores, axis=-1, keepdims=True)
    if allowed is not None:
        best = best & allowed
    weights = best.astype(scores.dtype)
    return weights / _total(weights, allowed)


def _nearest(scores: Scores, allowed: Allowed) -> Scores:
    return _hard(-jnp.abs(scores), allowed)


def _linear(scores: Scores, allowed: Allowed) -> Scores:
    return scores if allowed is None else jnp.where(allowed, scores, 0.0)


def _relu(scores: Scores, allowed: Allowed) -> Scores:
    # Not divided by the number of keys: a factor 1 / N belongs into the output matrix, where it is a stored number.
    return _linear(jax.nn.relu(scores), allowed)


def _total(weights: Scores, allowed: Allowed) -> Float[Array, "heads rows 1"]:
    """The sum of each row, 1 for a row without any allowed key. A NaN score gives 0/0 or NaN, never a silent 0."""
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return total if allowed is None else jnp.where(jnp.any(allowed, axis=-1, keepdims=True), total, 1.0)


WEIGHTS: dict[str, Callable[[Scores, Allowed], Scores]] = {
    "softmax": _softmax,
    "hard": _hard,
    "nearest": _nearest,
    "linear": _linear,
    "relu": _relu,
}


def attend(
    config: Attention,
    tensors: Mapping[str, Array],
    prefix: str,
    sequence: tuple[Float[Array, "_ width"], ...],
    queries: tuple[Rows, ...],
    present: Int[Array, ""] | None = None,
) -> tuple[list[Float[Array, "_ width"]], list[list[Scores]]]:
    """The output of the sub-layer at each of `queries` (before any residual), and the weights by query and group.

    **Arguments:**

    - `sequence`: the whole sequence in consecutive pieces; keys and values come from here.
    - `queries`: the rows whose outputs are wanted, in the coordinates of the same sequence.
    - `present`: how many rows of the sequence belong to the input; nobody looks at the fillers after them. None: all.
    """
    length = sum(piece.shape[0] for piece in sequence)
    outputs = [jnp.zeros_like(rows.values) for rows in queries]
    weights: list[list[Scores]] = [[] for _ in queries]
    for index, group in enumerate(config.heads):
        name = f"{prefix}.groups.{index}"
        keys = _joined([_project(piece, tensors, name, "key") for piece in sequence])
        values = _joined([_project(piece, tensors, name, "value") for piece in sequence])
        scale = 1.0 / math.sqrt(group.key) if config.scale == "inverse-sqrt" else 1.0
        for place, rows in enumerate(queries):
            query = _project(rows.values, tensors, name, "query")
            scores = scale * jnp.concatenate([_einsum("hik,hjk->hij", query, key) for key in keys], axis=-1)
            scores = scores + _score_bias(config, tensors, name, rows, length)
            allowed = _among(present, length, _allowed(config, tensors, prefix, rows, length))
            shares = WEIGHTS[config.kind](scores, allowed)
            weights[place].append(shares)
            outputs[place] = outputs[place] + _einsum("hiv,hvd->id", _mix(shares, values), tensors[f"{name}.output"])
    if config.bias:
        outputs = [output + tensors[f"{prefix}.output_bias"] for output in outputs]
    return outputs, weights


def _project(
    tokens: Float[Array, "tokens width"], tensors: Mapping[str, Array], name: str, role: str
) -> Float[Array, "heads tokens size"]:
    projected = _einsum("id,hdk->hik", tokens, tensors[f"{name}.{role}"])
    bias = tensors.get(f"{name}.{role}_bias")
    return projected if bias is None else projected + bias[:, None, :]


def _joined(pieces: list[Float[Array, "heads _ size"]]) -> list[Float[Array, "heads _ size"]]:
    """One array instead of several when all but one piece are short: cheaper than joining their rows of scores."""
    if sum(piece.shape[1] for piece in pieces) - max(piece.shape[1] for piece in pieces) > SHORT:
        return pieces
    return [jnp.concatenate(pieces, axis=1)]


def _mix(weights: Scores, values: list[Float[Array, "heads _ size"]]) -> Float[Array, "heads rows size"]:
    """The weighted sum of the values, piece by piece."""
    total, start = None, 0
    for piece in values:
        stop = start + piece.shape[1]
        part = _einsum("hij,hjv->hiv", weights[:, :, start:stop], piece)
        total, start = part if total is None else total + part, stop
    if total is None:
        raise ValueError("attention over an empty sequence")
    return total


def _score_bias(
    config: Attention, tensors: Mapping[str, Array], name: str, rows: Rows, length: int
) -> Float[Array, "heads rows keys"] | float:
    if config.score_bias == "none":
        return 0.0
    bias = tensors[f"{name}.score_bias"]
    stop = rows.start + rows.values.shape[0]
    if config.score_bias == "table":
        return bias[:, rows.start : stop, :length]
    # Entry i - j + (N - 1) is B[i-j]; there are 2N - 1 entries.
    zero = (bias.shape[-1] - 1) // 2
    return bias[:, jnp.arange(rows.start, stop)[:, None] - jnp.arange(length)[None, :] + zero]


def _allowed(config: Attention, tensors: Mapping[str, Array], prefix: str, rows: Rows, length: int) -> Allowed:
    if config.mask == "none":
        return None
    if config.mask == "causal":
        return jnp.arange(length)[None, :] <= rows.start + jnp.arange(rows.values.shape[0])[:, None]
    return tensors[f"{prefix}.mask"][rows.start : rows.start + rows.values.shape[0], :length] != 0


def _among(present: Int[Array, ""] | None, length: int, allowed: Allowed) -> Allowed:
    """The allowed keys among the first `present` ones."""
    if present is None:
        return allowed
    real = jnp.arange(length)[None, :] < present
    return real if allowed is None else allowed & real


def _einsum(pattern: str, *operands: Array) -> Array:
    # Accelerators round the factors of a float32 product to fewer bits unless told otherwise.
    return jnp.einsum(pattern, *operands, precision="highest")
