"""Dropout of hidden units, drawn once for each sequence of the batch (Gal and Ghahramani 2016, arXiv 1512.05287).

A hidden unit enters the rest of the model only through its row of the matrix `down`. Leaving the unit out is multiplying
that row by 0, and keeping it by 1 / (1 - rate), so the forward pass itself needs no randomness: it is the same
function, applied to other weights. All tokens of a sequence share the units that are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array

from certiformer.errors import BadInput
from certiformer.train.problem import Params


@dataclass(frozen=True)
class Dropout:
    """`rate`: the share of units left out. `tensors`: the names of the matrices whose rows are the units; without names
    those of all feed-forward layers (`....ffn.down`)."""

    rate: float
    tensors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.rate < 1:
            raise BadInput(f"the rate of dropout is at least 0 and below 1, not {self.rate}")

    def names(self, params: Params) -> tuple[str, ...]:
        """The matrices of these weights that lose rows."""
        if not isinstance(params, Mapping):
            raise BadInput("dropout finds matrices by their names, and these weights are not a dictionary")
        unknown = [name for name in self.tensors if name not in params]
        if unknown:
            raise BadInput(f"dropout names the matrix {unknown[0]!r}, which these weights do not have")
        found = self.tensors or tuple(name for name in params if name.endswith(".ffn.down"))
        if not found:
            raise BadInput("dropout finds no matrix whose name ends with .ffn.down; name the matrices")
        return found


def with_dropout(apply: Callable[[Params, Array], Array], dropout: Dropout) -> Callable[[Params, Array, Array], Array]:
    """`noisy(params, x, key)`: outputs of a batch, each with units of its own left out."""

    def noisy(params: Params, x: Array, key: Array) -> Array:
        names = dropout.names(params)

        def one(key: Array, x: Array) -> Array:
            kept = {name: _kept(key, place, params[name], dropout.rate) for place, name in enumerate(names)}
            return apply({**params, **kept}, x[None])[0]

        return jax.vmap(one)(jax.random.split(key, x.shape[0]), x)

    return noisy


def _kept(key: Array, place: int, matrix: Array, rate: float) -> Array:
    units = matrix.shape[-2:-1]
    drawn = jax.random.uniform(jax.random.fold_in(key, place), units, jnp.float32)
    return matrix * jnp.where(drawn >= rate, 1 / (1 - rate), 0.0).astype(matrix.dtype)[:, None]
