"""What a page may ask: every request is an object with known entries of known kinds, all short."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

from certiformer.errors import BadInput

Reader = Callable[[Any, str], Any]
LONGEST_TEXT = 4_000
RUN = re.compile(r"[0-9a-f]{32}")


def read_object(body: bytes) -> dict[str, Any]:
    """The JSON object of a request.

    >>> read_object(b'{"a": 1}')
    {'a': 1}
    """
    try:
        data = json.loads(body.decode("utf-8"), parse_constant=_no_number)
    except RecursionError:
        raise BadInput("the request is nested too deeply") from None
    except ValueError:
        raise BadInput("the request is not JSON") from None
    if type(data) is not dict:
        raise BadInput("the request is not an object")
    return data


def read_entries(data: dict[str, Any], **readers: Reader) -> dict[str, Any]:
    """The entries of an object: those that `readers` name, and no others.

    >>> read_entries({"n": 3}, n=whole(1, 5))
    {'n': 3}
    """
    for name in data:
        if name not in readers:
            raise BadInput(f"the request has an entry that is not known here; known are {', '.join(readers)}")
    return {name: reader(data.get(name), name) for name, reader in readers.items()}


def text(longest: int = LONGEST_TEXT, lines: bool = False) -> Reader:
    """A text without control characters; `lines` lets it have several lines."""

    def read(value: Any, name: str) -> str:
        if type(value) is not str:
            raise BadInput(f"{name} is a text")
        if len(value) > longest:
            raise BadInput(f"{name} is a text of at most {longest:,} characters")
        plain = value.replace("\n", "").replace("\t", "") if lines else value
        if not plain.isprintable():
            raise BadInput(f"{name} holds a character that cannot be printed")
        return value

    return read


def choice(*known: str) -> Reader:
    """One of a few words."""

    def read(value: Any, name: str) -> str:
        if value not in known or type(value) is not str:
            raise BadInput(f"{name} is one of {', '.join(known)}")
        return value

    return read


def whole(least: int, most: int) -> Reader:
    """A whole number within limits."""

    def read(value: Any, name: str) -> int:
        if type(value) is not int or not least <= value <= most:
            raise BadInput(f"{name} is a whole number from {least:,} to {most:,}")
        return value

    return read


def number(least: float, most: float) -> Reader:
    """A number within limits."""

    def read(value: Any, name: str) -> float:
        if type(value) not in (int, float) or not math.isfinite(value) or not least <= value <= most:
            raise BadInput(f"{name} is a number from {least:g} to {most:g}")
        return float(value)

    return read


def flag(value: Any, name: str) -> bool:
    """A truth value."""
    if type(value) is not bool:
        raise BadInput(f"{name} is true or false")
    return value


def run_name(value: Any, name: str) -> str:
    """The name that the server gave to a run or an upload."""
    if type(value) is not str or RUN.fullmatch(value) is None:
        raise BadInput(f"{name} is the name of a run of this server")
    return value


def optional(reader: Reader) -> Reader:
    """What may be left out."""
    return lambda value, name: None if value is None else reader(value, name)


def _no_number(word: str) -> float:
    raise ValueError(word)
