"""`certiformer bench build`: the suite of targets, built and certified by `--method auto` at every epsilon it asks for.

    python benchmarks/build.py                         # everything, about three quarters of an hour
    python benchmarks/build.py sine-sum near-pole      # some targets
    python benchmarks/build.py --methods sine-sum      # each method by itself as well: is auto ever larger?
    python benchmarks/build.py --list
    python benchmarks/build.py --json

A target runs in a process of its own, held to two cores. A row passes when the checker accepted (level 2)
within 180 seconds in all: planning, training, search and check, compilation included. Exit code 1: a row did not pass.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

CORES, SECONDS, FIT_SECONDS = 2, 180.0, 12.0
SOURCES = Path(__file__).resolve().parent.parent / "src"


def main(arguments: list[str] | None = None) -> int:
    """Runs the targets and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="targets to build (default: all)")
    parser.add_argument("--methods", action="store_true", help="also each method by itself")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print the rows that did not pass only")
    parser.add_argument("--list", action="store_true", help="print the targets")
    parser.add_argument("--case", help=argparse.SUPPRESS)  # build one target here, in the process made for it
    chosen = parser.parse_args(arguments)
    sys.path.insert(0, str(SOURCES))
    from certiformer.search.suite import SUITE

    names = [case.name for case in SUITE]
    if chosen.case:
        for row in rows_of(chosen.case, chosen.methods):
            print(json.dumps(row), flush=True)
        return 0
    unknown = [name for name in chosen.names if name not in names]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; the targets are {', '.join(names)}")
    if chosen.list:
        print("\n".join(f"{case.name:18} {case.formula} on {case.on}" for case in SUITE))
        return 0
    results = []
    if not chosen.json:
        print(f"{CORES} cores, load {os.getloadavg()[0]:.1f} at the start", flush=True)
        print(HEADER, flush=True)
    for name in chosen.names or names:
        for row in measured(name, chosen.methods):
            results.append(row)
            if not chosen.json and not (chosen.quiet and row["ok"]):
                print(line(row), flush=True)
    missed = [f"{row['name']} at {row['eps']}" for row in results if not row["ok"]]
    if chosen.json:
        print(json.dumps({"cores": CORES, "load": os.getloadavg(), "rows": results, "missed": missed}, indent=1))
    else:
        passed = len(results) - len(missed)
        print(f"{passed} of {len(results)} rows certified within {SECONDS:g} s; missed: {', '.join(missed) or 'none'}")
    return 1 if missed else 0


COLUMNS = {"eps": 8, "method": 18, "nonzero": 8, "dense": 8, "lower": 9, "upper": 9, "seconds": 8}
HEADER = f"{'target':18} {' '.join(f'{name:>{width}}' for name, width in COLUMNS.items())}  outcome"


def line(row: dict) -> str:
    """One row of the table."""
    numbers = [f"{row[key]:>8,}" if row[key] is not None else " " * 8 for key in ("nonzero", "dense")]
    ends = [f"{row[key]:>9.3g}" if row[key] is not None else " " * 9 for key in ("lower", "upper")]
    verdict = row["outcome"] if row["ok"] else f"MISSED: {row['outcome']}"
    larger = "" if not row.get("smaller") else f"  (smaller: {row['smaller']})"
    start = f"{row['name']:18} {row['eps']:>8} {row['method']:>18}"
    return f"{start} {' '.join(numbers)} {' '.join(ends)} {row['seconds']:>8.1f}  {verdict}{larger}"


def measured(name: str, methods: bool):
    """The rows of one target, from a process of its own."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(SOURCES), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": str(CORES),
        "OPENBLAS_NUM_THREADS": str(CORES),
    }
    command = [sys.executable, __file__, "--case", name] + (["--methods"] if methods else [])
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    seen = 0
    for text in process.stdout or ():
        seen += 1
        yield json.loads(text)
    if process.wait() or not seen:
        empty = dict.fromkeys(("nonzero", "dense", "lower", "upper"))
        yield {
            "name": name,
            "eps": "",
            "method": "",
            **empty,
            "seconds": 0.0,
            "outcome": "the process failed",
            "ok": False,
        }


def rows_of(name: str, methods: bool):
    """Build one target at all its epsilons."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    from certiformer.search import build
    from certiformer.search.suite import case, levels

    chosen = case(name)
    for _, eps in levels(chosen):
        request = {"on": chosen.on, "eps": eps, "tokens": chosen.tokens, "workers": CORES}
        began = time.monotonic()
        run = build(chosen.formula, **request, fit_seconds=FIT_SECONDS, seconds=SECONDS * 2 / 3)
        row = _row(name, eps, run, time.monotonic() - began)
        if methods:
            row |= _alone(chosen, request, row)
        yield row


def _row(name: str, eps: str, run, seconds: float) -> dict:
    facts = run.summary()
    return {
        "name": name,
        "eps": eps,
        "method": run.certificate.method,
        "nonzero": facts["nonzero"],
        "dense": facts["dense"],
        "lower": run.lower,
        "upper": run.upper,
        "seconds": round(seconds, 1),
        "outcome": "certified" if run.certified else f"{run.outcome.value}: {run.certificate.reason}",
        "candidates": run.candidates,
        "ok": bool(run.certified and seconds <= SECONDS and not run.upper > float(eps)),
    }


def _alone(chosen, request: dict, row: dict) -> dict:
    """Every method by itself: its size if it was certified, and which of them is smaller than auto."""
    from certiformer.search import build
    from certiformer.search.candidates import AUTO, FIT

    sizes = {}
    for method in (*AUTO, FIT):
        try:
            run = build(chosen.formula, **request, method=method, fit_seconds=FIT_SECONDS, seconds=SECONDS / 3)
        except ValueError as problem:
            sizes[method] = str(problem)
            continue
        sizes[method] = run.summary()["nonzero"] if run.certified else run.outcome.value
    best = row["nonzero"] or float("inf")
    smaller = [f"{name} {size}" for name, size in sizes.items() if isinstance(size, int) and size < best]
    return {"alone": sizes, "smaller": ", ".join(smaller), "ok": row["ok"] and not smaller}


if __name__ == "__main__":
    raise SystemExit(main())
