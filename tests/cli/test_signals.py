"""Signals that end a program do what Ctrl-C does."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import certiformer
from certiformer.cli import main as main_module
from certiformer.cli.main import main
from certiformer.cli.signals import ending_signals_interrupt

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(certiformer.__file__).parents[1])}
HARD = (
    "sin(x1*x2)",
    "--on",
    "[0,3]^2",
    "--eps",
    "1e-4",
    "--method",
    "voronoi",
    "--rule",
    "boxes",
    "--force",
    "--out",
    "run",
)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_the_exit_code_names_the_signal(cli, monkeypatch, number, code):
    cleaned = []

    def ended(given, terminal):
        try:
            os.kill(os.getpid(), number)
            time.sleep(60)
        finally:
            cleaned.append(given)

    monkeypatch.setattr(main_module, "_dispatch", ended)
    before = signal.getsignal(number)
    done = cli("build")
    assert (done.code, done.err, cleaned) == (code, "certiformer: interrupted\n", [["build"]])
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("where", ["the garbage collector", "a finaliser"])
def test_an_interruption_inside_of_a_callback_is_not_lost(cli, monkeypatch, number, code, where):
    """Two in a row: the one that is raised again may meet such a callback, too."""
    met = []

    def interrupted(*_):
        if len(met) < 2:
            met.append(where)
            os.kill(os.getpid(), number)

    finalised = type("Finalised", (), {"__del__": interrupted})

    def work(given, terminal):
        for _ in range(2):
            gc.collect() if where == "the garbage collector" else finalised()
        time.sleep(60)

    monkeypatch.setattr(main_module, "_dispatch", work)
    if where == "the garbage collector":
        gc.callbacks.append(interrupted)
    try:
        done = cli("build")
    finally:
        if interrupted in gc.callbacks:
            gc.callbacks.remove(interrupted)
    assert (done.code, done.err, met) == (code, "certiformer: interrupted\n", [where] * 2)


def test_other_ignored_exceptions_are_reported_as_before(cli, monkeypatch):
    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda report: seen.append(report.exc_type))

    def failing(self):
        raise ValueError

    monkeypatch.setattr(main_module, "_dispatch", lambda *_: type("Failing", (), {"__del__": failing})() and 0)
    assert cli("build").code == 0 and seen == [ValueError]


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ending_signals_interrupt():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_other_threads_run_commands_without_handlers():
    codes = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_an_ended_build_keeps_the_earlier_run_and_leaves_nothing_else(folder, number, code):
    folder.rename(folder.with_name("run"))
    area = folder.parent
    before = {path.name: path.read_bytes() for path in (area / "run").iterdir()}
    command = [sys.executable, "-m", "certiformer", "build", *HARD]
    with subprocess.Popen(command, cwd=area, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        while not (area / ".run.certiformer" / "kept").is_dir():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate()
    assert process.returncode == code and "interrupted, and nothing is kept" in said
    assert {path.name: path.read_bytes() for path in (area / "run").iterdir()} == before
    assert os.listdir(area) == ["run"]
