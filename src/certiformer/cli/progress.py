"""Progress on standard error: a moving bar on a terminal, now and then a line elsewhere, nothing when quiet.

The estimate of what is left assumes that the work goes on at the speed so far; a search that keeps cutting boxes moves its
own goal, so the estimate is a guess until the check, whose number of leaves is known.
"""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol, Self

from certiformer.cli.terminal import Terminal, is_screen, visible

VERBS = {"construct": "constructing", "search": "searching", "check": "checking"}
PAUSE = 5.0  # seconds between two plain lines


class Progress(Protocol):
    """Called as (stage, done, total or None, note)."""

    def __call__(self, stage: str, done: float, total: float | None, note: str) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, kind: Any, error: Any, trace: Any) -> None: ...


def progress_for(terminal: Terminal) -> Progress:
    """The kind of progress that fits where standard error goes."""
    if terminal.quiet:
        return _Silent()
    return _Bar() if is_screen(sys.stderr) else _Lines(terminal)


def remaining(elapsed: float, done: float, total: float | None) -> float | None:
    """Seconds left at the speed so far, or None when nothing can be said.

    >>> remaining(4.0, 100, 300), remaining(4.0, 0, 300), remaining(4.0, 10, None)
    (8.0, None, None)
    """
    if not total or done <= 0 or elapsed <= 0:
        return None
    return elapsed * max(total - done, 0) / done


class _Silent:
    def __call__(self, stage: str, done: float, total: float | None, note: str) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        pass


class _Lines(_Silent):
    """A line when a stage begins, then one every `PAUSE` seconds."""

    def __init__(self, terminal: Terminal):
        self.terminal, self.stage, self.began, self.last = terminal, "", 0.0, 0.0

    def __call__(self, stage: str, done: float, total: float | None, note: str) -> None:
        now = time.monotonic()
        word = VERBS.get(stage, stage)
        if stage != self.stage:
            self.stage, self.began, self.last = stage, now, now
            self.terminal.note(f"{word} ...")
        elif now - self.last >= PAUSE:
            self.last = now
            left = remaining(now - self.began, done, total)
            guess = "" if left is None else f", about {left:.0f} s left"
            self.terminal.note(f"{word}: {note}{guess}")


class _Bar(_Silent):
    """One bar that is redrawn in place and disappears at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self.bars = RichProgress(
            TextColumn("{task.description:<13}", markup=False),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.stage, self.task = "", None

    def __call__(self, stage: str, done: float, total: float | None, note: str) -> None:
        if stage != self.stage or self.task is None:
            if self.task is not None:
                self.bars.remove_task(self.task)
            self.stage = stage
            self.task = self.bars.add_task(visible(VERBS.get(stage, stage)), total=total, note="")
        self.bars.update(self.task, completed=done, total=total, note=visible(note))

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()
