"""What an engine is to the driver: something that takes claimed jobs and, some time later, says what came of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from certiformer.errors import BadInput, MissingExtra
from certiformer.sweep.chunk import encode
from certiformer.sweep.job import Job
from certiformer.sweep.store import Claim


@dataclass(frozen=True)
class Answer:
    """What a worker found: the bytes of the chunk and how many rows they hold, or the sentence of what it raised.

    `final`: raising again is certain, since the configuration itself is wrong."""

    content: bytes | None
    rows: int = 0
    raised: str = ""
    final: bool = False


@dataclass(frozen=True)
class Outcome:
    """The end of one try: the answer, or how the worker died without one."""

    claim: Claim
    answer: Answer | None
    died: str = ""


class Pool(Protocol):
    """Workers of one engine."""

    size: int  # how many jobs it works on at once

    def submit(self, claim: Claim) -> None:
        """Start a job; called at most `size` times more than `wait` has given outcomes."""
        ...

    def wait(self, seconds: float) -> list[Outcome]:
        """The jobs that have ended, after at most about `seconds` (the engine `here` takes as long as its job)."""
        ...

    def close(self) -> None:
        """End all workers, also those in mid-job."""
        ...


def compute(job: Job) -> Answer:
    """Run a job and encode its rows. Whatever it raises becomes a sentence."""
    try:
        rows = job.run()
        return Answer(encode(job, rows), len(rows))
    except (BadInput, MissingExtra) as error:
        return Answer(None, raised=str(error), final=True)
    except Exception as error:
        return Answer(None, raised=sentence(error))


def sentence(error: BaseException) -> str:
    """The exception as one line: its kind, its message, and where in the job it came from.

    >>> try:
    ...     1 / 0
    ... except ZeroDivisionError as error:
    ...     print(sentence(error))
    ZeroDivisionError: division by zero (in <module>, line 2 of <doctest certiformer.sweep.pool.sentence[0]>)
    """
    trace: Any = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = ""
    if trace is not None:
        code = trace.tb_frame.f_code
        where = f" (in {code.co_name}, line {trace.tb_lineno} of {code.co_filename})"
    return f"{type(error).__name__}: {' '.join(str(error).split()) or 'no message'}{where}"
