"""The engine `here`: jobs one after another in this process, with the thread settings that workers have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from certiformer.sweep.pool import Outcome, compute
from certiformer.sweep.store import Claim
from certiformer.sweep.threads import one_thread_here


class Here:
    """A pool of one worker: this process."""

    size = 1

    def __init__(self, say: Callable[[str], None]) -> None:
        self._waiting: list[Claim] = []
        self._settings = ExitStack()
        note = self._settings.enter_context(one_thread_here())
        if note:
            say(note)

    def submit(self, claim: Claim) -> None:
        self._waiting.append(claim)

    def wait(self, seconds: float) -> list[Outcome]:
        claims, self._waiting = self._waiting, []
        return [Outcome(claim, compute(claim.job)) for claim in claims]

    def close(self) -> None:
        self._settings.close()
