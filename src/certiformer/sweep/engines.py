"""Engines by name; `here` does jobs one after another in this process, with the thread settings that workers have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from certiformer.errors import BadInput
from certiformer.sweep.cores import Cores
from certiformer.sweep.pool import Outcome, Pool, compute
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


ENGINES = ("here", "cores", "ray", "ray://HOST:PORT", "HOST:PORT", "auto")


def open_pool(engine: str, workers: int | None, say: Callable[[str], None]) -> Pool:
    """The workers of an engine; `workers` limits how many (default: one per core of the machine or the cluster).

    >>> open_pool("magic", None, print)
    Traceback (most recent call last):
    certiformer.errors.BadInput: there is no engine 'magic': choose here, cores, ray, ray://HOST:PORT, HOST:PORT or auto
    """
    if workers is not None and workers < 1:
        raise BadInput(f"{workers} workers cannot work: give a number from 1")
    if engine == "here":
        return Here(say)
    if engine == "cores":
        return Cores(workers)
    if engine in ("ray", "auto") or engine.rpartition(":")[2].isdigit():
        from certiformer.sweep.cluster import Cluster

        return Cluster(engine, workers)
    raise BadInput(f"there is no engine {engine!r}: choose {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
