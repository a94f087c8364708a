"""`fit` with its proof against a plain PyTorch Adam loop: same architecture, same seconds, every target of the suite.

    CERTIFORMER_TORCH_PYTHON=/path/to/python python benchmarks/against_pytorch.py     # everything
    python benchmarks/against_pytorch.py sine product                                 # some targets; --list names them
    python benchmarks/against_pytorch.py --seconds 4 sine                             # a short try; --json for machines

The peer needs an interpreter with torch and numpy: the one that CERTIFORMER_TORCH_PYTHON names, or else this one. Without
it the benchmark says that it was skipped.

Ours: `build --method fit` at 1/100 of the range (1/10 where the suite asks for that only), in a new process; what counts is
the *proved* upper end of the error and the seconds of the whole build: training, search, check and all compilation. The
peer: the same number of units, activation and rows (`_torch_peer.py` says why that is the same architecture), trained
for those seconds with each learning rate, each time from the seed 0 (`--seeds N`: also from the others below N); what
counts is the smallest of the *sampled* errors, on the grid that names epsilon in the suite and at random points, which is
a lower estimate of its true error. Both are held to the same cores and run one after the other. A target that `fit` does
not certify counts with ratio 0, so that nothing is gained by failing. Goal: the median of sampled / proved over the
targets is at least 2. Exit code 1: it is not.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
VARIABLE = "CERTIFORMER_TORCH_PYTHON"
GOAL, CORES, FIT_SECONDS, PROOF_SECONDS = 2.0, 2, 12.0, 60.0
RATES = ("1e-3", "1e-2")
# Points on each axis, by dimension, of the grid by which the suite measures ranges; and random points beside it.
GRID, RANDOM = {1: 2001, 2: 201, 3: 33, 4: 17}, 20_000
POOL = 2**18  # training points: 64 batches of 4,096


def main(arguments: list[str] | None = None) -> int:
    """Runs the targets and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="targets to compare on (default: all)")
    parser.add_argument(
        "--seconds", type=float, default=FIT_SECONDS, help="time for our training (default: %(default)g)"
    )
    parser.add_argument(
        "--seeds", type=int, default=1, help="starts of the peer, of which the best counts (default: 1)"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print the median only")
    parser.add_argument("--list", action="store_true", help="print the targets")
    parser.add_argument("--case", nargs=2, metavar=("NAME", "FOLDER"), help=argparse.SUPPRESS)  # our side, here
    chosen = parser.parse_args(arguments)
    if chosen.case:
        name, folder = chosen.case
        print(json.dumps(built(name, folder, chosen.seconds)))
        return 0
    why = "" if chosen.list else missing_peer()
    if why:
        print(json.dumps({"skipped": why}) if chosen.json else f"skipped: {why}")
        return 0
    from certiformer.search.suite import SUITE

    names = [case.name for case in SUITE]
    unknown = [name for name in chosen.names if name not in names]
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}; the targets are {', '.join(names)}")
    if chosen.list:
        print("\n".join(f"{case.name:18} {case.formula} on {case.on}" for case in SUITE))
        return 0
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # inherited by both sides
    return compare(chosen.names or names, chosen.seconds, chosen.seeds, chosen.json, chosen.quiet)


def compare(names: list[str], seconds: float, seeds: int, as_json: bool, quiet: bool) -> int:
    """Measures the targets one by one, prints the rows and the median, and returns the exit code."""
    rows, load = [], os.getloadavg()[0]
    speak = not as_json and not quiet
    if speak:
        print(f"{CORES} cores, load {load:.1f} at the start\n{HEADER}", flush=True)
    for name in names:
        rows.append(compared(name, seconds, seeds))
        if speak:
            print(line(rows[-1]), flush=True)
    median = statistics.median(row["ratio"] for row in rows)
    failed = [row["name"] for row in rows if "reason" in row]
    if as_json:
        facts = {"goal": GOAL, "median": median, "counted_as_0": failed, "cores": CORES, "load": load, "rows": rows}
        print(json.dumps(_finite(facts), indent=1, allow_nan=False))
    else:
        print(f"sampled error of PyTorch / proved error of fit, median of {len(rows)}: {median:.3g} (goal {GOAL:g})")
        print(f"without a comparison, counted as 0: {', '.join(failed) or 'none'}")
    return 0 if median >= GOAL else 1


HEADER = (
    f"{'target':18} {'eps':>8} {'units':>10} {'rows':>4} {'seconds':>8} {'proved':>9}"
    f" {'PyTorch':>9} {'rate':>6} {'steps':>8} {'ratio':>9}"
)


def line(row: dict) -> str:
    """A row of the table."""
    if "reason" in row:
        return f"{row['name']:18} {row['eps']:>8} {'':60} {0:>9}  {row['reason']}"
    architecture = f"{row['units']} {row['activation']}"
    best = f"{row['sampled']:>9.3g} {row['rate']:>6g} {row['steps']:>8,}"
    ours = f"{row['seconds']:>8.1f} {row['upper']:>9.3g}"
    return f"{row['name']:18} {row['eps']:>8} {architecture:>10} {row['rows']:>4} {ours} {best} {row['ratio']:>9.3g}"


def missing_peer() -> str:
    """Why the peer cannot be measured, or an empty string."""
    python = peer_python()
    try:
        asked = subprocess.run([python, "-W", "ignore", "-c", "import torch, numpy"], capture_output=True, text=True)
    except OSError as error:
        return f"{VARIABLE}={python} cannot be run: {error.strerror}"
    if not asked.returncode:
        return ""
    return f"{python} cannot import torch and numpy ({_last_word(asked)}); {VARIABLE} may name another Python"


def peer_python() -> str:
    return os.environ.get(VARIABLE) or sys.executable


def compared(name: str, seconds: float, seeds: int) -> dict:
    """Both sides of one target, each in a process of its own, one after the other; `reason` if one of them failed."""
    threads = {"OMP_NUM_THREADS": str(CORES), "OPENBLAS_NUM_THREADS": str(CORES)}
    path = os.pathsep.join([str(HERE.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--case", name, folder, "--seconds", str(seconds)]
        done = _run(command, {**os.environ, **threads, "PYTHONPATH": path})
        if done.returncode:
            return {"name": name, "eps": "", "reason": f"our process failed: {_last_word(done)}", "ratio": 0.0}
        row = json.loads(done.stdout.splitlines()[-1])
        if "reason" in row:
            return {**row, "ratio": 0.0}
        architecture = ["--units", str(row["units"]), "--activation", row["activation"], "--rows", str(row["rows"])]
        script = [peer_python(), "-W", "ignore", str(HERE / "_torch_peer.py"), f"{folder}/problem.npz", *architecture]
        limits = ["--seconds", str(row["seconds"]), "--rates", *RATES, "--seeds", str(seeds)]
        done = _run([*script, *limits], {**os.environ, **threads})
    if done.returncode:
        return {**row, "reason": f"the peer failed: {_last_word(done)}", "ratio": 0.0}
    tries = [json.loads(text) for text in done.stdout.splitlines()]
    # A training that diverged has no error to speak of.
    tries = [{**each, "sampled": math.inf if each["sampled"] is None else each["sampled"]} for each in tries]
    best = min(tries, key=lambda each: each["sampled"])
    return {**row, **best, "tries": tries, "ratio": ratio(best["sampled"], row["upper"])}


def _run(command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def _last_word(done: subprocess.CompletedProcess[str]) -> str:
    return (done.stderr.strip().splitlines() or ["no word why"])[-1]


def ratio(sampled: float, proved: float) -> float:
    """How many times larger; a target that is met exactly has the proved error 0."""
    if proved > 0:
        return sampled / proved
    return math.inf if sampled > 0 else 1.0


def built(name: str, folder: str, seconds: float) -> dict:
    """Our side: the proved error, the seconds and the architecture; leaves the points and values in the folder."""
    from certiformer.search import build
    from certiformer.search.suite import case, levels

    chosen = case(name)
    # 1/100 of the range, or the finest share that the suite asks for.
    eps = levels(chosen)[:2][-1][1]
    began = time.monotonic()
    run = build(
        chosen.formula,
        on=chosen.on,
        eps=eps,
        tokens=chosen.tokens,
        method="fit",
        fit_seconds=seconds,
        seconds=PROOF_SECONDS,
        workers=CORES,
    )
    taken = time.monotonic() - began
    row = {"name": name, "eps": eps, "seconds": round(taken, 3)}
    if not run.certified or run.model is None or run.upper is None:
        return {**row, "reason": f"{run.outcome.value}: {run.certificate.reason}"}
    config = run.model.config
    ffn = config.blocks[0].ffn
    row |= {"units": ffn.width if ffn else 0, "activation": ffn.kind if ffn else "relu"}
    row |= {"rows": config.tokens if config.readout.kind == "all" else 1, "upper": run.upper, "lower": run.lower}
    points, values = write_problem(chosen, Path(folder))
    import numpy as np

    own = float(np.abs(run.evaluate(points) - values).max())
    # A point above the proved bound beyond what evaluation in float64 explains would be a wrong proof.
    if not own <= run.upper + 1e-9 * max(1.0, float(np.abs(values).max())):
        raise SystemExit(f"the error {own} at a point is above the proved bound {run.upper}")
    return {**row, "own_sampled": own}


def write_problem(chosen, folder: Path):
    """Training and test points with the values of the target, for the peer; returns the test points and values."""
    import jax
    import numpy as np

    from certiformer.kernel.balls import BallDomain, working_precision
    from certiformer.search.request import read_target
    from certiformer.target.floating import as_jax

    working_precision()
    target = read_target(chosen.formula, chosen.on, chosen.tokens)
    ends = [(float(low.mid()), float(high.mid())) for low, high in BallDomain(target.domain).ends]
    low, high = (np.array(side) for side in zip(*ends, strict=True))
    axes = [np.linspace(*each, GRID[chosen.dimension]) for each in ends]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, chosen.dimension)
    generator = np.random.default_rng(0)
    test = np.concatenate([grid, generator.uniform(low, high, (RANDOM, len(low)))])
    pool = generator.uniform(low, high, (POOL, len(low)))
    with jax.enable_x64(True), jax.disable_jit():
        test_values, pool_values = (np.asarray(as_jax(target.program)(points)) for points in (test, pool))
    arrays = {"train_points": pool, "train_values": pool_values, "test_points": test, "test_values": test_values}
    np.savez(folder / "problem.npz", low=low, high=high, **arrays)
    return test, test_values


def _finite(facts):
    """The same with None for infinite numbers, which JSON does not have."""
    if isinstance(facts, dict):
        return {key: _finite(value) for key, value in facts.items()}
    if isinstance(facts, list):
        return [_finite(value) for value in facts]
    return None if isinstance(facts, float) and not math.isfinite(facts) else facts


if __name__ == "__main__":
    raise SystemExit(main())
