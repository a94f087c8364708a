"""Random machines, and what the read-out of a looped machine must show."""

from __future__ import annotations

import numpy as np

from certiformer.compiler.machines.simulate import Simulation, bounds
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import Machine


def random_machine(seed: int, moves: str = "LRS") -> Machine:
    """1 to 4 working states, 2 to 4 symbols, about one pair in six without a transition."""
    rng = np.random.default_rng(seed)
    states = tuple("ABCD"[: rng.integers(1, 5)]) + ("H",)
    symbols = tuple("_abc"[: rng.integers(2, 5)])
    rows = []
    for state in states[:-1]:
        for read in symbols:
            if rng.random() > 1 / 6:
                following = states[rng.integers(len(states) - (rng.random() > 0.1))]
                rows.append((state, read, str(rng.choice(symbols)), str(rng.choice(list(moves))), following))
    return Machine(symbols, states, ("H",), tuple(rows), missing="halt")


def read_out(simulation: Simulation, off: bool) -> np.ndarray:
    """Symbol, pair and flag of every cell."""
    machine, cells = simulation.machine, simulation.cells
    assert cells is not None
    count, first = len(machine.symbols), bounds(cells)[0]
    rows = np.zeros((cells, count * (1 + len(machine.states)) + 1))
    for cell in range(cells):
        rows[cell, machine.symbols.index(simulation.tape.get(first + cell, machine.blank))] = 1
    head = simulation.cell - first
    rows[head, count + machine.states.index(simulation.state) * count + machine.symbols.index(simulation.symbol)] = 1
    rows[head, -1] = off
    return rows


def configuration(machine: Machine, symbols: tuple[str, ...], head: int, state: str) -> Simulation:
    """The simulator on a tape that holds `symbols` and nothing else, the head anywhere."""
    simulation = Simulation(machine, (), len(symbols))
    first = bounds(len(symbols))[0]
    simulation.tape = {first + place: symbol for place, symbol in enumerate(symbols)}
    simulation.cell, simulation.state = first + head, state
    return simulation


def after(simulation: Simulation, steps: int) -> np.ndarray:
    """The read-out after `steps` passes: the machine stays where it would leave the tape, and the flag is raised."""
    off = False
    for _ in range(steps):
        try:
            simulation.advance()
        except BadInput:
            off = True
    return read_out(simulation, off)
