"""The ledger of a store: one SQLite file that says of each job whether it is open, running, done or failed.

Who works on a job holds a *lease*: a random token with a time at which it ends unless it is renewed. Finishing is
accepted only with the token that the ledger holds now, so a worker that was believed dead and wakes up changes
nothing. Claiming is one SQL statement, hence two processes never hold the same lease.

Whoever can write to a store can write to its ledger. So what is read from it is text to show and to compare, never code to
run: a claim gives the id of a job, and the job itself is the one that this process was asked for.

The name of a process that holds leases tells others of the same machine whether it still runs.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from certiformer.errors import BadInput


def worker_name() -> str:
    """A new name: machine, process number, start of the process, and a random part."""
    pid = os.getpid()
    return f"{_machine()}|{pid}|{_started(pid)}|{secrets.token_hex(4)}"


def is_gone(name: str) -> bool:
    """Whether the process of this name ran on this machine and has ended.

    False where that cannot be told (another machine, or a system without /proc): then its lease has to run out.

    >>> is_gone(worker_name())
    False
    """
    machine, pid, started, _ = (*name.split("|"), "", "", "", "")[:4]
    if machine != _machine() or not (pid.isascii() and pid.isdigit() and len(pid) < 20) or not started:
        return False
    return _started(int(pid)) != started


@cache
def _machine() -> str:
    """Host name, start of the system and process namespace: containers may share the first two."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()}/{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    """When the process started, in clock ticks since the system did; empty when there is none, or no /proc.

    Field 22 of /proc/PID/stat; the second field is a name in parentheses that may hold spaces. A zombie has ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


VERSION = 1
APPLICATION = 0x63667377  # "cfsw" in the header of the file: tells our ledgers from other SQLite files
BUSY_SECONDS = 60.0  # how long one process waits for the write of another

_SCHEMA = """
CREATE TABLE jobs (
    position INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, function TEXT NOT NULL, config TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'running', 'done', 'failed')),
    worker TEXT, lease TEXT, until REAL, heartbeat REAL,
    tries INTEGER NOT NULL DEFAULT 0, raised INTEGER NOT NULL DEFAULT 0, died INTEGER NOT NULL DEFAULT 0,
    reason TEXT, sha256 TEXT, rows INTEGER, finished REAL);
CREATE INDEX jobs_state ON jobs (state, position);
"""
# What no program of ours has written: SQLite does not keep to the types of columns by itself.
_ODD = """SELECT count(*) FROM jobs WHERE state NOT IN ('open', 'running', 'done', 'failed')
    OR typeof(id) != 'text' OR typeof(function) != 'text' OR typeof(config) != 'text' OR typeof(tries) != 'integer'
    OR typeof(worker) NOT IN ('text', 'null') OR typeof(lease) NOT IN ('text', 'null')
    OR typeof(reason) NOT IN ('text', 'null') OR typeof(sha256) NOT IN ('text', 'null')"""
_FREE = "UPDATE jobs SET state = 'open', worker = NULL, lease = NULL, until = NULL"


class StoreFault(BadInput):
    """A store that cannot be used, or used further; the message is one sentence."""


class Ledger:
    """The table of jobs, for the threads of one process; other processes open their own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        with self._told():
            self._connection = sqlite3.connect(
                path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=32
            )
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        with self._told():
            self._connection.execute("PRAGMA temp_store = MEMORY")
            self._connection.execute("PRAGMA trusted_schema = OFF")
            self._refuse_others()  # before anything is written: a foreign file stays as it is
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            with self.writing():
                self._refuse_others()  # another process may have been first
                if self._empty():
                    for statement in _SCHEMA.split(";"):
                        self._connection.execute(statement)
                    self._connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    self._connection.execute(f"PRAGMA user_version = {VERSION}")
            self._connection.execute("CREATE TEMP TABLE wanted (id TEXT PRIMARY KEY)")

    def _empty(self) -> bool:
        """Whether nothing has been written to this file yet."""
        return self.ask("SELECT count(*) FROM main.sqlite_master") == [(0,)] and self.ask("PRAGMA application_id") == [
            (0,)
        ]

    def _refuse_others(self) -> None:
        """Raise for a file that is neither empty nor a ledger of this version."""
        if self._empty():
            return
        if self.ask("PRAGMA application_id") != [(APPLICATION,)]:
            raise StoreFault(f"{self._path} is an SQLite file of another program, not the ledger of a store")
        ((version,),) = self.ask("PRAGMA user_version")
        if version != VERSION:
            raise StoreFault(
                f"{self._path} is a ledger of version {version} and this program reads version {VERSION}: "
                "use the program that wrote it, or another folder"
            )
        found = self.ask("SELECT sql FROM main.sqlite_master WHERE sql IS NOT NULL ORDER BY type DESC, name")
        if [_plain(sql) for (sql,) in found] != [_plain(sql) for sql in _SCHEMA.split(";")[:2]]:
            raise StoreFault(f"{self._path} has tables, views or triggers that no ledger has: it was changed by others")
        if self.ask(_ODD) != [(0,)]:
            raise StoreFault(f"{self._path} holds entries of the wrong kind: it is damaged or was changed by others")

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """What SQLite complains of, in a sentence."""
        try:
            yield
        except sqlite3.Error as error:
            full = "full" in str(error) or "I/O" in str(error)
            kept = " (a full disk?); what was finished is kept, and the same command goes on from there" if full else ""
            raise StoreFault(f"the ledger {self._path} cannot be used: {error}{kept}") from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its start."""
        with self._lock, self._told():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def ask(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """One statement by itself; a writing one is its own transaction."""
        with self._lock, self._told():
            return self._connection.execute(sql, values).fetchall()

    # --- jobs -------------------------------------------------------------------------------------------------------

    def add(self, jobs: Iterable[tuple[str, str, str]]) -> None:
        """(id, function, config) of each; those that are known stay as they are."""
        with self.writing() as connection:
            connection.executemany("INSERT OR IGNORE INTO jobs (id, function, config) VALUES (?, ?, ?)", jobs)

    def entries(self, ids: Iterable[str]) -> dict[str, tuple[str, str]]:
        """(function, config) as they are written here for each of the jobs that is known."""
        wanted = set(ids)
        found = self.ask("SELECT id, function, config FROM jobs")
        return {name: (function, config) for name, function, config in found if name in wanted}

    def want(self, ids: Iterable[str]) -> None:
        """From now on, claims of this process are among these."""
        with self.writing() as connection:
            connection.execute("DELETE FROM wanted")
            connection.executemany("INSERT OR IGNORE INTO wanted VALUES (?)", ((i,) for i in ids))

    def wanted_states(self) -> dict[str, int]:
        """How many of the jobs that are wanted are in each state."""
        return dict(self.ask("SELECT state, count(*) FROM jobs JOIN wanted USING (id) GROUP BY state"))

    def claim(self, worker: str, seconds: float) -> tuple[str, str, int] | None:
        """(id, lease, tries) of the first job that is wanted and open, or whose lease has ended, or None."""
        now, lease = time.time(), secrets.token_hex(8)
        found = self.ask(
            """UPDATE jobs SET state = 'running', worker = ?, lease = ?, until = ?, heartbeat = ?, tries = tries + 1
                WHERE position = (SELECT position FROM jobs
                                  WHERE (state = 'open' OR (state = 'running' AND until < ?))
                                  AND id IN (SELECT id FROM wanted)
                                  ORDER BY position LIMIT 1)
                RETURNING id, tries""",
            (worker, lease, now + seconds, now, now),
        )
        return (found[0][0], lease, found[0][1]) if found else None

    def beat(self, worker: str, seconds: float) -> int:
        """Renew the leases of `worker`; how many it still holds."""
        now = time.time()
        sql = "UPDATE jobs SET until = ?, heartbeat = ? WHERE worker = ? AND state = 'running' RETURNING id"
        return len(self.ask(sql, (now + seconds, now, worker)))

    def release(self, worker: str) -> int:
        """Give the jobs of `worker` back; how many there were."""
        return len(self.ask(f"{_FREE} WHERE worker = ? AND state = 'running' RETURNING id", (worker,)))

    def release_gone(self) -> int:
        """Give back what processes of this machine hold that no longer exist, without waiting for their leases."""
        workers = self.ask("SELECT DISTINCT worker FROM jobs WHERE state = 'running'")
        return sum(self.release(worker) for (worker,) in workers if is_gone(worker))

    def reopen(self, job: str, reason: str, states: tuple[str, ...] = ("done", "failed")) -> None:
        """Make a job that has ended open again, with a clean count of tries."""
        marks = ", ".join("?" * len(states))
        sql = f"{_FREE}, raised = 0, died = 0, sha256 = NULL, reason = ? WHERE id = ? AND state IN ({marks})"
        self.ask(sql, (reason, job, *states))

    def tally(self, job: str, lease: str, column: str, reason: str, limit: int) -> str | None:
        """One more failure (`column` raised or died): open for another try below `limit`, else failed.

        None when the lease is another's by now: then nothing changes."""
        found = self.ask(
            f"""UPDATE jobs SET {column} = {column} + 1, reason = ?, worker = NULL, lease = NULL, until = NULL,
                                state = CASE WHEN {column} + 1 >= ? THEN 'failed' ELSE 'open' END
                WHERE id = ? AND lease = ? AND state = 'running' RETURNING state""",
            (reason, limit, job, lease),
        )
        return found[0][0] if found else None


def _plain(sql: str) -> str:
    """A statement without its line breaks and indents."""
    return " ".join(sql.split())
