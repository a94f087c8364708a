"""Boolean circuits of a depth, with gates of two operands, as a decoder that writes one gate after the other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from certiformer.expressivity import circuits_of_depth as theorem
from certiformer.sizes.kinds import Kind, whole
from certiformer.sizes.statement import Lower, Upper

BUILDABLE = 2_000  # gates: compiled and proved in a second


@dataclass(frozen=True)
class Circuits(Kind):
    """Functions of `inputs` bits that circuits of depth `depth` compute, with gates of at most two operands."""

    inputs: int
    depth: int

    title = "circuits"
    exact = True
    axis = "depth"
    largest = 40

    def __post_init__(self) -> None:
        whole("inputs", self.inputs, largest=1_000)
        whole("depth", self.depth, largest=self.largest)

    def upper(self, epsilon: Fraction) -> Upper:
        gates, digits = theorem.gates(self.inputs, self.depth), theorem.place_bits(self.inputs, self.depth)
        return Upper(
            weights=theorem.weights(self.inputs, self.depth),
            values=gates * (4 + 2 * digits),
            bits=theorem.described_bits(self.inputs, self.depth),
            heads=2,
            width=3 * digits + 8,
            layers=1,
            units=8,
            tokens=self.inputs + gates + 1,
            theorems=("compiler.circuits.chain_of_thought_circuit", theorem.THEOREM["id"]),
            command="certiformer compile circuit FILE.toml",
            buildable=gates <= BUILDABLE,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        return Lower(theorem.needed_bits(self.inputs, self.depth), None, (theorem.THEOREM["id"],))

    def distance(self) -> str:
        return (
            "The bits are equal once the depth is at least n + log2 n, where the class has all functions, and within a"
            " factor of 2 + 8/log2 n for n >= 2^depth inputs; in between the gap is what is printed. The weights are more"
            " than the bits by the codes of places, 3 log2(n + gates) a gate; whether they can be saved is not known."
        )
