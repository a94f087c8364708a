"""Our branch and bound against CROWN branch and bound by auto_LiRPA: same net, same target, same epsilon, one core each.

    CERTIFORMER_LIRPA_PYTHON=/path/to/python python benchmarks/against_auto_lirpa.py [--json]

The peer is measured where it lives: in an environment of its own, named by its Python. To make one:

    python -m venv lirpa && lirpa/bin/pip install torch==2.13.0 numpy packaging appdirs pyyaml ninja tqdm graphviz
    git clone https://github.com/Verified-Intelligence/auto_LiRPA
    lirpa/bin/pip install --no-deps --no-build-isolation ./auto_LiRPA     # version 0.7.1; its own pins exclude this torch

Both sides bound T - f as one expression and bisect the input box; CPU seconds of the process count. On our side: outward
rounding and the margin for the checker included, compilation excluded. On the peer's side: no rounding is accounted for,
building the graph is excluded, and the best of several settings counts. Without the peer the benchmark says so and stops.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

# One thread on our side. Read when jax starts, so set before it is imported.
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

HERE = Path(__file__).resolve().parent
MODEL = HERE / "models" / "trained-sine-sum"
FORMULA, BOX = "sin(x1)+sin(x2)", "[0,2*pi]^2"
VARIABLE = "CERTIFORMER_LIRPA_PYTHON"
GOAL = 5.0
# Batches above 512 and coarser first grids were slower in every run.
SETTINGS = [("256", grid, split) for grid in ("16", "32") for split in ("both", "one")]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print nothing but the ratios")
    options = parser.parse_args()
    why = missing_peer()
    if why:
        print(json.dumps({"skipped": why}) if options.json else f"skipped: {why}")
        return 0
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])  # inherited by the peer's process
    rows = compare()
    if options.json:
        print(json.dumps({"goal": GOAL, "rows": rows}, indent=1))
    for row in [] if options.json else rows:
        if not options.quiet:
            print(f"eps {row['epsilon']}: ours {row['ours']['seconds']:.3f} s, {row['ours']['boxes']:,} boxes")
            print(
                f"  auto_LiRPA {row['peer']['seconds']:.3f} s, {row['peer']['boxes']:,} boxes ({row['peer']['setting']})"
            )
        print(f"eps {row['epsilon']}: {row['ratio']:.1f} times faster than auto_LiRPA's CROWN (goal {GOAL:g})")
    return 0 if all(row["ratio"] >= GOAL for row in rows) else 1


def missing_peer() -> str:
    """Why the peer cannot be measured, or an empty string."""
    python = os.environ.get(VARIABLE)
    if not python:
        return f"{VARIABLE} does not name a Python that has auto_LiRPA (see the top of this file)"
    try:
        asked = subprocess.run([python, "-W", "ignore", "-c", "import auto_LiRPA"], capture_output=True, text=True)
    except OSError as error:
        return f"{VARIABLE}={python} cannot be run: {error.strerror}"
    return f"{python} cannot import auto_LiRPA: {asked.stderr.strip().splitlines()[-1]}" if asked.returncode else ""


def compare() -> list[dict]:
    """One row for each epsilon: 1.02 times the proved lower end of the error, and a looser one."""
    from _search_speed import lower_end, search_speed

    from certiformer.model import load
    from certiformer.search.request import read_target

    model, target = load(MODEL), read_target(FORMULA, BOX)
    tight, _ = lower_end(model, target, 1.02)
    rows = []
    for eps in (tight, "0.15"):
        speed = search_speed(model, target, eps, time.process_time)
        if speed is None:
            raise SystemExit(f"our own search did not close at epsilon {eps}")
        peer = min((run_peer(eps, *setting) for setting in SETTINGS), key=lambda answer: answer["seconds"])
        ours = {"seconds": speed.seconds, "boxes": speed.boxes, "order": speed.order}
        rows.append({"epsilon": eps, "ours": ours, "peer": peer, "ratio": peer["seconds"] / speed.seconds})
    return rows


def run_peer(eps: str, batch: str, grid: str, split: str) -> dict:
    """The peer's answer under one setting. A search that it gave up counts with the time it took: a ratio too small."""
    script = [os.environ[VARIABLE], "-W", "ignore", str(HERE / "_lirpa_peer.py"), str(MODEL), eps]
    command = [*script, "--batch", batch, "--grid", grid, "--split", split]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    return {**answer, "setting": f"batch {batch}, first grid {grid} x {grid}, bisecting {split}"}


if __name__ == "__main__":
    sys.exit(main())
