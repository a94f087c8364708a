"""Sweeps whose workers and driver are killed with signal 9 lose nothing and double nothing (benchmarks/sweep_kills.py)."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from certiformer.sweep import Store

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "sweep_kills.py"
pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds workers in /proc")


@pytest.fixture(scope="module")
def kills():
    spec = importlib.util.spec_from_file_location("sweep_kills", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["sweep_kills"] = module  # jobs are found by this name
    spec.loader.exec_module(module)
    yield module
    del sys.modules["sweep_kills"]


def test_forty_jobs_survive_a_kill_of_a_worker_and_one_of_the_driver(kills, tmp_path):
    figures = kills.survive(tmp_path, "cores", jobs=40, kills=1, kill_driver=True, seconds=0.03)
    assert (figures.worker_kills, figures.driver_kills) == (1, 1)
    assert figures.claims > 40  # the kills did hit jobs
    assert figures.survived, figures


def test_the_count_sees_what_is_lost_doubled_or_wrong(kills, tmp_path):
    todo = kills.jobs_of(tmp_path, 3, 0.0)
    rows = [job.run() for job in todo]
    wrong = [{**row, "value": 0.5} for row in rows[2]]

    def counted(name, contents):
        with Store(tmp_path / name, say=[].append) as store:
            store.add(todo)
            for content in contents:
                store.finish(store.claim("w", 60.0), content)
            figures = kills.count(store, todo, "cores", kills.Counter(), 0.0, 0.0, (0, 0.0))
            return figures.survived, figures.lost, figures.doubled, figures.wrong

    assert counted("good", rows) == (True, 0, 0, 0)
    assert counted("lost", rows[:2]) == (False, 3, 0, 0)
    assert counted("doubled", [rows[0], rows[1] * 2, rows[2]]) == (False, 0, 3, 0)
    assert counted("wrong", [rows[0], rows[1], wrong]) == (False, 3, 2, 1)
    good = kills.Figures("cores", 3, 1, 1, 3, 3, 0, 0, 0, 4, 4, 1.0, 1.0, 1.0, 0)
    assert good.survived and not replace(good, left_running=1).survived and not replace(good, chunks=4).survived


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["cores", "ray"])
def test_a_thousand_jobs_survive_five_kills_of_a_worker_and_one_of_the_driver(kills, tmp_path, engine):
    if engine == "ray":
        pytest.importorskip("ray")
    figures = kills.survive(tmp_path, engine, jobs=1000, kills=5, kill_driver=True, seconds=0.02)
    assert (figures.worker_kills, figures.driver_kills) == (5, 1)
    assert figures.survived, figures
