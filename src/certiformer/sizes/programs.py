"""RASP programs whose bill stays within given figures."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from certiformer.expressivity import programs_of_a_bill as theorem
from certiformer.sizes.kinds import Kind, whole
from certiformer.sizes.statement import Lower, Upper

BUILDABLE = 2_000  # hidden units: tables that are compiled and proved in seconds


@dataclass(frozen=True)
class Programs(Kind):
    """Programs over `symbols` and sequences of up to `length`, with at most these layers, heads, units, width."""

    units: int
    symbols: int
    length: int
    layers: int = 1
    heads: int = 1
    width: int = theorem.TABLE_WIDTH

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
        weights = theorem.weights(self.symbols, self.length, **self._bill)
        return Upper(
            weights=weights,
            values=weights,
            bits=theorem.NUMBER_BITS * weights,
            heads=self.heads,
            width=self.width,
            layers=self.layers,
            units=self.units,
            tokens=self.length + 1,
            theorems=(theorem.THEOREM["id"],),
            command=f"certiformer compile FILE.py:NAME --length {self.length}",
            buildable=self.units <= BUILDABLE,
        )

    def lower(self, epsilon: Fraction) -> Lower:
        return Lower(theorem.needed_bits(self.symbols, self.length, **self._bill), None, (theorem.THEOREM["id"],))

    def distance(self) -> str:
        return (
            "The lower bound counts tables of two symbols, one entry a hidden unit; the upper one gives 32 bits to every"
            " stored number. Their ratio falls like 1/log2(units) and is not known to be necessary: most of the stored"
            " numbers are zeros or repeat."
        )
