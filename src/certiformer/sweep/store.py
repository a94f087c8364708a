"""The store: a folder with the ledger of all jobs and one Parquet file per finished one.

    STORE/ledger.sqlite      what there is to do, who does it, what came of it
    STORE/chunks/ID.parquet  the rows of job ID; the ledger holds the SHA-256 of the file

A chunk is written under a temporary name, brought to the disk and renamed, and then entered in the ledger, the last
two inside one transaction: a crash at any point leaves a finished job or one that is done again, never half a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from certiformer.errors import BadInput
from certiformer.reading import read_regular
from certiformer.sweep.chunk import decode, decode_table, encode
from certiformer.sweep.job import Job, Row
from certiformer.sweep.ledger import Ledger, StoreFault

RAISES = 2  # a job that raises is run once more, then it has failed
DEATHS = 5  # a job whose worker died so often is what kills them
LARGEST_CHUNK = 1 << 30


@dataclass(frozen=True)
class Claim:
    """A job that is being worked on, with the lease that has to be shown to end it."""

    job: Job
    lease: str
    tries: int


@dataclass(frozen=True)
class Entry:
    """What a ledger says of a job: its id, and two texts that are shown. It cannot be run; only a `Job` can, and those come
    from the program that asks for them."""

    id: str
    function: str
    config: str


def tell(sentence: str) -> None:
    """To the standard error stream."""
    print(sentence, file=sys.stderr, flush=True)


class Store:
    """Jobs and their results in the folder `path`, which is made when it is missing; any number of processes may use it.

    `say` is given a sentence about each thing that a reader should know: a damaged file, a failed job.
    """

    def __init__(self, path: str | os.PathLike[str], say: Callable[[str], None] = tell) -> None:
        self.path, self.say = Path(path), say
        self._jobs: dict[str, Job] = {}  # what this process asks for
        self.chunks = self.path / "chunks"
        try:
            self.chunks.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreFault(f"{self.path} cannot be the folder of a store: {error.strerror}") from error
        self.ledger = Ledger(self.path / "ledger.sqlite")

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.ledger.close()

    # --- work -------------------------------------------------------------------------------------------------------

    def add(self, jobs: Iterable[Job]) -> None:
        """Enter jobs, and want them; those that are known stay as they are.

        Raises `StoreFault` where the ledger has another function or configuration under the id of one."""
        given = {job.id: job for job in jobs}
        self.ledger.add((name, job.function, _config_text(job)) for name, job in given.items())
        for name, (function, config) in self.ledger.entries(given).items():
            if (function, config) != (given[name].function, _config_text(given[name])):
                raise StoreFault(
                    f"the ledger of {self.path} was changed: under the id of job {name[:8]} of {given[name].function} it "
                    "names another function or configuration; use another folder"
                )
        self.want((self._jobs | given).values())

    def claim(self, worker: str, seconds: float) -> Claim | None:
        """The next of the wanted jobs that is open or whose lease has ended, for `seconds`; None when there is none.

        What is run is the job that this process was given; the ledger decides which, not what."""
        found = self.ledger.claim(worker, seconds)
        return None if found is None else Claim(self._jobs[found[0]], found[1], found[2])

    def want(self, jobs: Iterable[Job]) -> None:
        """The jobs that claims choose from."""
        self._jobs = {job.id: job for job in jobs}
        self.ledger.want(self._jobs)

    def beat(self, worker: str, seconds: float) -> int:
        """Renew all leases of `worker`; how many it still holds."""
        return self.ledger.beat(worker, seconds)

    def release(self, worker: str) -> int:
        """Give back all that `worker` holds."""
        return self.ledger.release(worker)

    def finish(self, claim: Claim, rows: Sequence[Row]) -> bool:
        """Keep the rows; False, and nothing is kept, when the lease is another's by now."""
        return self.finish_encoded(claim, encode(claim.job, rows), len(rows))

    def finish_encoded(self, claim: Claim, content: bytes, rows: int) -> bool:
        """`finish` with the bytes of the file."""
        job = claim.job.id
        final, partial = self.chunk(job), self.chunks / f".{job}.{claim.lease}.partial"
        try:
            with open(partial, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            return self._enter(claim, partial, final, hashlib.sha256(content).hexdigest(), rows)
        except OSError as error:
            raise StoreFault(
                f"{final} cannot be written ({error.strerror}); what was finished is kept, "
                "and the same command goes on from there"
            ) from error
        finally:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)

    def _enter(self, claim: Claim, partial: Path, final: Path, digest: str, rows: int) -> bool:
        """Rename and enter as one: while the ledger is locked, no other holder of a lease can come between."""
        with self.ledger.writing() as connection:
            entered = connection.execute(
                """UPDATE jobs SET state = 'done', sha256 = ?, rows = ?, reason = NULL, lease = NULL, until = NULL,
                                   finished = ?
                   WHERE id = ? AND lease = ? AND state = 'running'""",
                (digest, rows, time.time(), claim.job.id, claim.lease),
            )
            if entered.rowcount != 1:
                return False
            os.replace(partial, final)
            _sync_folder(self.chunks)
        return True

    def fail(self, claim: Claim, reason: str, final: bool = False) -> str | None:
        """The job raised: it is open for another try, or failed (at once when `final`). The new state, or None when the
        lease is another's by now."""
        return self.ledger.tally(claim.job.id, claim.lease, "raised", reason, 1 if final else RAISES)

    def lost(self, claim: Claim, reason: str) -> str | None:
        """The worker died: like `fail`, with more patience."""
        return self.ledger.tally(claim.job.id, claim.lease, "died", reason, DEATHS)

    def tidy(self) -> None:
        """Give back what dead processes of this machine held, and remove the files they were writing.

        A file whose lease the ledger does not hold cannot be finished any more, whoever writes it."""
        self.ledger.release_gone()
        leases = {lease for (lease,) in self.ledger.ask("SELECT lease FROM jobs WHERE lease IS NOT NULL")}
        for partial in self.chunks.glob(".*.partial"):
            if partial.name.split(".")[2] not in leases:
                partial.unlink(missing_ok=True)

    # --- results ----------------------------------------------------------------------------------------------------

    def chunk(self, job: str) -> Path:
        """The file of the rows of a job. An id that is none would be a path to somewhere else."""
        if re.fullmatch("[0-9a-f]{32}", job) is None:
            raise StoreFault(f"the ledger of {self.path} was changed: {job[:40]!r} is not the id of a job")
        return self.chunks / f"{job}.parquet"

    def rows(self, jobs: Iterable[Job]) -> list[Row]:
        """The rows of those of the jobs that are done, in the order of the jobs.

        A damaged file is named, set aside and its job opened again."""
        contents = (self._sound(job.id) for job in jobs)
        return [row for content in contents if content is not None for row in decode(content)]

    def tables(self, function: str | None = None) -> list[tuple[Entry, pa.Table]]:
        """All finished jobs (of one function) with their rows as Arrow tables, in the order they were entered."""
        found = self.ledger.ask("SELECT id, function, config FROM jobs WHERE state = 'done' ORDER BY position")
        entries = [Entry(*row) for row in found if function in (None, row[1])]
        sound = ((entry, self._sound(entry.id)) for entry in entries)
        return [(entry, decode_table(content)) for entry, content in sound if content is not None]

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Those of the jobs that have no sound result yet; damaged files are named and set aside on the way."""
        return [job for job in jobs if self._sound(job.id) is None]

    def counts(self) -> dict[str, int]:
        """How many jobs are open, running, done and failed."""
        found = dict(self.ledger.ask("SELECT state, count(*) FROM jobs GROUP BY state"))
        return {state: found.get(state, 0) for state in ("open", "running", "done", "failed")}

    def failed(self) -> list[tuple[Entry, str]]:
        """The jobs that have failed, each with its reason."""
        sql = "SELECT id, function, config, reason FROM jobs WHERE state = 'failed' ORDER BY position"
        return [(Entry(*row[:3]), row[3] or "") for row in self.ledger.ask(sql)]

    def jobs(self) -> list[tuple[Entry, str]]:
        """All jobs with their states, in the order they were entered."""
        found = self.ledger.ask("SELECT id, function, config, state FROM jobs ORDER BY position")
        return [(Entry(*row[:3]), row[3]) for row in found]

    def _sound(self, job: str) -> bytes | None:
        """The bytes of a finished job's file; None when it is not done, or no longer what was written."""
        content, fault = self._read(job)
        if fault is None:
            return content
        path = self.chunk(job)
        with self.ledger.writing():  # looked at once more: another process may have mended it just now
            content, fault = self._read(job)
            if fault is None:
                return content
            with contextlib.suppress(FileNotFoundError):
                os.replace(path, path.with_suffix(".damaged"))
            self.ledger.reopen(job, f"{path.name} {fault}", states=("done",))
        self.say(f"{path} {fault}; it is left out, and the next run computes it again")
        return None

    def _read(self, job: str) -> tuple[bytes | None, str | None]:
        """The bytes, or what is wrong with them; neither for a job that is not done."""
        found = self.ledger.ask("SELECT sha256 FROM jobs WHERE id = ? AND state = 'done'", (job,))
        if not found:
            return None, None
        try:
            content = read_regular(self.chunk(job), LARGEST_CHUNK, links=False)
        except FileNotFoundError:
            return None, "is missing"
        except StoreFault:
            raise
        except BadInput as problem:
            raise StoreFault(str(problem)) from None
        except OSError as error:
            raise StoreFault(f"{self.chunk(job)} cannot be read: {error.strerror}") from error
        sound = hashlib.sha256(content).hexdigest() == found[0][0]
        return (content, None) if sound else (None, "is damaged: it is not the file that was written")


def _config_text(job: Job) -> str:
    return json.dumps(job.config, sort_keys=True)


def _sync_folder(folder: Path) -> None:
    """Bring a renaming to the disk, where folders can be opened (not on Windows)."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
