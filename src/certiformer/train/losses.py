"""What is minimised, by name."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Num


def squared(outputs: Float[Array, "batch outputs"], wanted: Float[Array, "batch outputs"]) -> Float[Array, ""]:
    """The mean of the squared errors."""
    return jnp.mean((outputs - wanted) ** 2)


def largest(outputs: Float[Array, "batch outputs"], wanted: Float[Array, "batch outputs"]) -> Float[Array, ""]:
    """The largest error of the batch."""
    return jnp.max(jnp.abs(outputs - wanted))


def cross_entropy(outputs: Float[Array, "batch classes"], wanted: Num[Array, " batch"]) -> Float[Array, ""]:
    """The mean negative logarithm of the probability that a softmax of the outputs gives to the class wanted."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(outputs), wanted[:, None].astype(int), axis=-1))


def value(outputs: Float[Array, "*outputs"], wanted: Num[Array, "*wanted"]) -> Float[Array, ""]:
    """The mean of the outputs themselves, whatever is wanted: for functions that compute what is to be small."""
    return jnp.mean(outputs)


LOSSES: dict[str, Callable[..., Float[Array, ""]]] = {
    "squared": squared,
    "sup": largest,
    "cross-entropy": cross_entropy,
    "value": value,
}
