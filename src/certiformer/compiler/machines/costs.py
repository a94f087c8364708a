"""What a machine that halts by itself costs: the passes it needs, as a distribution over inputs.

A looped transformer that runs a machine decides by itself when it is done: from the pass on at which the machine enters a
halting state nothing changes any more. Which states halt, and when they are entered, is up to whoever writes the table. A
proved transformer takes exactly as many passes as the machine takes steps, so the machine is simulated for all inputs, and
the transformer itself is run on the input that costs most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from certiformer.compiler.machines.compiled import LoopedMachine
from certiformer.compiler.machines.decoder import Decoder
from certiformer.compiler.machines.simulate import simulate
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import Machine

ALL_OF = 4096  # words of one length up to which all of them are taken; of more, so many are drawn
SEED = 0
Word = tuple[str, ...]


@dataclass(frozen=True)
class LengthCosts:
    """The inputs of one length: how many were looked at and whether that is all, who halted, and their steps in order."""

    length: int
    inputs: int
    every: bool
    steps: tuple[int, ...]
    running: int
    off: int

    @property
    def mean(self) -> float | None:
        """Of those that halted."""
        return sum(self.steps) / len(self.steps) if self.steps else None

    def quantile(self, share: float) -> int | None:
        """The least number of steps within which that share of the inputs has halted; None where fewer have."""
        wanted = max(1, int(np.ceil(share * self.inputs)))
        return self.steps[wanted - 1] if wanted <= len(self.steps) else None


@dataclass(frozen=True)
class Costs:
    """Costs by length, the halting states with the inputs that end there, and the costliest input."""

    lengths: tuple[LengthCosts, ...]
    states: dict[str, int]
    costliest: Word | None

    def histogram(self) -> dict[int, int]:
        """How many inputs take how many steps.

        >>> from certiformer.compiler.machines.compiled import machine_loop
        >>> from certiformer.compiler.machines.examples import increment
        >>> costs_of(machine_loop(increment(), tape=12), longest=2).histogram()
        {2: 1, 3: 1, 4: 3, 5: 1, 6: 1}
        """
        return dict(sorted(Counter(step for each in self.lengths for step in each.steps).items()))


def costs_of(compiled: LoopedMachine | Decoder, longest: int, steps: int = 1_000) -> Costs:
    """The costs of all words of at most `longest` symbols that are not the blank; of long words, of a sample."""
    if longest < 0 or steps < 0:
        raise BadInput("the longest input and the number of steps are not negative")
    machine, cells = compiled.machine, compiled.cells if isinstance(compiled, LoopedMachine) else None
    limit = steps if isinstance(compiled, LoopedMachine) else min(steps, compiled.steps)
    if cells is None and isinstance(compiled, Decoder) and longest > compiled.symbols:
        raise BadInput(f"this {compiled.form} reads at most {compiled.symbols:,} input symbols, not {longest:,}")
    if cells is not None and longest > cells - cells // 2:
        raise BadInput(f"an input of {longest} symbols does not fit on a tape of {cells:,} cells")
    states: Counter[str] = Counter()
    lengths: list[LengthCosts] = []
    most, costliest = -1, None
    for length in range(longest + 1):
        words, every = _words(machine, length)
        taken: list[int] = []
        running = off = inputs = 0
        for word in words:
            inputs += 1
            try:
                result = simulate(machine, word, limit, cells)
            except BadInput:
                off += 1
                continue
            if not result.halted:
                running += 1
                continue
            taken.append(result.steps)
            states[result.state] += 1
            if result.steps > most:
                most, costliest = result.steps, word
        lengths.append(LengthCosts(length, inputs, every, tuple(sorted(taken)), running, off))
    if costliest is not None:
        _require_same(compiled, costliest, most)
    return Costs(tuple(lengths), dict(states), costliest)


def _words(machine: Machine, length: int) -> tuple[Iterator[Word], bool]:
    letters = [symbol for symbol in machine.symbols if symbol != machine.blank]
    if len(letters) ** length <= ALL_OF:
        return product(letters, repeat=length), True
    drawn = np.random.default_rng((SEED, length)).integers(len(letters), size=(ALL_OF, length))
    return (tuple(letters[place] for place in row) for row in drawn.tolist()), False


def _require_same(compiled: LoopedMachine | Decoder, word: Word, steps: int) -> None:
    """The transformer itself must halt there after as many steps."""
    result = compiled.run(word, steps + 1) if isinstance(compiled, LoopedMachine) else compiled.follow(word, steps)[0]
    if (result.halted, result.steps) != (True, steps):
        raise ValueError(f"the transformer takes {result.steps} steps where the machine halts after {steps}")
