"""One block: attention, then feed-forward, each with its residual and its normalisation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from certiformer.model.attention import Rows, Scores, attend
from certiformer.model.config import Block, FeedForward, Norm

Tokens = Float[Array, "_ width"]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "identity": lambda x: x,
}


def _layer_norm(tokens: Tokens, epsilon: float) -> Tokens:
    centred = tokens - jnp.mean(tokens, axis=-1, keepdims=True)
    variance = jnp.mean(centred * centred, axis=-1, keepdims=True)
    return centred / jnp.sqrt(variance + epsilon)


NORMS: dict[str, Callable[[Tokens, float], Tokens]] = {"layer": _layer_norm}


def apply_block(
    block: Block,
    tensors: Mapping[str, Array],
    prefix: str,
    sequence: tuple[Tokens, ...],
    queries: tuple[Rows, ...],
    present: Int[Array, ""] | None = None,
) -> tuple[list[Tokens], list[list[Scores]]]:
    """The rows `queries` after the block, and the attention weights by query and group (empty without attention).

    With `present`, only so many rows of the sequence belong to the input, and nobody looks at the others.
    """
    rows, weights = [query.values for query in queries], [[] for _ in queries]
    if block.attention is not None:
        before = _normaliser(block.norm, "pre", tensors, f"{prefix}.norm.attention")
        normed = tuple(Rows(query.start, before(query.values)) for query in queries)
        keys = tuple(before(piece) for piece in sequence)
        outputs, weights = attend(block.attention, tensors, f"{prefix}.attention", keys, normed, present)
        after = _normaliser(block.norm, "post", tensors, f"{prefix}.norm.attention")
        rows = [after(_join(h, out, block.attention.residual)) for h, out in zip(rows, outputs, strict=True)]
    if block.ffn is not None:
        before = _normaliser(block.norm, "pre", tensors, f"{prefix}.norm.ffn")
        after = _normaliser(block.norm, "post", tensors, f"{prefix}.norm.ffn")
        outputs = [_feed_forward(block.ffn, tensors, f"{prefix}.ffn", before(h)) for h in rows]
        rows = [after(_join(h, out, block.ffn.residual)) for h, out in zip(rows, outputs, strict=True)]
    return rows, weights


def _join(stream: Tokens, output: Tokens, residual: bool) -> Tokens:
    return stream + output if residual else output


def _feed_forward(ffn: FeedForward, tensors: Mapping[str, Array], prefix: str, tokens: Tokens) -> Tokens:
    hidden = jnp.matmul(tokens, tensors[f"{prefix}.up"], precision="highest") + tensors[f"{prefix}.up_bias"]
    active = ACTIVATIONS[ffn.kind](hidden)
    return jnp.matmul(active, tensors[f"{prefix}.down"], precision="highest") + tensors[f"{prefix}.down_bias"]


def _normaliser(norm: Norm | None, place: str, tensors: Mapping[str, Array], prefix: str) -> Callable[[Tokens], Tokens]:
    """The normalisation of a sub-layer if it stands at `place`, otherwise the identity."""
    if norm is None or norm.place != place:
        return lambda tokens: tokens
    kind, epsilon = NORMS[norm.kind], norm.epsilon
    return lambda tokens: kind(tokens, epsilon) * tensors[f"{prefix}.scale"] + tensors[f"{prefix}.shift"]
