"""The files of a run folder: names, canonical bytes, hashes, and strict reading within limits. Standard library only.

Writing is `certiformer.disk`. Whoever reads data says in a table what it must be, and `entries` compares the two.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from certiformer.errors import BadInput

MODEL, CONFIG, TARGET, LEAVES, CERTIFICATE = (
    "model.safetensors", "config.json", "target.json", "leaves.bin", "certificate.json",
)  # fmt: skip
PROGRAM, CIRCUIT = "program.json", "circuit.json"  # of a compiled program, instead of target and leaves
BASIS = "basis.json"  # may be there, too: the directions that the coordinates of the circuit have become
DESCRIPTIONS = MACHINE, AUTOMATON, GATES, LEARNER, HITS = (  # what it was made from, or tried on; at most one of them
    "machine.json", "automaton.json", "gates.json", "learner.json", "hits.json",
)  # fmt: skip

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


def read_regular(path: Path, limit: int, *, links: bool) -> bytes:
    """The bytes of a regular file (never a device or a pipe) of at most `limit` bytes, read once.

    Links are followed only where `links` says so. Raises `BadInput` for anything else, `OSError` if nothing can be read.
    """
    if not links and path.is_symlink():
        raise BadInput(f"{path} is a symbolic link; the files of a run folder are read in the folder itself only")
    require_regular(path, os.stat(path), limit)  # before it is opened: opening a device may already do something
    # Without waiting for a writer, and without following a link that has just been put there.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if links else os.O_NOFOLLOW))
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        require_regular(path, status, limit)
        data = b""
        while part := file.read(max(status.st_size - len(data), 0) + 1):  # one more than there is, to see that it ends
            data = data + part if data else part
            if len(data) > limit:  # it grew
                raise _too_large(path, limit)
    return data


def require_regular(path: Path, status: os.stat_result, limit: int) -> None:
    if stat.S_ISDIR(status.st_mode):
        raise BadInput(f"{path} cannot be read: it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise BadInput(f"{path} cannot be read: it is not a regular file")
    if status.st_size > limit:
        raise _too_large(path, limit)


def _too_large(path: Path, limit: int) -> BadInput:
    return BadInput(f"{path} is larger than {limit:,} bytes, the most that is read of such a file")


def read_bytes(path: Path) -> bytes:
    """The content of a file of a run folder, within limits, with one sentence if it cannot be read.

    Links are refused: a folder says what it holds, not what lies elsewhere on the reader's disk.
    """
    try:
        data = read_regular(path, MAX_BYTES if path.name in _LARGE else SMALL_BYTES, links=False)
    except FileNotFoundError:
        raise BadInput(f"{path} does not exist; is {path.parent} the folder of a finished run?") from None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    if path.suffix == ".json":
        require_few_values(data, str(path))
    return data


def read_files(directory: str | Path) -> dict[str, bytes]:
    """Every file of a run folder that a claim can speak of, each read once: what is decided is decided from these bytes."""
    files: dict[str, bytes] = {}
    for name in FILES:
        if os.path.lexists(Path(directory) / name):
            files[name] = read_bytes(Path(directory) / name)
            if sum(map(len, files.values())) > MAX_TOTAL:
                limit = f"{MAX_TOTAL:,} bytes, the most that is read of a run folder"
                raise BadInput(f"{directory} holds more than {limit}")
    return files


def require_few_values(data: bytes, name: str) -> None:
    """Refuse JSON text that a parser could turn into more than `MAX_VALUES` values, before it is parsed: each of them, but
    for the first, follows a comma or an opening bracket."""
    if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
        raise BadInput(f"{name} holds more than {MAX_VALUES:,} values, the most that is read of such a file")


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


def entries(data: Any, rules: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The JSON object `data`, refused unless it has exactly the entries of `rules` and each is as its rule says.

    A rule is a type, the smallest integer, a function that says whether a value is right, or a tuple of alternatives:
    rules, or the very texts and truth values that are allowed.

    >>> entries({"kind": "relu", "width": 3}, {"kind": ("relu", "gelu"), "width": 1}, "ffn")["width"]
    3
    """
    if type(data) is not dict or set(data) != set(rules):
        raise BadInput(f"{name} does not have exactly the entries {', '.join(sorted(rules))}")
    for key, rule in rules.items():
        if not _fits(data[key], rule):
            raise BadInput(f"{name} has an entry {key} of the wrong type or value: {str(data[key])[:40]!r}")
    return data


def _fits(value: Any, rule: Any) -> bool:
    if type(rule) is tuple:
        return any(_fits(value, choice) for choice in rule)
    if isinstance(rule, type):
        return type(value) is rule
    if type(rule) is int:
        return type(value) is int and value >= rule
    if callable(rule):
        return bool(rule(value))
    return type(value) is type(rule) and value == rule
