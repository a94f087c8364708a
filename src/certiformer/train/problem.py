"""What members learn: how outputs are computed and where batches come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.forward import forward
from certiformer.train.losses import LOSSES
from certiformer.train.products import with_fast_products

Params = Any  # a pytree of arrays: the weights of one member, or of all of them along a leading axis
Data = Any  # a pytree of arrays


@dataclass(frozen=True)
class Problem:
    """What is learnt.

    - `apply(params, x)`: outputs for a batch.
    - `draw(key, member, shared)`: a batch (x, y); `member` holds what this member alone learns from (its target, say),
      `shared` what all of them do (a data set, say).
    - `loss`: squared, sup, cross-entropy, or value (the outputs are what is minimised).
    - `judge(params, member, shared)`: the number by which weights are judged after every record (a test error, say);
      without it that is the mean loss over the record.
    """

    apply: Callable[[Params, Any], Array]
    draw: Callable[[Array, Data, Data], tuple[Any, Array]]
    loss: str = "squared"
    judge: Callable[[Params, Data, Data], Float[Array, ""]] | None = None

    def __post_init__(self) -> None:
        if self.loss not in LOSSES:
            raise BadInput(f"there is no loss {self.loss!r}; there are {', '.join(LOSSES)}")


@cache
def transformer_outputs(config: Config) -> Callable[[Params, Array], Float[Array, "batch outputs"]]:
    """`apply` of the one transformer with this configuration; params are its tensors.

    One function for each configuration, so that all problems with it share their compilations.
    """
    return with_fast_products(lambda tensors, x: jax.vmap(lambda one: forward(config, tensors, one))(x))


def stack(members: Sequence[Params]) -> Params:
    """The weights of members of one shape along a leading axis."""
    if not members:
        raise BadInput("there is no member to train")
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *members)
