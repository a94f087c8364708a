"""Telling an experiment tracker how a run goes: four methods in the shape of Weights & Biases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from certiformer.sweep.chunk import decode
from certiformer.sweep.job import Job


class Tracker(Protocol):
    """What `run_jobs` calls, once each but `log`: `start`, then `log` per finished job, `summary`, `finish`."""

    def start(self, project: str, name: str, config: dict[str, Any]) -> None: ...

    def log(self, values: dict[str, float], step: int) -> None: ...

    def summary(self, values: dict[str, Any]) -> None: ...

    def finish(self) -> None: ...


class Tracking:
    """One run as its tracker sees it; without a tracker, nothing happens. A tracker that raises is told of and left: the
    results are in the store."""

    def __init__(self, tracker: Tracker | None, say: Callable[[str], None], jobs: Sequence[Job], engine: str) -> None:
        self._tracker, self._say = tracker, say
        functions = sorted({job.function for job in jobs})
        config = {"engine": engine, "jobs": len(jobs), "functions": functions}
        self._call("start", "certiformer", ", ".join(functions) or "nothing", config)

    def log(self, done: int, content: bytes) -> None:
        """The numbers of the last row of a job that has just finished, with `done` as the step.

        They are called `row/NAME`, since some trackers keep names like `step` and `time` for themselves."""
        if self._tracker is not None:
            last = (decode(content) or [{}])[-1]
            numbers = {f"row/{name}": value for name, value in last.items() if isinstance(value, (int, float))}
            self._call("log", {"done": done, **numbers}, done)

    def finish(self, values: dict[str, Any]) -> None:
        self._call("summary", values)
        self._call("finish")

    def _call(self, method: str, *arguments: Any) -> None:
        if self._tracker is None:
            return
        try:
            getattr(self._tracker, method)(*arguments)
        except Exception as error:
            self._tracker = None
            self._say(f"the tracker failed ({type(error).__name__}: {error}); the run goes on without it")
