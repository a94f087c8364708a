"""Sums of ridge functions with Lipschitz profiles, as hidden units along their directions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from certiformer.expressivity import ridge_sums as theorem
from certiformer.sizes.kinds import Kind, positive, whole
from certiformer.sizes.statement import Lower, Upper

BUILDABLE = 30_000  # hidden units, as in `--method ridge`


@dataclass(frozen=True)
class Ridges(Kind):
    """sum_j g_j(a_j . x) on [0,1]^dimension, `ridges` terms, sum |a_j| <= 1, g_j of the Lipschitz constant, f(0) = 0."""

    constant: Fraction
    dimension: int
    ridges: int

    title = "ridges"

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", positive("constant", self.constant))
        whole("dimension", self.dimension, largest=1_000)
        whole("ridges", self.ridges)

    def upper(self, epsilon: Fraction) -> Upper:
        units = theorem.units(self.ridges, self.constant, epsilon)
        return Upper(
            weights=theorem.weights(self.ridges, self.dimension, self.constant, epsilon),
            values=units + self.ridges * (1 + self.dimension),
            bits=theorem.described_bits(self.ridges, self.dimension, self.constant, epsilon),
            heads=1,
            width=self.dimension + 1,
            layers=1,
            units=units,
            tokens=1,
            theorems=(theorem.THEOREM["id"],),
            command=f'certiformer build F --on "[0,1]^{self.dimension}" --eps {epsilon} --method ridge',
            buildable=units <= BUILDABLE,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        arguments = (self.ridges, self.dimension, self.constant, epsilon)
        return Lower(theorem.needed_bits(*arguments), theorem.needed_numbers(*arguments), (theorem.THEOREM["id"],))

    def distance(self) -> str:
        return (
            "For at most D ridges the bits differ by a factor that stays bounded as eps goes to 0, whatever r is: both are"
            " of the order r^2 L/eps. The numbers differ by a factor of about 2 r, and whether continuously chosen ones can"
            " be so few is not known. For more than D ridges the lower bound speaks of D of them."
        )
