"""The bounder of a search: compiled float64 enclosures of |T - f|, in batches of one fixed shape.

Prototype attention gets its closed form with lists of the prototypes that matter on a coarse cell; every other network
the general forward pass in forms. Coarse cells are cells of the split tree, so a box never straddles two lists.

*Domains* are float64 boxes around cells, outward. The real edge of a cell is a + (b - a) k / 2^m. In float64 it is
computed with a handful of operations on numbers of size at most S = |a| + |b|, each off by at most 2^-53 of its size,
so the error is below 16 * 2^-53 S; the radius is padded by 2^-47 S, four times as much.

*Balls*, the checker's own arithmetic, make a bounder that is slow, but exactly what the checker will compute. It is
used for the small problems that the sum rule produces, where a few hundred boxes settle everything and compiling a
float64 kernel would take longer than the search.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from flint import arb
from jaxtyping import Float, Int

from certiformer.enclose.error import error_bound, prototype_error_bound
from certiformer.enclose.lists import prototype_lists
from certiformer.enclose.prototype import PrototypeAttention, as_prototypes
from certiformer.interval import rigorous_jit
from certiformer.kernel.balls import BallDomain, Box
from certiformer.kernel.problem import Problem, error_upper
from certiformer.kernel.rules import axis_scores
from certiformer.model import Transformer
from certiformer.target import Program


class BallBounder:
    """Bounds of |left - right| on boxes by the checker's Taylor forms of the given order."""

    batch = 64

    def __init__(self, problem: Problem, order: int):
        self.problem, self.order = problem, order
        self.widths = np.array([float((high - low).mid()) for low, high in problem.domain.ends])

    @property
    def start_depth(self) -> tuple[int, ...]:
        return (0,) * self.problem.domain.dimension

    def __call__(
        self, centre: Float[np.ndarray, "n D"], radius: Float[np.ndarray, "n D"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n D"]]:
        bounds, scores = np.full(len(centre), np.inf), np.zeros(centre.shape)
        for row, (c, r) in enumerate(zip(centre, radius, strict=True)):
            box = Box(tuple(arb(float(x)) for x in c), tuple(arb(float(x)) for x in r))
            upper, forms, _ = error_upper(self.problem.restrict(box), box, self.order)
            bounds[row] = float(upper) * (1 + 2.0**-50) if upper.is_finite() else np.inf
            scores[row] = axis_scores(forms, list(r / self.widths))
        return bounds, scores


PAD = 2.0**-47


class FloatDomain:
    """The box of a claim in float64.

    >>> from certiformer.kernel.balls import BallDomain
    >>> from certiformer.target import parse_domain
    >>> domain = FloatDomain(BallDomain(parse_domain("[0, 2*pi]")))
    >>> centre, radius = domain.boxes(np.array([[1]]), np.array([[1]]))
    >>> float(centre[0, 0]), bool(radius[0, 0] > np.pi / 2)
    (4.71238898038469, True)
    """

    def __init__(self, domain: BallDomain):
        ends = domain.ends
        self.low = np.array([float(low.mid()) for low, _ in ends])
        self.high = np.array([float(high.mid()) for _, high in ends])
        self.size = np.abs(self.low) + np.abs(self.high)
        # The largest float64 box inside the domain: points of it are exact witnesses.
        inside = [(_inward(low, up=True), _inward(high, up=False)) for low, high in ends]
        self.inner_low, self.inner_high = np.array(inside).T

    @property
    def dimension(self) -> int:
        return len(self.low)

    def boxes(
        self, depth: Int[np.ndarray, "n D"], index: Int[np.ndarray, "n D"]
    ) -> tuple[Float[np.ndarray, "n D"], Float[np.ndarray, "n D"]]:
        """Centres and radii of boxes that contain the given cells."""
        scale = np.ldexp(1.0, -depth)
        width = self.high - self.low
        centre = self.low + width * ((2 * index + 1) * (scale / 2))
        return centre, width * scale / 2 + PAD * self.size


def _inward(end, up: bool) -> float:
    """The nearest double on the inner side of a real end."""
    value = float(end.mid())
    while not (end <= value if up else end >= value):
        value = float(np.nextafter(value, np.inf if up else -np.inf))
    return value


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
