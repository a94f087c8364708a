"""Functions with bounded derivatives up to some order, and analytic functions, by heads at several temperatures."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from certiformer.construct import smooth_heads
from certiformer.construct.temperature_search import MAX_NONZERO
from certiformer.construct.temperatures import HIGHEST_ORDER
from certiformer.expressivity import orthogonal_sums, smooth_bumps
from certiformer.sizes.kinds import Kind, positive, whole
from certiformer.sizes.statement import Lower, Upper

AXES = 8  # more have too many monomials for the certificate


@dataclass(frozen=True)
class Derivatives(Kind):
    """What both classes share: heads over a grid."""

    constant: Fraction
    dimension: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "constant", positive("constant", self.constant))
        whole("dimension", self.dimension, largest=AXES)

    @property
    def highest(self) -> int:
        return HIGHEST_ORDER.get(self.dimension, 4)

    @property
    @abstractmethod
    def bounds(self) -> smooth_heads.Bounds:
        """F_a."""

    @abstractmethod
    def described(self, chosen: smooth_heads.Heads, epsilon: Fraction) -> tuple[int, tuple[str, ...]]:
        """The bits that choose a head, and the theorems that say so."""

    def upper(self, epsilon: Fraction) -> Upper:
        chosen = smooth_heads.fewest(self.bounds, self.dimension, self.highest, epsilon)
        bits, theorems = self.described(chosen, epsilon)
        return Upper(
            weights=chosen.weights,
            values=chosen.registers,
            bits=bits,
            heads=chosen.heads,
            width=2 * self.dimension + 4,
            layers=1,
            units=0,
            tokens=chosen.registers + 1,
            theorems=(*theorems, "axioms.temperatures"),
            command=f'certiformer build F --on "[0,1]^{self.dimension}" --eps {epsilon} --method temperatures',
            buildable=chosen.weights <= MAX_NONZERO,
        )


@dataclass(frozen=True)
class Smooth(Derivatives):
    """|f^(a)| <= constant on [0,1]^dimension for all derivatives up to order `smoothness`."""

    smoothness: int

    title = "smooth"

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("smoothness", self.smoothness, largest=10)

    @property
    def highest(self) -> int:
        return min(self.smoothness, super().highest)

    @property
    def bounds(self) -> smooth_heads.Bounds:
        return smooth_heads.smooth(self.constant)

    def described(self, chosen: smooth_heads.Heads, epsilon: Fraction) -> tuple[int, tuple[str, ...]]:
        return smooth_heads.described_bits(chosen, self.bounds, epsilon), (smooth_heads.THEOREM["id"],)

    def lower(self, epsilon: Fraction) -> Lower:
        costs = orthogonal_sums.smooth_costs(self.constant, self.smoothness, self.dimension)
        bumps = smooth_bumps.cells(self.constant, self.smoothness, self.dimension, epsilon) ** self.dimension
        return Lower(
            max(bumps, orthogonal_sums.needed_bits(costs, self.dimension, epsilon)),
            max(bumps, orthogonal_sums.numbers(costs, self.dimension, epsilon)),
            (smooth_bumps.THEOREM["id"], orthogonal_sums.THEOREM["id"]),
        )

    def distance(self) -> str:
        order = self.highest
        used = "" if order == self.smoothness else f" (of {self.smoothness} derivatives the construction uses {order})"
        return (
            f"Both numbers are of the order eps^(-D/s){used}, with constants that are proved but far apart: those of the"
            " bumps grow fast with s. The bits of the construction have one more factor log(1/eps), which a description of"
            " neighbouring values together would save."
        )


@dataclass(frozen=True)
class Analytic(Derivatives):
    """|f^(a)| <= constant a! radius^-|a| on [0,1]^dimension: power series converge up to the radius at every point."""

    radius: Fraction

    title = "analytic"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "radius", positive("radius", self.radius))

    @property
    def bounds(self) -> smooth_heads.Bounds:
        return smooth_heads.analytic(self.constant, self.radius)

    def described(self, chosen: smooth_heads.Heads, epsilon: Fraction) -> tuple[int, tuple[str, ...]]:
        # A slightly finer grid is good for 3/4 of epsilon; a quarter is left for the net.
        bits = orthogonal_sums.net_bits(self.constant, self.radius, self.dimension, epsilon / 4)
        return bits, (smooth_heads.THEOREM["id"], orthogonal_sums.THEOREM["id"])

    def lower(self, epsilon: Fraction) -> Lower:
        costs = orthogonal_sums.analytic_costs(self.constant, self.radius, self.dimension)
        return Lower(
            orthogonal_sums.needed_bits(costs, self.dimension, epsilon),
            orthogonal_sums.numbers(costs, self.dimension, epsilon),
            (orthogonal_sums.THEOREM["id"],),
        )

    def distance(self) -> str:
        return (
            "The bits of both bounds are of the order log(1/eps)^(D+1). The weights are not: heads of a fixed number use"
            f" {self.highest} derivatives and have eps^(-D/{self.highest}) registers, where log(1/eps)^D numbers are"
            " needed. Whether a transformer of so few weights exists is not known here."
        )
