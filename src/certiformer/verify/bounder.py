"""The bounder of a search: compiled float64 enclosures of |T - f|, in batches of one fixed shape.

Prototype attention gets its closed form with lists of the prototypes that matter on a coarse cell; every other network the
general forward pass in forms. Coarse cells are cells of the split tree, so a box never straddles two lists.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from certiformer.enclose.error import error_bound, prototype_error_bound
from certiformer.enclose.lists import prototype_lists
from certiformer.enclose.prototype import PrototypeAttention, as_prototypes
from certiformer.interval import rigorous_jit
from certiformer.model import Transformer
from certiformer.target import Program
from certiformer.verify.domain import FloatDomain

# By dimension, chosen for the time of search and check together: a higher order needs fewer boxes, each of them dearer.
# Measured on a trained network with two inputs: order 1 leaves 7,760 leaves (check 33 s), 2: 1,475 (8 s), 3: 591 (4 s).
NETWORK_ORDER = {1: 4, 2: 3, 3: 2}
# Without relu units there are no kinks, and a higher order pays (17 gelu units, two inputs: 2,476 leaves at order 3,
# 1,298 at 5; 6 units, three inputs: 2,804 at order 2, 1,030 at 3).
SMOOTH_NETWORK_ORDER = {1: 6, 2: 5, 3: 3, 4: 3}
PROTOTYPE_ORDER = {1: 6, 2: 5, 3: 4}
OTHER_DIMENSIONS = 2
# Batches that stay in the second-level cache; larger ones are two to five times slower.
NETWORK_BATCH, PROTOTYPE_BATCH, PROTOTYPE_BATCH_BEYOND_PLANE = 64, 256, 64
MAX_CELLS = 2**15
# A box on which the scores vary by this many standard deviations is about one bisection away from closing.
COARSE = 1.4


class CompiledBounder:
    """Bounds of max |T - f| on boxes by a compiled function of (centre, radius), padded to one batch shape."""

    def __init__(self, bound: Callable, order: int, batch: int, start_depth: tuple[int, ...]):
        import jax

        self.order, self.batch, self.start_depth = order, batch, start_depth
        self._bound = rigorous_jit(jax.vmap(bound))

    def __call__(
        self, centre: Float[np.ndarray, "n D"], radius: Float[np.ndarray, "n D"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n D"]]:
        count = len(centre)
        fill = [(0, self.batch - count), (0, 0)]
        bounds, scores = self._bound(np.pad(centre, fill, mode="edge"), np.pad(radius, fill, mode="edge"))
        return np.asarray(bounds)[:count], np.asarray(scores)[:count]


def bounder_for(
    model: Transformer, target: Program | Transformer, domain: FloatDomain, order: int | None
) -> CompiledBounder:
    """The best enclosure we have for this model against a program or another model, as a bounder."""
    prototypes = as_prototypes(model)
    if prototypes is None or isinstance(target, Transformer):
        kinked = any(block.ffn is not None and block.ffn.kind == "relu" for block in model.config.blocks)
        orders = NETWORK_ORDER if kinked else SMOOTH_NETWORK_ORDER
        order = order or orders.get(domain.dimension, OTHER_DIMENSIONS)
        return CompiledBounder(error_bound(model, target, order), order, NETWORK_BATCH, (0,) * domain.dimension)
    order = order or PROTOTYPE_ORDER.get(domain.dimension, OTHER_DIMENSIONS)
    depth = _list_depth(prototypes, domain)
    lists = prototype_lists(prototypes, domain.low, domain.high, tuple(2**m for m in depth))
    batch = PROTOTYPE_BATCH if domain.dimension <= 2 else PROTOTYPE_BATCH_BEYOND_PLANE
    return CompiledBounder(prototype_error_bound(lists, target, order), order, batch, depth)


def _list_depth(prototypes: PrototypeAttention, domain: FloatDomain) -> tuple[int, ...]:
    """How often each axis is bisected before lists are made: until the scores vary by about `COARSE` on a cell."""
    middle, half = (domain.low + domain.high) / 2, (domain.high - domain.low) / 2
    steep = np.zeros(domain.dimension)
    for head in prototypes.heads:
        scores = head.slopes @ middle + head.offsets
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        mean = weights @ head.slopes
        steep = np.maximum(steep, np.sqrt(weights @ (head.slopes - mean) ** 2))
    depth = [max(0, math.ceil(math.log2(max(s * h, 1e-9) / COARSE))) for s, h in zip(steep, half, strict=True)]
    while sum(depth) > math.log2(MAX_CELLS):
        depth[depth.index(max(depth))] -= 1
    return tuple(depth)
