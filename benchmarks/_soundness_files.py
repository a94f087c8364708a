"""Malformed folders: whatever the bytes are, the answer is a verdict or one sentence.

A batch runs in a process of its own, under a limit of memory, with an alarm for each folder and an audit hook on every
file that is opened. Wrong is: an exception that is not a refusal (the command would end with code 70), more than 20 s,
a process that grew beyond 1 GiB, and a file opened outside of the folder (what Python and certiformer load of their own
does not count).
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import _soundness_bases as bases
from _soundness_forge import canonical, sealed

SECONDS, MEMORY, BATCH = 20, 2**30, 40
VERBS = ("check", "check", "check", "show", "show", "audit", "compile", "run", "prove")  # as often as they are listed
HUGE = ("9" * 5000, 10**400, 1e308, -1, 2**63, 1e-320, "1e400000", "1/0", "nan", "\x00", "\u202e\x1b[2J", "0" * 100_000)
ODD = (None, True, False, [], {}, [[]], "", "x", 0, -1, 1.5, {"a": 1}, [None] * 3)


class TooLong(BaseException):
    """The alarm rang."""


def mangled(rng: random.Random, files: dict[str, bytes]) -> tuple[dict[str, object], str]:
    """A folder with something wrong: name -> bytes, or a function that makes something else there."""
    files: dict[str, object] = dict(files)
    name = rng.choice(list(files))
    kind = rng.choice(
        ("cut", "flip", "json", "json", "json", "json", "header", "grow", "swap", "gone", "special", "deep")
    )
    raw = files[name]
    if kind == "cut":
        files[name] = raw[: rng.randrange(len(raw) + 1)]
    elif kind == "flip" and raw:
        data = bytearray(raw)
        for _ in range(rng.choice((1, 1, 4, 64))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        files[name] = bytes(data)
    elif kind == "json" and name.endswith(".json"):
        data = json.loads(raw)
        for _ in range(rng.choice((1, 1, 2))):
            data = bend_json(rng, data)
        files[name] = _dumped(name, data)
    elif kind == "header":
        name = "model.safetensors"
        raw = files[name]
        size = int.from_bytes(raw[:8], "little")
        header = bend_json(rng, json.loads(raw[8 : 8 + size]))
        text = json.dumps(header).encode()
        files[name] = len(text).to_bytes(8, "little") + text + raw[8 + size :]
    elif kind == "grow":
        files[name] = raw + bytes(rng.randrange(256) for _ in range(rng.choice((1, 8, 1000))))
    elif kind == "swap":
        files[name] = files[rng.choice(list(files))]
    elif kind == "gone":
        del files[name]
    elif kind == "deep" and name.endswith(".json"):
        files[name] = (b"[" * 100_000) if rng.random() < 0.5 else b'{"a":' * 50_000 + b"1" + b"}" * 50_000
    elif kind == "special":
        special = rng.choice(("folder", "fifo", "device", "outside", "sparse"))
        files[name] = special
        return files, f"{name} is a {special}"
    if rng.random() < 0.8:
        files = resealed(files)
    return files, f"{kind} in {name}"


def _dumped(name: str, data) -> bytes:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True) + "\n"
    if name in ("certificate.json", "config.json"):
        try:
            return canonical(data)
        except ValueError:
            return text.encode()
    return text.encode()


def resealed(files: dict) -> dict:
    """Every hash anew where there is still something to seal."""
    try:
        certificate = json.loads(files["certificate.json"])
        return sealed(files, certificate)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        return files


def bend_json(rng: random.Random, data):
    """One place of some JSON data replaced, removed, repeated or renamed."""
    places = []

    def walk(part, depth: int = 0) -> None:
        if depth > 30:
            return
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, entry in list(items):
            places.append((part, key))
            walk(entry, depth + 1)

    walk(data)
    if not places:
        return rng.choice(ODD)
    part, key = rng.choice(places)
    kind = rng.random()
    if kind < 0.35:
        part[key] = rng.choice(ODD)
    elif kind < 0.6:
        part[key] = rng.choice(HUGE)
    elif kind < 0.7:
        del part[key]
    elif kind < 0.8 and isinstance(part, list):
        part[key:key] = [part[key]] * rng.choice((1, 2, 1000))
    elif kind < 0.9 and isinstance(part[key], (int, float)) and not isinstance(part[key], bool):
        part[key] = rng.choice((part[key] + 1, part[key] - 1, -part[key], part[key] * 1000, float(part[key])))
    elif isinstance(part, dict):
        part[rng.choice(("", "rule", "kind", "\x1b[0m"))] = part.pop(key)
    else:
        part[key] = [part[key]]
    return data


def put(folder: Path, files: dict[str, object], outside: Path) -> None:
    folder.mkdir()
    for name, content in files.items():
        path = folder / name
        if content == "folder":
            path.mkdir()
        elif content == "fifo":
            os.mkfifo(path)
        elif content == "device":
            path.symlink_to("/dev/zero")
        elif content == "outside":
            path.symlink_to(outside)
        elif content == "sparse":
            with path.open("wb") as stream:
                stream.truncate(3 * 2**30)
        else:
            path.write_bytes(content)


def batch(names: list[str], home: Path, first: int, count: int, seed: int) -> list[str]:
    """Some malformed folders in this process; what was wrong."""
    from certiformer.errors import BadInput
    from certiformer.kernel.check import check

    opened: list[str] = []
    scratch = Path(tempfile.mkdtemp(prefix="certiformer-malformed-"))
    outside = scratch / "outside.json"
    outside.write_text("{}")
    _warm(names, home, check)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    resource.setrlimit(resource.RLIMIT_AS, (before + 8 * MEMORY, resource.RLIM_INFINITY))

    def audit(event: str, arguments: tuple) -> None:
        if event == "open" and arguments and isinstance(arguments[0], str):
            opened.append(arguments[0])

    def ring(*_: object) -> None:
        raise TooLong

    sys.addaudithook(audit)
    signal.signal(signal.SIGALRM, ring)
    own = [str(Path(p).resolve()) for p in (sys.prefix, sys.base_prefix, Path(__file__).parents[1], "/proc", "/usr")]
    own += [str(Path(p).resolve()) for p in sys.path if p]
    wrong = []
    for number in range(first, first + count):
        rng = random.Random(f"{seed}/malformed/{number}")
        kind, verb = rng.choice(names), rng.choice(VERBS)
        files, how = mangled(rng, bases.read(home / kind)) if verb != "compile" else described(rng)
        how = how if verb == "check" else f"{verb}, {how}"
        folder = scratch / f"run{number}"
        put(folder, files, outside)
        opened.clear()
        said = ""
        try:
            try:
                signal.alarm(SECONDS)
                if verb == "check":
                    said = "" if check(folder, workers=1).outcome else "was answered without an outcome"
                else:
                    said = commanded(arguments_of(rng, verb, folder, scratch))
            except (BadInput, OSError):
                pass  # one sentence and code 2
            except MemoryError:
                said = "needs more memory than the limit"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"[:120]
            signal.alarm(0)
        except TooLong:  # also when it rang during something that cannot be interrupted
            said = f"took more than {SECONDS} s"
        touched = {os.path.realpath(path) for path in list(opened)}
        allowed = own if verb == "check" else [*own, str(scratch.resolve())]  # the other verbs write beside the folder
        foreign = [
            p for p in touched if not p.startswith((str(folder.resolve()), *allowed)) or p == str(outside.resolve())
        ]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        if foreign and not said:
            said = f"opened {foreign[0]}"
        if peak - before > MEMORY and not said:
            said = f"grew by {(peak - before) / 2**20:.0f} MiB"
        before = max(before, peak)
        if said:
            wrong.append(f"{kind}, {how}, number {number}: {said}")
        shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(scratch, ignore_errors=True)
    return wrong


def described(rng: random.Random) -> tuple[dict[str, object], str]:
    """A description of a machine, an automaton or a circuit as people write it, with something wrong."""
    name = rng.choice(("machine.toml", "automaton.toml", "circuit.toml"))
    text = {"machine.toml": bases.MACHINE, "automaton.toml": bases.AUTOMATON, "circuit.toml": bases.CIRCUIT}[name]
    kind, data = rng.choice(("cut", "flip", "line", "word", "grow")), bytearray(text.encode())
    if kind == "cut":
        data = data[: rng.randrange(len(data))]
    elif kind == "flip":
        for _ in range(rng.choice((1, 4))):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "line":
        lines = text.splitlines(keepends=True)
        place = rng.randrange(len(lines))
        lines[place : place + 1] = [lines[place]] * rng.choice((0, 2, 1000))
        data = "".join(lines).encode()
    elif kind == "word":
        words = text.split('"')
        words[rng.randrange(1, len(words), 2)] = rng.choice(
            ("", "x" * 10_000, "\x1b[2J", "\u202e", "H", "0", "../../etc/passwd", " ")
        )
        data = '"'.join(words).encode()
    else:
        data += bytes(rng.randrange(256) for _ in range(100))
    return {name: bytes(data)}, f"{kind} in {name}"


def arguments_of(rng: random.Random, verb: str, folder: Path, scratch: Path) -> list[str]:
    """The command line of one verb on a folder."""
    if verb == "compile":
        (path,) = folder.iterdir()
        return [verb, path.stem, str(path), "--out", str(scratch / "made"), "--force"]
    if verb == "audit":
        model = folder / "model.safetensors"
        extra = rng.choice(
            ([], ["--out", str(folder / "config.json")], ["--json"], ["--out", str(scratch / "page.html"), "--force"])
        )
        return [verb, str(rng.choice((folder, model))), *extra]
    if verb == "prove":  # of seven numbers, which none of the models reads: it ends when the model has been read
        box = ["--on", "[0,1]^7", "--eps", "0.5", "--level", "1"]
        return [verb, str(folder), "x1*x7", *box, "--out", str(scratch / "made"), "--force"]
    if verb == "run":
        return [verb, str(folder), rng.choice(("0 1", "a b", "", "\x1b[2J", "0 " * 5000))]
    return [verb, str(folder), *rng.choice(([], ["--json"]))]


def commanded(arguments: list[str]) -> str:
    """What is wrong with how a command ended; whatever it prints is thrown away."""
    import contextlib
    import io

    from certiformer.cli.main import main

    told = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(told):
        code = main(arguments)
    if code in (0, 1, 2, 3):
        return ""
    return f"ended with code {code}: {told.getvalue().strip()[-200:]}"


def _warm(names: list[str], home: Path, check) -> None:
    """Loads every module that a check may load, so that imports do not count as reads."""
    commanded(["prove", "/nonexistent", "x1", "--on", "[0,1]", "--eps", "1"])
    for name in names:
        if check(home / name, workers=1).outcome == "refused":
            raise RuntimeError(f"the honest folder {name} is refused")


def run(names: list[str], home: Path, count: int, seed: int, tell: Callable[[str], None]) -> dict:
    """All batches, one process after the other: they measure time and memory."""
    wrong: list[str] = []
    for first in range(0, count, BATCH):
        size = min(BATCH, count - first)
        command = [sys.executable, __file__, ",".join(names), str(home), str(first), str(size), str(seed)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        lines = done.stdout.strip().splitlines()
        if done.returncode or not lines:
            wrong.append(f"the numbers {first} to {first + size - 1} ended the process with code {done.returncode}")
        else:
            wrong += json.loads(lines[-1])
        tell(f"{first + size} of {count} malformed folders, {len(wrong)} wrong")
    return {"folders": count, "wrong": wrong}


if __name__ == "__main__":
    given, place, start, size, seed_ = sys.argv[1:]
    print(json.dumps(batch(given.split(","), Path(place), int(start), int(size), int(seed_))))
