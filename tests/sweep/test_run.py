"""`run_jobs` in this process: what is computed, what is not, who is told, and how it goes on."""

from __future__ import annotations

import sqlite3
import threading

import pytest

from certiformer.errors import BadInput
from certiformer.sweep import Job, Store, run_jobs
from certiformer.sweep.store import RAISES


def jobs_of(count, function="square", **config):
    return [Job(f"sweep.sample_jobs:{function}", {"x": x, **config}) for x in range(count)]


@pytest.fixture
def said():
    return []


@pytest.fixture
def store(tmp_path, said):
    with Store(tmp_path / "store", say=said.append) as store:
        yield store


def test_rows_come_in_the_order_of_the_jobs(store):
    jobs = jobs_of(5)
    assert [row["x"] for row in run_jobs(jobs, store)] == [0, 1, 2, 3, 4]
    assert [row["x"] for row in run_jobs(jobs[::-1], store)] == [4, 3, 2, 1, 0]
    assert [row["x"] for row in run_jobs([jobs[2], jobs[0], jobs[2]], store)] == [2, 0, 2]
    assert run_jobs(jobs[1:3]) == run_jobs(jobs[1:3], store)
    assert run_jobs([], store) == []


def test_a_second_run_computes_only_what_is_missing(store, tmp_path):
    trace = tmp_path / "trace"
    jobs = jobs_of(6, trace=str(trace))
    run_jobs(jobs[:4], store)
    run_jobs(jobs, store)
    run_jobs(jobs, store)
    assert trace.read_text().split() == ["0", "1", "2", "3", "4", "5"]


def test_only_the_jobs_that_are_asked_for_are_run(store):
    jobs = jobs_of(6)
    store.add(jobs)
    run_jobs(jobs[3:5], store)
    assert store.counts() == {"open": 4, "running": 0, "done": 2, "failed": 0}


def test_a_job_that_raises_is_tried_again_named_and_does_not_stop_the_rest(store, said, tmp_path):
    trace = tmp_path / "trace"
    (bad,) = jobs_of(1, "broken", trace=str(trace))
    jobs = [bad, *jobs_of(3)]
    assert [row["x"] for row in run_jobs(jobs, store)] == [0, 1, 2]
    ((failed, reason),) = store.failed()
    assert failed.id == bad.id
    assert reason.startswith("ValueError: no result for 0 (in broken, line ")
    assert trace.read_text().split() == ["0"] * RAISES
    told = [sentence for sentence in said if "has failed" in sentence]
    assert len(told) == 1 and bad.id[:8] in told[0] and "no result for 0" in told[0]
    run_jobs(jobs, store)  # a later run tries it again: the function may have been mended
    assert trace.read_text().split() == ["0"] * (2 * RAISES)


def test_a_wrong_configuration_is_not_tried_again(store, tmp_path):
    trace = tmp_path / "trace"
    run_jobs(jobs_of(1, "misused", trace=str(trace)), store)
    assert trace.read_text().split() == ["0"]
    assert [reason for _, reason in store.failed()] == ["x has to be even"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        ("no_such_package_at_all:f", "No module named 'no_such_package_at_all'"),
        ("sweep.sample_jobs:no_such_function", "no_such_function"),
        ("json:dumps", "json:dumps has to give a list of rows"),
    ],
)
def test_a_function_that_cannot_be_used_fails_with_a_sentence(store, function, words):
    assert run_jobs([Job(function, {}), *jobs_of(1)], store)[0]["x"] == 0
    assert [words in reason for _, reason in store.failed()] == [True]


def test_progress_is_told(store):
    seen = []
    run_jobs(jobs_of(3), store, progress=seen.append)
    assert [(p.done, p.failed, p.total, p.computed) for p in seen] == [(n, 0, 3, n) for n in range(4)]
    assert seen[0].left is None and seen[3].left == 0 and seen[1].left > 0
    run_jobs(jobs_of(3), store, progress=seen.append)
    assert (seen[-1].done, seen[-1].computed) == (3, 0)


def test_an_interruption_gives_the_jobs_back_and_says_how_to_go_on(store, said, tmp_path):
    jobs = [*jobs_of(2), *jobs_of(1, "interrupted", trace=str(tmp_path / "trace"))]
    with pytest.raises(KeyboardInterrupt):
        run_jobs(jobs, store)
    assert store.counts() == {"open": 1, "running": 0, "done": 2, "failed": 0}
    assert said[-1] == "interrupted: stopped with 2 of 3 jobs done; the same call goes on from there"
    assert len(run_jobs(jobs, store)) == 3


def test_two_drivers_share_the_work(tmp_path):
    trace = tmp_path / "trace"
    jobs = jobs_of(30, seconds=0.01, trace=str(trace))
    results, computed = [], []

    def drive():
        with Store(tmp_path / "store", say=[].append) as own:
            seen = []
            results.append(run_jobs(jobs, own, progress=seen.append))
            computed.append(seen[-1].computed)

    threads = [threading.Thread(target=drive) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[row["x"] for row in rows] for rows in results] == [list(range(30))] * 2
    assert sorted(map(int, trace.read_text().split())) == list(range(30))  # each once
    assert sum(computed) == 30 and min(computed) > 0


def test_a_driver_waits_for_what_another_computes(tmp_path, said):
    """The other one is alive as far as anybody can tell, and finishes later."""
    (job,) = jobs_of(1)
    with Store(tmp_path / "store") as other:
        other.add([job])
        claim = other.claim("another machine", 60.0)
        timer = threading.Timer(0.5, other.finish, (claim, [{"x": 17}]))
        timer.start()
        with Store(tmp_path / "store", say=said.append) as store:
            assert run_jobs([job], store) == [{"x": 17}]
        timer.join()


def test_a_job_whose_lease_has_ended_is_taken_over(store):
    (job,) = jobs_of(1)
    store.add([job])
    assert store.claim("another machine", -1.0) is not None
    assert run_jobs([job], store)[0]["x"] == 0


@pytest.mark.parametrize(
    ("engine", "workers", "words"),
    [("gpu", None, "there is no engine 'gpu'"), ("cores", 0, "0 workers cannot work"), ("", None, "no engine ''")],
)
def test_engines_that_do_not_exist(store, engine, workers, words):
    with pytest.raises(BadInput, match=words):
        run_jobs(jobs_of(1), store, engine, workers)


def test_the_ledger_is_in_the_mode_that_lets_readers_in(store):
    store.add(jobs_of(2))
    reader = sqlite3.connect(store.path / "ledger.sqlite")
    with store.ledger.writing():
        assert reader.execute("SELECT count(*) FROM jobs").fetchone() == (2,)
    assert reader.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    reader.close()
