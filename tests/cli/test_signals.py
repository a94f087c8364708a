"""Signals that end a program do what Ctrl-C does."""

from __future__ import annotations

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


# A signal is sent to a process of its own: one that is not caught would end the tests.
PREPARED = """
import gc, os, signal, sys, time
from certiformer.cli import main as main_module
number, before = signal.Signals(int(sys.argv[1])), {}
def started(work):
    main_module._dispatch = work
    before[number] = signal.getsignal(number)
    code = main_module.main(["build"])
    print(code, signal.getsignal(number) is before[number])
"""
SENT = """
def work(words, terminal):
    try:
        os.kill(os.getpid(), number)
        time.sleep(60)
    finally:
        print("cleaned", *words)
started(work)
"""
LOST = """
met = []
def interrupted(*_):
    if len(met) < 2:
        met.append(number)
        os.kill(os.getpid(), number)
class Finalised:
    __del__ = interrupted
def work(words, terminal):
    if sys.argv[2] == "collector":
        gc.callbacks.append(interrupted)
    for _ in range(2):
        gc.collect() if sys.argv[2] == "collector" else Finalised()
    time.sleep(60)
    print("slept")
started(work)
print(len(met))
"""


def ended(script: str, *arguments: object) -> tuple[list[str], str]:
    """What a process says, on standard output and as an error."""
    command = [sys.executable, "-c", PREPARED + script, *map(str, arguments)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=50)
    return done.stdout.splitlines(), done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)])
def test_the_exit_code_names_the_signal(number, code):
    assert ended(SENT, int(number)) == (["cleaned build", f"{code} True"], "certiformer: interrupted\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
@pytest.mark.parametrize("where", ["collector", "finaliser"])
def test_an_interruption_inside_of_a_callback_is_not_lost(number, code, where):
    """Two in a row: both are lost, one comes again, and a second one would end the process."""
    assert ended(LOST, int(number), where) == ([f"{code} True", "2"], "certiformer: interrupted\n")


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
