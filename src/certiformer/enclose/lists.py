"""Prototype lists: which prototypes matter on a coarse cell of the domain, with a proved bound for the rest.

Tail bound. Let r be any kept prototype and J the dropped ones. On the cell, with W the sum of all e^(s_i),

    w_J := sum_{j in J} e^(s_j) / W  <=  sum_{j in J} e^(s_j - s_r)  <=  sum_{j in J} exp(max over the cell of s_j - s_r) =: tail.

Score differences are affine in x, so the maximum over a cell with centre c and radius R is exactly its value at c plus
|A_j - A_r| @ R. The output over all prototypes is (1 - w_J) kept + w_J dropped, where "kept" and "dropped" are averages of
values, hence |all - kept| = w_J |dropped - kept| <= tail * (max v - min v).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from certiformer.enclose.prototype import PrototypeAttention, PrototypeHead
from certiformer.errors import BadInput
from certiformer.interval.padding import TINY, UNIT

CELL_OVERHANG = 1e-9
"""Cells are enlarged by this fraction of their radius, so that boxes with outward-rounded edges still lie inside."""

CHUNK = 1 << 22
"""Scores computed at once while making lists (32 MiB)."""


@dataclass(frozen=True)
class HeadLists:
    """Per cell of one head: the kept prototypes (padded by -1) and the bound of the dropped weight."""

    index: Int[np.ndarray, "cells kept"]
    tail: Float[np.ndarray, " cells"]


@dataclass(frozen=True)
class PrototypeLists:
    """Lists for every cell of a uniform grid over the box from `lower` to `upper`, one `HeadLists` per head."""

    prototypes: PrototypeAttention
    lower: Float[np.ndarray, " D"]
    upper: Float[np.ndarray, " D"]
    cells: tuple[int, ...]
    heads: tuple[HeadLists, ...]

    @property
    def radius(self) -> Float[np.ndarray, " D"]:
        """The radius of a cell, enlarged by the overhang."""
        return (self.upper - self.lower) / np.array(self.cells) * (0.5 * (1 + CELL_OVERHANG)) + TINY

    @property
    def centres(self) -> Float[np.ndarray, "cells D"]:
        """The centres of all cells, the last axis running fastest."""
        width = (self.upper - self.lower) / np.array(self.cells)
        axes = [lo + w * (np.arange(n) + 0.5) for lo, w, n in zip(self.lower, width, self.cells, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(self.cells))


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
    empty = PrototypeLists(prototypes, lower, upper, tuple(cells), ())
    heads = tuple(_head_lists(head, empty.centres, empty.radius, tail) for head in prototypes.heads)
    return PrototypeLists(prototypes, lower, upper, tuple(cells), heads)


def _head_lists(
    head: PrototypeHead, centres: Float[np.ndarray, "cells D"], radius: Float[np.ndarray, " D"], tail: float
) -> HeadLists:
    count, dimension = head.slopes.shape
    spread = max(float((head.values.max(0) - head.values.min(0)).max()), TINY)
    cut = np.log(tail / (spread * count))
    kept, tails = [], []
    step = max(1, CHUNK // count)
    for start in range(0, len(centres), step):
        part = centres[start : start + step]
        scores = part @ head.slopes.T + head.offsets
        best = scores.argmax(1)
        # Upper bound of s_j - s_best over the cell, for the real scores of the stored weights.
        reach = scores - scores.max(1, keepdims=True) + _reach(head.slopes, best, radius)
        size = np.abs(part) @ np.abs(head.slopes).max(0) + np.abs(head.offsets).max()
        error = (dimension + 8) * UNIT * (size + np.abs(head.slopes).max(0) @ radius)
        error = error + (np.abs(part) + radius) @ head.slope_error + head.offset_error
        reach = reach + (4 * error + TINY)[:, None]
        keep = ~(reach <= cut)
        keep[np.arange(len(part)), best] = True
        dropped = np.where(keep, 0.0, np.exp(np.minimum(reach, 0.0)))
        tails.append(dropped.sum(1) * (1 + (count + 16) * UNIT) + count * TINY)
        kept.extend(np.flatnonzero(row) for row in keep)
    return HeadLists(_pad(kept), np.concatenate(tails))


def _reach(slopes: Float[np.ndarray, "M D"], best: Int[np.ndarray, " cells"], radius: Float[np.ndarray, " D"]):
    """|A_j - A_best| @ radius for every cell and prototype, one axis at a time."""
    total = np.zeros((len(best), len(slopes)))
    for axis, r in enumerate(radius):
        total += np.abs(slopes[:, axis] - slopes[best, axis][:, None]) * r
    return total


def _pad(kept: list[np.ndarray]) -> Int[np.ndarray, "cells kept"]:
    width = max(len(k) for k in kept)
    width += -width % 8  # whole vector registers
    index = np.full((len(kept), width), -1, dtype=np.int32)
    for row, k in zip(index, kept, strict=True):
        row[: len(k)] = k
    return index
