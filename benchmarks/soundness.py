"""`certiformer bench soundness`: an attack on the checker; whatever false is accepted is printed and kept.

    certiformer bench soundness                              # minutes: every kind of claim, malformed files, planted faults
    certiformer bench soundness --trials 1240000 --report FILE # hours: 20,000 of every kind; goes on where it stopped
    certiformer bench soundness --trials 1240000 --shard 2/4 --report FILE2 # a quarter of them, anywhere
    certiformer bench soundness --merge FILE1,FILE2          # the table of several parts
    certiformer bench soundness --kind boxes,rasp --seed 7
    certiformer bench soundness --mutants 150                # planted faults only
    certiformer bench soundness --list

(i) folders forged from honest ones, re-sealed, whose claim is established as false in rationals or balls of 700 bits by
code that shares nothing with the checker; (ii) random sources against plain Python on all inputs of small size; (iii)
Taylor forms against values of 200 digits; (iv) malformed files; (v) faults planted in the code that decides, which (i)
to (iii) should expose. A trial is named by seed, kind and number and can be repeated alone. Exit code 1: something
false was accepted, the checker crashed, or a malformed folder was not answered as it should be. Planted faults that
survive are listed.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # worker processes find the parts of the campaign, too

TRIALS = 12_000  # of (i) to (iii) together, unless --trials says otherwise
EACH = 20_000  # of every kind in a full run; with fewer trials in all, slow kinds get a smaller share
MALFORMED = 1_000
MUTANTS = 24
CHUNK, CHUNKS = 25, 4_000  # trials of one job; with many trials, about so many jobs
# Claims that take tens of milliseconds each get a smaller share of the trials than those that take one.
SLOW = {
    "learner-select": 6,
    "read-folders": 4,
    "networks": 2,
    "shifted-grids": 4,
    "squares-rbf": 4,
    "sum": 3,
    "korovkin": 2,
    "run-error": 2,
    "sigmoid-heads": 2,
    "boxes2": 2,
}


def main(arguments: list[str] | None = None) -> int:
    """Runs the campaign and returns the exit code."""
    chosen = options(arguments)
    if chosen.build:
        import _soundness_bases as bases

        failed = bases.make(chosen.build_names.split(","), Path(chosen.build), lambda text: say(chosen, text))
        print(json.dumps(failed))
        return 0
    import _soundness_trials as trials

    if chosen.list:
        print("\n".join(f"{name:20} {part}" for name, part in trials.KINDS.items()))
        return 0
    if chosen.merge:
        return report_of(chosen, merged(chosen.merge.split(",")), {}, None, None)
    kinds = chosen.kind.split(",") if chosen.kind else list(trials.KINDS)
    unknown = [name for name in kinds if name not in trials.KINDS]
    if unknown:
        print(f"there is no kind {unknown[0]!r}; --list names them", file=sys.stderr)
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="certiformer-soundness-") as temporary:
        home = Path(chosen.bases or temporary)
        kinds, missing = with_bases(chosen, kinds, home)
        results = attack(chosen, kinds, home)
        malformed = mangle(chosen, kinds, home) if chosen.malformed else None
        faults = plant(chosen, kinds, home) if chosen.mutants else None
    return report_of(chosen, results, missing, malformed, faults, round(time.monotonic() - began, 1))


def report_of(chosen: argparse.Namespace, results: list, missing: dict, malformed, faults, seconds: float = 0.0) -> int:
    """Prints the report and returns the exit code."""
    report = {
        "seed": chosen.seed, "trials": sum(r.trials for r in results), "seconds": seconds,
        "kinds": [row(result) for result in results], "not built": missing, "malformed": malformed, "planted": faults,
        "finds": [find for result in results for find in result.finds],
    }  # fmt: skip
    print(json.dumps(report, indent=1) if chosen.json else table(report))
    wrong = any(r.accepted or r.crashed for r in results) or bool(missing)
    # Faults that survive say something about the campaign, not about the checker: they are listed and change no code.
    return 1 if wrong or (malformed and malformed["wrong"]) else 0


def options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="kinds, as for --kind")
    parser.add_argument(
        "--trials", type=int, default=None, help=f"trials of (i) to (iii) together (default {TRIALS:,})"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", help="kinds of claim, with commas; --list names them")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--malformed", type=int, default=None, help=f"malformed folders (default {MALFORMED})")
    parser.add_argument("--mutants", type=int, default=None, help=f"planted faults (default {MUTANTS})")
    parser.add_argument("--report", help="note every finished part of (i) to (iii) here, and leave out what is noted")
    parser.add_argument("--shard", default="1/1", help="only this part of (i) to (iii) and of the faults, such as 2/4")
    parser.add_argument("--minutes", type=float, help="begin no part of (i) to (iii) after so long")
    parser.add_argument("--merge", help="print what these files of --report hold together, with commas")
    parser.add_argument("--source", action="append", help="glob of the code that decides, below the package")
    parser.add_argument("--bases", help="keep the honest folders here, and use those that are there")
    parser.add_argument("--finds", default="soundness-finds", help="where folders are kept that deceived the checker")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--list", action="store_true", help="print the names of the kinds")
    parser.add_argument("--build", help=argparse.SUPPRESS)  # make honest folders here, in a process made for it
    parser.add_argument("--build-names", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    chosen.kind = ",".join([*chosen.names, *filter(None, [chosen.kind])])
    share = 10 if chosen.quick else 1
    defaults = {"trials": TRIALS, "malformed": MALFORMED, "mutants": MUTANTS}
    alone = any(getattr(chosen, name) is not None for name in defaults)  # parts are asked for by their numbers
    for name, default in defaults.items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, 0 if alone else default // share)
    return chosen


def say(chosen: argparse.Namespace, text: str) -> None:
    if not chosen.quiet:
        print(text, file=sys.stderr, flush=True)


def with_bases(chosen: argparse.Namespace, kinds: list[str], home: Path) -> tuple[list[str], dict[str, str]]:
    """Makes the honest folders in a process of its own, which may load JAX; returns the kinds that have what they need."""
    import _soundness_trials as trials

    names = [name for name in kinds if trials.KINDS[name] == "forged"]
    missing: dict[str, str] = {}
    if names:
        home.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, str(HERE / "soundness.py"), "--build", str(home), "--build-names", ",".join(names)]
        command += ["--quiet"] if chosen.quiet else []
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.strip().splitlines()
        missing = (
            json.loads(lines[-1]) if done.returncode == 0 and lines else dict.fromkeys(names, "the maker ended badly")
        )
    return [name for name in kinds if name not in missing], missing


def shares(kinds: list[str], total: int) -> dict[str, int]:
    """How many trials each kind gets."""
    if total >= EACH * len(kinds):
        return dict.fromkeys(kinds, total // len(kinds))
    weight = {kind: 1 / SLOW.get(kind, 1) for kind in kinds}
    whole = sum(weight.values()) or 1
    return {kind: max(round(total * weight[kind] / whole), 1) if total else 0 for kind in kinds}


def attack(chosen: argparse.Namespace, kinds: list[str], home: Path) -> list:
    """Parts (i) to (iii): chunks of trials on all workers."""
    import _soundness_trials as trials

    counts = shares(kinds, chosen.trials)
    size = max(CHUNK, sum(counts.values()) // CHUNKS)
    jobs = [(kind, first, min(size, counts[kind] - first)) for kind in kinds for first in range(0, counts[kind], size)]
    jobs.sort(key=lambda job: job[1])  # a run that ends early has tried all kinds alike
    part, parts = map(int, chosen.shard.split("/"))
    jobs = jobs[part - 1 :: parts]
    results = {kind: trials.Result(kind) for kind in kinds}
    noted = journal(chosen.report, chosen.seed) if chosen.report else {}
    for job, result in noted.items():
        if job in jobs:
            results[result.kind].add(result)
    jobs = [job for job in jobs if job not in noted]
    if not jobs:
        return list(results.values()) if noted else []
    began, done, last = time.monotonic(), 0, time.monotonic()
    limit = 60 * chosen.minutes if chosen.minutes else float("inf")
    with ProcessPoolExecutor(chosen.workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        queue, running = list(reversed(jobs)), {}
        while queue or running:
            while queue and len(running) < 2 * chosen.workers and time.monotonic() - began < limit:
                job = queue.pop()
                running[pool.submit(trials.chunk, *job, chosen.seed, str(home), chosen.finds)] = job
            if not running:
                say(chosen, f"{len(queue):,} parts are left for another run")
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job, result = running.pop(future), future.result()
                results[result.kind].add(result)
                done += result.trials
                if chosen.report:
                    with open(chosen.report, "a") as stream:
                        stream.write(json.dumps({"seed": chosen.seed, "job": job, "result": vars(result)}) + "\n")
                for find in result.finds:
                    say(chosen, f"FOUND {find}")
            if time.monotonic() - last > 5:
                last = time.monotonic()
                accepted = sum(r.accepted for r in results.values())
                say(chosen, f"{done:,} of {sum(job[2] for job in jobs):,} trials, {accepted} false claims accepted")
    return list(results.values())


def journal(path: str, seed: int) -> dict:
    """What a file of --report holds of this seed: job -> result. A line cut short by a kill is left out."""
    import _soundness_trials as trials

    noted = {}
    for line in Path(path).read_text().splitlines() if Path(path).exists() else ():
        try:
            data = json.loads(line)
        except ValueError:
            continue
        if data["seed"] == seed:
            noted[tuple(data["job"])] = trials.Result(**{**data["result"], "sites": Counter(data["result"]["sites"])})
    return noted


def merged(paths: list[str]) -> list:
    """The results of several files of --report together; a trial that is in two of them counts once."""
    import _soundness_trials as trials

    lines = [line for path in paths for line in Path(path).read_text().splitlines()]
    seeds = {json.loads(line)["seed"] for line in lines if line.endswith("}")}
    results: dict[str, trials.Result] = {}
    for seed in seeds:
        parts = {job: result for path in paths for job, result in journal(path, seed).items()}
        for result in parts.values():
            results.setdefault(result.kind, trials.Result(result.kind)).add(result)
    return [results[kind] for kind in trials.KINDS if kind in results]


def mangle(chosen: argparse.Namespace, kinds: list[str], home: Path) -> dict:
    """Part (iv)."""
    import _soundness_files as malformed
    import _soundness_trials as trials

    names = [name for name in kinds if trials.KINDS[name] == "forged"]
    return (
        malformed.run(names, home, chosen.malformed, chosen.seed, lambda text: say(chosen, text))
        if names
        else {"wrong": []}
    )


def plant(chosen: argparse.Namespace, kinds: list[str], home: Path) -> dict:
    """Part (v)."""
    import _soundness_mutants as mutants

    globs = chosen.source or list(mutants.SOURCES)
    part, parts = map(int, chosen.shard.split("/"))
    faults = mutants.drawn(globs, chosen.mutants, chosen.seed)[part - 1 :: parts]
    return mutants.run(faults, kinds, home, chosen.seed, chosen.workers, lambda text: say(chosen, text))


def row(result) -> dict:
    """One line of the table as data."""
    return {
        "kind": result.kind, "trials": result.trials, "false": result.false, "last rule": result.last_rule,
        "overstated": result.stated,
        "accepted": result.accepted, "honest": result.honest, "honest refused": result.honest_refused,
        "crashed": result.crashed, "processor seconds": round(result.seconds, 2),
        "refused at": dict(result.sites.most_common(12)),
    }  # fmt: skip


def table(report: dict) -> str:
    """The report for people."""
    names = ("trials", "false", "last rule", "overstated", "accepted", "honest", "honest refused", "crashed")

    def line(kind: str, numbers: list[int], seconds: float) -> str:
        each = 1000 * seconds / max(numbers[0], 1)
        return f"{kind:20}" + "".join(f"{number:>15,}" for number in numbers) + f"{each:>10.2f}"

    lines = [f"{'kind':20}" + "".join(f"{name:>15}" for name in names) + f"{'ms each':>10}"]
    lines += [line(r["kind"], [r[name] for name in names], r["processor seconds"]) for r in report["kinds"]]
    sums = [sum(r[name] for r in report["kinds"]) for name in names]
    lines += [line("together", sums, sum(r["processor seconds"] for r in report["kinds"])), ""]
    forged = [r for r in report["kinds"] if r["refused at"]]
    if forged:
        reached, false = sum(r["last rule"] for r in forged), sum(r["false"] for r in forged)
        lines.append(
            f"{reached:,} of {false:,} false forgeries ({100 * reached / false:.1f} %) reached the last rule of their proof"
        )
    lines += [f"not built: {name} ({reason})" for name, reason in report["not built"].items()]
    if report["malformed"]:
        m = report["malformed"]
        lines.append(f"malformed: {m.get('folders', 0):,} folders, {len(m['wrong'])} not answered as they should be")
        lines += [f"  {wrong}" for wrong in m["wrong"][:20]]
    if report["planted"]:
        p = report["planted"]
        lines.append(
            f"planted faults: {p['drawn']} drawn, {p['exposed']} exposed ({p['how']}), {p['equivalent']} equivalent,"
            f" {len(p['survivors'])} survive"
        )
        lines += [f"  survives: {s}" for s in p["survivors"]]
    lines += [f"FOUND {find}" for find in report["finds"][:20]]
    lines.append(f"seed {report['seed']}, {report['trials']:,} trials, {report['seconds']:,} s")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
