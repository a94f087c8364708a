"""`--config FILE.toml`: the keys are the flags (`dry-run = true`), the values are defaults that flags override.

Decimals are read as text: `eps = 0.1` means one tenth, as on the command line.
"""

from __future__ import annotations

import difflib
import tomllib
import typing
from dataclasses import fields
from types import NoneType, UnionType
from typing import Any

from certiformer.cli.number_lists import is_number_list, spread
from certiformer.errors import BadInput
from certiformer.reading import read_text

_FRACTION = type("Fraction", (str,), {})  # the text of a TOML number with a decimal point


def read_config(kind: type, verb: str, path: str) -> dict[str, Any]:
    """The values of the file by field of the options `kind`; unknown keys and wrong types are refused."""
    try:
        data = tomllib.loads(read_text(path).replace("\r\n", "\n"), parse_float=_FRACTION)
    except OSError as problem:
        raise BadInput(f"--config {path} cannot be read: {problem.strerror}") from None
    except (ValueError, RecursionError) as problem:
        raise BadInput(f"--config {path} is not a TOML file: {problem}") from None
    names = {field.name for field in fields(kind)} - {"config"}
    types = typing.get_type_hints(kind)
    values = {}
    for key, value in data.items():
        name = key.replace("-", "_")
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            known = f"did you mean {near[0]!r}?" if near else f"{verb} knows {', '.join(sorted(names))}"
            raise BadInput(f"--config {path} has the unknown key {key!r}; {known}")
        values[name] = _converted(value, types[name], key, path)
    return values


def peek(path: str) -> dict[str, Any]:
    """What the file holds, or nothing when it cannot be read: `read_config` says why."""
    try:
        return tomllib.loads(read_text(path).replace("\r\n", "\n"))
    except (BadInput, OSError, ValueError, RecursionError):
        return {}


def _converted(value: Any, wanted: Any, key: str, path: str) -> Any:
    """A TOML value as the type of its field."""
    if typing.get_origin(wanted) in (typing.Union, UnionType):
        wanted = next(kind for kind in typing.get_args(wanted) if kind is not NoneType)
    if typing.get_origin(wanted) is typing.Literal:
        choices = typing.get_args(wanted)
        if value in choices and type(value) in map(type, choices):
            return value
        raise BadInput(f"--config {path}: {key} is one of {', '.join(map(str, choices))}, not {value!r}")
    if is_number_list(wanted):
        return _numbers(value, typing.get_args(wanted)[0], key, path)
    if typing.get_origin(wanted) is tuple:  # a flag that may be repeated
        if isinstance(value, list) and all(type(each) in (str, int, _FRACTION) for each in value):
            return tuple(map(str, value))
        raise BadInput(f"--config {path}: {key} must be a list of texts, not {value!r}")
    if wanted is str and type(value) in (str, int, _FRACTION):
        return str(value)
    if wanted is float and type(value) in (int, _FRACTION):
        return float(str(value))  # as on the command line, where 400 digits are infinite
    if type(value) is wanted:
        return value
    words = {str: "a text", float: "a number", int: "a whole number", bool: "true or false"}
    raise BadInput(f"--config {path}: {key} must be {words[wanted]}, not {value!r}")


def _numbers(value: Any, wanted: type, key: str, path: str) -> tuple[Any, ...]:
    """A list of numbers, or the text of one as on the command line (`"1:16"`)."""
    parts = value if isinstance(value, list) else [value]
    texts = [text for part in parts for text in (spread(part) if isinstance(part, str) else [part])]
    try:
        if any(isinstance(text, bool | list | dict) for text in texts):
            raise ValueError
        return tuple(wanted(str(text)) for text in texts)
    except ValueError:
        words = "whole numbers" if wanted is int else "numbers"
        raise BadInput(f"--config {path}: {key} must be a list of {words}, not {value!r}") from None
