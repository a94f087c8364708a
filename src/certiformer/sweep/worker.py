"""A worker process of the engine `cores`, and the form of its answers.

It reads one job per line of its standard input (JSON: function, config) and answers each with a line of JSON
(`bytes`, `rows`, `raised`, `final`) followed by the `bytes` bytes of the chunk. When its input ends, because the driver
is done or dead, so does it: a job in progress is finished first, since nothing interrupts it.
What jobs print goes to the standard error stream; the answers have the pipe for themselves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import BinaryIO

from certiformer.sweep.job import Job
from certiformer.sweep.pool import Answer, compute


def main() -> int:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver, which then ends its workers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    write(answers, Answer(None))  # ready: imports are done
    for line in sys.stdin.buffer:
        wanted = json.loads(line)
        try:
            write(answers, compute(Job(wanted["function"], wanted["config"])))
        except BrokenPipeError:
            os._exit(0)  # the driver is gone: a normal end would try to flush the broken pipe
    return 0


def write(stream: BinaryIO, answer: Answer) -> None:
    """Send an answer."""
    content = answer.content or b""
    head = {"ok": answer.content is not None, "bytes": len(content)}
    head |= {"rows": answer.rows, "raised": answer.raised, "final": answer.final}
    stream.write(json.dumps(head).encode() + b"\n" + content)
    stream.flush()


def read(stream: BinaryIO) -> Answer | None:
    """Receive an answer; None when the worker has ended, also in the middle of one."""
    line = stream.readline()
    if not line.endswith(b"\n"):
        return None
    head = json.loads(line)
    content = stream.read(head["bytes"])
    if len(content) < head["bytes"]:
        return None
    return Answer(content if head["ok"] else None, head["rows"], head["raised"], head["final"])
