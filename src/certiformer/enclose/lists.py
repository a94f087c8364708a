"""Prototype lists: which prototypes matter on a coarse cell of the domain, with a proved bound for the rest.

Tail bound. Let r be any kept prototype and J the dropped ones. On the cell, with W the sum of all e^(s_i),

    w_J := sum_{j in J} e^(s_j) / W <= sum_{j in J} e^(s_j - s_r)
                                    <= sum_{j in J} exp(max over the cell of (s_j - s_r)) =: tail.

Score differences are affine in x, so the maximum over a cell with centre c and radius R is exactly its value at c plus
|A_j - A_r| @ R. The output over all prototypes is (1 - w_J) kept + w_J dropped, where "kept" and "dropped" are averages of
values, hence |all - kept| = w_J |dropped - kept| <= tail * (max v - min v).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from certiformer.enclose.prototype import PrototypeAttention, PrototypeHead
from certiformer.errors import BadInput
from certiformer.interval.padding import TINY, UNIT

CELL_OVERHANG = 1e-9
"""Cells are enlarged by this fraction of their radius, so that boxes with outward-rounded edges still lie inside."""

CHUNK = 1 << 20
"""Slopes looked at together while making lists (8 MiB)."""


FEW_CELLS = 16
"""A grid with at most this many cells is not refined from a coarser one."""


@dataclass(frozen=True)
class Grid:
    """The box from `lower` to `upper` cut into equal cells, numbered with the last axis running fastest."""

    lower: Float[np.ndarray, " D"]
    upper: Float[np.ndarray, " D"]
    cells: tuple[int, ...]

    @property
    def radius(self) -> Float[np.ndarray, " D"]:
        """The radius of a cell, enlarged by the overhang."""
        return (self.upper - self.lower) / np.array(self.cells) * (0.5 * (1 + CELL_OVERHANG)) + TINY

    @property
    def reach(self) -> Float[np.ndarray, " D"]:
        """The radius again, with room for rounded centres: what a list must be good for."""
        return self.radius + 64 * UNIT * (np.abs(self.lower) + np.abs(self.upper))

    @property
    def centres(self) -> Float[np.ndarray, "cells D"]:
        """The centres of all cells."""
        width = (self.upper - self.lower) / np.array(self.cells)
        axes = [lo + w * (np.arange(n) + 0.5) for lo, w, n in zip(self.lower, width, self.cells, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(self.cells))

    def parents(self, coarse: tuple[int, ...]) -> Int[np.ndarray, " cells"]:
        """The cell of the grid with `coarse` cells (each count equal or half) that contains each cell."""
        place = np.indices(self.cells).reshape(len(self.cells), -1)
        steps = np.array(self.cells) // np.array(coarse)
        return np.asarray(np.ravel_multi_index(tuple(place // steps[:, None]), coarse))


@dataclass(frozen=True)
class HeadLists:
    """Per cell of one head: the kept prototypes (padded by -1) and the bound of the dropped weight."""

    index: Int[np.ndarray, "cells kept"]
    tail: Float[np.ndarray, " cells"]


@dataclass(frozen=True)
class PrototypeLists:
    """Lists for every cell of a grid over the domain, one `HeadLists` per head."""

    prototypes: PrototypeAttention
    grid: Grid
    heads: tuple[HeadLists, ...]


def prototype_lists(
    prototypes: PrototypeAttention,
    lower: Float[np.ndarray, " D"],
    upper: Float[np.ndarray, " D"],
    cells: tuple[int, ...],
    tail: float = 1e-9,
) -> PrototypeLists:
    """Lists on a grid of `cells` that leave out at most about `tail` of the largest value difference.

    **Arguments:**

    - `lower`, `upper`: the corners of the domain.
    - `cells`: how many cells along each axis; boxes smaller than a cell and inside one can be enclosed.
    - `tail`: the aimed error, in units of the outputs; what is really left out is bounded and charged.
    """
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    finite = np.isfinite(lower).all() and np.isfinite(upper).all()
    if not (finite and (lower < upper).all() and len(cells) == len(lower) == prototypes.dimension and tail > 0):
        raise BadInput("prototype lists need a finite box, one number of cells per axis and a positive tail")
    grid = Grid(lower, upper, tuple(cells))
    return PrototypeLists(prototypes, grid, tuple(_head_lists(head, grid, tail) for head in prototypes.heads))


def _head_lists(head: PrototypeHead, grid: Grid, tail: float) -> HeadLists:
    """Lists of the grid, refined from those of the grid with half as many cells along each axis, and so on.

    What a coarse cell drops is dropped for all cells inside it, and its share of the weight adds to theirs.
    """
    count = len(head.offsets)
    spread = max(float((head.values.max(0) - head.values.min(0)).max()), TINY)
    half = tuple(n // 2 if n % 2 == 0 else n for n in grid.cells)
    if half == grid.cells or math.prod(grid.cells) <= FEW_CELLS:
        candidates = np.broadcast_to(np.arange(count, dtype=np.int32), (math.prod(grid.cells), count))
        inherited = np.zeros(len(candidates))
    else:
        coarse = _head_lists(head, Grid(grid.lower, grid.upper, half), tail / 2)
        parents = grid.parents(half)
        candidates, inherited = coarse.index[parents], coarse.tail[parents]
    budget = tail / (2 * spread)  # this grid's half of the tail; coarser grids share the other half
    step = max(1, CHUNK // (candidates.shape[1] * head.slopes.shape[1]))
    parts = [
        _refined(
            head, grid.centres[i : i + step], grid.reach, candidates[i : i + step], inherited[i : i + step], budget
        )
        for i in range(0, len(candidates), step)
    ]
    width = max(index.shape[1] for index, _ in parts)
    index = [np.pad(p, ((0, 0), (0, width - p.shape[1])), constant_values=-1) for p, _ in parts]
    return HeadLists(np.concatenate(index), np.concatenate([t for _, t in parts]))


def _refined(
    head: PrototypeHead,
    centres: Float[np.ndarray, "cells D"],
    radius: Float[np.ndarray, " D"],
    candidates: Int[np.ndarray, "cells K"],
    inherited: Float[np.ndarray, " cells"],
    budget: float,
) -> tuple[Int[np.ndarray, "cells kept"], Float[np.ndarray, " cells"]]:
    """The candidates that matter on each cell, and the bound of everything dropped so far."""
    dimension, wanted = head.slopes.shape[1], candidates.shape[1]
    slopes = head.slopes[candidates]
    scores = (slopes * centres[:, None]).sum(-1) + head.offsets[candidates]
    scores = np.where(candidates >= 0, scores, -np.inf)
    best = scores.argmax(1)
    rows = np.arange(len(centres))
    # Upper bound of s_j - s_best over the cell, for the real scores of the stored weights.
    reach = scores - scores[rows, best][:, None] + np.abs(slopes - slopes[rows, best][:, None]) @ radius
    steep = np.abs(head.slopes).max(0)
    size = np.abs(centres) @ steep + np.abs(head.offsets).max() + steep @ radius
    error = (dimension + 8) * UNIT * size + (np.abs(centres) + radius) @ head.slope_error + head.offset_error
    reach = reach + (4 * error + TINY)[:, None]
    reach[rows, best], reach[candidates < 0] = np.inf, -np.inf
    order = np.argsort(-reach, axis=1, kind="stable")
    reach = np.take_along_axis(reach, order, 1)
    # What a cell would drop from each place on; -inf padding weighs nothing, and NaN is kept.
    rest = np.cumsum(np.exp(np.minimum(reach, 0.0))[:, ::-1], axis=1)[:, ::-1]
    keep = ~(rest <= budget) & ~(reach == -np.inf)
    keep[:, 0] = True
    dropped = np.where(keep, 0.0, rest).max(1)  # `rest` falls along a row, so this is the sum of all that is dropped
    tail = (inherited + dropped) * (1 + (wanted + 16) * UNIT) + wanted * TINY
    width = int(keep.sum(1).max())
    width = min(width + -width % 8, wanted)  # whole vector registers
    kept = np.where(keep, np.take_along_axis(candidates, order, 1), -1)
    return kept[:, :width], tail
