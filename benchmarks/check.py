"""`certiformer bench check`: the figures that we claim for building, proving and checking, measured on this machine.

    python benchmarks/check.py                     # everything, a few minutes
    python benchmarks/check.py sine-search trained # some cases
    python benchmarks/check.py --list
    python benchmarks/check.py --json

Each case (`_cases.py`) runs in a process of its own, held to two cores, so that times and peak memory are its own.
Times are seconds on the clock; a busy machine makes them worse, so the load is printed. Exit code 1: a goal was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread

CORES = 2
MEMORY_GOAL = 2.0  # GiB
SOURCES = Path(__file__).resolve().parent.parent / "src"


def main(arguments: list[str] | None = None) -> int:
    """Runs the cases and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="cases to run (default: all)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print the missed goals only")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--case", help=argparse.SUPPRESS)  # run one case here, in the process made for it
    chosen = parser.parse_args(arguments)
    import _cases as cases

    if chosen.case:
        print(json.dumps(cases.CASES[chosen.case]()))
        return 0
    unknown = [name for name in chosen.names if name not in cases.CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; the cases are {', '.join(cases.CASES)}")
    if chosen.list:
        print("\n".join(f"{name:14} {function.__doc__}" for name, function in cases.CASES.items()))
        return 0
    results = []
    if not chosen.json and not chosen.quiet:
        print(f"{CORES} cores, load {os.getloadavg()[0]:.1f} at the start", flush=True)
    for name in chosen.names or list(cases.CASES):
        figures = measure(name)
        results += figures
        shown = [figure for figure in figures if not (chosen.quiet and figure["ok"])]
        if shown and not chosen.json:
            print("\n".join(line(figure) for figure in shown), flush=True)
    missed = [figure["what"] for figure in results if not figure["ok"]]
    if chosen.json:
        print(json.dumps({"cores": CORES, "load": os.getloadavg(), "figures": results, "missed": missed}, indent=1))
    else:
        print(
            f"\n{len(results) - len(missed)} of {len(results)} goals reached"
            + "".join(f"\nmissed: {m}" for m in missed)
        )
    return 1 if missed else 0


def measure(name: str) -> list[dict]:
    """The figures of one case, each with the name of its case and whether its goal was reached."""
    command = [sys.executable, str(Path(__file__).resolve()), "--case", name]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        preexec_fn=hold_to_cores,
        start_new_session=True,
    )
    watch = Watch(process)
    out, err = process.communicate()
    peak = watch.finish()
    if process.returncode:
        last = (err.strip().splitlines() or ["no message"])[-1]
        figures = [{"what": f"{name} ended with an error", "goal": 0.0, "measured": None, "unit": "", "note": last}]
    else:
        figures = json.loads(out.strip().splitlines()[-1])
        figures.append(
            {"what": f"{name}: peak memory", "goal": MEMORY_GOAL, "measured": peak, "unit": "GiB", "note": ""}
        )
    return [{"case": name, **figure, "ok": reached(figure)} for figure in figures]


class Watch(Thread):
    """Samples the resident memory of a process and its children together, until it ends.

    The kernel keeps the peak of one process only, and that of a child includes what it shared with its parent when it was
    forked. Samples every 20 ms add up the processes that really run at the same time; shared pages count more than once.
    """

    def __init__(self, process: subprocess.Popen):
        super().__init__(daemon=True)
        self.process, self.peak = process, 0.0
        self.start()

    def run(self) -> None:
        while self.process.poll() is None:
            self.peak = max(self.peak, session_memory(self.process.pid))
            time.sleep(0.02)

    def finish(self) -> float | None:
        """The peak in GiB; None where the system has no /proc."""
        self.join()
        return self.peak or None


def session_memory(session: int) -> float:
    """Resident memory in GiB of all processes of a session, from /proc."""
    pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            fields = stat.read_text().rpartition(")")[2].split()  # what follows the name: state, parent, group, session
            pages += int(fields[21]) if int(fields[3]) == session else 0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


def reached(figure: dict) -> bool:
    """Whether a measured figure stays within its goal; what was not proved (measured None) never does.

    A figure without a goal (None) is reached when there is anything to report.

    >>> reached({"goal": 1.0, "measured": 0.5}), reached({"goal": 1.0, "measured": None})
    (True, False)
    """
    measured, goal = figure["measured"], figure["goal"]
    return measured is not None and (goal is None or measured <= goal)


def line(figure: dict) -> str:
    """One row of the table."""
    measured = "-" if figure["measured"] is None else f"{figure['measured']:.3g} {figure['unit']}"
    goal = "none set" if figure["goal"] is None else f"{figure['goal']:g} {figure['unit']}"
    return (
        f"{'ok  ' if figure['ok'] else 'MISS'} {figure['what']:62} {measured:>10}  (goal {goal:>7})  {figure['note']}"
    )


def environment() -> dict[str, str]:
    """The environment of a case: numerical libraries use at most two threads, and our sources are found."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(CORES))
    paths = [str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **threads, "PYTHONPATH": os.pathsep.join(paths)}


def hold_to_cores() -> None:
    """Lets the new process run on two cores only; XLA sizes its thread pool by what it is allowed to use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])


if __name__ == "__main__":
    sys.exit(main())
