"""Text files that describe a computation: read, as TOML, with entries of the right kind; every mistake is one sentence."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any, TypeVar

from certiformer.errors import BadInput
from certiformer.reading import read_text

Described = TypeVar("Described")


def read_described(path: str | Path, parse: Callable[[str], Described]) -> Described:
    """What `parse` makes of the text of a file; its complaints are those about this file."""
    try:
        text = read_text(path).replace("\r\n", "\n")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text file") from None
    try:
        return parse(text)
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """The entries of TOML text."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"this is not TOML: {error}") from None
    except ValueError:  # of `int`, which reads no more digits than Python allows
        raise BadInput("a number in it has thousands of digits") from None
    except RecursionError:
        raise BadInput("its lists or tables are nested too deeply") from None


def parse_entries(text: str, what: str, needed: tuple[str, ...], optional: tuple[str, ...]) -> dict[str, Any]:
    """The entries of TOML text: all that are needed, and none but those and the optional ones.

    >>> parse_entries("strat = 1", "automaton", ("start",), ())
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the automaton file has no entry 'start'; it needs start
    """
    data = parse_toml(text)
    for name in needed:
        if name not in data:
            raise BadInput(f"the {what} file has no entry {name!r}; it needs {', '.join(needed)}")
    for name in data:
        if name not in needed + optional:
            raise BadInput(f"the {what} file has an entry {name!r}; known are {', '.join(needed + optional)}")
    return data


def start_state(data: dict[str, Any], owner: str) -> str:
    """The entry `start`; `owner` has only one such state."""
    if isinstance(data["start"], list):
        states = ", ".join(map(str, data["start"]))
        raise BadInput(f"{owner} has one start state, not {len(data['start'])} ({states})")
    return as_text(data["start"], "start")


def as_text(value: Any, name: str) -> str:
    """The value, which must be a text."""
    if type(value) is not str:
        raise BadInput(f"{name} holds {value!r}, which is not a text in quotation marks")
    return value


def as_list(value: Any, name: str) -> list[Any]:
    """The value, which must be a list."""
    if type(value) is not list:
        raise BadInput(f"{name} must be a list, not {value!r}")
    return value


def as_texts(value: Any, name: str) -> tuple[str, ...]:
    """The value, which must be a list of texts."""
    return tuple(as_text(part, name) for part in as_list(value, name))


def transition_rows(value: Any, size: int, meaning: str) -> tuple[tuple[str, ...], ...]:
    """The rows of `transitions`: lists of `size` texts; `meaning` says what they are.

    >>> transition_rows([["a", "b"]], 3, "three: state, symbol, next state")
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: transition 1 is not a list of three: state, symbol, next state
    """
    rows = []
    for number, row in enumerate(as_list(value, "transitions"), 1):
        if type(row) is not list or len(row) != size:
            raise BadInput(f"transition {number} is not a list of {meaning}")
        rows.append(tuple(as_text(part, f"transition {number}") for part in row))
    return tuple(rows)


def split_symbols_of(text: str, symbols: Collection[str]) -> list[str]:
    """Symbols separated by blanks; where all known ones are single letters they may stand together.

    >>> split_symbols_of("1 0", "01"), split_symbols_of("10", "01"), split_symbols_of("10", ("1", "10"))
    (['1', '0'], ['1', '0'], ['10'])
    """
    parts = text.split()
    if len(parts) == 1 and parts[0] not in symbols and all(len(symbol) == 1 for symbol in symbols):
        return list(parts[0])
    return parts
