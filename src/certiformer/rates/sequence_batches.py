"""Batches of uniform sequences for the comparisons of transformers with recurrent networks.

Two targets and everything between them. The temporal one is a matrix (`sequence_targets`). The graph-like one is
attention over values: output t is the mean of the x(s) with weights softmax_s(SHARPNESS (2 x(t) - 1) (2 x(s) - 1)), a
coupling of rank 1 that knows no order; with `causal` the sum goes over s <= t only, so that a recurrent network sees
all it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

SHARPNESS = 6.0

Draw = Callable[[Array, Any, Any], tuple[Array, Array]]


# The same function for the same arguments: the training loop is compiled anew for every new function it is given.
@cache
def linear_batches(batch: int) -> Draw:
    """Sequences with the outputs of the member, which is a matrix."""

    def draw(key: Array, matrix: Float[Array, "length length"], shared: None) -> tuple[Array, Array]:
        x = jax.random.uniform(key, (batch, matrix.shape[0], 1), jnp.float32)
        return x, jnp.matmul(x[..., 0], matrix.T, precision="highest")

    return draw


@cache
def mixed_batches(batch: int, causal: bool) -> Draw:
    """Sequences with a sum of both targets. The member is a dict:

    `matrix`; `temporal` and `graph`, the factors of the two parts; `offset`, which is added; `inputs` and `outputs`, the
    orders in which the sequence is shown and the outputs are wanted.
    """

    def draw(key: Array, member: dict[str, Array], shared: None) -> tuple[Array, Array]:
        x = jax.random.uniform(key, (batch, member["matrix"].shape[0]), jnp.float32)
        temporal = jnp.matmul(x, member["matrix"].T, precision="highest")
        wanted = member["temporal"] * temporal + member["graph"] * graph_values(x, causal) + member["offset"]
        return x[:, member["inputs"], None], wanted[:, member["outputs"]]

    return draw


def graph_values(x: Float[Array, "batch length"], causal: bool) -> Float[Array, "batch length"]:
    """The graph-like target at every step of every sequence."""
    signs = 2 * x - 1
    scores = SHARPNESS * signs[:, :, None] * signs[:, None, :]
    if causal:
        scores = jnp.where(np.tri(x.shape[1], dtype=bool), scores, -jnp.inf)
    return jnp.einsum("bts,bs->bt", jax.nn.softmax(scores, axis=-1), x, precision="highest")


def member_of(
    matrix: Float[np.ndarray, "length length"],
    *,
    temporal: float = 1.0,
    graph: float = 0.0,
    offset: float = 0.0,
    inputs: np.ndarray | None = None,
    outputs: np.ndarray | None = None,
) -> dict[str, Any]:
    """One member of `mixed_batches`, in single precision; the orders are the natural ones unless given."""
    natural = np.arange(len(matrix))
    return {
        "matrix": np.asarray(matrix, np.float32),
        "temporal": np.float32(temporal),
        "graph": np.float32(graph),
        "offset": np.float32(offset),
        "inputs": np.asarray(natural if inputs is None else inputs, np.int32),
        "outputs": np.asarray(natural if outputs is None else outputs, np.int32),
    }


def graph_moments(length: int, causal: bool, sequences: int = 8192) -> tuple[float, float]:
    """Mean and standard deviation of the graph-like target over steps and sequences, from a fixed sample."""
    x = np.random.default_rng(0).uniform(size=(sequences, length)).astype(np.float32)
    values = np.asarray(graph_values(jnp.asarray(x), causal), np.float64)
    return float(values.mean()), float(values.std())
