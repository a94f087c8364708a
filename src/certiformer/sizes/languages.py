"""Regular languages of automata with a number of states, as one block that is applied once for every symbol."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from certiformer.expressivity import languages_of_states as theorem
from certiformer.sizes.kinds import Kind, whole
from certiformer.sizes.statement import Lower, Upper

BUILDABLE = 200_000  # products of width and hidden units: compiled and proved in some seconds


@dataclass(frozen=True)
class Languages(Kind):
    """Languages of automata with at most `states` states over `symbols` symbols, on words of up to `length` symbols."""

    states: int
    symbols: int
    length: int

    title = "languages"
    exact = True
    axis = "states"
    largest = 500

    def __post_init__(self) -> None:
        whole("states", self.states, largest=self.largest)
        whole("symbols", self.symbols, largest=100)
        whole("length", self.length, largest=1_000)

    def upper(self, epsilon: Fraction) -> Upper:
        sizes = (self.states, self.symbols, self.length)
        width, units = theorem.width(*sizes), 2 * self.states * (self.symbols + 1)
        return Upper(
            weights=theorem.weights(*sizes),
            values=2 * self.states * self.symbols + self.states,
            bits=theorem.described_bits(self.states, self.symbols),
            heads=1,
            width=width,
            layers=1,
            units=units,
            tokens=self.length + 1,
            theorems=("compiler.automata.looped_automaton", theorem.THEOREM["id"]),
            command=f"certiformer compile automaton FILE.toml --length {self.length}",
            buildable=width * units <= BUILDABLE,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        return Lower(theorem.needed_bits(self.states, self.symbols, self.length), None, (theorem.THEOREM["id"],))

    def distance(self) -> str:
        return (
            "With two or more symbols and words of up to 2 k - 1 of them, both counts of bits are (a - 1) k log2 k up to a"
            " term linear in k, so their ratio tends to 1. The weights are more by a factor of about 2 a, because every"
            " unit is switched off by all other symbols, and by the codes of positions; whether one weight can hold more"
            " than one entry of the table in this architecture is not known. The block is applied once for each symbol."
        )
