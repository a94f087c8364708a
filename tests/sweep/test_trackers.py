"""Trackers. The libraries are not installed: what is tested is which calls reach a module of their name, with the
signatures in their documentation (wandb 0.2x, trackio 0.30, mlflow 2 and 3); nothing is sent anywhere."""

from __future__ import annotations

import json
import sys
from types import ModuleType, SimpleNamespace

import pytest

from certiformer.errors import BadInput, MissingExtra
from certiformer.sweep import Job, Store, open_tracker, run_jobs


@pytest.fixture
def calls():
    return []


def fake(calls, monkeypatch, name, *functions, **signatures):
    """A module of this name whose functions note how they were called."""
    module = ModuleType(name)
    for function in functions:
        setattr(module, function, lambda *a, _f=function, **k: calls.append((_f, a, k)))
    for function, value in signatures.items():
        setattr(module, function, value)
    monkeypatch.setitem(sys.modules, name, module)


def drive(tracker, tmp_path):
    with Store(tmp_path / "store", say=[].append) as store:
        run_jobs([Job("sweep.sample_jobs:square", {"x": x}) for x in range(2)], store, tracker=tracker)


CONFIG = {"engine": "here", "jobs": 2, "functions": ["sweep.sample_jobs:square"]}
FIRST = {"done": 1, "row/x": 0, "row/square": 0, "row/root": 0.0}
SUMMARY = {"done": 2, "failed": 0, "total": 2}


def test_json_lines(tmp_path):
    drive(open_tracker(str(tmp_path / "log.jsonl")), tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["start", "log", "log", "summary", "finish"]
    assert lines[0]["config"] == CONFIG and lines[1]["values"] == FIRST and lines[3]["values"] == SUMMARY


def test_json_lines_hold_numbers_that_json_has_not(tmp_path):
    tracker = open_tracker(str(tmp_path / "log.jsonl"))
    tracker.log({"loss": float("nan"), "bound": float("inf")}, 3)
    assert json.loads((tmp_path / "log.jsonl").read_text())["values"] == {"loss": "nan", "bound": "inf"}


def test_wandb(calls, monkeypatch, tmp_path):
    def init(*, project, name, config):
        calls.append(("init", project, name, config))
        return SimpleNamespace(
            log=lambda data, step: calls.append(("log", data, step)),
            summary=SimpleNamespace(update=lambda values: calls.append(("summary", values))),
            finish=lambda: calls.append(("finish",)),
        )

    fake(calls, monkeypatch, "wandb", init=init)
    drive(open_tracker("wandb"), tmp_path)
    assert calls[0] == ("init", "certiformer", "sweep.sample_jobs:square", CONFIG)
    assert calls[1] == ("log", FIRST, 1)
    assert calls[3:] == [("summary", SUMMARY), ("finish",)]


def test_trackio(calls, monkeypatch, tmp_path):
    fake(calls, monkeypatch, "trackio", "init", "log", "finish")
    drive(open_tracker("trackio"), tmp_path)
    names = {"project": "certiformer", "name": "sweep.sample_jobs:square", "config": CONFIG}
    assert calls[0] == ("init", (), names)
    assert calls[1] == ("log", (FIRST,), {"step": 1})
    assert calls[3:] == [
        ("log", ({f"summary/{name}": value for name, value in SUMMARY.items()},), {"step": 2}),
        ("finish", (), {}),
    ]


def test_mlflow(calls, monkeypatch, tmp_path):
    fake(
        calls, monkeypatch, "mlflow", "set_experiment", "start_run", "log_params", "log_metrics", "set_tags", "end_run"
    )
    drive(open_tracker("mlflow"), tmp_path)
    assert calls[:3] == [
        ("set_experiment", ("certiformer",), {}),
        ("start_run", (), {"run_name": "sweep.sample_jobs:square"}),
        ("log_params", (CONFIG,), {}),
    ]
    assert calls[3] == ("log_metrics", ({name: float(value) for name, value in FIRST.items()},), {"step": 1})
    assert calls[5:] == [("set_tags", (SUMMARY,), {}), ("end_run", (), {})]


@pytest.mark.parametrize("name", ["wandb", "trackio", "mlflow"])
def test_a_library_that_is_missing_is_a_sentence(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=f"pip install {name}$"):
        open_tracker(name)


def test_a_tracker_that_fails_is_left_and_the_run_goes_on(tmp_path):
    class Failing:
        def __getattr__(self, name):
            raise ConnectionError("no network")

    said = []
    with Store(tmp_path, say=said.append) as store:
        jobs = [Job("sweep.sample_jobs:square", {"x": x}) for x in range(3)]
        assert len(run_jobs(jobs, store, tracker=Failing())) == 3
    assert [sentence for sentence in said if "tracker" in sentence] == [
        "the tracker failed (ConnectionError: no network); the run goes on without it"
    ]


def test_a_tracker_that_does_not_exist():
    with pytest.raises(BadInput, match="there is no tracker 'paper'"):
        open_tracker("paper")
