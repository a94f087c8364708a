"""What the two decoders of a machine share: a horizon, and runs token by token.

A decoder is for at most `steps` steps on inputs of at most `symbols` symbols; the tape is free on both sides. It is made
only where its theorem holds, and it does not run further.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from certiformer.compiler.computation import Computation
from certiformer.compiler.machines.file import split_symbols
from certiformer.compiler.machines.simulate import Moment, Result, Simulation, used_tape
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import MOVES, Machine, Transition
from certiformer.model.config import Config

DTYPES = ("float64", "float32")
LONGEST = 20_000  # steps and symbols; the weights of more would fill gigabytes


@dataclass(frozen=True)
class Decoder(Computation, ABC):
    """A transformer that writes the steps of `machine` one by one."""

    machine: Machine
    steps: int
    symbols: int = 0
    dtype: str = "float64"

    form: ClassVar[str]
    rule: ClassVar[str]

    @property
    def description(self) -> str:
        return self.machine.to_text()

    def answers(self, sequence: Iterable[str], *, steps: int | None = None) -> list[str]:
        """The used part of the tape after at most `steps` steps (default: the horizon); `run` says more."""
        word = split_symbols(sequence, self.machine) if isinstance(sequence, str) else tuple(sequence)
        return used_tape(self.run(word, steps), self.machine)

    def sizes(self) -> dict[str, Any]:
        return {"form": self.form.replace(" ", "-"), "steps": self.steps, "symbols": self.symbols}

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise BadInput(f"the {self.form} of a machine is stored in {' or '.join(DTYPES)}, not {self.dtype!r}")
        for name, least in (("steps", 1), ("symbols", 0)):
            count = getattr(self, name)
            if type(count) is not int or not least <= count <= LONGEST:
                raise BadInput(f"the {self.form} of a machine is for {least} to {LONGEST:,} {name}, not {count!r}")
        if not self.reaches(self.steps):
            raise BadInput(
                f"the {self.form} of a machine in {self.dtype}, for {self.symbols:,} input symbols, is proved for at most"
                f" {self.farthest():,} steps, not {self.steps:,}"
            )

    @abstractmethod
    def reaches(self, steps: int) -> bool:
        """Whether the theorem holds for so many steps in the stored type."""

    @property
    @abstractmethod
    def config(self) -> Config: ...

    @cached_property
    @abstractmethod
    def tensors(self) -> dict[str, np.ndarray]: ...

    @abstractmethod
    def decoded(self, word: tuple[str, ...], limit: int) -> list[int]:
        """The outputs that are chosen, one for each step; -1 after the end."""

    @abstractmethod
    def step(self, output: int, scratch: Simulation) -> Transition | None:
        """What an output says that the step did, where the tape is that of `scratch`; None when it says stop."""

    def farthest(self) -> int:
        """The largest number of steps that the theorem holds for; 0 if there is none."""
        low, high = 0, LONGEST + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.reaches(middle) else (low, middle)
        return low

    def run(self, symbols: Iterable[str] = (), steps: int | None = None) -> Result:
        """At most `steps` steps, decoded in the stored type."""
        return self.follow(symbols, steps)[0]

    def trace(self, symbols: Iterable[str] = (), steps: int | None = None) -> list[Moment]:
        """Every configuration of the run."""
        return self.follow(symbols, steps)[1]

    def follow(self, symbols: Iterable[str] = (), steps: int | None = None) -> tuple[Result, list[Moment]]:
        """The run and every configuration on the way."""
        word, limit = self.within(symbols, steps)
        return self.rebuilt(word, self.decoded(word, limit))

    def within(self, symbols: Iterable[str], steps: int | None) -> tuple[tuple[str, ...], int]:
        """The input and the number of steps, if both are within the horizon."""
        word = self.machine.check_symbols(symbols)
        limit = self.steps if steps is None else steps
        if type(limit) is not int or limit < 0:
            raise BadInput(f"the number of steps is a non-negative integer, not {steps!r}")
        if len(word) > self.symbols:
            raise BadInput(f"this {self.form} reads at most {self.symbols:,} input symbols, not {len(word):,}")
        if limit > self.steps:
            raise BadInput(f"this {self.form} is proved for {self.steps:,} steps, not {limit:,}")
        return word, limit

    def rebuilt(self, word: tuple[str, ...], outputs: list[int]) -> tuple[Result, list[Moment]]:
        """The tape that the outputs leave behind."""
        scratch = Simulation(self.machine, word)
        moments = [scratch.moment()]
        for number, output in enumerate(outputs, 1):
            if output < 0 and not scratch.stopped:
                raise ValueError("the decoder wrote nothing")
            done = self.step(output, scratch) if output >= 0 else None
            if done is None:
                break
            write, move, state = done
            scratch.tape[scratch.cell], scratch.state = write, state
            scratch.cell, scratch.step = scratch.cell + MOVES[move], number
            scratch.lowest, scratch.highest = min(scratch.lowest, scratch.cell), max(scratch.highest, scratch.cell)
            moments.append(scratch.moment())
        return scratch.result(), moments

    def with_tensors(self, tensors: dict[str, np.ndarray]) -> Self:
        """The same with stored weights instead of fresh ones."""
        other = replace(self)
        object.__setattr__(other, "tensors", tensors)  # where a cached property looks first
        return other
