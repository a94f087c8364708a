"""Functions of one constant L in the max norm on [0,1]^D, all of them or those that respect the order of no token."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from certiformer.construct import max_norm_prototypes as prototypes
from certiformer.construct.voronoi import MAX_PROTOTYPES
from certiformer.expressivity import bits_lower_bound, continuous_selection
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
