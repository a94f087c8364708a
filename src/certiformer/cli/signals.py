"""Signals that ask a program to end do what Ctrl-C does: the same clean-up, with an exit code that names the signal.

Python ignores an exception in a callback of the garbage collector, in `__del__` and the like. An interruption that is
raised there, as in the callback that jax has, would be lost; it is raised once more a moment later.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED_CODE = 130
MOMENT = 0.02  # seconds; longer than such a callback takes
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


class Terminated(KeyboardInterrupt):
    """The process was asked to end by a signal other than that of Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def interrupted_code(interrupt: KeyboardInterrupt) -> int:
    """The exit code after an interruption, as a shell writes it.

    >>> interrupted_code(KeyboardInterrupt()), interrupted_code(Terminated(signal.SIGTERM))
    (130, 143)
    """
    return 128 + interrupt.number if isinstance(interrupt, Terminated) else INTERRUPTED_CODE


@contextmanager
def ending_signals_interrupt() -> Iterator[None]:
    """Raise `Terminated` in this thread when such a signal arrives; a second one ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # What was set to be ignored, as by nohup, stays ignored.
    before = {number: signal.getsignal(number) for number in ENDING}
    for number, handler in before.items():
        if handler is signal.SIG_DFL:
            signal.signal(number, _raise)
    ignored, lost = sys.unraisablehook, _LostInterruption()
    sys.unraisablehook = lambda report: lost.comes_again(report.exc_value) or ignored(report)
    try:
        yield
    finally:
        lost.forget()
        sys.unraisablehook = ignored
        for number, handler in before.items():
            if handler is signal.SIG_DFL:
                signal.signal(number, handler)


def _raise(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise Terminated(number)


class _LostInterruption:
    """An interruption that was raised where Python ignores it.

    It is sent once more, and only once however many were lost before that: a second signal would end the process. Under
    the lock, it is sent either before `forget` or never; so the handlers are still those of this module.
    """

    def __init__(self) -> None:
        self._number: int | None = None
        self._sending = threading.Lock()

    def comes_again(self, problem: BaseException | None) -> bool:
        """Whether this is an interruption, which then comes once more, outside of what ignores it."""
        if not isinstance(problem, KeyboardInterrupt):
            return False
        number = problem.number if isinstance(problem, Terminated) else signal.SIGINT
        if isinstance(problem, Terminated):
            signal.signal(number, _raise)
        if self._number is None:
            self._number = number
            timer = threading.Timer(MOMENT, self._send)
            timer.daemon = True
            timer.start()
        return True

    def forget(self) -> None:
        with self._sending:
            self._number = None

    def _send(self) -> None:
        """Signal the main thread, and wake it up where that is possible."""
        with self._sending:
            number, self._number = self._number, None
            main = threading.main_thread().ident
            if number is None:
                return
            if hasattr(signal, "pthread_kill") and main is not None:
                signal.pthread_kill(main, number)
            else:
                signal.raise_signal(number)
