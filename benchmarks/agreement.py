"""`certiformer bench agreement`: does the kernel accept what the search calls proved, and in the time that was given?

    python benchmarks/agreement.py                    # 200 random networks, most of an hour on two cores
    python benchmarks/agreement.py --quick            # 8 of them
    python benchmarks/agreement.py --trials 20 --seed 7 --workers 2 --json
    python benchmarks/agreement.py --workers 16 --seconds 15   # minutes on sixteen cores

Random networks of one to four blocks, ReLU and GELU, without norms and with norms before and after, one to three inputs,
with and without attention, against a network with slightly other weights or the affine function that fits best. Epsilon is
1.1 to 3 times the largest error at random points, so that a proof may exist. Networks of even number are proved at level 2,
those of odd number at level 1; `check` then judges the folder of either. A *disagreement* is a proof of the search that the
kernel refuses for another reason than time. Exit code 1: there is one, or the kernel took longer than it was given.

Nearly all the time goes into compiling one search for each network, hence without XLA's optimisation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np

SOURCES = Path(__file__).resolve().parent.parent / "src"
TRIALS, QUICK, SECONDS = 200, 8, 40.0
GRACE = 1.0  # seconds that the kernel may be late: a leaf that has begun, and processes that end
OUT_OF_TIME = "the time was spent"
HALF = {1: 0.5, 2: 0.25, 3: 0.1}  # of the sides of the box, by its dimension


def main(arguments: list[str] | None = None) -> int:
    """Runs the trials and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=TRIALS, help="how many networks")
    parser.add_argument("--seed", type=int, default=0, help="the number of the first network")
    parser.add_argument("--workers", type=int, default=2, help="how many processes")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for search and check of one network together")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} networks")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="print the table only")
    chosen = parser.parse_args(arguments)
    os.environ["XLA_FLAGS"] = (
        "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
        " --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"  # a core for each process
    )
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])
    numbers = range(chosen.seed, chosen.seed + (QUICK if chosen.quick else chosen.trials))
    rows = []
    for row in measured(numbers, chosen.workers, chosen.seconds):
        rows.append(row)
        if not (chosen.quiet or chosen.json):
            print(line(row), flush=True)
    wrong = [row for row in rows if not row["ok"]]
    if chosen.json:
        print(json.dumps({"trials": len(rows), "wrong": len(wrong), "rows": rows}, indent=1))
    else:
        print("\n".join(table(rows)))
    return 1 if wrong else 0


def measured(numbers: range, workers: int, seconds: float) -> Iterator[dict[str, Any]]:
    """The rows as they come; processes are changed now and then, because compiled searches stay in memory."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, max_tasks_per_child=10) as pool:
        yield from (done.result() for done in as_completed([pool.submit(trial, n, seconds) for n in numbers]))


def network(number: int) -> tuple[dict[str, Any], Any]:
    """What a random network is made of, in words, and the network."""
    from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer

    random = np.random.default_rng(number)
    facts = {
        "blocks": 1 + number % 4,
        "units": ("relu", "gelu")[number // 4 % 2],
        "norm": ("none", "pre", "post")[number // 8 % 3],
        "inputs": int(random.integers(1, 4)),
        "heads": int(random.integers(0, 3)),
    }
    attention = Attention((Heads(facts["heads"], 2, 2),)) if facts["heads"] else None
    norm = None if facts["norm"] == "none" else Norm(facts["norm"])
    block = Block(attention, FeedForward(int(random.integers(2, 6)), facts["units"]), norm)
    config = Config(
        Input("continuous", facts["inputs"], width=1),
        width=int(random.integers(2, 5)),
        outputs=1,
        readout=Readout(("mean", "sum")[int(random.integers(2))]),
        blocks=facts["blocks"] * (block,),
        code=Code("table"),
    )
    return facts, Transformer.random(config, number)


def claim(number: int) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """Facts, network, and what is to be proved of it."""
    from certiformer.model import Transformer

    facts, model = network(number)
    random = np.random.default_rng([number, 1])
    half = HALF[facts["inputs"]]
    points = random.uniform(-half, half, (4000, facts["inputs"]))
    values = model.evaluate(points)[:, 0]
    if random.random() < 0.5:
        moved = {
            name: np.asarray(t) * (1 + 0.02 * random.standard_normal(t.shape)) for name, t in model.tensors.items()
        }
        target: Any = Transformer(model.config, moved)
        error, facts["target"] = np.abs(values - target.evaluate(points)[:, 0]).max(), "network"
    else:
        columns = np.c_[points, np.ones(len(points))]
        weights = np.round(np.linalg.lstsq(columns, values, rcond=None)[0], 6)
        target = " + ".join([f"({w:.6f})*x{i + 1}" for i, w in enumerate(weights[:-1])] + [f"({weights[-1]:.6f})"])
        error, facts["target"] = np.abs(columns @ weights - values).max(), "affine"
    eps = f"{max(error, 1e-6) * random.uniform(1.1, 3.0):.4g}"
    on = "x".join([f"[-{half}, {half}]"] * facts["inputs"])
    return facts, model, {"target": target, "on": on, "eps": eps, "order": 1 + number % 2}


def trial(number: int, seconds: float = SECONDS) -> dict[str, Any]:
    """One network: what search and kernel said within these seconds, and how late they were."""
    from certiformer.kernel.check import check
    from certiformer.search import prove

    facts, model, request = claim(number)
    level = 2 - number % 2
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "run"
        run = prove(model, **request, out=folder, rule="boxes", level=level, seconds=seconds, workers=1)
        began = time.monotonic()
        verdict = check(folder, workers=1) if run.outcome.value == "proved" else None
        checking = time.monotonic() - began
    spent = run.certificate.seconds
    given = max(0.0, seconds - spent.get("lower", 0.0) - spent.get("search", 0.0))
    row = {**facts, "number": number, "level": level, "eps": request["eps"], "leaves": run.subject.leaves.count(255)}
    row |= {"said": run.outcome.value, "checked": None if verdict is None else verdict.outcome, "check": checking}
    row |= {"late": max(0.0, spent.get("check", 0.0) - given), "reason": run.certificate.reason}
    row["word"] = word(row["said"], row["checked"], row["reason"])
    if row["word"] == "disagree" and verdict is not None:
        row["reason"] = verdict.reason
    return {**row, "ok": row["word"] != "disagree" and row["late"] <= GRACE}


def word(said: str, checked: str | None, reason: str) -> str:
    """What became of a trial: `agree`, `disagree`, `time` (the kernel's), or `open` (nothing was called proved).

    >>> word("proved", "proved", ""), word("proved", "refused", ""), word("undecided", None, "the seconds are spent")
    ('agree', 'disagree', 'open')
    >>> word("undecided", None, "the checker refused: on the box ..."), word("undecided", None, "the time was spent ...")
    ('disagree', 'time')
    """
    if checked is not None:
        return "agree" if said == checked else "disagree"
    if OUT_OF_TIME in reason:
        return "time"
    return "disagree" if "the checker refused" in reason else "open"


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    made = (
        f"{row['blocks']} {row['units']} {row['norm']:4} {row['heads']} heads {row['inputs']} inputs {row['target']:7}"
    )
    late = f"  {row['late']:.1f} s late" if row["late"] > GRACE else ""
    why = "" if row["word"] == "agree" else f"  {row['reason'][:90]}"
    return f"{row['number']:4}  {made}  level {row['level']}  {row['leaves']:6,} leaves  {row['word']:8}{late}{why}"


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Counts by the kind of network."""
    words = ("agree", "disagree", "time", "open")
    groups: dict[str, Counter[str]] = {}
    for row in rows:
        for key in (f"{row['units']}, norm {row['norm']}", f"{row['blocks']} blocks", "all"):
            groups.setdefault(key, Counter())[row["word"]] += 1
    lines = [f"{'':16} {' '.join(f'{name:>9}' for name in words)}"]
    lines += [f"{key:16} {' '.join(f'{count[name]:9}' for name in words)}" for key, count in sorted(groups.items())]
    late = sum(row["late"] > GRACE for row in rows)
    return [*lines, f"{groups['all']['disagree']} disagreements; the kernel was late in {late} of {len(rows)} trials"]


if __name__ == "__main__":
    sys.exit(main())
