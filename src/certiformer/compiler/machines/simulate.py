"""The plain simulator: what a machine does, by its table and a dictionary of cells. It knows nothing of transformers.

Every realisation is tested against it. With `cells` it stops like a compiled machine does when the head would leave a
bounded tape, with the cell and the step that would have needed it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import MOVES, Machine


@dataclass(frozen=True)
class Moment:
    """One configuration of a run: after `step` steps, `state` with the head on `cell`, which holds `symbol`."""

    step: int
    state: str
    cell: int
    symbol: str


@dataclass(frozen=True)
class Result:
    """Where a run stands: the symbols of the tape, the first of which is that of cell `first`.

    `ones` counts the cells that are not blank; for a busy beaver these are its ones.
    """

    halted: bool
    steps: int
    state: str
    cell: int
    tape: tuple[str, ...]
    first: int
    ones: int


def used_cells(result: Result, machine: Machine) -> tuple[int, int]:
    """The places on the tape of the first and the last cell that is not blank or has the head."""
    head = result.cell - result.first
    inside = [place for place, symbol in enumerate(result.tape) if symbol != machine.blank or place == head]
    return inside[0], inside[-1]


def used_tape(result: Result, machine: Machine) -> list[str]:
    """The tape without the blanks at both ends; the cell of the head is always among it."""
    low, high = used_cells(result, machine)
    return list(result.tape[low : high + 1])


def too_short(cells: int, cell: int, step: int) -> BadInput:
    """What to say when a bounded tape ends before the machine does."""
    return BadInput(f"the tape of {cells:,} cells is too short: the machine needs cell {cell} at step {step:,}")


def bounds(cells: int) -> tuple[int, int]:
    """The first and the last cell of a bounded tape, cell 0 in the middle.

    >>> bounds(400), bounds(5)
    ((-200, 199), (-2, 2))
    """
    return -(cells // 2), cells - cells // 2 - 1


class Simulation:
    """A machine at work; iterate over it to see every configuration up to the one where it stops."""

    def __init__(self, machine: Machine, symbols: Iterable[str], cells: int | None = None):
        self.machine, self.cells = machine, cells
        self.tape = dict(enumerate(machine.check_symbols(symbols)))
        self.state, self.cell, self.step = machine.start, 0, 0
        self.lowest, self.highest = 0, max(0, len(self.tape) - 1)
        if cells is not None and self.highest > bounds(cells)[1]:
            raise BadInput(
                f"the input has {len(self.tape):,} symbols, more than the {bounds(cells)[1] + 1:,} cells from 0 on"
            )

    @property
    def symbol(self) -> str:
        return self.tape.get(self.cell, self.machine.blank)

    @property
    def stopped(self) -> bool:
        return self.machine.transition(self.state, self.symbol) is None

    def advance(self) -> None:
        """One step; nothing when the machine has stopped."""
        transition = self.machine.transition(self.state, self.symbol)
        if transition is None:
            return
        write, move, following = transition
        reached = self.cell + MOVES[move]
        if self.cells is not None and not bounds(self.cells)[0] <= reached <= bounds(self.cells)[1]:
            raise too_short(self.cells, reached, self.step + 1)
        self.tape[self.cell], self.state, self.cell, self.step = write, following, reached, self.step + 1
        self.lowest, self.highest = min(self.lowest, reached), max(self.highest, reached)

    def moment(self) -> Moment:
        """The present configuration without its tape."""
        return Moment(self.step, self.state, self.cell, self.symbol)

    def __iter__(self) -> Iterator[Moment]:
        while True:
            yield self.moment()
            if self.stopped:
                return
            self.advance()

    def result(self) -> Result:
        """The present configuration on all cells of a bounded tape, or on those visited and read of a free one."""
        low, high = bounds(self.cells) if self.cells is not None else (self.lowest, self.highest)
        tape = tuple(self.tape.get(cell, self.machine.blank) for cell in range(low, high + 1))
        ones = sum(symbol != self.machine.blank for symbol in tape)
        return Result(self.stopped, self.step, self.state, self.cell, tape, low, ones)


def simulate(machine: Machine, symbols: Iterable[str] = (), steps: int = 1_000, cells: int | None = None) -> Result:
    """Run for at most `steps` steps.

    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> simulate(busy_beaver(4)).ones, simulate(busy_beaver(4)).steps
    (13, 107)
    >>> simulate(busy_beaver(4), cells=8)
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the tape of 8 cells is too short: the machine needs cell -5 at step 59
    """
    run = Simulation(machine, symbols, cells)
    for moment in run:
        if moment.step >= steps:
            break
    return run.result()
