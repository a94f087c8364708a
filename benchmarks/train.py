"""Training 1,000 small transformers: `certiformer.train` against PyTorch, which trains them one by one, on two cores.

    CERTIFORMER_TORCH_PYTHON=/path/to/python certiformer bench train          # batches of 32 and of 8, a few minutes
    certiformer bench train batch-8 --quick                                   # one round, short; --list, --json

The peer needs an interpreter with torch and numpy: the one that CERTIFORMER_TORCH_PYTHON names, or else this one. Without
it the benchmark says that it was skipped.

Both sides get the same two cores in the same way: two processes, each held to one core with one thread, each with half
of the models. Same starts, same batches, Adam in float32 (`_train_models.py`); after 24 steps the losses of the first
models of both halves are compared. Rounds alternate between the sides; a ratio is taken within a round, and the median
counts. Our rate is that of `train` for 500 models in one call, compilation not counted (its seconds are printed); the
peer's is that of its loop for as many models as fit into the seconds, building the models not counted. Peak: the
operations of the matrix products over those of a product of two 512 x 512 matrices on the same core. Exit code 1: a
goal was missed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
VARIABLE = "CERTIFORMER_TORCH_PYTHON"
GOALS = {"batch-32": 6.0, "batch-8": 16.0}
MODELS, STEPS, CHECK = 1000, 100, 24
# The losses agree to 1e-6 (24 steps of float32); a wrong gradient, head or batch moves them by more than 1e-3.
AGREE = 1e-4


def main(arguments: list[str] | None = None) -> int:
    """Runs both sides and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help=f"cases: {', '.join(GOALS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print the ratios only")
    parser.add_argument("--list", action="store_true", help="print the cases")
    parser.add_argument("--case", metavar="PROBLEM", help=argparse.SUPPRESS)  # our side, in the process made for it
    chosen = parser.parse_args(arguments)
    if chosen.case:
        print(json.dumps(ours(chosen.case)))
        return 0
    unknown = [name for name in chosen.names if name not in GOALS]
    if unknown:
        parser.error(f"there is no case {unknown[0]!r}; the cases are {', '.join(GOALS)}")
    if chosen.list:
        print("\n".join(f"{name:10} {MODELS:,} models, goal {goal:g} times" for name, goal in GOALS.items()))
        return 0
    why = missing_peer()
    if why:
        print(json.dumps({"skipped": why}) if chosen.json else f"skipped: {why}")
        return 0
    rounds, seconds = (1, 3.0) if chosen.quick else (3, 8.0)
    figures = [measured(name, rounds, seconds, chosen.json or chosen.quiet) for name in chosen.names or GOALS]
    right = all(each["ratio"] >= each["goal"] and each["agree"] for each in figures)
    if chosen.json:
        print(json.dumps({"load": os.getloadavg(), "figures": figures}, indent=1))
    else:
        print("\n".join(described(each) for each in figures))
    return 0 if right else 1


def measured(name: str, rounds: int, seconds: float, silent: bool) -> dict:
    """All rounds of one case."""
    batch, cores = int(name.rpartition("-")[2]), sorted(os.sched_getaffinity(0))[:2]
    found = {"ours": [], "plain": [], "tuned": []}
    with tempfile.TemporaryDirectory() as folder:
        problems = [write_half(Path(folder), batch, half) for half in range(2)]
        for _ in range(rounds):
            for side in found:
                found[side].append(side_by_side(side, problems, cores, seconds))
                if not silent:
                    rate, own = (sum(half[key] for half in found[side][-1]) for key in ("rate", "cpu_rate"))
                    print(f"{name} {side:6} {rate:9,.0f} model-steps/s, {own:9,.0f} by CPU seconds", flush=True)
    pairs = [(o["losses"], t["losses"]) for o, t in zip(found["ours"][0], found["plain"][0], strict=True)]
    apart = max(abs(mine - other) for ours, peers in pairs for mine, other in zip(ours, peers, strict=True))
    totals = {
        key: {s: [sum(h[key] for h in r) for r in all_] for s, all_ in found.items()} for key in ("rate", "cpu_rate")
    }

    def ratio(peer: str, key: str) -> float:
        return statistics.median(a / b for a, b in zip(totals[key]["ours"], totals[key][peer], strict=True))

    halves = [half for each in found["ours"] for half in each]
    return {
        "name": name, "goal": GOALS[name], "ratio": ratio("plain", "rate"), "ratio_tuned": ratio("tuned", "rate"),
        "ratio_cpu": ratio("plain", "cpu_rate"), "ratio_tuned_cpu": ratio("tuned", "cpu_rate"),
        "rates": {side: statistics.median(rates) for side, rates in totals["rate"].items()},
        "cpu_rates": {side: statistics.median(rates) for side, rates in totals["cpu_rate"].items()},
        "peak": statistics.median(half["peak"] for half in halves),
        "first_seconds": statistics.median(half["first"] for half in halves),
        "loss_difference": apart, "agree": apart < AGREE, "torch": found["plain"][0][0]["torch"],
    }  # fmt: skip


def write_half(folder: Path, batch: int, half: int) -> Path:
    """The starts, batches and order of half of the models, as a file that both sides read."""
    from _train_models import RATE, batches, order, starts

    points, wanted = batches(MODELS // 2, batch, seed=10 + half)
    weights = {f"w:{name}": tensor for name, tensor in starts(MODELS // 2, seed=20 + half).items()}
    path = folder / f"half-{half}.npz"
    import numpy as np

    np.savez(path, points=points, wanted=wanted, order=order(STEPS), rate=RATE, **weights)
    return path


def side_by_side(side: str, problems: list[Path], cores: list[int], seconds: float) -> list[dict]:
    """One side: a process for each half, at the same time, each held to a core and one thread."""
    path = os.pathsep.join([str(HERE.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "XLA_FLAGS": flags, "PYTHONPATH": path}
    running, whole = [], os.sched_getaffinity(0)
    for place, problem in enumerate(problems):
        command = [sys.executable, __file__, "--case", str(problem)]
        if side != "ours":
            command = [peer_python(), str(HERE / "_train_torch.py"), str(problem), "--way", side, "--steps", str(STEPS)]
            command += ["--check", str(CHECK), "--seconds", str(seconds)]
        os.sched_setaffinity(0, {cores[place % len(cores)]})  # inherited by the process
        running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    os.sched_setaffinity(0, whole)
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit(f"a process of the side {side!r} failed")
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def ours(problem: str) -> dict:
    """Our half: all models of the file in one call."""
    import jax
    import numpy as np
    from _train_models import B1, B2, EPSILON, config, draw, step_operations

    from certiformer.train import Optimiser, Problem, train, transformer_outputs

    data = np.load(problem)
    weights = {name[2:]: data[name] for name in data.files if name.startswith("w:")}
    member = (data["points"], data["wanted"])
    optimiser = Optimiser("adam", float(data["rate"]), b1=B1, b2=B2, epsilon=EPSILON)
    learnt = Problem(transformer_outputs(config()), draw)

    def run(steps: int, count: int):
        start, own = ({n: w[:count] for n, w in weights.items()}, tuple(each[:count] for each in member))
        return train(
            learnt, start, seeds=np.zeros(count, int), optimiser=optimiser, steps=steps, member=own, record=steps
        )

    losses = run(CHECK, 4).losses[:, 0]
    models, began = len(member[0]), time.perf_counter()
    run(STEPS, models)
    first = time.perf_counter() - began
    began, cpu = time.perf_counter(), time.process_time()
    run(STEPS, models)
    spent, used = time.perf_counter() - began, time.process_time() - cpu
    operations = models * STEPS * step_operations(member[0].shape[2])
    facts = {"rate": models * STEPS / spent, "cpu_rate": models * STEPS / used, "first": first - spent}
    return {**facts, "peak": operations / used / product_rate(), "losses": losses.tolist(), "jax": jax.__version__}


def product_rate() -> float:
    """Operations in a CPU second of a product of two float32 matrices of 512 rows, the best of five."""
    import jax
    import jax.numpy as jnp

    matrix = jnp.ones((512, 512), jnp.float32)
    product = jax.jit(jnp.matmul)
    product(matrix, matrix).block_until_ready()
    times = []
    for _ in range(5):
        began = time.process_time()
        for _ in range(10):
            product(matrix, matrix).block_until_ready()
        times.append(time.process_time() - began)
    return 10 * 2 * 512**3 / min(times)


def described(figure: dict) -> str:
    rates = figure["rates"]
    word = "reached" if figure["ratio"] >= figure["goal"] else "MISSED"
    return (
        f"{figure['name']}: {figure['ratio']:.1f} times PyTorch one by one (goal {figure['goal']:g}: {word}), "
        f"{figure['ratio_tuned']:.1f} times with fused Adam and fused attention; by CPU seconds {figure['ratio_cpu']:.1f} "
        f"and {figure['ratio_tuned_cpu']:.1f}\n"
        f"  model-steps/s on two cores: ours {rates['ours']:,.0f} ({100 * figure['peak']:.0f} % of the peak of a matrix "
        f"product), PyTorch {figure['torch']} {rates['plain']:,.0f}, tuned {rates['tuned']:,.0f}; compiled in "
        f"{figure['first_seconds']:.1f} s\n"
        f"  losses after {CHECK} steps {'agree' if figure['agree'] else 'DO NOT AGREE'}: "
        f"{figure['loss_difference']:.1e} apart"
    )


def missing_peer() -> str:
    """Why the peer cannot be measured, or an empty string."""
    try:
        asked = subprocess.run([peer_python(), "-c", "import torch, numpy"], capture_output=True, text=True)
    except OSError as error:
        return f"{VARIABLE}={peer_python()} cannot be run: {error.strerror}"
    if not asked.returncode:
        return ""
    return f"{peer_python()} cannot import torch and numpy; {VARIABLE} may name another Python"


def peer_python() -> str:
    return os.environ.get(VARIABLE) or sys.executable


if __name__ == "__main__":
    sys.exit(main())
