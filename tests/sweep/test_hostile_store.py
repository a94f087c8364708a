"""A store that somebody else has written to: nothing read from it names code, a file elsewhere, or anything that is run."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from certiformer.errors import BadInput
from certiformer.sweep import Job, Store, query, read_table, run_jobs, to_csv

JOBS = [Job("sweep.sample_jobs:square", {"x": x}) for x in range(3)]
ATTACKS = (
    "os:system",
    "builtins:exec",
    "builtins:eval",
    "subprocess:run",
    "certiformer.sweep.job:import_module",
    "sweep.sample_jobs:mark",
    "../../../tmp/x:run",
    "/etc/passwd",
    '{"x": "touch PWNED"}',
    '"touch PWNED"',
    "[" * 100_000,
    "",
    "\x1b[31m",
)
FIELDS = ("id", "function", "config", "worker", "lease", "reason", "sha256", "state")


def change(folder, sql, *values):
    connection = sqlite3.connect(folder / "ledger.sqlite")
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(sql, values)
    connection.commit()
    connection.close()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two jobs done, one open; anything that runs in this process and names PWNED is seen."""
    monkeypatch.chdir(tmp_path)
    with Store(tmp_path / "store", say=[].append) as store:
        run_jobs(JOBS[:2], store)
        store.add(JOBS[2:])
    return tmp_path / "store"


@pytest.fixture
def ran(monkeypatch):
    """Every function that a job has called."""
    seen = []
    real = Job.run

    def noting(job):
        seen.append((job.function, job.config))
        return real(job)

    monkeypatch.setattr(Job, "run", noting)
    return seen


def use(folder):
    """Everything that reads a store; refusals are fine."""
    for act in (
        lambda store: run_jobs(JOBS, store),
        read_table,
        lambda store: to_csv(store, folder.parent / "rows.csv"),
        lambda store: query(store, "SELECT * FROM jobs"),
        lambda store: (store.jobs(), store.failed(), store.counts(), store.tidy()),
    ):
        try:
            with Store(folder, say=[].append) as store:
                act(store)
        except BadInput as refusal:
            assert "\n" not in str(refusal)


@pytest.mark.parametrize("field", FIELDS)
def test_no_text_of_a_ledger_is_run(folder, ran, field):
    wanted = {(job.function, str(job.config)) for job in JOBS}
    for attack in ATTACKS:
        for where in ("", " WHERE state = 'open'"):
            unique = "? || '#' || position" if field == "id" else "?"
            change(folder, f"UPDATE jobs SET {field} = {unique}{where}", attack)
            use(folder)
    assert {(function, str(config)) for function, config in ran} <= wanted
    assert not list(folder.parent.glob("**/PWNED*"))


def test_a_changed_function_or_configuration_is_refused_with_a_sentence(folder, ran):
    for field, text in (("function", "os:system"), ("config", '"touch PWNED"')):
        change(folder, f"UPDATE jobs SET {field} = ? WHERE id = ?", text, JOBS[2].id)
        with Store(folder) as store, pytest.raises(BadInput, match="names another function or configuration"):
            run_jobs(JOBS, store)
    assert ran == []


def test_the_earlier_way_runs_what_the_ledger_says(folder):
    """The negative control: a job made from the texts of the ledger is that of whoever wrote them."""
    change(folder, "UPDATE jobs SET function = 'os:system', config = '\"touch PWNED\"' WHERE id = ?", JOBS[2].id)
    with Store(folder) as store:
        entry = next(entry for entry, state in store.jobs() if state == "open")
    assert not hasattr(entry, "run")
    Job(entry.function, entry.config.strip('"')).run()
    assert (folder.parent / "PWNED").exists()


@pytest.mark.parametrize("engine", ["here", "cores"])
def test_a_row_that_is_changed_while_a_run_is_on_is_not_what_is_run(folder, engine, monkeypatch):
    real = Store.want

    def late(self, jobs):
        real(self, jobs)
        change(folder, "UPDATE jobs SET function = 'os:system', config = '\"touch PWNED\"' WHERE state = 'open'")

    monkeypatch.setattr(Store, "want", late)
    with Store(folder, say=[].append) as store:
        rows = run_jobs(JOBS, store, engine, workers=1 if engine == "cores" else None)
    assert [row["square"] for row in rows] == [0, 1, 4]
    assert not list(folder.parent.glob("**/PWNED*"))


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TRIGGER t AFTER UPDATE ON jobs BEGIN UPDATE jobs SET lease = '../../x'; END",
        "CREATE VIEW v AS SELECT * FROM jobs",
        "CREATE TABLE wanted (id TEXT)",
        "UPDATE jobs SET function = x'00ff'",
        "UPDATE jobs SET reason = x'00ff'",
        "UPDATE jobs SET id = x'00ff' WHERE position = 1",
    ],
)
def test_a_ledger_with_other_things_in_it_is_refused(folder, sql):
    change(folder, sql)
    with pytest.raises(BadInput, match="changed by others"):
        Store(folder)


@pytest.mark.parametrize("job", ["../../secret", "/tmp/secret", "..", "a" * 31, "G" * 32])
def test_an_id_is_no_path(folder, job):
    outside = folder.parent / "secret.parquet"
    outside.write_bytes((folder / "chunks" / f"{JOBS[0].id}.parquet").read_bytes())
    change(folder, "UPDATE jobs SET id = ? WHERE position = 1", job)
    with Store(folder) as store, pytest.raises(BadInput, match="is not the id of a job"):
        read_table(store)
    assert outside.exists()


def chunk_of(folder, content):
    (folder / "chunks" / f"{JOBS[0].id}.parquet").write_bytes(content)
    change(folder, "UPDATE jobs SET sha256 = ? WHERE id = ?", hashlib.sha256(content).hexdigest(), JOBS[0].id)


def parquet(table):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PAR1",
        b"PAR1" + b"\xff" * 100 + b"PAR1",
        parquet(pa.table({"x": pa.array([b"code"], pa.binary())})),
        parquet(pa.table({"x": pa.array([{"a": 1}])})),
        parquet(pa.table({"x": pa.array(["a"]).dictionary_encode()})),
    ],
    ids=["empty", "short", "damaged", "bytes", "structure", "dictionary"],
)
def test_a_chunk_of_another_kind_is_refused_though_its_hash_fits(folder, content):
    chunk_of(folder, content)
    with Store(folder, say=[].append) as store, pytest.raises(BadInput, match="not one that was written here"):
        read_table(store)


def test_a_chunk_is_a_regular_file_of_the_store(folder):
    path = folder / "chunks" / f"{JOBS[0].id}.parquet"
    path.unlink()
    path.symlink_to("/dev/zero")
    with Store(folder, say=[].append) as store, pytest.raises(BadInput, match="symbolic link"):
        read_table(store)


QUESTIONS = (
    "SELECT * FROM read_csv('{0}/secret.csv')",
    "SELECT * FROM read_text('{0}/secret.csv')",
    "SELECT * FROM read_blob('{0}/secret.csv')",
    "SELECT * FROM '{0}/secret.csv'",
    "SELECT * FROM glob('{0}/*')",
    "COPY rows TO '{0}/out.csv'",
    "EXPORT DATABASE '{0}/out'",
    "ATTACH '{0}/out.db' AS other",
    "ATTACH '{0}/store/ledger.sqlite' AS other (TYPE sqlite)",
    "INSTALL httpfs",
    "LOAD '{0}/evil.duckdb_extension'",
    "SET enable_external_access = true",
    "SET lock_configuration = false",
    "SET python_enable_replacements = true",
    "SET temp_directory = '{0}/out'",
    "SET log_query_path = '{0}/out.log'",
    "PRAGMA enable_profiling = 'json'; PRAGMA profiling_output = '{0}/out.json'; SELECT 1",
    "SELECT * FROM secret_table",
    "SELECT getenv('HOME')",
)


def test_a_question_reads_and_writes_nothing_else(folder):
    pytest.importorskip("duckdb")
    (folder.parent / "secret.csv").write_text("a\n1\n")
    secret_table = pa.table({"a": [1]})
    before = sorted(folder.parent.rglob("*"))
    with Store(folder) as store:
        assert query(store, "SELECT count(*) AS n FROM rows") == [{"n": 2}]  # honest questions are answered
        for question in QUESTIONS:
            with pytest.raises(BadInput):
                query(store, question.format(folder.parent))
        changed = [path for path in sorted(folder.parent.rglob("*")) if path not in before]
        assert [path.name for path in changed if not path.name.startswith("ledger.sqlite")] == []
        assert store.counts() == {"open": 1, "running": 0, "done": 2, "failed": 0}
    assert len(secret_table) == 1


def test_workers_of_the_engine_cores_take_jobs_from_their_driver_alone(folder):
    """What a worker runs comes over its pipe; it is given no folder."""
    program = "import sys; from certiformer.sweep.worker import main; sys.exit(main())"
    done = subprocess.run([sys.executable, "-c", program], input=b"", capture_output=True, cwd=folder, timeout=120)
    assert done.returncode == 0
