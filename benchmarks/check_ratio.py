"""`certiformer bench check_ratio --against DIR`: the time of `check` in this checkout, divided by that in another one.

    git worktree add ../older 4d13c05
    python benchmarks/check_ratio.py --against ../older                # 15 targets, 15 programs, leaves per second
    python benchmarks/check_ratio.py --against ../older sine product   # some of them

Either checkout builds the folders that it checks, with the same commands; nothing is trained. Times are CPU seconds of the
whole command, start-up and worker processes included, the least of three, in turn. Goal: a median of at most 1.5 for the
targets and for the programs. Also said: how many leaves of the trained network a second of one core confirms.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent.parent
MODEL = HERE / "benchmarks" / "models" / "trained-sine-sum"
REPEATS, GOAL = 3, 1.5
COMMAND = "import sys; from certiformer.cli.main import main; sys.exit(main())"
TARGETS = ("sine", "bell", "cubic", "logistic", "hat", "three-pieces", "square-root", "sine-sum", "product", "gaussian-2",
           "sine-cosine", "plane-wave", "difference", "larger", "pair", "oblique", "two-products")  # fmt: skip
PROGRAMS = ("reverse", "sort", "hist", "length", "frac_prevs", "most_freq", "palindrome", "dyck1", "double_hist", "shift",
            "sort_unique", "addition", "parity", "count", "majority", "first", "last", "copy")  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Builds, measures, prints; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="targets and programs (default: all that are listed here)")
    parser.add_argument("--against", required=True, help="the other checkout")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print the medians only")
    chosen = parser.parse_args(arguments)
    other = Path(chosen.against).resolve()
    if not (other / "src" / "certiformer").is_dir():
        parser.error(f"{other} is no checkout of certiformer")
    rows = []
    for kind, name, build in requests():
        if chosen.names and name not in chosen.names:
            continue
        row = {"kind": kind, "name": name, **compared(build, other)}
        rows.append(row)
        if not (chosen.json or chosen.quiet):
            print(line(row), flush=True)
    medians = {kind: middle(rows, kind) for kind in ("target", "program", "boxes")}
    if chosen.json:
        print(json.dumps({"rows": rows, "medians": medians}, indent=1))
    else:
        print("; ".join(f"{kind}s: median ratio {value:.2f}" for kind, value in medians.items() if value is not None))
    return 1 if any(value is not None and value > GOAL for value in medians.values()) else 0


def requests() -> list[tuple[str, str, list[str]]]:
    """Kind, name and command line of everything that is built."""
    sys.path.insert(0, str(HERE / "src"))
    from certiformer.rasp.library import catalogue
    from certiformer.search.suite import case, levels

    found = []
    for name in TARGETS:
        target = case(name)
        tokens = [] if target.tokens is None else ["--tokens", str(target.tokens)]
        eps = levels(target)[0][1]
        wanted = [target.formula, "--on", target.on, "--eps", eps, *tokens, "--fit-seconds", "0"]
        found.append(("target", name, ["build", *wanted]))
    known = catalogue()
    names = [name for name in PROGRAMS if name in known] + sorted(set(known) - set(PROGRAMS))
    found += [("program", name, ["compile", name, "--length", "16"]) for name in names[:20]]
    wanted = [str(MODEL), "sin(x1)+sin(x2)", "--on", "[0,2*pi]^2", "--eps", "0.15", "--rule", "boxes"]
    return [*found, ("boxes", "trained-sine-sum", ["prove", *wanted])]


def compared(build: list[str], other: Path) -> dict[str, Any]:
    """CPU seconds of `check` on either side, and their ratio; a reason where a folder was not built or not accepted."""
    with tempfile.TemporaryDirectory() as home:
        sides = {"ours": HERE, "theirs": other}
        for side, checkout in sides.items():
            code, _, told = run(checkout, [*build, "--out", f"{home}/{side}", "--quiet"])
            if code:
                return {"reason": f"{side}: {told[-200:]}"}
        times: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(REPEATS):
            for side, checkout in sides.items():
                code, seconds, told = run(checkout, ["check", f"{home}/{side}", "--quiet"])
                if code:
                    return {"reason": f"{side}, check: {told[-200:]}"}
                times[side].append(seconds)
        ours, theirs = min(times["ours"]), min(times["theirs"])
        leaves = Path(home, "ours", "leaves.bin")
        count = leaves.read_bytes().count(255) if leaves.is_file() else 0
    return {"ours": ours, "theirs": theirs, "ratio": ours / theirs, "leaves": count}


def run(checkout: Path, arguments: list[str]) -> tuple[int, float, str]:
    """A command of a checkout: exit code, CPU seconds with those of its children, and what it said."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", COMMAND, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=os.path.sep)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        done.returncode,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        done.stdout + done.stderr,
    )


def middle(rows: list[dict[str, Any]], kind: str) -> float | None:
    """The median ratio of one kind."""
    ratios = [row["ratio"] for row in rows if row["kind"] == kind and "ratio" in row]
    return median(ratios) if ratios else None


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    if "reason" in row:
        return f"{row['kind']:8} {row['name']:18} {' '.join(row['reason'].split())}"
    speed = f"  {row['leaves']:,} leaves, {row['leaves'] / row['ours']:,.0f} a CPU second" if row["leaves"] else ""
    return f"{row['kind']:8} {row['name']:18} {row['ours']:8.2f} s {row['theirs']:8.2f} s  ratio {row['ratio']:5.2f}{speed}"


if __name__ == "__main__":
    sys.exit(main())
