"""Names of the processes that hold leases, from which a process of the same machine can tell whether they still run."""

from __future__ import annotations

import os
import secrets
import socket
from functools import cache
from pathlib import Path


def worker_name() -> str:
    """A new name: machine, process number, start of the process, and a random part."""
    pid = os.getpid()
    return f"{_machine()}|{pid}|{_started(pid)}|{secrets.token_hex(4)}"


def is_gone(name: str) -> bool:
    """Whether the process of this name ran on this machine and has ended.

    False where that cannot be told (another machine, or a system without /proc): then its lease has to run out.

    >>> is_gone(worker_name())
    False
    """
    machine, pid, started, _ = (*name.split("|"), "", "", "", "")[:4]
    if machine != _machine() or not (pid.isascii() and pid.isdigit() and len(pid) < 20) or not started:
        return False
    return _started(int(pid)) != started


@cache
def _machine() -> str:
    """Host name, start of the system and process namespace: containers may share the first two."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{socket.gethostname()}/{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _started(pid: int) -> str:
    """When the process started, in clock ticks since the system did; empty when there is none, or no /proc.

    Field 22 of /proc/PID/stat; the second field is a name in parentheses that may hold spaces. A zombie has ended.
    """
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]
