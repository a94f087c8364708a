"""The product grid of prototypes that the two Voronoi theorems speak of.

With N_i cells on axis i, spacing delta_i = (b_i - a_i)/N_i and `margin` extra cells on both sides the centres are
c_i(k) = a_i + (k + 1/2) delta_i, k = -margin .. N_i - 1 + margin; registers run through the grid with the last axis
fastest. The ideal score of a prototype is -b sum_i ((x_i - c_i)/delta_i)^2 up to a term that is the same for all
prototypes, written here relative to the middle m of the domain so that it is affine in x:

    s_c(x) = sum_i (2 b / delta_i^2) ((x_i - m_i)(c_i - m_i) - (c_i - m_i)^2 / 2).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb, fmpq

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ZERO, BallDomain, ball
from certiformer.kernel.layers import Head
from certiformer.kernel.programs import exact

MAX_PROTOTYPES = 2_000_000
MAX_PARTS = 100_000


@dataclass(frozen=True)
class Grid:
    """Cells per axis, margin cells per side, and the sharpness b."""

    cells: tuple[int, ...]
    margin: int
    sharpness: Fraction

    @staticmethod
    def from_parameters(parameters: dict[str, Any], dimension: int) -> Grid:
        """Read the grid of a theorem node, refusing anything that is not one."""
        cells, margin, sharpness = parameters.get("cells"), parameters.get("margin"), parameters.get("sharpness")
        if not isinstance(cells, list) or len(cells) != dimension or any(type(n) is not int or n < 1 for n in cells):
            raise Refused("the parameters of the theorem node are not a grid for this domain")
        if type(margin) is not int or margin < 0 or not isinstance(sharpness, str):
            raise Refused("the parameters of the theorem node are not a grid for this domain")
        try:
            grid = Grid(tuple(cells), margin, exact(sharpness))
        except BadInput as error:
            raise Refused(str(error)) from None
        if grid.size > MAX_PROTOTYPES:
            raise Refused(f"the grid has more than {MAX_PROTOTYPES} prototypes")
        return grid

    def parameters(self) -> dict[str, Any]:
        return {"cells": list(self.cells), "margin": self.margin, "sharpness": str(self.sharpness)}

    @property
    def size(self) -> int:
        count = 1
        for n in self.cells:
            count *= n + 2 * self.margin
        return count

    def spacing(self, domain: BallDomain) -> list[arb]:
        return [(high - low) / n for (low, high), n in zip(domain.ends, self.cells, strict=True)]

    def axes(self, domain: BallDomain) -> list[list[arb]]:
        """The centres of every axis."""
        ends = zip(domain.ends, self.cells, self.spacing(domain), strict=True)
        return [
            [low + delta * arb(fmpq(2 * k + 1, 2)) for k in range(-self.margin, n + self.margin)]
            for (low, _), n, delta in ends
        ]

    def clipped(self, domain: BallDomain) -> list[list[arb]]:
        """The centres moved to the nearest point of the domain, axis by axis (known by index, so exact)."""
        result = []
        for axis, ((low, high), n) in enumerate(zip(domain.ends, self.cells, strict=True)):
            centres = self.axes(domain)[axis]
            inside = range(self.margin, self.margin + n)
            result.append(
                [centres[k] if k in inside else low if k < self.margin else high for k in range(len(centres))]
            )
        return result

    def ideal_head(self, domain: BallDomain, values: list[list[arb]]) -> Head:
        """The scores of the theorem with the given values, in register order."""
        slopes, offsets = [], []
        middle = [(low + high) * HALF for low, high in domain.ends]
        steep = [2 * ball(self.sharpness) / (delta * delta) for delta in self.spacing(domain)]
        lines = []
        for axis, centres in enumerate(self.axes(domain)):
            shifted = [c - middle[axis] for c in centres]
            lines.append([(steep[axis] * s, -steep[axis] * s * (s * HALF + middle[axis])) for s in shifted])
        for choice in product(*lines):
            slopes.append([slope for slope, _ in choice])
            offsets.append(sum((offset for _, offset in choice), ZERO))
        return Head(slopes, offsets, values)


def partition(parameters: dict, dimension: int) -> tuple[int, ...]:
    """How many parts per axis the derivatives are enclosed on, as recorded in the node."""
    parts = parameters.get("partition")
    if not isinstance(parts, list) or len(parts) != dimension or any(type(n) is not int or n < 1 for n in parts):
        raise Refused("the parameters of the theorem node have no partition for this domain")
    size = 1
    for n in parts:
        size *= n
    if size > MAX_PARTS:
        raise Refused(f"the partition of the theorem node has more than {MAX_PARTS:,} parts")
    return tuple(parts)
