"""Functions of one constant L in the max norm on [0,1]^D, all of them or those that respect the order of no token."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

from certiformer.construct import max_norm_prototypes as prototypes
from certiformer.construct.voronoi import MAX_PROTOTYPES
from certiformer.expressivity import bits_lower_bound, continuous_selection
from certiformer.expressivity.symmetric_bumps import THEOREM, Symmetry, orbits
from certiformer.sizes.kinds import Kind, positive, whole
from certiformer.sizes.statement import Lower, Upper

PACKING = "expressivity.bits_lower_bound"
CONTINUOUS = "expressivity.continuous_selection"
HEAD = "construct.max_norm_prototypes"


@dataclass(frozen=True)
class Lipschitz(Kind):
    """|f(x) - f(y)| <= constant max_i |x_i - y_i| on [0,1]^dimension, with values in an interval of that length."""

    constant: Fraction
    dimension: int

    title = "lipschitz"

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", positive("constant", self.constant))
        whole("dimension", self.dimension, largest=1_000)

    def upper(self, epsilon: Fraction) -> Upper:
        cells, _ = prototypes.fewest_cells(self.constant, epsilon, self.dimension)
        count = cells**self.dimension
        return Upper(
            weights=prototypes.weights(cells, self.dimension),
            values=count,
            bits=prototypes.described_bits(self.constant, epsilon, self.dimension),
            heads=1,
            width=2 * self.dimension + 4,
            layers=1,
            units=0,
            tokens=count + 1,
            theorems=(HEAD,),
            command=f'certiformer build F --on "[0,1]^{self.dimension}" --eps {epsilon} --method max-norm',
            buildable=count <= MAX_PROTOTYPES,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        bits = bits_lower_bound.bits(self.constant, epsilon, self.dimension)
        values = continuous_selection.numbers(self.constant, epsilon, self.dimension)
        return Lower(bits, values, (PACKING, CONTINUOUS))

    def distance(self) -> str:
        return (
            "Tight in the numbers that depend on f, if they are chosen continuously: both bounds are (L/(2 eps))^D up to"
            " one or two cells an axis, so their ratio tends to 1 with eps. The bits differ by a factor that stays bounded"
            " as eps goes to 0. Whether fewer weights suffice when they are chosen discontinuously is not known for this"
            " architecture."
        )


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
