"""Jobs: a queue with places, and worker processes with limits of time and memory.

A job is the answer to one request that streams; when its reader goes away, its process is killed and a fresh one takes
over. So no job outlives its page, and none can spoil the next.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from certiformer.explore.limits import EVENT_BYTES, JOB_MEMORY, JOB_SECONDS, JOBS_OF_A_WORKER, WAITING
from certiformer.isolation import command, environment

Event = dict[str, Any]
QUICK = ("attend", "rates", "trust")
OUT_OF_MEMORY = 77  # the exit code of a worker that took more than its share


class Busy(Exception):
    """More jobs wait than anybody would wait for."""


class Worker:
    """One process that carries out one job after the other."""

    def __init__(self, home: Path, warm: bool):
        self.home, self.warm = home, warm
        self.process: asyncio.subprocess.Process | None = None
        self.ended: asyncio.subprocess.Process | None = None
        self.jobs = 0
        self._beginning = asyncio.Lock()

    async def begin(self) -> None:
        """Start the process, unless it runs."""
        async with self._beginning:
            await self._begin()

    async def _begin(self) -> None:
        if self.process is not None and self.process.returncode is None and self.jobs < JOBS_OF_A_WORKER:
            return
        await self.end()
        self.home.mkdir(exist_ok=True)
        threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
        threads["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
        # What one worker has compiled, the others read; the folder is ours alone and goes with the server.
        compiled = {"JAX_COMPILATION_CACHE_DIR": str(self.home.parent / "compiled")}
        compiled["JAX_PERSISTENT_COMPILATION_CACHE_MIN_COMPILE_TIME_SECS"] = "0.2"
        self.jobs = 0
        self.process = await asyncio.create_subprocess_exec(
            *command("certiformer.explore.worker", str(JOB_MEMORY), "warm" if self.warm else "cold"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.home,
            env={**environment(), **threads, **compiled, "TMPDIR": str(self.home)},
            limit=EVENT_BYTES,
            start_new_session=True,
        )

    async def carry_out(self, job: Event) -> AsyncGenerator[Event]:
        """The events of a job; the last one is `done`, `refused` or `stopped`."""
        await self.begin()
        process = self.process
        if process is None or process.stdin is None or process.stdout is None:
            raise RuntimeError("a worker has no pipes")
        self.jobs += 1
        complete = False
        try:
            async with asyncio.timeout(JOB_SECONDS):
                with contextlib.suppress(ConnectionError):
                    process.stdin.write(json.dumps(job).encode() + b"\n")
                    await process.stdin.drain()
                while line := await process.stdout.readline():
                    event = json.loads(line)
                    complete = event["event"] in ("done", "refused")
                    yield event
                    if complete:
                        return
                await process.wait()
            yield {"event": "stopped", "sentence": _why_ended(process.returncode)}
        except TimeoutError:
            yield {"event": "stopped", "sentence": f"the job was stopped after {JOB_SECONDS:g} seconds"}
        except ValueError:
            yield {"event": "stopped", "sentence": "the job has more to say than a page can show"}
        finally:
            if not complete:
                self.kill()

    def kill(self) -> None:
        """End the process and whatever it started, at once; whoever asks next gets a fresh one."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.ended, self.process = self.process or self.ended, None

    async def end(self) -> None:
        """`kill`, and wait until it is over."""
        self.kill()
        if self.ended is not None:
            await self.ended.wait()


def _why_ended(code: int | None) -> str:
    if code == OUT_OF_MEMORY:
        return f"the job needed more than {JOB_MEMORY / 1e9:g} GB of memory"
    return "the process of the job has died; nothing else was lost, and the job can be started again"


class Crew:
    """All workers, the queue before them, and the folder of everything that is kept until the server ends."""

    def __init__(self, size: int):
        self._scratch = tempfile.TemporaryDirectory(prefix="certiformer-explore-")
        self.folder = Path(self._scratch.name)
        self.workers = [Worker(self.folder / f"worker{number}", warm=number == 0) for number in range(size)]
        self._idle: list[Worker] = []
        self._line: list[object] = []
        self._moved = asyncio.Condition()
        self.carried_out = 0

    async def begin(self) -> None:
        """Start all processes, so that the first job finds one that has read the library."""
        self._idle = list(self.workers)
        for worker in self.workers:
            await worker.begin()

    async def end(self) -> None:
        for worker in self.workers:
            await worker.end()
        self._scratch.cleanup()

    @property
    def waiting(self) -> int:
        """How many jobs wait for a worker."""
        return len(self._line)

    @property
    def is_full(self) -> bool:
        """Whether no further job may wait."""
        return len(self._line) >= WAITING

    async def run(self, job: Event) -> AsyncGenerator[Event]:
        """The place in the queue as it changes, then the events of the job."""
        ticket = object()
        self._line.append(ticket)
        worker = None
        try:
            shown = -1
            while worker is None:
                place = self._line.index(ticket)
                if place == 0 and self._idle:
                    # The first worker compiles ahead what builds need; what is quick goes to the last one.
                    worker = self._idle.pop(-1 if job["room"] in QUICK else 0)
                    break
                if place != shown:
                    yield {"event": "queue", "ahead": place}
                    shown = place
                async with self._moved:
                    if self._line.index(ticket) == shown and not (shown == 0 and self._idle):
                        await self._moved.wait()
            self._line.remove(ticket)
            await self._announce()
            yield {"event": "begun"}
            events = worker.carry_out(job)
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
            self.carried_out += 1
        finally:
            if ticket in self._line:
                self._line.remove(ticket)
            if worker is not None:
                self._idle.append(worker)
                self._idle.sort(key=self.workers.index)
            # Not awaited here: this also runs when the reader has gone and the task is being cancelled.
            asyncio.get_running_loop().create_task(self._after(worker))

    async def _after(self, worker: Worker | None) -> None:
        await self._announce()
        if worker is not None and worker in self._idle and len(self._line) == 0:
            await worker.begin()  # a killed one is replaced before anybody asks for it

    async def _announce(self) -> None:
        async with self._moved:
            self._moved.notify_all()
