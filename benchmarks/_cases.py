"""The cases of `check.py`: each measures some figures of the same problem and returns them with their goals.

*Search* is branch and bound in float64 (level 1) without compilation (`_search_speed.py`). *Check* is the
checker (level 2) on the files of the run, with two processes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

MODEL = Path(__file__).resolve().parent / "models" / "trained-sine-sum"
SINES, SQUARE = "sin(x1)+sin(x2)", "[0,2*pi]^2"
THREE, CUBE = "sin(x1)+sin(x2)+sin(x3)", "[0,2*pi]^3"
PROCESSES = 2


def figure(what: str, goal: float | None, measured: float | None, unit: str = "s", note: str = "") -> dict:
    return {"what": what, "goal": goal, "measured": measured, "unit": unit, "note": note}


def sine_search() -> list[dict]:
    """sin(x1)+sin(x2) on [0,2*pi]^2: search by boxes at eps 0.1, 0.02 and 0.01."""
    from _search_speed import built

    figures = []
    for eps, goal in (("0.1", 1.0), ("0.02", 4.0), ("0.01", 8.0)):
        figures.append(searched(f"sine sum, eps {eps}: search by boxes", goal, *built(SINES, SQUARE, eps), eps))
    return figures


def sine_boxes() -> list[dict]:
    """The same: level 2 by boxes, every leaf, at eps 0.1 and 0.01."""
    figures = []
    for eps, goal in (("0.1", 10.0), ("0.01", 180.0)):
        with run_folder(SINES, SQUARE, eps, rule="boxes", level=1) as (folder, run):
            seconds, note = checked(folder, run)
        figures.append(figure(f"sine sum, eps {eps}: check of every box", goal, seconds, note=note))
    return figures


def sine_theorem() -> list[dict]:
    """The same: level 2 by the theorem rule, at eps 0.1 and 0.01."""
    figures = []
    for eps in ("0.1", "0.01"):
        with run_folder(SINES, SQUARE, eps, rule="theorem", level=1) as (folder, run):
            seconds, note = checked(folder, run)
        figures.append(figure(f"sine sum, eps {eps}: check by the theorem", 5.0, seconds, note=note))
    return figures


def cold() -> list[dict]:
    """From typing `certiformer build` to a certified result at eps 0.1, in a new process."""
    with tempfile.TemporaryDirectory() as home:
        options = ["--on", SQUARE, "--eps", "0.1", "--out", f"{home}/run", "--json"]
        began = time.perf_counter()
        done = subprocess.run([*COMMAND, "build", SINES, *options], capture_output=True, text=True)
        seconds = time.perf_counter() - began
    if done.returncode:
        return [figure("sine sum, eps 0.1: command to certified", 30.0, None, note=(done.stdout + done.stderr)[-300:])]
    told = json.loads(done.stdout)
    note = f"{told['outcome']}, level {told['level']}, upper {told['upper']:.4g}, rules {told.get('rules')}"
    proved = seconds if told["outcome"] == "proved" and told["level"] == 2 else None
    return [figure("sine sum, eps 0.1: command to certified", 30.0, proved, note=note)]


def line() -> list[dict]:
    """sin(x1) on [0,2*pi] at eps 1e-4: certified, everything included."""
    return [whole("one sine, eps 1e-4: certified", None, "sin(x1)", "[0,2*pi]", "1e-4")]


def three_search() -> list[dict]:
    """Sum of three sines at eps 0.2: search by boxes."""
    from _search_speed import built

    model, target = built(THREE, CUBE, "0.2")
    return [searched("three sines, eps 0.2: search by boxes", 120.0, model, target, "0.2")]


def three_check() -> list[dict]:
    """Sum of three sines at eps 0.2: level 2 by the theorem and by the sum rule."""
    figures = []
    for rule in ("theorem", "sum"):
        with run_folder(THREE, CUBE, "0.2", rule=rule, level=1) as (folder, run):
            seconds, note = checked(folder, run)
        figures.append(figure(f"three sines, eps 0.2: check by the {rule} rule", 60.0, seconds, note=note))
    return figures


def four() -> list[dict]:
    """Two functions on [0,1]^4 at eps 0.1 by the theorem rule, construction, proof and level 2 included."""
    return [
        whole(f"{formula}, eps 0.1: certified by the theorem", 15.0, formula, "[0,1]^4", "0.1", rule="theorem")
        for formula in ("x1*x2+x3*x4", "sin(x1*x2)+exp(-x3*x4)")
    ]


def trained() -> list[dict]:
    """The trained transformer at 1.02 times its proved lower end: search and check."""
    from _search_speed import lower_end

    import certiformer
    from certiformer.model import load
    from certiformer.search.request import read_target

    model, target = load(MODEL), read_target(SINES, SQUARE)
    eps, lower = lower_end(model, target, 1.02)
    figures = [searched(f"trained net, eps {eps}: search", 5.0, model, target, eps, f"lower end {lower}; ")]
    # The same as a user meets it: lower end, compilation and search, in a process that has compiled nothing of it.
    figures.append(whole_search(f"trained net, eps {eps}: ascent, compilation and search", eps))
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "run"
        run = certiformer.prove(model, SINES, on=SQUARE, eps=eps, out=folder, rule="boxes", level=1)
        seconds, note = checked(folder, run)
    return [*figures, figure(f"trained net, eps {eps}: check of every box", 120.0, seconds, note=note)]


def help_text() -> list[dict]:
    """`certiformer --help`, the best of five."""
    times = []
    for _ in range(5):
        began = time.perf_counter()
        shown = subprocess.run([*COMMAND, "--help"], capture_output=True, check=True, text=True).stdout
        times.append(time.perf_counter() - began)
        if "certiformer build" not in shown:
            return [figure("certiformer --help", 0.4, None, note="it does not name `certiformer build`")]
    return [figure("certiformer --help", 0.4, min(times), note=f"slowest of five {max(times):.2f} s")]


CASES: dict[str, Callable[[], list[dict]]] = {
    "sine-search": sine_search,
    "sine-boxes": sine_boxes,
    "sine-theorem": sine_theorem,
    "cold": cold,
    "line": line,
    "three-search": three_search,
    "three-check": three_check,
    "four": four,
    "trained": trained,
    "help": help_text,
}
COMMAND = [sys.executable, "-c", "import sys; from certiformer.cli.main import main; sys.exit(main())"]


def searched(what: str, goal: float, model, target, eps: str, before: str = "") -> dict:
    """The float64 search of one problem, as a figure."""
    from _search_speed import search_speed

    speed = search_speed(model, target, eps)
    return figure(what, goal, None if speed is None else speed.seconds, note=f"{before}{speed or 'did not close'}")


def whole_search(what: str, eps: str) -> dict:
    """`certiformer prove --level 1` on the trained net in a new process."""
    options = ["--on", SQUARE, "--eps", eps, "--rule", "boxes", "--level", "1", "--json"]
    with tempfile.TemporaryDirectory() as home:
        began = time.perf_counter()
        command = [*COMMAND, "prove", str(MODEL), SINES, *options, "--out", f"{home}/run"]
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - began
    told = json.loads(done.stdout) if done.stdout.startswith("{") else {}
    proved = told.get("outcome") == "proved"
    return figure(what, None, seconds if proved else None, note="" if proved else (done.stdout + done.stderr)[-300:])


@contextmanager
def run_folder(formula: str, box: str, eps: str, **options):
    """A run folder as `build` writes it, and the run."""
    import certiformer

    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "run"
        yield folder, certiformer.build(formula, on=box, eps=eps, method="voronoi", out=folder, **options)


def checked(folder: Path, run) -> tuple[float | None, str]:
    """Seconds of the check (None if it refuses), and a word on what was checked."""
    from certiformer.kernel.check import check

    began = time.perf_counter()
    verdict = check(folder, workers=PROCESSES)
    seconds = time.perf_counter() - began
    if not verdict.accepted:
        return None, verdict.reason or run.certificate.reason
    leaves = run.subject.leaves.count(255)
    speed = f"; {leaves:,} leaves, {leaves / seconds:,.0f} leaves/s" if leaves else ""
    return seconds, f"error in [{verdict.lower}, {verdict.upper}]{speed}"


def whole(what: str, goal: float | None, formula: str, box: str, eps: str, **options) -> dict:
    """Everything from the formula to the certified result, in this process (compilation included)."""
    import certiformer

    began = time.perf_counter()
    run = certiformer.build(formula, on=box, eps=eps, method="voronoi", workers=PROCESSES, **options)
    seconds = time.perf_counter() - began
    stages = ", ".join(f"{name} {value:.2f}" for name, value in run.certificate.seconds.items())
    note = f"error in [{run.certificate.lower}, {run.certificate.upper}]; {stages}"
    return figure(
        what, goal, seconds if run.certified else None, note=note if run.certified else run.certificate.reason
    )
