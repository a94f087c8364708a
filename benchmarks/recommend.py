"""Time for an epoch of `recommend fit` against a plain SASRec in PyTorch: the same users in a batch, shape, loss, dropout.

    python benchmarks/recommend.py ratings.csv                  # two threads each, in turn
    python benchmarks/recommend.py --drawn 4000 --device cuda   # without data: a generated log; on a GPU

PyTorch runs in the interpreter that CERTIFORMER_TORCH_PYTHON names (default: this one). An epoch of ours includes judging
the model on the validation items, which the peer's does not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

EPOCHS, ROUNDS = 4, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?")
    parser.add_argument("--drawn", type=int, default=4000, help="how many users are drawn without a table")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=32, help="packed rows")
    parser.add_argument("--ours", help="an .npz with the log: only our epochs, in this process")
    asked = parser.parse_args()
    if asked.ours:
        ours(Path(asked.ours), asked.batch)
        return
    with tempfile.TemporaryDirectory() as home:
        data = Path(home, "log.npz")
        facts = prepare(asked.table, asked.drawn, asked.batch, data)
        print(f"{facts['count']:,} users, {facts['items']:,} items; {facts['users']} users in a batch", flush=True)
        torch_python = os.environ.get("CERTIFORMER_TORCH_PYTHON", sys.executable)
        peer = [torch_python, str(Path(__file__).with_name("_sasrec_torch.py")), str(data), "--length", "50"]
        peer += ["--width", "64", "--blocks", "2", "--heads", "2", "--dropout", "0.3", "--epochs", str(EPOCHS)]
        peer += ["--items", str(facts["items"]), "--users", str(facts["users"]), "--device", asked.device]
        here = [sys.executable, __file__, "--ours", str(data), "--batch", str(asked.batch)]
        threads = {**os.environ, "OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
        threads.pop("XLA_FLAGS", None)
        best: dict[str, float] = {}
        for _ in range(ROUNDS):  # in turn, so that another program on the machine slows both
            for name, command in (("plain PyTorch", peer), ("certiformer", here)):
                done = subprocess.run(command, capture_output=True, text=True, env=threads)
                if done.returncode:
                    raise SystemExit(f"{name} failed: {done.stderr[-2000:]}")
                seconds = [float(line.split()[0]) for line in done.stdout.splitlines()]
                print(f"{name:<14} {' '.join(f'{s:.2f}' for s in seconds)} s an epoch", flush=True)
                best[name] = min(best.get(name, np.inf), *seconds)
        print(f"best epochs: {best['plain PyTorch']:.2f} s and {best['certiformer']:.2f} s,", end=" ")
        print(f"{best['plain PyTorch'] / best['certiformer']:.2f} times faster")


def prepare(table: str | None, drawn: int, batch: int, data: Path) -> dict[str, int]:
    """Write the log, and find how many users our batch holds."""
    from certiformer.recommend.interactions import read_interactions
    from certiformer.recommend.log import make_log
    from certiformer.recommend.packing import pack

    if table is None:
        generator = np.random.default_rng(0)
        lengths = np.minimum(5 + generator.geometric(0.09, drawn), 400)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        items = (generator.zipf(1.3, offsets[-1]) % 2400).astype(np.int32)
    else:
        log, _ = make_log(read_interactions(table), 5)
        offsets, items = log.offsets, log.items
    count = len(offsets) - 1
    trained = [items[offsets[u] : offsets[u + 1] - 2] for u in range(count)]
    ends = np.concatenate([[0], np.cumsum([len(t) for t in trained])])
    np.savez(data, offsets=ends, items=np.concatenate(trained), whole_offsets=offsets, whole_items=items)
    rows = len(pack(trained, 50).ids)
    return {"count": count, "items": int(items.max()) + 1, "users": round(count * batch / rows)}


def ours(data: Path, batch: int) -> None:
    """The seconds of our epochs, compilation left out."""
    from certiformer.recommend.log import Log
    from certiformer.recommend.network import Shape
    from certiformer.recommend.split import make_split
    from certiformer.recommend.training import Recipe, learn

    stored = np.load(data)
    offsets, items = stored["whole_offsets"], stored["whole_items"]
    names = tuple(str(i) for i in range(int(items.max()) + 1))
    log = Log(offsets, items, None, np.arange(len(offsets) - 1), names)
    split = make_split(log, "last", 0.0, 0)
    moments: list[tuple[float, int]] = []

    def heard(stage: str, done: float, total: float | None, note: str) -> None:
        moments.append((time.perf_counter(), int(done)))

    learn(log, split, Shape(len(names)), Recipe(epochs=EPOCHS + 1, batch=batch), heard)
    steps = moments[-1][1] // (EPOCHS + 1)
    for (before, first), (after, last) in zip(moments, moments[1:], strict=False):
        for _ in range((last - first) // steps):
            print(f"{(after - before) * steps / (last - first):.4f}")


if __name__ == "__main__":
    main()
