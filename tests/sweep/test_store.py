"""The store: leases, hashes, foreign files, and a disk that is full. Each check is run on a planted fault as well."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import threading
import time

import pytest

from certiformer.errors import BadInput
from certiformer.sweep import Job, Store, StoreFault, ledger, run_jobs
from certiformer.sweep.chunk import decode, encode


def jobs_of(count, **config):
    return [Job("sweep.sample_jobs:square", {"x": x, **config}) for x in range(count)]


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "store", say=[].append) as store:
        yield store


# --- leases -----------------------------------------------------------------------------------------------------------


class Lax(Store):
    """The fault: a finish that does not look at the lease."""

    def _enter(self, claim, partial, final, digest, rows):
        with self.ledger.writing() as connection:
            os.replace(partial, final)
            connection.execute("UPDATE jobs SET state = 'done', sha256 = ? WHERE id = ?", (digest, claim.job.id))
        return True


def late_finish_changes_nothing(store):
    """A worker that was believed dead finishes after another has taken the job over and finished it."""
    (job,) = jobs_of(1)
    store.add([job])
    late = store.claim("a", -1.0)
    other = store.claim("b", 60.0)
    if late is None or other is None or other.lease == late.lease:
        return False
    between = store.finish(late, [{"x": 1}])
    ended = store.finish(other, [{"x": 2}])
    after = store.finish(late, [{"x": 3}])
    return (between, ended, after) == (False, True, False) and store.rows([job]) == [{"x": 2}]


def test_only_the_holder_of_the_lease_finishes(store, tmp_path):
    assert late_finish_changes_nothing(store)
    with Lax(tmp_path / "lax") as lax:
        assert not late_finish_changes_nothing(lax)


def test_a_late_failure_changes_nothing(store):
    store.add(jobs_of(1))
    late = store.claim("a", -1.0)
    other = store.claim("b", 60.0)
    assert store.fail(late, "too late") is None
    assert store.lost(late, "too late") is None
    assert store.counts()["running"] == 1
    assert store.finish(other, [{"x": 1}])


def test_a_lease_is_kept_by_beating(store):
    store.add(jobs_of(1))
    assert store.claim("a", 0.05) is not None
    assert store.beat("a", 60.0) == 1
    time.sleep(0.06)
    assert store.claim("b", 60.0) is None
    assert store.beat("b", 60.0) == 0
    assert store.release("a") == 1
    assert store.claim("b", 60.0) is not None


class Hasty(Store):
    """The fault: a claim in two steps."""

    def claim(self, worker, seconds):
        found = self.ledger.ask("SELECT id, function, config FROM jobs WHERE state = 'open' ORDER BY position LIMIT 1")
        if not found:
            return None
        time.sleep(0.001)
        self.ledger.ask("UPDATE jobs SET state = 'running' WHERE id = ?", (found[0][0],))
        return found[0][0]


def claimed_twice(kind, path, count=150):
    """How many claims there were too many when four holders of the store take all they get."""
    with kind(path) as store:
        store.add(jobs_of(count))
    claims = []

    def take():
        with kind(path) as own:
            own.add(jobs_of(count))
            while (claim := own.claim(f"w{threading.get_ident()}", 60.0)) is not None:
                claims.append(claim if isinstance(claim, str) else claim.job.id)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(claims)) == count
    return len(claims) - count


def test_no_job_is_claimed_twice(tmp_path):
    assert claimed_twice(Store, tmp_path / "good") == 0
    assert claimed_twice(Hasty, tmp_path / "hasty") > 0


def test_what_a_dead_process_held_is_free_at_once(store):
    process = subprocess.Popen(["sleep", "60"])
    started = ledger._started(process.pid)
    holder = f"{ledger._machine()}|{process.pid}|{started}|x"
    store.add(jobs_of(1))
    assert store.claim(holder, 1000.0) is not None
    assert store.ledger.release_gone() == 0
    process.kill()
    process.wait()
    assert store.ledger.release_gone() == 1
    assert store.counts()["open"] == 1


def test_what_a_dead_writer_left_is_removed_and_what_a_living_one_writes_is_not(store):
    store.add(jobs_of(1))
    claim = store.claim("another machine", 60.0)
    living = store.chunks / f".{claim.job.id}.{claim.lease}.partial"
    dead = store.chunks / f".{claim.job.id}.{'0' * 16}.partial"
    for path in (living, dead):
        path.write_bytes(b"PAR1")
    store.tidy()
    assert list(store.chunks.iterdir()) == [living]


def test_processes_of_other_machines_are_not_judged():
    own = ledger.worker_name()
    machine, _, started, mark = own.split("|")
    assert not ledger.is_gone(own)
    assert ledger.is_gone(f"{machine}|{2**22 + 1}|{started}|{mark}")  # no such process
    assert ledger.is_gone(f"{machine}|{os.getpid()}|{int(started) + 1}|{mark}")  # its number was given again
    assert not ledger.is_gone(f"elsewhere|{2**22 + 1}|{started}|{mark}")
    assert not ledger.is_gone("no name of ours")


# --- files ------------------------------------------------------------------------------------------------------------


def truncate(path):
    path.write_bytes(path.read_bytes()[:-20])


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def swap(path):
    """A sound Parquet file with another number."""
    path.write_bytes(encode(Job("f:g", {}), [{"x": 1, "square": 1, "root": 17.0}]))


def of_files(said):
    """Without the sentence about the threads of JAX, which other tests have started in this process."""
    return [sentence for sentence in said if ".parquet" in sentence]


@pytest.mark.parametrize("damage", [truncate, flip, swap, lambda path: path.unlink()])
def test_a_damaged_file_is_named_left_out_and_computed_again(tmp_path, damage):
    said = []
    trace = tmp_path / "trace"
    jobs = jobs_of(3, trace=str(trace))
    with Store(tmp_path / "store", say=said.append) as store:
        rows = run_jobs(jobs, store)
        victim = store.chunk(jobs[1].id)
        damage(victim)
        assert store.rows(jobs) == [rows[0], rows[2]]
        (sentence,) = of_files(said)
        assert str(victim) in sentence and "\n" not in sentence
        assert store.missing(jobs) == [jobs[1]]
        assert run_jobs(jobs, store) == rows
        assert trace.read_text().split() == ["0", "1", "2", "1"]
        assert of_files(said) == [sentence]


def test_damage_is_found_by_a_run_itself(tmp_path):
    said = []
    jobs = jobs_of(3)
    with Store(tmp_path / "store", say=said.append) as store:
        rows = run_jobs(jobs, store)
        swap(store.chunk(jobs[2].id))
        assert run_jobs(jobs, store) == rows
        assert ["damaged" in sentence for sentence in of_files(said)] == [True]


def test_without_the_hash_the_swapped_file_would_be_believed(tmp_path):
    class Trusting(Store):
        def _read(self, job):
            path = self.chunk(job)
            return (path.read_bytes() if path.exists() else None), None

    jobs = jobs_of(3)
    with Trusting(tmp_path / "store") as store:
        rows = run_jobs(jobs, store)
        swap(store.chunk(jobs[1].id))
        assert store.rows(jobs) != rows


def test_a_chunk_explains_itself(store):
    import pyarrow.parquet as pq

    jobs = jobs_of(1)
    run_jobs(jobs, store)
    path = store.chunk(jobs[0].id)
    assert decode(path.read_bytes()) == [{"x": 0, "square": 0, "root": 0.0}]
    assert b"sweep.sample_jobs:square" in pq.read_schema(path).metadata[b"certiformer.job"]


# --- files of others --------------------------------------------------------------------------------------------------


def refusal(path):
    with pytest.raises(StoreFault) as fault:
        Store(path)
    assert "\n" not in str(fault.value)
    assert isinstance(fault.value, BadInput)
    return str(fault.value)


def test_a_ledger_of_another_version_is_refused_and_left_alone(tmp_path):
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert "version 99" in refusal(tmp_path)


def test_a_foreign_database_is_refused_and_left_alone(tmp_path):
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute("CREATE TABLE jobs (name TEXT)")
    connection.close()
    before = (tmp_path / "ledger.sqlite").read_bytes()
    assert "another program" in refusal(tmp_path)
    assert (tmp_path / "ledger.sqlite").read_bytes() == before


def test_other_files_are_refused(tmp_path):
    (tmp_path / "ledger.sqlite").write_text("this is no database, whatever its name says\n" * 100)
    assert "cannot be used" in refusal(tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be the folder of a store" in refusal(tmp_path / "file")


def test_several_may_open_a_new_store_at_once(tmp_path):
    faults = []

    def open_it(path, barrier):
        barrier.wait()
        try:
            Store(path).close()
        except StoreFault as fault:
            faults.append(fault)

    for number in range(5):
        barrier = threading.Barrier(6)
        threads = [threading.Thread(target=open_it, args=(tmp_path / str(number), barrier)) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert faults == []


# --- a full disk ------------------------------------------------------------------------------------------------------


def test_a_disk_that_is_full_when_bytes_are_brought_to_it(tmp_path, monkeypatch):
    """The last resort of a test: the error of the system is made up, and nothing else."""
    said = []
    jobs = jobs_of(4)
    real, calls = os.fsync, []

    def full(descriptor):
        calls.append(descriptor)
        if len(calls) == 4:  # two per job: the file and its folder
            real(descriptor)
        elif len(calls) > 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with Store(tmp_path / "store", say=said.append) as store:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StoreFault, match=r"No space left on device.*goes on from there$"):
            run_jobs(jobs, store)
        assert store.counts() == {"open": 2, "running": 0, "done": 2, "failed": 0}
        assert [path.name for path in store.chunks.iterdir() if path.name.startswith(".")] == []
        monkeypatch.undo()
        assert [row["x"] for row in run_jobs(jobs, store)] == [0, 1, 2, 3]


@pytest.mark.skipif(
    shutil.which("mount") is None or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root"
)
def test_a_disk_that_is_full(tmp_path):
    """A real file system of half a megabyte."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        said = []
        jobs = [Job("sweep.sample_jobs:many_numbers", {"rows": 60, "x": x}) for x in range(12)]
        with Store(disk / "store", say=said.append) as store:
            with pytest.raises(StoreFault) as fault:
                run_jobs(jobs, store)
            assert "goes on from there" in str(fault.value) and "\n" not in str(fault.value)
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        with Store(disk / "store", say=said.append) as store:
            done = store.counts()["done"]
            kept = store.rows(jobs[:done])
            assert 0 < done < len(jobs) and len(kept) == 60 * done
            rows = run_jobs(jobs, store)
            assert len(rows) == 60 * len(jobs) and rows[: len(kept)] == kept
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)
