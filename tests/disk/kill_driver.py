"""Runs a command again and again, each time killed (signal 9) before another one of its file operations.

    python kill_driver.py '{"area": ..., "start": ..., "command": [...], "kills": [1, 5], "way": ...}'

The folder `area`, which is the current one, is put back to the copy `start` before every kill. Prints one JSON object: for
each kill what is visible then, and after the same command what is there, hidden names too. It ends with the first kill that
comes too late. Processes are forked, and what the command imports is imported before, so that the libraries are loaded once.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from certiformer.cli.main import main
from certiformer.disk import publishing, recover

NAMED = ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "os.truncate", "certiformer.exchange")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def kill_before(number: int, area: str) -> None:
    """End this process at once when it is about to do its `number`-th file operation below `area`."""
    done = 0

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal done
        if event in NAMED or (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING):
            path = os.fsdecode(arguments[0]) if isinstance(arguments[0], (str, bytes, os.PathLike)) else area
            if not os.path.isabs(path) or path.startswith(area):  # relative: inside of a folder that is being removed
                done += 1
                if done == number:
                    os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def forked(command: list[str], number: int, area: str, way: str, report: int | None = None) -> int:
    """The status of the command in a process of its own, which writes the names of our modules into `report`."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    if way == "by two renamings":
        publishing.exchange = lambda first, second: False
    if number:
        kill_before(number, area)
    code = main(command)
    if report is not None:
        os.write(report, "\n".join(name for name in sys.modules if name.startswith("certiformer.")).encode())
    os._exit(code)


def import_what_is_used(command: list[str], area: str, way: str) -> int:
    """The status of the command, run once in full; afterwards this process has the modules that it imported."""
    names, names_in = os.pipe()
    if status := forked(command, 0, area, way, report=names_in):
        return status
    os.close(names_in)
    with os.fdopen(names) as stream:
        for name in stream.read().split():
            import_module(name)
    return 0


def state(folder: Path, *, hidden: bool) -> dict[str, str]:
    """All files by name and hash, without what measures time: the seconds of a certificate, pages, and ledgers."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if ".certiformer" in name:
            if hidden:
                found[name] = "hidden"
        elif path.is_file() and "ledger.sqlite" not in name:
            content = path.read_bytes()
            if path.name == "certificate.json":
                certificate = {**json.loads(content), "sha256": None}
                certificate["recorded"]["seconds"] = None
                content = json.dumps(certificate, sort_keys=True).encode()
            found[name] = (
                "" if path.name == "report.html" and "target.json" in os.listdir(path.parent) else _hash(content)
            )
    return found


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def run(order: dict[str, Any]) -> dict[str, Any]:
    area, start = Path(order["area"]), Path(order["start"])
    os.chdir(area)

    def put_back() -> None:
        for path in area.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(start, area, dirs_exist_ok=True)

    put_back()
    old = state(area, hidden=True)
    code = import_what_is_used(order["command"], str(area), order["way"])
    result = {"old": old, "code": code, "new": state(area, hidden=True), "kills": []}
    for number in order["kills"]:
        put_back()
        if not os.WIFSIGNALED(forked(order["command"], number, str(area), order["way"])):
            break  # there are no more operations than that
        for name in order["readable"]:
            recover(name)
        seen = state(area, hidden=False)
        again = forked(order["command"], 0, str(area), order["way"])
        result["kills"].append({"number": number, "seen": seen, "again": again, "then": state(area, hidden=True)})
    return result


if __name__ == "__main__":
    print(json.dumps(run(json.loads(sys.argv[1]))))
