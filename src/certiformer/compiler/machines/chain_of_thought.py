"""The weights of a decoder that writes one token for every step of a machine, and its runs.

The theorem, its proof and its rule are in `axioms.chain_of_thought_machine`, the weights in `axioms.thought_weights`.

*First block.* One head adds up the moves; `sum` holds an anchor plus the cell of the head. Three rows of pairs of units
turn it into signs: the head's cell, the cell that a step wrote to, the cell of an input symbol.

*Second block.* One head finds the latest write to the head's cell; the register holds the blank. Two units for each pair
of state and symbol choose the next step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from certiformer.axioms.chain_of_thought_machine import reaches
from certiformer.axioms.thought_weights import ThoughtShape
from certiformer.compiler.machines.decoder import Decoder
from certiformer.compiler.machines.simulate import Simulation
from certiformer.compiler.tensors import arrays, stored
from certiformer.kernel.construction import Construction
from certiformer.kernel.meanings.machine import Transition
from certiformer.kernel.rounding import FORMATS
from certiformer.model.config import Config


@dataclass(frozen=True)
class ChainOfThought(Decoder):
    """The decoder of `machine` for inputs of at most `symbols` symbols and `steps` steps.

    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> decoder = ChainOfThought(busy_beaver(3), steps=30)
    >>> decoder.run().ones, decoder.run().steps
    (5, 21)
    """

    form: ClassVar[str] = "chain of thought"
    rule: ClassVar[str] = "chain_of_thought_machine"

    def reaches(self, steps: int) -> bool:
        return reaches(ThoughtShape(self.machine, steps, self.symbols), FORMATS[self.dtype])

    @property
    def shape(self) -> ThoughtShape:
        return ThoughtShape(self.machine, self.steps, self.symbols)

    @cached_property
    def _made(self) -> Construction:
        longest = self.shape.longest
        return self.shape.construction(self.dtype, np.log(longest - np.arange(longest)).tolist())

    @cached_property
    def config(self) -> Config:
        return Config.from_json(self._made.config)

    @cached_property
    def tensors(self) -> dict[str, np.ndarray]:
        return {name: stored(tensor, self.dtype) for name, tensor in arrays(self._made).items()}

    def decoded(self, word: tuple[str, ...], limit: int) -> list[int]:
        from certiformer.compiler.decode import greedy

        count, thoughts = len(self.machine.symbols), self.machine.steps
        prompt = np.array([[*(self.machine.symbols.index(symbol) for symbol in word), count]])
        writes = np.array([*range(count + 1, count + 1 + len(thoughts)), -1])
        return greedy(self.config, self.tensors, prompt, writes, limit)[0].tolist()

    def step(self, output: int, scratch: Simulation) -> Transition | None:
        return self.machine.steps[output] if output < len(self.machine.steps) else None
