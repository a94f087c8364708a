"""The names, canonical bytes and hashes of the files of a run folder, and strict reading within limits.

Writing is `certiformer.disk`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from pathlib import Path
from typing import Any, NoReturn

from certiformer.errors import BadInput
from certiformer.reading import read_regular

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

FILES = (CERTIFICATE, CONFIG, MODEL, TARGET, LEAVES, PROGRAM, CIRCUIT, BASIS, *DESCRIPTIONS)

# What is read of a folder that anybody may have, so that reading it takes less than a gigabyte of memory. A number of a
# model takes about 80 bytes in balls, a value of a JSON file up to 400 until it has been compared with its canonical form.
MAX_BYTES = 64 << 20
SMALL_BYTES = 16 << 20  # the certificate, the configuration and descriptions, which hold no tables
MAX_VALUES = 2_000_000  # of one JSON file
MAX_NUMBERS = 8_000_000  # of one model
MAX_TOTAL = 128 << 20  # of one folder
_LARGE = (MODEL, TARGET, LEAVES, PROGRAM, CIRCUIT, BASIS)


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
    """The content of a file of a run folder, within limits, with one sentence if it cannot be read.

    Links are refused: a folder says what it holds, not what lies elsewhere on the reader's disk.
    """
    limit = MAX_BYTES if path.name in _LARGE else SMALL_BYTES
    try:
        data = read_regular(path, limit, links=False)
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    if path.suffix == ".json":
        require_few_values(data, str(path))
    return data


def missing_file(path: Path) -> BadInput:
    """What is said of a file that is not there."""
    return BadInput(f"{path} does not exist; is {path.parent} the folder of a finished run?")


def require_few_values(data: bytes, name: str) -> None:
    """Refuse JSON text that a parser could turn into more than `MAX_VALUES` values, before it is parsed: each of them, but
    for the first, follows a comma or an opening bracket."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise BadInput(f"{name} holds more than {MAX_VALUES:,} values, the most that is read of such a file")


def read_files(directory: str | Path) -> dict[str, bytes]:
    """Every file of a run folder that a claim can speak of, each read once: what is decided is decided from these bytes."""
    folder, files = Path(directory), {}
    for name in FILES:
        if os.path.lexists(folder / name):
            files[name] = read_bytes(folder / name)
            if sum(map(len, files.values())) > MAX_TOTAL:
                raise BadInput(
                    f"{directory} holds more than {MAX_TOTAL:,} bytes, the most that is read of a run folder"
                )
    return files


def parse_json(data: bytes, name: str) -> Any:
    """JSON data of a file, refusing NaN, infinities, repeated keys, over-deep nesting and too many values."""
    require_few_values(data, name)
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{name} is not valid JSON: {error}") from None


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
