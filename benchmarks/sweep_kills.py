"""What a sweep survives: workers and the driver are killed with signal 9, and every result is counted afterwards.

    python benchmarks/sweep_kills.py                      # 1,000 jobs, five kills of a worker and one of the driver
    python benchmarks/sweep_kills.py --engine ray
    python benchmarks/sweep_kills.py --jobs 40 --kills 1 --seconds 0.02

A driver runs in a process of its own. This one looks at its ledger, kills a worker in mid-job whenever another part of
the jobs is done, kills the driver half way and starts it again. At the end each job has to be done once, with the rows
that it gives in a quiet process; exit code 1 otherwise. Linux only (it finds workers in /proc).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from certiformer.sweep import Job, Store, run_jobs

PATIENCE = 600.0  # seconds without a finished job after which the sweep counts as stuck
# Seconds in which every process of the sweep has to have ended by itself. Two agents of a Ray cluster whose driver was
# killed wait a minute for the rest of it.
END_SECONDS = {"cores": 10.0, "ray": 150.0}


def draw(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The job: marks in a file that it was begun, takes its time, gives three rows that follow from its seed."""
    with open(config["begun"], "a") as file:
        file.write(f"{config['seed']}\n")
    time.sleep(config["seconds"])
    digests = [hashlib.sha256(f"{config['seed']} {row}".encode()).digest() for row in range(3)]
    return [{"seed": config["seed"], "value": int.from_bytes(digest[:6]) / 2**48} for digest in digests]


@dataclass(frozen=True)
class Figures:
    """What was counted.

    `claims`: leases given; `begun`: how often a job was started; `restart_seconds`: from the death of the driver to the
    next finished job; `end_seconds`: until no process of the sweep was left."""

    engine: str
    jobs: int
    worker_kills: int
    driver_kills: int
    done: int
    chunks: int
    lost: int
    doubled: int
    wrong: int
    claims: int
    begun: int
    seconds: float
    restart_seconds: float
    end_seconds: float
    left_running: int

    @property
    def survived(self) -> bool:
        whole = self.done == self.chunks == self.jobs
        return whole and self.lost == self.doubled == self.wrong == self.left_running == 0


def jobs_of(folder: Path, jobs: int, seconds: float) -> list[Job]:
    return [
        Job("sweep_kills:draw", {"seed": seed, "seconds": seconds, "begun": str(folder / "begun")})
        for seed in range(jobs)
    ]


def start_driver(folder: Path, engine: str, jobs: int, seconds: float) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--drive", str(folder), "--engine", engine]
    return subprocess.Popen([*command, "--jobs", str(jobs), "--seconds", str(seconds)], start_new_session=True)


def survive(folder: Path, engine: str, jobs: int, kills: int, kill_driver: bool, seconds: float) -> Figures:
    """Run the sweep with its kills, and count."""
    todo = jobs_of(folder, jobs, seconds)
    store = Store(folder / "store")
    store.add(todo)
    begun = time.monotonic()
    events: list[str] = ["worker"] * kills
    if kill_driver:
        events.insert((kills + 1) // 2, "driver")
    driver, seen, killed, restart = start_driver(folder, engine, jobs, seconds), set(), Counter(), 0.0
    for number, event in enumerate(events, 1):
        wait_for(store, jobs * number // (len(events) + 1), driver)
        seen |= set(family(driver.pid))
        if event == "worker":
            os.kill(a_worker(driver), signal.SIGKILL)
        else:
            before, died = store.counts()["done"], time.monotonic()
            driver.kill()
            driver.wait()
            driver = start_driver(folder, engine, jobs, seconds)
            wait_for(store, before + 1, driver)
            restart = time.monotonic() - died
        killed[event] += 1
    seen |= set(family(driver.pid))
    code = driver.wait(timeout=PATIENCE)
    if code != 0:
        raise RuntimeError(f"the driver ended with {code}")
    took = time.monotonic() - begun
    return count(store, todo, engine, killed, took, restart, left_of(seen, END_SECONDS[engine]))


def count(
    store: Store,
    todo: list[Job],
    engine: str,
    killed: Counter[str],
    took: float,
    restart: float,
    left: tuple[int, float],
) -> Figures:
    """Every row of the store against what the jobs give in this process."""
    wanted = Counter((row["seed"], row["value"]) for job in todo for row in draw({**job.config, "seconds": 0.0}))
    found = Counter((row["seed"], row["value"]) for row in store.rows(todo))
    begun = len(Path(todo[0].config["begun"]).read_text().splitlines()) - len(todo)  # `draw` above adds one line each
    return Figures(
        engine=engine,
        jobs=len(todo),
        worker_kills=killed["worker"],
        driver_kills=killed["driver"],
        done=store.counts()["done"],
        chunks=len(list(store.chunks.iterdir())),
        lost=sum((wanted - found).values()),
        doubled=sum(max(0, number - 1) for number in found.values()),
        wrong=len(set(found) - set(wanted)),
        claims=store.ledger.ask("SELECT sum(tries) FROM jobs")[0][0],
        begun=begun,
        seconds=round(took, 1),
        restart_seconds=round(restart, 1),
        end_seconds=round(left[1], 1),
        left_running=left[0],
    )


def wait_for(store: Store, done: int, driver: subprocess.Popen[bytes]) -> None:
    """Until so many jobs are done."""
    last, since = -1, time.monotonic()
    while (now := store.counts()["done"]) < done:
        if now != last:
            last, since = now, time.monotonic()
        if driver.poll() is not None or time.monotonic() - since > PATIENCE:
            raise RuntimeError(f"the sweep ended or got stuck with {now} jobs done")
        time.sleep(0.01)


# --- processes --------------------------------------------------------------------------------------------------------


def processes() -> dict[int, tuple[int, str, str]]:
    """Of each process that runs: its parent, its name and command, and when it started."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue
        if folder.name.isdigit() and fields[0] not in "ZX":
            found[int(folder.name)] = (int(fields[1]), command, fields[19])
    return found


def family(pid: int) -> list[tuple[int, str]]:
    """The process and all its descendants, each with its start."""
    running = processes()
    members, changed = {pid} & set(running), True
    while changed:
        more = {child for child, (parent, _, _) in running.items() if parent in members} - members
        members, changed = members | more, bool(more)
    return [(member, running[member][2]) for member in members]


def a_worker(driver: subprocess.Popen[bytes]) -> int:
    """A worker of the driver that has a job now."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        running = processes()
        for pid, _ in family(driver.pid):
            command = running.get(pid, (0, "", ""))[1]
            if "certiformer.sweep.worker" in command or command.startswith("ray::task"):
                return pid
        time.sleep(0.002)
    raise RuntimeError("no worker was found to kill")


def left_of(seen: set[tuple[int, str]], seconds: float) -> tuple[int, float]:
    """How many of these processes still run after so many seconds, or when the last one ended."""
    begun = time.monotonic()
    while True:
        running = {(pid, started) for pid, (_, _, started) in processes().items()}
        left, took = len(seen & running), time.monotonic() - begun
        if not left or took > seconds:
            return left, took
        time.sleep(0.1)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--engine", default="cores", help="cores or ray")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=5, help="of a worker; the driver is killed once")
    parser.add_argument("--seconds", type=float, default=0.05, help="that each job takes")
    parser.add_argument("--drive", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.drive:
        folder = Path(options.drive)
        with Store(folder / "store") as store:
            run_jobs(jobs_of(folder, options.jobs, options.seconds), store, options.engine)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        figures = survive(Path(folder), options.engine, options.jobs, options.kills, True, options.seconds)
    for name, value in asdict(figures).items():
        print(f"{name:16} {value}")
    print("nothing lost, nothing doubled" if figures.survived else "FAILED")
    return 0 if figures.survived else 1


if __name__ == "__main__":
    sys.exit(main())
