"""Canonical bytes, hashes and atomic writes.

A file either has its final content or does not exist under its name: it is written under a temporary name in the same
folder, flushed to the disk, and renamed. A killed process leaves at most a temporary file behind.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
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
