"""Where everything stands in the residual stream of a looped machine, and the codes of its cells.

The stream of a cell is laid out as

    symbol (G) | pair (S G) | off | arrival (S) | left end, right end | own code (B) | left code (B) | right code (B)

for G symbols, S states and codes of B signs. `symbol` is the unit vector of the cell's symbol; `pair` is the unit
vector of (state, symbol) where the head stands and zero elsewhere; `off` says that the head had to leave the tape;
`arrival` is empty between passes. The rest never changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from certiformer.compiler.machines.simulate import bounds
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import Machine

MAX_CELLS = 1_000_000


@dataclass(frozen=True)
class Layout:
    """The coordinates of a machine with `symbols` symbols and `states` states on `cells` cells."""

    symbols: int
    states: int
    cells: int

    def __post_init__(self) -> None:
        if type(self.cells) is not int or not 1 <= self.cells <= MAX_CELLS:
            raise BadInput(f"a tape has 1 to {MAX_CELLS:,} cells, not {self.cells!r}")

    @property
    def bits(self) -> int:
        """How many signs tell the cells apart."""
        return max(1, (self.cells - 1).bit_length())

    def pair(self, state: int, symbol: int) -> int:
        return self.symbols + state * self.symbols + symbol

    @property
    def pairs(self) -> slice:
        return slice(self.symbols, self.off)

    @property
    def off(self) -> int:
        return self.symbols * (1 + self.states)

    @property
    def outputs(self) -> int:
        """Symbol, pair and off: what the read-out shows of every cell."""
        return self.off + 1

    def arrival(self, state: int) -> int:
        return self.off + 1 + state

    @property
    def left_end(self) -> int:
        return self.off + 1 + self.states

    @property
    def right_end(self) -> int:
        return self.left_end + 1

    def code(self, part: int) -> slice:
        """The signs of the cell itself (0), of its left (1) and of its right neighbour (2)."""
        start = self.right_end + 1 + part * self.bits
        return slice(start, start + self.bits)

    @property
    def width(self) -> int:
        return self.code(2).stop

    @property
    def vocabulary(self) -> int:
        """One token for every content of a cell: a symbol alone, then (state, symbol), state by state."""
        return self.symbols * (1 + self.states)


def layout_of(machine: Machine, cells: int) -> Layout:
    return Layout(len(machine.symbols), len(machine.states), cells)


def cell_signs(layout: Layout) -> Float[np.ndarray, "cells bits"]:
    """The binary digits of the number of each cell, as +1 and -1.

    >>> cell_signs(Layout(2, 1, 3)).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]
    """
    digits = (np.arange(layout.cells)[:, None] >> np.arange(layout.bits)) & 1
    return 2.0 * digits - 1.0


def start_tokens(machine: Machine, layout: Layout, symbols: tuple[str, ...]) -> Int[np.ndarray, " cells"]:
    """The tokens of the first configuration: the input from cell 0 on, the head on cell 0 in the start state."""
    first, last = bounds(layout.cells)
    if len(symbols) > last + 1:
        raise BadInput(f"the input has {len(symbols):,} symbols, more than the {last + 1:,} cells from 0 on")
    tokens = np.zeros(layout.cells, np.int32)  # the blank is symbol 0
    tokens[-first : -first + len(symbols)] = [
        machine.symbols.index(symbol) for symbol in machine.check_symbols(symbols)
    ]
    tokens[-first] += layout.symbols  # the start state is state 0
    return tokens
