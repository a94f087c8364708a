"""Fifty users at once on one server of `certiformer explore`, each with a job, while pages are asked for.

    python benchmarks/explore.py                 # 50 users, one job each; the goals of the design
    python benchmarks/explore.py --users 10

Goals: no job is lost, whoever waits is told the place, and 95 of 100 page requests take less than 300 ms while jobs run.
Exit code 1 when one is missed. `tests/explore/test_load.py` runs a small one.
"""

from __future__ import annotations

import argparse
import http.client
import json
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

GOAL_MILLISECONDS = 300.0
JOB = {"formula": "x1**2", "box": "[0,1]", "epsilon": "0.1", "method": "ridge", "seconds": 0}


@dataclass(frozen=True)
class Load:
    """What was counted: jobs that ended as they should, those that were told a place, and the times of page requests."""

    users: int
    done: int
    queued: int
    seconds: float
    pages: int
    p95: float
    slowest: float

    @property
    def met(self) -> bool:
        return self.done == self.users and self.p95 < GOAL_MILLISECONDS


def measure(users: int, workers: int | None = None) -> Load:
    """Start a server, let all users begin at once, and ask for pages until the last job is done."""
    flags = [] if workers is None else ["--workers", str(workers)]
    command = [sys.executable, "-m", "certiformer", "explore", "--port", "0", "--no-open", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        address = process.stdout.readline() if process.stdout else ""
        port = int(address.strip().rstrip("/").rpartition(":")[2])
        return _measured(port, users)
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout is not None:
            process.stdout.close()


def _measured(port: int, users: int) -> Load:
    page = _asked(port, "GET", "/")[1].decode()
    paths = ["/", "/api/about", *(f"/{name}" for name in re.findall(r'(?:src|href)="\./([^"]+)"', page))]
    times: list[float] = []
    over = threading.Event()

    def ask_for_pages() -> None:
        number = 0
        while not over.is_set():
            began = time.perf_counter()
            _asked(port, "GET", paths[number % len(paths)])
            times.append(1000 * (time.perf_counter() - began))
            number += 1
            time.sleep(0.02)

    reader = threading.Thread(target=ask_for_pages)
    began = time.monotonic()
    reader.start()
    try:
        with ThreadPoolExecutor(users) as pool:
            ends = list(pool.map(lambda _: _job(port), range(users)))
    finally:
        over.set()
        reader.join()
    times.sort()
    done, queued = sum(end == "certified" for end, _ in ends), sum(told for _, told in ends)
    return Load(users, done, queued, time.monotonic() - began, len(times), times[int(0.95 * len(times))], times[-1])


def _job(port: int) -> tuple[str, bool]:
    """How one job ended, and whether it was told a place in the queue."""
    body = json.dumps(JOB).encode()
    content = _asked(port, "POST", "/api/jobs/approximate", body, {"content-type": "application/json"})[1]
    events = [json.loads(line) for line in content.splitlines()]
    told = any(event["event"] == "queue" for event in events)
    return (events[-1].get("word", events[-1]["event"]) if events else "nothing"), told


def _asked(port: int, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=900)
    try:
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=50)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    load = measure(options.users, options.workers)
    if options.json:
        print(json.dumps({**vars(load), "met": load.met}))
    else:
        print(f"users      {load.users}, of whom {load.queued} were told their place in the queue")
        print(f"jobs       {load.done} certified of {load.users} in {load.seconds:.1f} s")
        print(f"pages      {load.pages} requests meanwhile: p95 {load.p95:.0f} ms, slowest {load.slowest:.0f} ms")
        print("all goals reached" if load.met else "a goal was missed")
    return 0 if load.met else 1


if __name__ == "__main__":
    sys.exit(main())
