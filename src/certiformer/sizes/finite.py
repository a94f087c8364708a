"""Finite classes, computed exactly: circuits by their depth, regular languages by their states, programs by their bill."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.expressivity import circuits_of_depth, languages_of_states, programs_of_a_bill
from certiformer.sizes.kinds import Kind, whole
from certiformer.sizes.statement import Lower, Upper

BUILDABLE_GATES = 2_000  # compiled and proved in a second
BUILDABLE_PRODUCTS = 200_000  # of width and hidden units: compiled and proved in some seconds
BUILDABLE_UNITS = 2_000  # of tables: compiled and proved in seconds


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
        gates, digits = (
            circuits_of_depth.gates(self.inputs, self.depth),
            circuits_of_depth.place_bits(self.inputs, self.depth),
        )
        return Upper(
            weights=circuits_of_depth.weights(self.inputs, self.depth),
            values=gates * (4 + 2 * digits),
            bits=circuits_of_depth.described_bits(self.inputs, self.depth),
            heads=2,
            width=3 * digits + 8,
            layers=1,
            units=8,
            tokens=self.inputs + gates + 1,
            theorems=("compiler.circuits.chain_of_thought_circuit", circuits_of_depth.THEOREM["id"]),
            command="certiformer compile circuit FILE.toml",
            buildable=gates <= BUILDABLE_GATES,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        return Lower(circuits_of_depth.needed_bits(self.inputs, self.depth), None, (circuits_of_depth.THEOREM["id"],))

    def distance(self) -> str:
        return (
            "The bits are equal once the depth is at least n + log2 n, where the class has all functions, and within a"
            " factor of 2 + 8/log2 n for n >= 2^depth inputs; in between the gap is what is printed. The weights are more"
            " than the bits by the codes of places, 3 log2(n + gates) a gate; whether they can be saved is not known."
        )


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
        width, units = languages_of_states.width(*sizes), 2 * self.states * (self.symbols + 1)
        return Upper(
            weights=languages_of_states.weights(*sizes),
            values=2 * self.states * self.symbols + self.states,
            bits=languages_of_states.described_bits(self.states, self.symbols),
            heads=1,
            width=width,
            layers=1,
            units=units,
            tokens=self.length + 1,
            theorems=("compiler.automata.looped_automaton", languages_of_states.THEOREM["id"]),
            command=f"certiformer compile automaton FILE.toml --length {self.length}",
            buildable=width * units <= BUILDABLE_PRODUCTS,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        return Lower(
            languages_of_states.needed_bits(self.states, self.symbols, self.length),
            None,
            (languages_of_states.THEOREM["id"],),
        )

    def distance(self) -> str:
        return (
            "With two or more symbols and words of up to 2 k - 1 of them, both counts of bits are (a - 1) k log2 k up to a"
            " term linear in k, so their ratio tends to 1. The weights are more by a factor of about 2 a, because every"
            " unit is switched off by all other symbols, and by the codes of positions; whether one weight can hold more"
            " than one entry of the table in this architecture is not known. The block is applied once for each symbol."
        )


@dataclass(frozen=True)
class Programs(Kind):
    """Programs over `symbols` and sequences of up to `length`, with at most these layers, heads, units, width."""

    units: int
    symbols: int
    length: int
    layers: int = 1
    heads: int = 1
    width: int = programs_of_a_bill.TABLE_WIDTH

    title = "programs"
    exact = True
    axis = "units"

    def __post_init__(self) -> None:
        for name in ("units", "symbols", "length", "layers", "heads", "width"):
            whole(name, getattr(self, name))

    @property
    def _bill(self) -> dict[str, Any]:
        return {"layers": self.layers, "width": self.width, "heads": self.heads, "units": self.units}

    def upper(self, epsilon: Fraction) -> Upper:
        weights = programs_of_a_bill.weights(self.symbols, self.length, **self._bill)
        return Upper(
            weights=weights,
            values=weights,
            bits=programs_of_a_bill.NUMBER_BITS * weights,
            heads=self.heads,
            width=self.width,
            layers=self.layers,
            units=self.units,
            tokens=self.length + 1,
            theorems=(programs_of_a_bill.THEOREM["id"],),
            command=f"certiformer compile FILE.py:NAME --length {self.length}",
            buildable=self.units <= BUILDABLE_UNITS,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        return Lower(
            programs_of_a_bill.needed_bits(self.symbols, self.length, **self._bill),
            None,
            (programs_of_a_bill.THEOREM["id"],),
        )

    def distance(self) -> str:
        return (
            "The lower bound counts tables of two symbols, one entry a hidden unit; the upper one gives 32 bits to every"
            " stored number. Their ratio falls like 1/log2(units) and is not known to be necessary: most of the stored"
            " numbers are zeros or repeat."
        )
