"""`LoopedMachine`: a Turing machine in the weights of one block that is applied again and again, and its runs.

Compiling needs NumPy alone; JAX is imported when the machine runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float

from certiformer.compiler.computation import Computation
from certiformer.compiler.machines.file import split_symbols
from certiformer.compiler.machines.layout import Layout, layout_of, start_tokens
from certiformer.compiler.machines.looped import looped_block
from certiformer.compiler.machines.simulate import Moment, Result, bounds, too_short, used_tape
from certiformer.compiler.tensors import stored
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import MOVES, Machine
from certiformer.model.config import Config
from certiformer.model.schema import DTYPES

if TYPE_CHECKING:
    from certiformer.compiler.machines.passes import Tape

METHODS = ("near", "full", "cached")


@dataclass(frozen=True)
class LoopedMachine(Computation):
    """A machine and the looped transformer that runs it on `cells` cells.

    `config` has one pass; more `loops` are more steps of the machine. `tensors` are NumPy arrays in the stored type.
    """

    machine: Machine
    cells: int
    config: Config
    tensors: dict[str, np.ndarray]

    @property
    def layout(self) -> Layout:
        return layout_of(self.machine, self.cells)

    @property
    def rule(self) -> str:
        return "looped_machine"

    @property
    def description(self) -> str:
        return self.machine.to_text()

    def answers(self, sequence: Iterable[str], *, steps: int = 1_000) -> list[str]:
        """The used part of the tape after at most `steps` steps; `run` says more."""
        word = split_symbols(sequence, self.machine) if isinstance(sequence, str) else tuple(sequence)
        # A long run needs windows that are looked up.
        return used_tape(self.run(word, steps, "near" if steps <= 100_000 else "cached"), self.machine)

    def sizes(self) -> dict[str, Any]:
        return {"form": "looped", "cells": self.cells}

    def run(self, symbols: Iterable[str] = (), steps: int = 1_000, method: str = "near") -> Result:
        """At most `steps` passes of the block, in the stored type.

        `method` is `near` (only the cells near the head are computed), `full` (every cell at every pass) or `cached`
        (windows of the tape, each computed once); `passes` and `windows` prove that all give the same result.
        Raises `BadInput` when the head would leave the tape.
        """
        if method == "cached":
            from certiformer.compiler.machines.windows import run_cached

            return run_cached(self, tuple(symbols), steps)[0]
        return self._result(self._run(tuple(symbols), steps, method))

    def trace(self, symbols: Iterable[str] = (), steps: int = 100, method: str = "near") -> list[Moment]:
        """Every configuration of the run: the step, the state, the cell of the head and what it reads."""
        from certiformer.compiler.machines.passes import track_passes

        tape, arguments = self._prepared(tuple(symbols), steps, method)
        count = len(self.machine.symbols)
        row = np.asarray(tape.stream)[int(tape.head)]
        start = [(int(tape.head), int(np.argmax(row[self.layout.pairs])))]
        with _wide_numbers():
            final, heads, pairs = track_passes(*arguments, tape, steps, method == "near")
        self._refuse_off(final)
        tracked = zip(np.asarray(heads).tolist(), np.asarray(pairs).tolist(), strict=True)
        places = [*start, *(place for place in tracked if place[0] >= 0)]
        first = bounds(self.cells)[0]
        return [
            Moment(step, self.machine.states[pair // count], first + head, self.machine.symbols[pair % count])
            for step, (head, pair) in enumerate(places)
        ]

    def deviation(self, symbols: Iterable[str] = (), steps: int = 1_000, method: str = "near") -> float:
        """The largest distance of a symbol, pair or flag from 0 or 1 after the run, over all cells; NaN if one is NaN."""
        stream = np.asarray(self._run(tuple(symbols), steps, method).stream, np.float64)[:, : self.layout.outputs]
        return float(np.max(np.minimum(np.abs(stream), np.abs(stream - 1.0))))

    def _run(self, symbols: tuple[str, ...], steps: int, method: str) -> Tape:
        import jax.numpy as jnp

        from certiformer.compiler.machines.passes import run_passes

        tape, arguments = self._prepared(symbols, steps, method)
        with _wide_numbers():
            tape = run_passes(*arguments, tape, jnp.asarray(steps), method == "near")
        self._refuse_off(tape)
        return tape

    def _prepared(self, symbols: tuple[str, ...], steps: int, method: str) -> tuple[Tape, tuple[Any, ...]]:
        check_steps(steps)
        if method not in METHODS[:2]:
            raise BadInput(f"here a machine runs by the method {' or '.join(METHODS[:2])}, not {method!r}")
        import jax.numpy as jnp

        from certiformer.compiler.machines.passes import first_tape

        tokens = start_tokens(self.machine, self.layout, symbols)
        with _wide_numbers():
            tape = first_tape(self.tensors, tokens, -bounds(self.cells)[0])
            tensors = {name: jnp.asarray(tensor) for name, tensor in self.tensors.items()}
            return tape, (self.config, self.layout, tensors, jnp.asarray(self.stops))

    @cached_property
    def stops(self) -> Bool[np.ndarray, " pairs"]:
        """For every pair, state by state: whether the machine stops there."""
        pairs = [(state, symbol) for state in self.machine.states for symbol in self.machine.symbols]
        return np.array([self.machine.transition(*pair) is None for pair in pairs])

    def _refuse_off(self, tape: Tape) -> None:
        """Where the head had to leave the tape, say which cell was needed and when; that pass made no step."""
        row = np.asarray(tape.stream, np.float64)[int(tape.head)]
        if row[self.layout.off] > 0.5:
            result = self._result(tape)
            transition = self.machine.transition(result.state, result.tape[result.cell - result.first])
            if transition is None:
                raise ValueError("the flag of the tape's end is raised where the machine has stopped")
            raise too_short(self.cells, result.cell + MOVES[transition[1]], result.steps)

    def _result(self, tape: Tape) -> Result:
        stream = np.asarray(tape.stream, np.float64)
        symbols = [self.machine.symbols[index] for index in _unit_vectors(stream[:, : self.layout.symbols])]
        (pair,) = _unit_vectors(stream[int(tape.head)][None, self.layout.pairs])
        if np.count_nonzero(stream[:, self.layout.pairs]) != 1:
            raise ValueError("the stream holds more than one head")
        first, blank = bounds(self.cells)[0], self.machine.blank
        return Result(
            halted=bool(self.stops[pair]),
            steps=int(tape.passes),
            state=self.machine.states[pair // len(self.machine.symbols)],
            cell=first + int(tape.head),
            tape=tuple(symbols),
            first=first,
            ones=sum(symbol != blank for symbol in symbols),
        )


def check_steps(steps: int) -> None:
    if type(steps) is not int or steps < 0:
        raise BadInput(f"the number of steps is a non-negative integer, not {steps!r}")


def _unit_vectors(rows: Float[np.ndarray, "rows size"]) -> list[int]:
    """The place of the 1 in every row; the numbers must be exactly 0 and 1."""
    places = np.argmax(rows, axis=1)
    if not np.array_equal(rows, np.eye(rows.shape[1])[places]):
        raise ValueError("a cell of the stream is not exactly 0 and 1")
    return places.tolist()


def _wide_numbers() -> Any:
    import jax

    return jax.enable_x64(True)


def machine_loop(machine: Machine, tape: int = 400, dtype: str = "float64") -> LoopedMachine:
    """The looped transformer of `machine` on a tape of `tape` cells, cell 0 in the middle.

    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> compiled = machine_loop(busy_beaver(4), tape=24)
    >>> compiled.run().ones, compiled.run().steps, compiled.run(method="full").state
    (13, 107, 'H')
    """
    if dtype not in DTYPES:
        raise BadInput(f"a machine is stored in {', '.join(DTYPES)}, not {dtype!r}")
    config, tensors = looped_block(machine, layout_of(machine, tape), dtype)
    return LoopedMachine(machine, tape, config, {name: stored(tensor, dtype) for name, tensor in tensors.items()})
