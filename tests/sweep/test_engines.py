"""The same bits on every engine, workers that die, and clusters that are not there."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from certiformer.errors import BadInput, MissingExtra
from certiformer.sweep import Job, Store, run_jobs
from certiformer.sweep.store import DEATHS
from certiformer.sweep.threads import worker_environment

TESTS = Path(__file__).resolve().parents[1]
PRODUCT = [Job("sweep.sample_jobs:contraction", {"seed": 3})]
TRAINING = [Job("sweep.sample_jobs:training", {"seed": seed}) for seed in (5, 6)]
HERE = """
import json, sys
from certiformer.sweep import Job, Store, run_jobs
with Store(sys.argv[1]) as store:
    run_jobs([Job(*job) for job in json.loads(sys.argv[2])], store, "here")
"""


def contents(store, jobs):
    """The bytes of the chunks: equal when every bit of every row is."""
    return [store.chunk(job.id).read_bytes() for job in jobs]


def text_of(jobs):
    return json.dumps([[job.function, job.config] for job in jobs])


def in_a_fresh_process(folder, jobs, **environment):
    """The engine `here` where nothing has started JAX before, unless a sentence is said."""
    with Store(folder) as store:
        store.add(jobs)
        paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        settings = {**os.environ, "PYTHONPATH": paths, "JAX_ENABLE_X64": "1", "XLA_FLAGS": "", **environment}
        done = subprocess.run(
            [sys.executable, "-c", HERE, str(folder), text_of(jobs)], env=settings, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        return contents(store, jobs)


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """What this engine gives although the environment asks for eight threads."""
    return in_a_fresh_process(tmp_path_factory.mktemp("here"), PRODUCT, NPROC="8")


def test_cores_give_the_bits_of_this_process(here, tmp_path):
    """A product that XLA splits over its threads. The switch to 64 bits in the driver is passed on."""
    said = []
    with Store(tmp_path, say=said.append) as store:
        run_jobs(PRODUCT, store, "cores", workers=1)
        assert said == []
        assert contents(store, PRODUCT) == here


@pytest.mark.slow
def test_more_threads_give_other_bits(here, tmp_path):
    """Why all this is done: the same product without the settings, with a pool of eight threads."""
    from certiformer.sweep.chunk import encode

    code = (
        "from sweep.sample_jobs import contraction; import sys, certiformer.sweep as s, certiformer.sweep.chunk as c;"
    )
    code += "j = s.Job('sweep.sample_jobs:contraction', {'seed': 3}); sys.stdout.buffer.write(c.encode(j, j.run()))"
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    settings = {**os.environ, "PYTHONPATH": paths, "JAX_ENABLE_X64": "1", "XLA_FLAGS": "", "NPROC": "8"}
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, check=True)
    assert done.stdout[:4] == b"PAR1" == encode(PRODUCT[0], [])[:4]
    assert [done.stdout] != here


def test_a_process_in_which_jax_runs_with_more_threads_says_so(tmp_path, monkeypatch):
    import jax.numpy as jnp

    from certiformer.sweep import threads

    assert float(jnp.ones(2).sum()) == 2.0  # JAX runs now
    monkeypatch.setattr(threads, "usable_cores", lambda: 2)
    monkeypatch.delenv("NPROC", raising=False)
    with threads.one_thread_here() as note:
        assert note is not None and "NPROC=1" in note and "\n" not in note
    monkeypatch.setenv("NPROC", "1")
    with threads.one_thread_here() as note:
        assert note is None


def test_workers_get_the_settings_that_decide_numbers():
    settings = worker_environment({})
    assert (settings["NPROC"], settings["OMP_NUM_THREADS"], settings["JAX_PLATFORMS"]) == ("1", "1", "cpu")
    assert settings["JAX_ENABLE_X64"] == "True"  # what the tests of this project run with


# --- workers that die -------------------------------------------------------------------------------------------------


def test_a_job_that_kills_its_worker_fails_and_the_rest_is_done(tmp_path):
    said, trace = [], tmp_path / "trace"
    deadly = Job("sweep.sample_jobs:deadly", {"x": 1, "trace": str(trace)})
    jobs = [deadly, *[Job("sweep.sample_jobs:square", {"x": x}) for x in range(4)]]
    with Store(tmp_path / "store", say=said.append) as store:
        assert [row["x"] for row in run_jobs(jobs, store, "cores", workers=2)] == [0, 1, 2, 3]
        assert [(job.id, "signal 9" in reason) for job, reason in store.failed()] == [(deadly.id, True)]
    assert len(trace.read_text().split()) == DEATHS
    assert len(said) == 1 and "has failed" in said[0]


def test_an_exception_in_a_worker_is_a_sentence_here(tmp_path):
    with Store(tmp_path, say=[].append) as store:
        run_jobs([Job("sweep.sample_jobs:broken", {"x": 4})], store, "cores", workers=1)
        assert [reason.partition(" (")[0] for _, reason in store.failed()] == ["ValueError: no result for 4"]


def test_workers_that_cannot_start_stop_the_run(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with Store(tmp_path, say=[].append) as store:
        with pytest.raises(BadInput, match="worker processes end at once .exit code 1."):
            run_jobs([Job("sweep.sample_jobs:square", {"x": 1})], store, "cores", workers=1)
        assert store.counts()["open"] == 1


CORES = """
import json, sys
from certiformer.sweep import Job, Store, run_jobs
with Store(sys.argv[1]) as store:
    run_jobs([Job(*job) for job in json.loads(sys.argv[2])], store, "cores", workers=2)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_ends_workers_gives_jobs_back_and_says_how_to_go_on(tmp_path):
    jobs = [Job("sweep.sample_jobs:square", {"x": x, "seconds": 0.0 if x < 2 else 600.0}) for x in range(4)]
    with Store(tmp_path) as store:
        store.add(jobs)
        paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
        driver = subprocess.Popen(
            [sys.executable, "-c", CORES, str(tmp_path), text_of(jobs)],
            env={**os.environ, "PYTHONPATH": paths},
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        until = time.monotonic() + 120
        while (store.counts()["done"], store.counts()["running"]) != (2, 2):
            assert time.monotonic() < until and driver.poll() is None
            time.sleep(0.05)
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does: to the driver and its workers
        _, errors = driver.communicate(timeout=60)  # ends when the last worker lets go of the pipe
        assert driver.returncode != 0
        assert "interrupted: stopped with 2 of 4 jobs done; the same call goes on from there" in errors
        assert errors.count("Traceback") == 1  # of the driver: the caller decides what to print
        assert store.counts() == {"open": 2, "running": 0, "done": 2, "failed": 0}


# --- Ray --------------------------------------------------------------------------------------------------------------


def test_without_ray_a_sentence_says_what_to_install(tmp_path, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else found(name))
    with Store(tmp_path) as store, pytest.raises(MissingExtra, match=r"pip install 'certiformer\[ray\]'$"):
        run_jobs([Job("sweep.sample_jobs:square", {"x": 1})], store, "ray")


def test_without_the_client_of_ray_too(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "grpc" else True)
    with Store(tmp_path) as store, pytest.raises(MissingExtra, match=r"pip install 'certiformer\[ray\]'$"):
        run_jobs([Job("sweep.sample_jobs:square", {"x": 1})], store, "ray://127.0.0.1:10001")


def test_a_cluster_that_is_not_there_is_a_sentence_in_time(tmp_path):
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens here
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        begun = time.monotonic()
        with (
            Store(tmp_path) as store,
            pytest.raises(BadInput, match=f"no Ray cluster can be reached at {address}") as no,
        ):
            run_jobs([Job("sweep.sample_jobs:square", {"x": 1})], store, address)
        assert "\n" not in str(no.value)
        assert time.monotonic() - begun < 15
    with Store(tmp_path) as store, pytest.raises(BadInput, match="no Ray cluster can be"):
        run_jobs([Job("sweep.sample_jobs:square", {"x": 1})], store, "no.such.host.invalid:6379")


def test_a_server_that_is_not_ray_is_a_sentence_in_time(tmp_path, monkeypatch, capfd):
    pytest.importorskip("ray")
    from certiformer.sweep import cluster

    monkeypatch.setattr(cluster, "JOIN_SECONDS", 4)
    with socket.socket() as server, Store(tmp_path) as store:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(BadInput, match=f"no Ray cluster answers at {address} .tried for 4 s."):
            run_jobs([Job("sweep.sample_jobs:square", {"x": 1})], store, address)
        assert time.monotonic() - begun < 20
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_real_cluster_gives_the_same_bits_and_leaves_nothing(here, tmp_path, capfd):
    """Started by the run and gone after it; one of its jobs kills its process."""
    ray = pytest.importorskip("ray")
    deadly = Job("sweep.sample_jobs:deadly_once", {"x": 9, "trace": str(tmp_path / "trace")})
    with Store(tmp_path / "store", say=[].append) as store:
        rows = run_jobs([deadly, *PRODUCT], store, "ray", workers=2)
        assert rows[0]["x"] == 9 and store.failed() == []
        assert contents(store, PRODUCT) == here
    assert not ray.is_initialized()
    assert capfd.readouterr().out == ""


@pytest.mark.slow
def test_a_real_training_gives_the_same_bits_on_every_engine(tmp_path):
    pytest.importorskip("ray")
    here = in_a_fresh_process(tmp_path / "here", TRAINING)
    assert here[0] != here[1]  # another seed is seen
    for engine in ("cores", "ray"):
        with Store(tmp_path / engine) as store:
            run_jobs(TRAINING, store, engine, workers=2)
            assert contents(store, TRAINING) == here
