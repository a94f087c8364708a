"""The plain simulator against known figures."""

from __future__ import annotations

import pytest

from certiformer.compiler.machines import simulate
from certiformer.compiler.machines.examples import busy_beaver, increment, palindrome
from certiformer.compiler.machines.simulate import Simulation
from certiformer.errors import BadInput


@pytest.mark.parametrize(("states", "steps", "ones"), [(2, 6, 4), (3, 21, 5), (4, 107, 13)])
def test_busy_beavers(states, steps, ones):
    result = simulate(busy_beaver(states))
    assert (result.halted, result.steps, result.ones, result.state) == (True, steps, ones, "H")


def test_the_five_state_beaver_keeps_going():
    # The second program has a list as its tape and numbers as its moves.
    result = simulate(busy_beaver(5), steps=100_000)
    assert not result.halted and result.steps == 100_000
    tape, state, cell = [0] * 4000, "A", 2000
    table = {(s, int(r)): (int(w), 1 if m == "R" else -1, n) for s, r, w, m, n in busy_beaver(5).rows}
    for _ in range(100_000):
        write, move, following = table[state, tape[cell]]
        tape[cell], cell, state = write, cell + move, following
    assert (result.ones, result.state, result.cell) == (sum(tape), state, cell - 2000)


@pytest.mark.parametrize("number", [0, 1, 2, 5, 7, 255, 1000])
def test_increment(number):
    result = simulate(increment(), f"{number:b}")
    assert int("".join(symbol for symbol in result.tape if symbol != "_"), 2) == number + 1


def test_palindromes():
    for number in range(1, 64):
        word = f"{number:b}".replace("0", "a").replace("1", "b")
        assert simulate(palindrome(), word).state == ("yes" if word == word[::-1] else "no")


def test_a_bounded_tape_ends():
    with pytest.raises(BadInput, match="the tape of 8 cells is too short: the machine needs cell -5 at step 59"):
        simulate(busy_beaver(4), cells=8)
    with pytest.raises(BadInput, match="the input has 5 symbols, more than the 4 cells from 0 on"):
        Simulation(busy_beaver(4), "11111", cells=8)
