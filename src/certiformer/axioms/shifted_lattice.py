"""K shifted grids of cells and the soft bins, AND units and values that belong to them (construction E).

Axis i of the domain [a, b] has N cells of width delta = (b - a)/N. Positions are counted in units of delta/(2K) from a, so
everything is an integer: shift q has its thresholds at the numbers n = 2K l + 2q + 1 - K (l an integer) with 0 < n < 2KN;
the thresholds of all shifts together are delta/K apart. They cut the axis into bins; the first and the last one reach to
infinity. Bin j stands for the centre of the lattice cell it contains, clipped to the domain.

The soft bins come from sigmoids S_j = sigmoid((2 K g/delta)(x - t_j)): B_0 = 1 - S_0, B_j = S_{j-1} - S_j, B_last = S_last;
g is the *sharpness*. A cell of shift q has one bin a axis and one feed-forward unit relu(sum of its bins - (D - 1)).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from flint import arb, fmpq

from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, ball
from certiformer.kernel.programs import exact

MAX_UNITS = 500_000
MAX_HEADS = 100_000
SHARPNESS = Fraction(1), Fraction(64)


@dataclass(frozen=True)
class Unit:
    """One cell of one shift: the index of its bin on every axis."""

    shift: int
    bins: tuple[int, ...]


@dataclass(frozen=True)
class ShiftedLattice:
    """Cells per axis, the number K of shifts, and the sharpness g."""

    cells: tuple[int, ...]
    shifts: int
    sharpness: Fraction

    @staticmethod
    def from_parameters(parameters: dict[str, Any], dimension: int) -> ShiftedLattice:
        """Read the lattice of a theorem node, refusing anything that is not one."""
        cells, shifts, sharpness = parameters.get("cells"), parameters.get("shifts"), parameters.get("sharpness")
        if not isinstance(cells, list) or len(cells) != dimension or any(type(n) is not int or n < 1 for n in cells):
            raise Refused("the parameters of the theorem node have no cells for this domain")
        if type(shifts) is not int or shifts < 1 or not isinstance(sharpness, str):
            raise Refused("the parameters of the theorem node do not name the shifts and the sharpness")
        try:
            lattice = ShiftedLattice(tuple(cells), shifts, exact(sharpness))
        except BadInput as error:
            raise Refused(str(error)) from None
        if not SHARPNESS[0] <= lattice.sharpness <= SHARPNESS[1]:
            raise Refused(f"sharpness {sharpness} is outside the range of the theorem")
        # Bins per axis and shift are at most N + 1; the product is a bound of the number of units.
        units = shifts
        for n in cells:
            units *= n + 1
        if units > MAX_UNITS or shifts * sum(cells) > MAX_HEADS:
            raise Refused(f"the lattice has more than {MAX_UNITS:,} cells or {MAX_HEADS:,} thresholds")
        return lattice

    def parameters(self) -> dict[str, Any]:
        return {"cells": list(self.cells), "shifts": self.shifts, "sharpness": str(self.sharpness)}

    def thresholds(self, axis: int, shift: int) -> list[int]:
        """The thresholds inside the domain, in units of delta/(2K).

        >>> [ShiftedLattice((3,), 2, Fraction(4)).thresholds(0, q) for q in (0, 1)]
        [[3, 7, 11], [1, 5, 9]]
        """
        period, start = 2 * self.shifts, 2 * shift + 1 - self.shifts
        end = period * self.cells[axis]
        return [n for n in range(start, end, period) if n > 0]

    def centres(self, axis: int, shift: int) -> list[int]:
        """The clipped centre of every bin, in units of delta/(2K).

        >>> [ShiftedLattice((3,), 2, Fraction(4)).centres(0, q) for q in (0, 1)]
        [[1, 5, 9, 12], [0, 3, 7, 11]]
        """
        cuts, end = self.thresholds(axis, shift), 2 * self.shifts * self.cells[axis]
        if not cuts:  # one cell, which the only bin contains exactly
            return [self.shifts]
        return [max(0, n - self.shifts) for n in cuts] + [min(end, cuts[-1] + self.shifts)]

    def heads(self) -> list[tuple[int, int, int]]:
        """(axis, shift, threshold) of every sigmoid head, in stored order."""
        return [
            (axis, shift, n)
            for axis in range(len(self.cells))
            for shift in range(self.shifts)
            for n in self.thresholds(axis, shift)
        ]

    def units(self) -> Iterator[Unit]:
        """All cells of all shifts, in stored order: shift by shift, the last axis fastest."""
        for shift in range(self.shifts):
            counts = [range(len(self.centres(axis, shift))) for axis in range(len(self.cells))]
            for bins in product(*counts):
                yield Unit(shift, bins)

    def unit_count(self) -> int:
        """How many cells all shifts have together."""
        total = 0
        for shift in range(self.shifts):
            cells = 1
            for axis in range(len(self.cells)):
                cells *= len(self.thresholds(axis, shift)) + 1
            total += cells
        return total

    def spacing(self, domain: BallDomain) -> list[arb]:
        return [(high - low) / n for (low, high), n in zip(domain.ends, self.cells, strict=True)]

    def position(self, domain: BallDomain, axis: int, number: int) -> arb:
        """The point of the axis with that number."""
        low, high = domain.ends[axis]
        return low + (high - low) * arb(fmpq(number, 2 * self.shifts * self.cells[axis]))

    def steepness(self, domain: BallDomain, axis: int) -> arb:
        """2 K g / delta."""
        return 2 * self.shifts * ball(self.sharpness) / self.spacing(domain)[axis]

    def centre(self, domain: BallDomain, unit: Unit) -> list[arb]:
        """The point whose value belongs to the unit."""
        return [self.position(domain, axis, self.centres(axis, unit.shift)[j]) for axis, j in enumerate(unit.bins)]
