"""`certiformer bench compile`: every library program compiled, certified and run, and compared with Tracr in the same run.

    CERTIFORMER_TRACR_PYTHON=/path/to/python python benchmarks/compile.py      # everything, an hour or more
    python benchmarks/compile.py reverse sort                                  # some programs; --list names them
    python benchmarks/compile.py --quick                                       # lengths 5 and 20, vocabulary 4

The peer lives in an environment of its own, named by its Python. Tracr is not on the package index; to make one:

    python -m venv tracr && tracr/bin/pip install git+https://github.com/google-deepmind/tracr

Without it the comparison is skipped, with a word; our own goals are measured all the same.

Programs, lengths and vocabularies are in `_compile_cases.py`, the inputs in `_compile_inputs.py`, the goals in
`_compile_goals.py`. Both sides are held to the same two cores and run one after the other. A compile is timed as the first
one of a new process, imports not counted on either side (ours: the median of three processes), in seconds of the processor.
Everything else of ours is measured in one more process a program, the peer's in that of its compile. A compile of the peer
that takes longer than `--limit` counts as that long, and longer inputs are not tried. Exit code 1: a goal was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from _compile_cases import BATCH, PEER_NAMES, Case, cases_of
from _compile_goals import judged, ratios

HERE = Path(__file__).resolve().parent
VARIABLE = "CERTIFORMER_TRACR_PYTHON"
CORES, REPEATS, PEER_LIMIT = 2, 3, 60.0
SPARE = 600.0  # what the peer may spend on running what it compiled, before it is given up


def main(arguments: list[str] | None = None) -> int:
    """Runs the programs and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="programs (default: all)")
    parser.add_argument("--quick", action="store_true", help="lengths 5 and 20 and vocabulary 4 only")
    parser.add_argument(
        "--limit", type=float, default=PEER_LIMIT, help="seconds for a compile of the peer (default: %(default)g)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print the goals only")
    parser.add_argument("--list", action="store_true", help="print the programs and their vocabularies")
    chosen = parser.parse_args(arguments)
    sys.path.insert(0, str(HERE.parent / "src"))
    from certiformer.rasp.library import catalogue

    own = {name: entry.vocab for name, entry in catalogue().items()}
    unknown = [name for name in chosen.names if name not in own]
    if unknown:
        parser.error(f"there is no program {unknown[0]!r}; the programs are {', '.join(own)}")
    if chosen.list:
        print("\n".join(described(name, vocab) for name, vocab in own.items()))
        return 0
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # inherited by both sides
    why, rows = missing_peer(), []
    speak = not (chosen.json or chosen.quiet)
    if why and not chosen.json:
        print(f"comparison with Tracr skipped: {why}", flush=True)
    if speak:
        print(f"{CORES} cores, load {os.getloadavg()[0]:.1f} at the start\n{HEADER}", flush=True)
    for name in chosen.names or own:
        for row in measured(cases_of(name, own[name], chosen.quick), bool(why), chosen.limit):
            rows.append(row)
            if speak:
                print(line(row), flush=True)
    return told(rows, why, chosen.json)


def told(rows: list[dict], why: str, as_json: bool) -> int:
    """Prints the goals (or everything, as JSON) and returns the exit code."""
    goals = list(judged(rows))
    missed = [goal["goal"] for goal in goals if goal["missed"]]
    if as_json:
        facts = {"skipped": why} if why else {}
        facts |= {"cores": CORES, "load": os.getloadavg(), "rows": rows, "goals": goals, "missed": missed}
        print(json.dumps(facts, indent=1))
    else:
        for goal in goals:
            mark = "-   " if not goal["of"] else "MISS" if goal["missed"] else "ok  "
            print(f"{mark} {goal['goal']}: " + (f"{goal['reached']} of {goal['of']}" if goal["of"] else "not measured"))
            print("".join(f"       {each}\n" for each in goal["missed"]), end="")
    return 1 if missed else 0


HEADER = (
    f"{'program':22} {'length':>6} {'vocab':>5} {'dtype':>8} {'seconds':>8} {'weights':>9} {'width':>5} {'layers':>6}"
    f" {'check s':>8} {'wrong':>9} | {'Tracr s':>8} {'weights':>10} {'wrong':>7} {'faster':>7} {'smaller':>8}"
    f" {'forward':>8}"
)


def line(row: dict) -> str:
    """A row of the table; what was not measured is a dash, and what is not certified says why."""
    ours, peer, by = row["ours"], row.get("peer") or {}, row["ratios"]
    shown = [
        f"{row['name']:22} {row['length']:>6,} {row['vocabulary']:>5} {ours.get('dtype', '-'):>8}",
        f"{_number(ours.get('cpu'), '.4f'):>8} {_number(ours.get('parameters'), ',d'):>9}",
        f"{_number(ours.get('width'), 'd'):>5} {_number(ours.get('layers'), 'd'):>6}",
        f"{_number(ours.get('check'), '.2f'):>8}",
        f"{_wrong(ours) + ('*' if ours.get('all_inputs') else ''):>9} | {_number(peer.get('cpu'), '.2f'):>8}",
        f"{_number(peer.get('parameters'), ',d'):>10} {_wrong(peer):>7} {_number(by.get('seconds'), '.0f'):>7}",
        f"{_number(by.get('parameters'), '.1f'):>8} {_number(by.get('forward'), '.1f'):>8}",
    ]
    why = "" if ours.get("certified") else f"  not certified: {ours.get('reason') or ours.get('margin')}"
    return " ".join(shown) + why + (f"  Tracr: {peer['reason']}" if "reason" in peer else "")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _wrong(side: dict) -> str:
    return f"{side['wrong']}/{side['tried']}" if "wrong" in side else "-"


def described(name: str, own: tuple[Any, ...]) -> str:
    """What is compiled of a program."""
    cases = cases_of(name, own)
    sizes = ", ".join(str(size) for size in dict.fromkeys(len(case.vocab) for case in cases))
    lengths = ", ".join(f"{length:,}" for length in dict.fromkeys(case.length for case in cases))
    return f"{name:22} vocabulary {sizes:6} lengths {lengths}{'; Tracr has it' if name in PEER_NAMES else ''}"


def missing_peer() -> str:
    """Why the peer cannot be measured, or an empty string."""
    python = os.environ.get(VARIABLE)
    if not python:
        return f"{VARIABLE} does not name a Python that has tracr (see the top of this file)"
    try:
        asked = subprocess.run([python, "-W", "ignore", "-c", "import tracr.compiler"], capture_output=True, text=True)
    except OSError as error:
        return f"{VARIABLE}={python} cannot be run: {error.strerror}"
    return f"{VARIABLE}={python} cannot import tracr ({_last_word(asked.stderr)})" if asked.returncode else ""


def measured(cases: list[Case], alone: bool, limit: float) -> Iterator[dict]:
    """The rows of one program."""
    found = our_figures(cases)
    out_of_time: set[int] = set()
    for case, ours in zip(cases, found, strict=True):
        if "reason" not in ours:
            ours |= our_seconds(case, ours["dtype"])
        row: dict[str, Any] = {"name": case.name, "length": case.length, "vocabulary": len(case.vocab), "ours": ours}
        if case.name in PEER_NAMES and not alone:
            row["peer"] = peer_figures(case, limit, case.asked in out_of_time)
            if "out of time" in row["peer"].get("reason", ""):
                out_of_time.add(case.asked)
        yield {**row, "ratios": ratios(row)}


def our_figures(cases: list[Case]) -> list[dict]:
    """Everything but the compile time, for all cases of a program; `reason` for those the process did not reach."""
    done = _run([sys.executable, str(HERE / "_compile_ours.py"), "figures", *(case.to_text() for case in cases)])
    rows = [json.loads(text) for text in done.stdout.splitlines() if text.startswith("{")]
    lost = {"reason": f"our process failed: {_last_word(done.stderr)}"}
    return rows + [dict(lost) for _ in cases[len(rows) :]]


def our_seconds(case: Case, dtype: str) -> dict[str, float]:
    """The median of the compile times in several new processes."""
    command = [sys.executable, str(HERE / "_compile_ours.py"), "seconds", dtype, case.to_text()]
    tries = [json.loads(_run(command).stdout.splitlines()[-1]) for _ in range(REPEATS)]
    return {name: statistics.median(each[name] for each in tries) for name in ("seconds", "cpu", "again")}


def peer_figures(case: Case, limit: float, hopeless: bool) -> dict:
    """The peer's answer; where a shorter one was out of time, so is this."""
    if hopeless:
        return {"seconds": limit, "cpu": limit, "reason": "not tried: out of time at a shorter length"}
    wanted = {"name": case.name, "length": case.length, "vocab": case.vocab, "limit": limit}
    script = [os.environ[VARIABLE], "-W", "ignore", str(HERE / "_tracr_peer.py")]
    try:
        done = _run([*script, json.dumps({**wanted, "forward": BATCH if case.forward else 0})], limit + SPARE)
    except subprocess.TimeoutExpired:
        return {"seconds": limit, "cpu": limit, "reason": "out of time"}
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines and not done.returncode else {"reason": f"failed: {_last_word(done.stderr)}"}


def _run(command: list[str], timeout: float | None = None) -> subprocess.CompletedProcess[str]:
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(CORES))
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **threads}, timeout=timeout)


def _last_word(errors: str) -> str:
    return (errors.strip().splitlines() or ["no word why"])[-1]


if __name__ == "__main__":
    sys.exit(main())
