"""The weights of members as lists of arrays: what is trained, and what is not because it holds no real numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.errors import BadInput
from certiformer.train.optimiser import Leaves
from certiformer.train.problem import Params


@dataclass(frozen=True)
class Weights:
    """How a pytree of weights falls into trained and other leaves (masks of attention, say)."""

    structure: Any  # of the pytree
    trained: tuple[bool, ...]

    @staticmethod
    def of(params: Params) -> Weights:
        """The parts of these weights; at least one must be trained, and all of these are of one type."""
        leaves, structure = jax.tree.flatten(params)
        trained = tuple(bool(jnp.issubdtype(jnp.result_type(leaf), jnp.floating)) for leaf in leaves)
        types = sorted({str(jnp.result_type(leaf)) for leaf, real in zip(leaves, trained, strict=True) if real})
        if len(types) != 1:
            found = f"they are {' and '.join(types)}" if types else "there are none"
            raise BadInput(f"the trained weights must be real numbers of one type, and {found}")
        return Weights(structure, trained)

    def split(self, params: Params) -> tuple[Leaves, Leaves]:
        """The trained leaves and the others."""
        leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(params)]
        pairs = list(zip(leaves, self.trained, strict=True))
        return [leaf for leaf, real in pairs if real], [leaf for leaf, real in pairs if not real]

    def joined(self, trained: Leaves, fixed: Leaves) -> Params:
        """The pytree of which these are the parts."""
        real, other = iter(trained), iter(fixed)
        return jax.tree.unflatten(self.structure, [next(real) if each else next(other) for each in self.trained])

    def masks(self, free: Params, leaves: Leaves) -> Leaves:
        """The masks of the trained leaves: of the same shapes, 0 where a weight keeps its value."""
        if jax.tree.structure(free) != self.structure:
            raise BadInput("free must have the same entries as the weights, each a mask of the same shape")
        pairs = zip(jax.tree.leaves(free), self.trained, strict=True)
        masks = [jnp.asarray(np.asarray(mask) != 0) for mask, real in pairs if real]
        for mask, leaf in zip(masks, leaves, strict=True):
            if mask.shape != leaf.shape:
                raise BadInput(f"a mask of free has the shape {mask.shape}, and its weights have {leaf.shape}")
        return masks
