"""The engine `cores`: worker processes on this machine, one thread each, watched and replaced by the driver.

The workers are fresh interpreters, not forks (JAX runs threads, which a fork would break) and not the spawned processes
of `multiprocessing` (they would run the caller's main module again).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from typing import BinaryIO, cast

from certiformer.errors import BadInput
from certiformer.sweep.pool import Outcome
from certiformer.sweep.store import Claim
from certiformer.sweep.threads import usable_cores, worker_environment
from certiformer.sweep.worker import read


class Cores:
    """Worker processes; each has a thread here that gives it jobs and notices when it dies."""

    def __init__(self, workers: int | None) -> None:
        self.size = workers or usable_cores()
        self._jobs: queue.Queue[Claim | None] = queue.Queue()
        self._ended: queue.Queue[Outcome | BadInput] = queue.Queue()
        self._closing, self._lock = False, threading.Lock()
        self._processes: list[subprocess.Popen[bytes] | None] = [None] * self.size
        self._threads = [threading.Thread(target=self._serve, args=(i,), daemon=True) for i in range(self.size)]
        for thread in self._threads:
            thread.start()

    def submit(self, claim: Claim) -> None:
        self._jobs.put(claim)

    def wait(self, seconds: float) -> list[Outcome]:
        outcomes: list[Outcome | BadInput] = []
        with contextlib.suppress(queue.Empty):
            outcomes.append(self._ended.get(timeout=seconds))
            while True:
                outcomes.append(self._ended.get_nowait())
        for outcome in outcomes:
            if isinstance(outcome, BadInput):
                raise outcome
        return cast(list[Outcome], outcomes)

    def close(self) -> None:
        with self._lock:
            self._closing = True
            for process in self._processes:
                if process is not None:
                    process.kill()
        for _ in self._threads:
            self._jobs.put(None)
        for thread in self._threads:
            thread.join()

    # --- one thread per worker ----------------------------------------------------------------------------------------

    def _serve(self, index: int) -> None:
        """Give jobs to one worker, a new one after each death, until the pool closes."""
        while (claim := self._jobs.get()) is not None and not self._closing:
            try:
                self._ended.put(self._work(index, claim))
            except BadInput as error:
                self._ended.put(error)
        _end(self._processes[index])

    def _work(self, index: int, claim: Claim) -> Outcome:
        process = self._processes[index]
        try:
            if process is None or process.poll() is not None:
                _end(process)
                process = self._start(index)
            line = json.dumps({"function": claim.job.function, "config": claim.job.config}) + "\n"
            stdin = cast(BinaryIO, process.stdin)
            stdin.write(line.encode())
            stdin.flush()
            answer = read(cast(BinaryIO, process.stdout))
        except (BrokenPipeError, ConnectionResetError):
            answer = None
        if answer is not None:
            return Outcome(claim, answer)
        return Outcome(
            claim, None, died=f"its worker process ended without an answer ({_ending(self._processes[index])})"
        )

    def _start(self, index: int) -> subprocess.Popen[bytes]:
        """A new worker that has imported what it needs. **Raises:** `BadInput` when that ends with an exit code."""
        environment = os.environ | worker_environment(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
        command = [sys.executable, "-c", "from certiformer.sweep.worker import main; raise SystemExit(main())"]
        with self._lock:
            if self._closing:
                raise BrokenPipeError
            try:
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
            except OSError as error:
                raise BadInput(f"no worker process can be started: {error.strerror}") from error
            self._processes[index] = process
        if read(cast(BinaryIO, process.stdout)) is None:
            if process.wait() > 0:
                raise BadInput(f"worker processes end at once ({_ending(process)}); their own messages are above")
            raise BrokenPipeError  # killed while it started: like any other death
        return process


def _ending(process: subprocess.Popen[bytes] | None) -> str:
    if process is None:
        return "it was never started"
    code = process.wait()
    return f"signal {-code}" if code < 0 else f"exit code {code}"


def _end(process: subprocess.Popen[bytes] | None) -> None:
    """Kill a worker if it still runs, and let go of its pipes."""
    if process is None:
        return
    process.kill()
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):  # a worker that died may have left input unread
            cast(BinaryIO, stream).close()
    process.wait()
