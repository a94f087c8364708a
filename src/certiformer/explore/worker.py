"""The process of a worker: reads a job a line, answers with events, a line each.

`main` is started by `jobs` in an isolated interpreter. Where a job fails, one sentence says so, and the process goes on; a
defect or a lack of memory ends it, and the server starts another one.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from importlib import import_module
from typing import Any

from certiformer.errors import MALFORMED, BadInput, MissingExtra
from certiformer.explore.jobs import OUT_OF_MEMORY
from certiformer.explore.rooms import ROOMS

LOOK_SECONDS = 0.25
NICE = 10  # pages come first


def main() -> int:
    """Carry out jobs until the pipe is closed."""
    _limit(int(sys.argv[1]))
    output = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # whatever prints something does not print it between the events
    lock = threading.Lock()

    def emit(event: str, **facts: Any) -> None:
        line = json.dumps({"event": event, **facts}, allow_nan=False).encode() + b"\n"
        with lock:
            output.write(line)

    if sys.argv[2] == "warm":
        _warm_up()
    for line in sys.stdin.buffer:
        job = json.loads(line)
        try:
            result = import_module(ROOMS[job["room"]]).run(job["request"], job.get("folder"), emit)
            emit("done", **result)
        except (BadInput, MissingExtra) as problem:
            emit("refused", sentence=str(problem)[:2_000])
        except MALFORMED as problem:
            emit("refused", sentence=f"this cannot be done ({type(problem).__name__}: {str(problem)[:300]})")
        except OSError as problem:
            emit("refused", sentence=f"this cannot be done: {problem.strerror or problem}")
    return 0


def _limit(memory: int) -> None:
    """Give way to the server, and end this process when it has taken more memory than it may."""
    os.nice(NICE)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (2 * memory, 2 * memory))

    def watch() -> None:
        while True:
            if _memory() > memory:
                os._exit(OUT_OF_MEMORY)
            time.sleep(LOOK_SECONDS)

    threading.Thread(target=watch, daemon=True).start()


def _memory() -> int:
    """Bytes of memory that this process holds now, or held at most where only that is known."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _warm_up() -> None:
    """Compile what every build uses; whoever asks meanwhile waits no longer than without it."""
    from certiformer.explore.rooms import approximate

    approximate.warm_up()
