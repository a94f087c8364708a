"""The token sequences that the decoders of a machine should write, by the plain simulator."""

from __future__ import annotations

import numpy as np

from certiformer.compiler.machines import ChainOfThought, EncoderDecoder
from certiformer.compiler.machines.simulate import Simulation
from certiformer.kernel.meanings.machine import MOVES


def thoughts(decoder: ChainOfThought, word: tuple[str, ...]) -> tuple[np.ndarray, list[int]]:
    """Input, start and the tokens of all steps; and the outputs that should be chosen from the row of start on."""
    machine, count = decoder.machine, len(decoder.machine.symbols)
    simulation = Simulation(machine, word)
    tokens = [*(machine.symbols.index(symbol) for symbol in word), count]
    wanted = []
    for _ in range(decoder.steps):
        transition = machine.transition(simulation.state, simulation.symbol)
        if transition is None:
            return np.array(tokens), [*wanted, len(machine.steps)]
        wanted.append(machine.steps.index(transition))
        tokens.append(count + 1 + wanted[-1])
        simulation.advance()
    return np.array(tokens[: len(word) + decoder.steps]), wanted


def encoded(decoder: EncoderDecoder, word: tuple[str, ...]) -> tuple[np.ndarray, list[int]]:
    """Cells, first token and the tokens of all steps; and the outputs from the row of the first token on."""
    machine, count = decoder.machine, len(decoder.machine.symbols)
    simulation = Simulation(machine, word)
    cells = [0, *(machine.symbols.index(symbol) for symbol in word)]
    tokens = cells + [0] * (decoder.symbols + 2 - len(cells))

    def pair() -> int:
        return machine.states.index(simulation.state) * count + machine.symbols.index(simulation.symbol)

    tokens.append(count + 3 * pair() + 1)
    wanted = []
    for _ in range(decoder.steps):
        transition = machine.transition(simulation.state, simulation.symbol)
        simulation.advance()
        wanted.append(3 * pair() + (1 if transition is None else 1 + MOVES[transition[1]]))
        tokens.append(count + wanted[-1])
    return np.array(tokens[:-1]), wanted
