"""Compiled calls one after the other: as few as progress and checkpoints ask for, with the same answer however many."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from certiformer.train.checkpoint import fingerprint, load, save
from certiformer.train.program import Common, Member, Plan, run_programs
from certiformer.train.state import State

Progress = Callable[[str, int, int, str], None]
ROUND_SECONDS = 1.0  # between two calls of `progress`, roughly


@dataclass(frozen=True)
class Call:
    """The compiled program with all its arguments but the state and the records to do."""

    plan: Plan
    members: Member
    common: Common
    programs: int

    def __call__(self, state: State, first: int, stop: int) -> State:
        """The state after the records from `first` up to `stop`."""
        return jax.block_until_ready(run_programs(self.plan, state, *self._rest(first, stop)))

    def fingerprint(self, state: State) -> str:
        """What this run computes from this state."""
        jaxpr = run_programs.trace(self.plan, state, *self._rest(0, 0)).jaxpr
        return fingerprint(jaxpr, (state, self.members, self.common))

    def _rest(self, first: int, stop: int) -> tuple:
        return self.members, self.common, np.int32(first), np.int32(stop), np.int32(self.programs)


def in_rounds(
    call: Call, state: State, records: int, progress: Progress | None, folder: Path | None, seconds: float
) -> State:
    """All records; one call when nobody wants to hear or to keep anything in between."""
    if progress is None and folder is None:
        return call(state, 0, records)
    mark, done = "", 0
    if folder is not None:
        mark = call.fingerprint(state)
        state, done = load(folder, state, mark) or (state, 0)
    saved, size = time.monotonic(), 1
    while done < records and np.asarray(state.alive).any():
        began, before = time.monotonic(), state
        stop = min(records, done + size)
        state = call(state, done, stop)
        now = time.monotonic()
        # The first round also compiles, so it makes the second one small, never too large.
        size = max(1, int(ROUND_SECONDS * (stop - done) / max(now - began, 1e-6)))
        done = stop
        finished = done == records or not np.asarray(state.alive).any()
        if folder is not None and (finished or now - saved >= seconds):
            save(folder, state, done, mark)
            saved = now
        if progress is not None:
            _tell(progress, call.plan.record, before, state, (done, records), now - began)
    return state


def _tell(
    progress: Progress, record: int, before: State, after: State, records: tuple[int, int], seconds: float
) -> None:
    """Members that have stopped count as done; the estimate is for those that have not."""
    done, total = records
    alive, members = np.asarray(after.alive), np.asarray(after.alive).size
    taken = int(np.asarray(after.steps, np.int64).sum() - np.asarray(before.steps, np.int64).sum())
    rate = max(taken, 1) / max(seconds, 1e-9)
    left = int(alive.sum()) * (total - done) * record
    lost = int(np.asarray(after.diverged).sum())
    note = f"{rate:,.0f} model-steps/s, {left / rate:,.0f} s left" + (f", {lost} diverged" if lost else "")
    progress("train", members * total * record - left, members * total * record, note)
