"""Lipschitz functions of numbers whose order does not matter, or matters only for the order of the outputs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from certiformer.construct import max_norm_prototypes as prototypes
from certiformer.expressivity import bits_lower_bound
from certiformer.expressivity.symmetric_bumps import THEOREM, Symmetry, orbits
from certiformer.sizes.lipschitz import Lipschitz
from certiformer.sizes.statement import Lower, Upper


@dataclass(frozen=True)
class Symmetric(Lipschitz):
    """`lipschitz` functions of `dimension` numbers with f(P x) = f(x) for every permutation P."""

    title = "symmetric"
    symmetry: ClassVar[Symmetry] = "symmetric"

    def upper(self, epsilon: Fraction) -> Upper:
        cells, _ = prototypes.fewest_cells(self.constant, epsilon, self.dimension)
        head = super().upper(epsilon)
        outputs = self.dimension if self.symmetry == "equivariant" else 1
        bits = prototypes.described_bits(self.constant, epsilon, self.dimension, self._free)
        return replace(
            head,
            weights=prototypes.weights(cells, self.dimension, outputs),
            values=self._free(cells),
            bits=bits,
            width=head.width + 2 * (outputs - 1),
            theorems=(*head.theorems, THEOREM["id"]),
        )

    def _free(self, cells: int) -> int:
        return orbits(cells, self.dimension, self.symmetry)

    def lower(self, epsilon: Fraction) -> Lower:
        needed = self._free(bits_lower_bound.cells_per_axis(self.constant, epsilon))
        return Lower(needed, needed, (THEOREM["id"],))

    def distance(self) -> str:
        return (
            "Tight in the numbers that depend on f, if they are chosen continuously: both bounds count orbits of cells,"
            " on grids that differ by one or two cells an axis. The bits differ by a factor that stays bounded as eps goes"
            " to 0. The head keeps a register for every cell of an orbit, up to D! of them; whether one would do is not"
            " known for one head."
        )


@dataclass(frozen=True)
class Equivariant(Symmetric):
    """`lipschitz` functions of `dimension` numbers with as many outputs and f(P x) = P f(x) for every permutation P."""

    title = "equivariant"
    symmetry: ClassVar[Symmetry] = "equivariant"
