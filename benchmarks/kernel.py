"""`certiformer bench kernel`: what the kernel is meant to reach, in one table: size, modules, times.

    python benchmarks/kernel.py                          # a few minutes: lines, modules, a cold check, leaves a second
    git worktree add ../older 4d13c05
    python benchmarks/kernel.py --against ../older       # also the median ratio of the times of check (`check_ratio.py`)
    python benchmarks/kernel.py lines modules cold       # some of them: lines, modules, cold, leaves, ratio

The run that is checked is that of the README, trained anew (about a minute). Lines are counted as
`tests/kernel/test_line_budget.py` counts them. Modules are those of this package of which a function runs during
`check`, imports left out. The cold check is the whole command in a new process, the least of five on the clock; leaves a
second are confirmed by one process. Exit code 1: a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import check_ratio

HERE = Path(__file__).resolve().parent.parent
README_RUN = ["build", "sin(x1)+sin(x2)", "--on", "[0,2*pi]^2", "--eps", "0.01"]
TRAINED = ["prove", str(check_ratio.MODEL), "sin(x1)+sin(x2)", "--on", "[0,2*pi]^2", "--eps", "0.15", "--rule", "boxes"]
LINES = {
    "a claim about a box or a list": ("kernel.check", 3_300),
    "words and steps, beyond it": ("kernel.situations", 1_600),
    "rounded runs, beyond it": ("kernel.rounding.runs", 700),
    "all axioms, beyond these": ("all axioms", 5_000),
}
MODULES, COLD, LEAVES = 16, 0.5, 450
ENTERED = """
import sys
from pathlib import Path
import certiformer
from certiformer.kernel.check import check
home, entered = str(Path(certiformer.__file__).parent), set()
def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_name != "<module>" and code.co_filename.startswith(home):
        entered.add(code.co_filename[len(home) + 1:])
sys.setprofile(note)
verdict = check(sys.argv[1], workers=1)
sys.setprofile(None)
assert verdict.accepted, verdict.reason
print("\\n".join(sorted(entered)))
"""


@dataclass(frozen=True)
class Figure:
    """One line of the table: what was measured, the number, and the goal that it is not to exceed (or to reach)."""

    what: str
    value: float
    goal: float
    reach: bool = False
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.value >= self.goal if self.reach else self.value <= self.goal

    def __str__(self) -> str:
        sign = ">=" if self.reach else "<="
        return f"{self.what:58} {self.value:>10,.4g} {sign} {self.goal:<8,g} {'' if self.ok else 'MISSED'} {self.note}"


def main(arguments: list[str] | None = None) -> int:
    """Measures, prints, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="lines, modules, cold, leaves, ratio (default: all)")
    parser.add_argument("--against", help="an older checkout for the ratio, which is left out without one")
    parser.add_argument("--run", help="a folder with the run of the README (default: it is built)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    chosen = parser.parse_args(arguments)
    measures: dict[str, Callable[[Path], list[Figure]]] = {
        "lines": lambda _: lines(), "modules": modules, "cold": cold, "leaves": leaves,
        "ratio": lambda _: ratios(chosen.against),
    }  # fmt: skip
    names = chosen.names or [name for name in measures if name != "ratio" or chosen.against]
    if set(names) - set(measures) or ("ratio" in names and not chosen.against):
        parser.error(f"the figures are {', '.join(measures)}; ratio needs --against")
    figures = []
    with tempfile.TemporaryDirectory() as home:
        for name in names:
            run = Path(chosen.run or f"{home}/readme").resolve()
            if name in ("modules", "cold") and not run.is_dir():
                command([*README_RUN, "--out", str(run), "--quiet"])
            for figure in measures[name](run):
                figures.append(figure)
                if not chosen.json:
                    print(figure, flush=True)
    if chosen.json:
        print(json.dumps({"load": os.getloadavg(), "figures": [{**vars(f), "ok": f.ok} for f in figures]}, indent=1))
    return 0 if all(figure.ok for figure in figures) else 1


def command(arguments: list[str]) -> None:
    """A command of this checkout, which must succeed."""
    code, _, told = check_ratio.run(HERE, arguments)
    if code:
        raise RuntimeError(f"{' '.join(arguments)}: exit code {code}: {told[-300:]}")


def lines() -> list[Figure]:
    """How much code each kind of claim rests on, all lines counted."""
    sys.path[:0] = [str(HERE / "src"), str(HERE / "tests" / "kernel")]
    from test_line_budget import resting_on

    return [Figure(f"lines behind {what}", resting_on(part), limit) for what, (part, limit) in LINES.items()]


def modules(run: Path) -> list[Figure]:
    """The modules that a check of the README's run enters."""
    environment = {**os.environ, "PYTHONPATH": str(HERE / "src")}
    words = [sys.executable, "-c", ENTERED, str(run)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, cwd=os.path.sep)
    entered = done.stdout.split()
    return [Figure("modules that check enters on the README's run", len(entered), MODULES, note=" ".join(entered))]


def cold(run: Path) -> list[Figure]:
    """The whole command on the README's run in a new process."""
    seconds = []
    for _ in range(5):
        began = time.monotonic()
        command(["check", str(run), "--quiet"])
        seconds.append(time.monotonic() - began)
    load = f"load {os.getloadavg()[0]:.1f}"
    return [Figure("seconds of a cold check of the README's run, least of five", min(seconds), COLD, note=load)]


def leaves(_run: Path) -> list[Figure]:
    """How many leaves of the trained net one process confirms in a second of its processor time, start-up left out."""
    program = (
        "import sys, time; from certiformer.kernel.check import check\n"
        "folder = sys.argv[1]; began = time.process_time(); verdict = check(folder, workers=1)\n"
        "assert verdict.accepted, verdict.reason\n"
        "print(sum(tree.count(255) for tree in verdict.covers.values()) / (time.process_time() - began))"
    )
    with tempfile.TemporaryDirectory() as home:
        command([*TRAINED, "--out", f"{home}/trained", "--quiet"])
        environment = {**os.environ, "PYTHONPATH": str(HERE / "src")}
        words = [sys.executable, "-c", program, f"{home}/trained"]
        rates = [
            float(subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout)
            for _ in range(3)
        ]
    return [Figure("leaves a second and core, trained two-input net", max(rates), LEAVES, reach=True)]


def ratios(against: str) -> list[Figure]:
    """The medians of `check_ratio.py`."""
    rows = [{"kind": kind, **check_ratio.compared(build, Path(against).resolve())}
            for kind, _, build in check_ratio.requests() if kind != "boxes"]  # fmt: skip
    figures = []
    for kind in ("target", "program"):
        middle, count = check_ratio.middle(rows, kind), sum(row["kind"] == kind and "ratio" in row for row in rows)
        if middle is not None:
            note = f"{count} of them"
            figures.append(
                Figure(f"time of check against {against}, median of {kind}s", middle, check_ratio.GOAL, note=note)
            )
    return figures


if __name__ == "__main__":
    sys.exit(main())
