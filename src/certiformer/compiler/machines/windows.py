"""Long runs: the tape is cut into windows around the head, and a window that was computed before is not computed again.

A window of W cells is a tape of W cells of its own, run by the looped transformer that is compiled for W cells, from
the head's cell in its middle until the flag says that the head must leave it. By the theorem of
`compiler.machines.looped_machine`, applied to W cells, its passes are steps of the machine; applied to all n cells, so are
the passes over the whole tape. As long as the head is inside the window, the machine neither reads nor changes
anything outside, so both give the same symbols, head and state. Equal windows give equal results, so a result may be
looked up: the five-state busy beaver meets only 149 different windows of 64 cells in its 47,176,870 steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from certiformer.compiler.machines.layout import layout_of, start_tokens
from certiformer.compiler.machines.looped_machine import looped_block
from certiformer.compiler.machines.passes import Tape, first_tape, run_passes
from certiformer.compiler.machines.simulate import Result, bounds, too_short
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import MOVES

if TYPE_CHECKING:
    from certiformer.compiler.machines.compiled import LoopedMachine

WINDOW = 64
LONGEST = 100_000  # passes of one window; a machine that never leaves one is looked up again and again


class Outcome(NamedTuple):
    """A window after its passes: its symbols, where the head stands, in which state, how many steps it made, and whether
    it must leave."""

    symbols: bytes
    head: int
    state: int
    steps: int
    leaves: bool


@dataclass(frozen=True)
class Effort:
    """How much of a cached run was computed: windows, passes of the block, and windows looked up."""

    windows: int
    passes: int
    visits: int


class Windows:
    """The windows of a compiled machine; `outcome` computes a window once."""

    def __init__(self, compiled: LoopedMachine, cells: int = WINDOW):
        machine = compiled.machine
        if len(machine.symbols) > 256:
            raise BadInput("the method cached is for machines with at most 256 symbols")
        self.machine, self.cells = machine, min(cells, compiled.cells)
        self.layout = layout_of(machine, self.cells)
        dtype = compiled.config.dtype
        config, tensors = looped_block(machine, self.layout, dtype)
        self.tensors = {name: tensor.astype(compiled.tensors[name].dtype) for name, tensor in tensors.items()}
        stops = jnp.asarray(compiled.stops)
        on_device = {name: jnp.asarray(tensor) for name, tensor in self.tensors.items()}
        self._passes = partial(run_passes, config, self.layout, on_device, stops)
        self._known: dict[tuple[bytes, int, int], Outcome] = {}
        self.passes = 0

    @property
    def count(self) -> int:
        return len(self._known)

    def outcome(self, symbols: bytes, head: int, state: int, limit: int) -> Outcome:
        """What becomes of a window in at most `limit` steps; when its outcome takes longer, it is run that far."""
        key = (symbols, head, state)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._compute(key, LONGEST)
        return known if known.steps <= limit else self._compute(key, limit)

    def _compute(self, key: tuple[bytes, int, int], limit: int) -> Outcome:
        symbols, head, state = key
        tokens = np.frombuffer(symbols, np.uint8).astype(np.int32)
        tokens[head] += len(self.machine.symbols) * (1 + state)
        tape: Tape = jax.device_get(self._passes(first_tape(self.tensors, tokens, head), jnp.asarray(limit), True))
        self.passes += int(tape.passes)
        stream = np.asarray(tape.stream, np.float64)
        held, place = stream[:, : self.layout.symbols], int(tape.head)
        pair = int(np.argmax(stream[place, self.layout.pairs]))
        leaves = bool(stream[place, self.layout.off])
        state, under = divmod(pair, self.layout.symbols)
        after = np.argmax(held, axis=1)
        # The proof says that this cannot happen; a run that breaks it must not go on.
        if not np.array_equal(held, np.eye(held.shape[1])[after]) or after[place] != under:
            raise ValueError("a cell of the stream is not exactly 0 and 1")
        # The pass that raises the flag makes no step.
        return Outcome(after.astype(np.uint8).tobytes(), place, state, int(tape.passes) - leaves, leaves)


def run_cached(compiled: LoopedMachine, symbols: tuple[str, ...], steps: int) -> tuple[Result, Effort]:
    """The run of a compiled machine by windows, and what it took."""
    from certiformer.compiler.machines.compiled import check_steps

    check_steps(steps)
    machine, cells = compiled.machine, compiled.cells
    with jax.enable_x64(True):
        windows = Windows(compiled)
        size, middle = windows.cells, windows.cells // 2
        tokens = start_tokens(machine, compiled.layout, symbols)
        head = -bounds(cells)[0]
        tokens[head] -= len(machine.symbols)
        tape, state, made, visits = bytearray(tokens.astype(np.uint8).tobytes()), 0, 0, 0
        stops = compiled.stops.reshape(len(machine.states), -1)
        while made < steps and not stops[state, tape[head]]:
            first = min(max(head - middle, 0), cells - size)
            found = windows.outcome(bytes(tape[first : first + size]), head - first, state, steps - made)
            tape[first : first + size] = found.symbols
            head, state, made, visits = first + found.head, found.state, made + found.steps, visits + 1
            if found.leaves and made < steps:
                _, move, _ = machine.table[machine.states[state], machine.symbols[tape[head]]]
                if not 0 <= head + MOVES[move] < cells:
                    raise too_short(cells, bounds(cells)[0] + head + MOVES[move], made + 1)
    held = tuple(machine.symbols[index] for index in tape)
    result = Result(
        halted=bool(stops[state, tape[head]]),
        steps=made,
        state=machine.states[state],
        cell=bounds(cells)[0] + head,
        tape=held,
        first=bounds(cells)[0],
        ones=sum(symbol != machine.blank for symbol in held),
    )
    return result, Effort(windows.count, windows.passes, visits)
