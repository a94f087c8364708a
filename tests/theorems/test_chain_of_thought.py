"""The decoder that thinks a token a step, against the plain simulator and against its own bounds."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.compiler.machines import simulate
from certiformer.compiler.machines.chain_of_thought import ChainOfThought, proved_margin
from certiformer.compiler.machines.examples import busy_beaver, increment, palindrome
from certiformer.errors import BadInput
from certiformer.model import Transformer
from compiler.machines.random_machines import random_machine


def test_the_four_state_beaver_halts():
    decoder = ChainOfThought(busy_beaver(4), steps=110)
    result = decoder.run()
    assert result == simulate(busy_beaver(4)) and result.ones == 13 and decoder.margin > 0.2


def test_inputs_are_read():
    counter = ChainOfThought(increment(), steps=14, symbols=5)
    for word in ("", "1", "1011", "11111", "00000"):
        assert counter.run(word) == simulate(increment(), word)
    mirror = ChainOfThought(palindrome(), steps=40, symbols=4)
    for word in ("", "a", "abba", "abab"):
        assert mirror.run(word) == simulate(palindrome(), word)


@pytest.mark.parametrize("seed", range(4))
def test_random_machines(seed):
    machine = random_machine(50 + seed)
    decoder = ChainOfThought(machine, steps=25, symbols=3)
    for word in ((), ("a", "_", "a")):
        assert decoder.run(word) == simulate(machine, word, 25)


def test_the_stream_stays_within_the_bounds():
    """Sums of moves and signs of cells along a run, against integers: the bounds of the proof, with its constants."""
    decoder = ChainOfThought(busy_beaver(4), steps=107)
    model, at = Transformer(decoder.config, decoder.tensors), decoder._places
    count, tokens, cells, cell = len(decoder.machine.symbols), [2], [0], 0
    for _, (write, move, state) in zip(range(107), thoughts(decoder), strict=True):
        tokens.append(count + 1 + decoder.thoughts.index((write, move, state)))
        cell += {"L": -1, "S": 0, "R": 1}[move]
        cells.append(cell)
    states = model.states(np.array(tokens))
    after_sum, after_cells = states[1][1:], states[2][1:]  # without the register
    n, u, levels = decoder.longest, 2.0**-53, decoder._levels
    assert np.max(np.abs(after_sum[:, at["sum"]] - cells)) <= n * (2 * (n + 2) + 2 * np.log(n + 1) + 17) * u
    signs = decoder._signs()[np.array(cells) - decoder._range[0] + 1]
    found = after_cells[:, at["query"] : at["query"] + decoder._bits]
    assert np.max(np.abs(found - signs)) <= 8 * levels * (3 * levels + 6) * (2 * levels + 8) * u
    read = states[3][1:, at["read"] : at["read"] + count]
    assert np.max(np.minimum(np.abs(read), np.abs(read - 1))) <= 0.25 - decoder.margin


def thoughts(decoder: ChainOfThought) -> list[tuple[str, str, str]]:
    """The tokens of a run, by the simulator."""
    from certiformer.compiler.machines.simulate import Simulation

    simulation, found = Simulation(decoder.machine, ()), []
    while not simulation.stopped:
        transition = decoder.machine.transition(simulation.state, simulation.symbol)
        assert transition is not None
        found.append(transition)
        simulation.advance()
    return found


def test_without_the_order_of_writes_the_decoder_errs():
    """The negative control: the lead of the latest write is what makes it right."""
    decoder = ChainOfThought(busy_beaver(4), steps=107)
    decoder.tensors["blocks.1.attention.groups.0.query"][0, decoder._places["one"], decoder._bits] = 0.0
    assert decoder.run() != simulate(busy_beaver(4))


def test_the_horizon_is_kept():
    assert proved_margin(busy_beaver(5), 500) > 0.2 > 0 > proved_margin(busy_beaver(5), 2_000)
    with pytest.raises(BadInput, match="2,000 steps are beyond the proved horizon"):
        ChainOfThought(busy_beaver(5), steps=2_000)
    decoder = ChainOfThought(increment(), steps=5, symbols=2)
    with pytest.raises(BadInput, match="for 2 symbols and 5 steps at most"):
        decoder.run("101")
    with pytest.raises(BadInput, match="for 2 symbols and 5 steps at most"):
        decoder.run("1", steps=6)
    with pytest.raises(BadInput, match="a positive number of steps, not 0"):
        ChainOfThought(increment(), steps=0)
