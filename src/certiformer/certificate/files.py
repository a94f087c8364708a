"""Canonical bytes, hashes and atomic writes.

A file either has its final content or does not exist under its name: it is written under a temporary name in the same
folder, flushed to the disk, and renamed. A killed process leaves at most a temporary file behind.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, NoReturn

from certiformer.errors import BadInput

MODEL, CONFIG, TARGET, LEAVES, CERTIFICATE = (
    "model.safetensors",
    "config.json",
    "target.json",
    "leaves.bin",
    "certificate.json",
)
PROGRAM, CIRCUIT = "program.json", "circuit.json"  # of a compiled program, instead of target and leaves
BASIS = "basis.json"  # may be there, too: the directions that the coordinates of the circuit have become
# What a transformer that computes was made from; a folder has at most one of them.
DESCRIPTIONS = MACHINE, AUTOMATON, GATES, LEARNER = "machine.json", "automaton.json", "gates.json", "learner.json"


def canonical(data: Any) -> bytes:
    """The one byte string of JSON data: sorted keys, one-space indent, final newline, no NaN.

    >>> canonical({"b": 1, "a": [True]})
    b'{\\n "a": [\\n  true\\n ],\\n "b": 1\\n}\\n'
    """
    text = json.dumps(data, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)
    return (text + "\n").encode("ascii")


def digest(data: bytes) -> str:
    """The SHA-256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def read_bytes(path: Path) -> bytes:
    """The content of a file of a run folder, with one sentence if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; is {path.parent} the folder of a finished run?") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None


def description_of(directory: str | Path) -> str | None:
    """The name of the file that describes what the transformer of a folder computes, or None where there is none."""
    return next((name for name in DESCRIPTIONS if (Path(directory) / name).is_file()), None)


def parse_json(data: bytes, name: str) -> Any:
    """JSON data of a file, refusing NaN, infinities, repeated keys and over-deep nesting."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not valid JSON: {error}") from None


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` so that a crash at any moment leaves the old file, the new file, or none."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def check_place(folder: Path, mark: str, known: Collection[str], what: str, force: bool) -> None:
    """Refuse a place that is taken by something else than an earlier folder of the same kind.

    Such a folder has the file `mark` and no other names than `known`; `what` it is goes into the sentence.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; a {what} is a folder")
    present = {path.name for path in folder.iterdir()} if folder.exists() else set()
    if present and (mark not in present or present - {mark, *known}):
        raise BadInput(f"{folder} is not empty and not an earlier {what}; choose another --out")
    if present and not force:
        raise BadInput(f"{folder} already holds a {what}; add --force to replace it or choose another --out")


def put_folder(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write the files under a temporary name and move the folder into place, whole or not at all."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        staged = scratch / "new"
        staged.mkdir()
        for name, data in files.items():
            write_atomically(staged / name, data)
        if folder.exists():
            os.replace(folder, scratch / "old")
        os.replace(staged, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of this format")


def _finite(text: str) -> float:
    """JSON's grammar has `1e999`, which Python would read as infinity."""
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key occurs twice")
    return result
