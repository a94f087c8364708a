"""`run_jobs`: the driver that takes jobs from the ledger, hands them to an engine and keeps what comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from certiformer.disk import scratch
from certiformer.sweep.engines import open_pool
from certiformer.sweep.job import Job, Row
from certiformer.sweep.ledger import StoreFault, worker_name
from certiformer.sweep.pool import Outcome, Pool
from certiformer.sweep.store import Store
from certiformer.sweep.tracker import Tracker, Tracking

LEASE_SECONDS = 60.0  # renewed every third of it by a thread of the driver; matters only if that machine is gone
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Progress:
    """Where a run stands. `computed`: jobs ended by this run; `left`: seconds still to go, None before the first one."""

    done: int
    failed: int
    total: int
    computed: int
    seconds: float

    @property
    def left(self) -> float | None:
        """Estimated from what this run has computed so far."""
        open_jobs = self.total - self.done - self.failed
        return self.seconds / self.computed * open_jobs if self.computed else None


def run_jobs(
    jobs: Sequence[Job],
    store: Store | None = None,
    engine: str = "here",
    workers: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    tracker: Tracker | None = None,
) -> list[Row]:
    """The rows of all jobs that could be computed, in the order of the jobs, the same on every engine.

    `engine`: `here` (this process), `cores` (one process per core), `ray` (starts a cluster on this machine), or the
    address of one (`ray://host:port`, `host:port`, `auto`). What `store` holds already is not computed again; without
    a store nothing is kept. A job that raises is run once more, then it has failed: the rest goes on, and the store
    says which (`Store.failed`). After an interruption the same call goes on with what is missing.
    """
    if store is None:
        with scratch() as place, Store(place.fresh()) as own:
            return run_jobs(jobs, own, engine, workers, progress, tracker)
    store.add(jobs)
    for job in store.missing(jobs):  # finds damaged files
        store.ledger.reopen(job.id, "", states=("failed",))
    run = _Run(store, jobs, progress, Tracking(tracker, store.say, jobs, engine))
    try:
        if run.standing().done < run.total:
            run.drive(engine, workers)
        else:
            run.report()
        return store.rows(jobs)
    finally:
        run.finish()


class _Run:
    """One call of `run_jobs`."""

    def __init__(
        self, store: Store, jobs: Sequence[Job], progress: Callable[[Progress], None] | None, tracking: Tracking
    ) -> None:
        self.store, self.worker, self.total = store, worker_name(), len({job.id for job in jobs})
        self._progress, self._tracking = progress, tracking
        self._start, self._computed = time.monotonic(), 0
        store.want(jobs)

    def standing(self) -> Progress:
        states = self.store.ledger.wanted_states()
        seconds = time.monotonic() - self._start
        return Progress(states.get("done", 0), states.get("failed", 0), self.total, self._computed, seconds)

    def drive(self, engine: str, workers: int | None) -> None:
        """Until no job of this run is open or running, here or in another process."""
        pool = None
        try:
            pool = open_pool(engine, workers, self.store.say)
            self.report()
            with _beating(self.store, self.worker):
                self._loop(pool)
        except KeyboardInterrupt:
            self.store.say(self._stopped("interrupted"))
            raise
        except StoreFault:
            self.store.say(self._stopped("the store cannot be written"))
            raise
        finally:
            if pool is not None:
                pool.close()
            self._release()

    def _loop(self, pool: Pool) -> None:
        flying = 0
        self.store.tidy()
        while True:
            while flying < pool.size and (claim := self.store.claim(self.worker, LEASE_SECONDS)):
                pool.submit(claim)
                flying += 1
            if flying:
                for outcome in pool.wait(POLL_SECONDS):
                    flying -= 1
                    self._settle(outcome)
                continue
            self.store.ledger.release_gone()
            standing = self.standing()
            if standing.done + standing.failed == self.total:
                return
            time.sleep(POLL_SECONDS)  # another driver has the rest

    def _settle(self, outcome: Outcome) -> None:
        claim, answer = outcome.claim, outcome.answer
        name = f"job {claim.job.id[:8]} of {claim.job.function}"
        if answer is None:
            if self.store.lost(claim, outcome.died) == "failed":
                self.store.say(f"{name} has failed: {outcome.died}")
        elif answer.content is None:
            if self.store.fail(claim, answer.raised, answer.final) == "failed":
                self.store.say(f"{name} has failed: {answer.raised}")
        elif self.store.finish_encoded(claim, answer.content, answer.rows):
            self._computed += 1
            self._tracking.log(self.standing().done, answer.content)
        self.report()

    def report(self) -> None:
        if self._progress is not None:
            self._progress(self.standing())

    def finish(self) -> None:
        with suppress(StoreFault):
            standing = self.standing()
            self._tracking.finish({"done": standing.done, "failed": standing.failed, "total": standing.total})

    def _stopped(self, why: str) -> str:
        try:
            done = f"{self.standing().done} of {self.total} jobs done"
        except StoreFault:
            done = "what was finished kept"
        return f"{why}: stopped with {done}; the same call goes on from there"

    def _release(self) -> None:
        with suppress(StoreFault):  # a full disk: the leases end by themselves, at the latest with this process
            self.store.release(self.worker)


@contextmanager
def _beating(store: Store, worker: str) -> Iterator[None]:
    """A thread that keeps the leases of this driver alive, also while it computes."""
    stop = threading.Event()

    def beat() -> None:
        while not stop.wait(LEASE_SECONDS / 3):
            try:
                store.beat(worker, LEASE_SECONDS)
            except StoreFault:
                continue  # a full disk: the driver says so when it writes

    thread = threading.Thread(target=beat, name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
