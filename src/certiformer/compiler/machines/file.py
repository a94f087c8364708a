"""Machine files: a small TOML file becomes a `Machine`, and every mistake in it one sentence.

    blank = "0"
    start = "A"
    halt = ["H"]
    transitions = [["A", "0", "1", "R", "B"], ...]   # state, read, write, move (L, R or S), next state

Two entries are optional: `symbols`, the alphabet (otherwise the blank and every symbol that a transition names), and
`missing = "halt"`, which lets the machine stop where no transition is given (otherwise that is refused).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from certiformer.errors import BadInput
from certiformer.target.machine import Machine

_NEEDED, _OPTIONAL = ("blank", "start", "halt", "transitions"), ("symbols", "missing")


def read_machine(path: str | Path) -> Machine:
    """The machine of a TOML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text file") from None
    try:
        return parse_machine(text)
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from None


def parse_machine(text: str) -> Machine:
    """The machine that TOML text describes.

    >>> parse_machine('blank = "0"\\nstart = ["A", "B"]\\nhalt = []\\ntransitions = []')
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: a machine has one start state, not 2 (A, B)
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"this is not TOML: {error}") from None
    for name in _NEEDED:
        if name not in data:
            raise BadInput(f"the machine file has no entry {name!r}; it needs {', '.join(_NEEDED)}")
    for name in data:
        if name not in _NEEDED + _OPTIONAL:
            raise BadInput(f"the machine file has an entry {name!r}; known are {', '.join(_NEEDED + _OPTIONAL)}")
    if isinstance(data["start"], list):
        states = ", ".join(map(str, data["start"]))
        raise BadInput(f"a machine has one start state, not {len(data['start'])} ({states})")
    start, blank = _text(data["start"], "start"), _text(data["blank"], "blank")
    rows = tuple(_row(row, number) for number, row in enumerate(_list(data["transitions"], "transitions"), 1))
    halting = tuple(_text(state, "halt") for state in _list(data["halt"], "halt"))
    # In order of appearance, so that the same file always gives the same weights.
    states = dict.fromkeys([start, *(name for row in rows for name in (row[0], row[4])), *halting])
    if "symbols" in data:
        symbols = [_text(symbol, "symbols") for symbol in _list(data["symbols"], "symbols")]
        if blank not in symbols:
            raise BadInput(f"the blank {blank!r} is not in the alphabet {', '.join(symbols)}")
        if len(set(symbols)) != len(symbols):
            raise BadInput("the alphabet lists a symbol twice")
        found = dict.fromkeys([blank, *symbols])
    else:
        found = dict.fromkeys([blank, *(symbol for row in rows for symbol in row[1:3])])
    missing = _text(data.get("missing", "refuse"), "missing")
    if len(set(halting)) != len(halting):
        raise BadInput("halt lists a state twice")
    return Machine(tuple(found), tuple(states), halting, rows, missing)


def notes(machine: Machine) -> list[str]:
    """What is worth saying about a machine that is nevertheless sound.

    >>> notes(parse_machine('blank = "0"\\nstart = "A"\\nhalt = ["H"]\\ntransitions = [["A", "0", "0", "R", "A"]]'))
    ['no run from A can enter the state H', 'no transition leads to a halting state, so this machine never stops there']
    """
    said = []
    if machine.unreachable:
        names = ", ".join(machine.unreachable)
        said.append(f"no run from {machine.start} can enter the state{'s' * (len(machine.unreachable) > 1)} {names}")
    if machine.halting and set(machine.halting) <= set(machine.unreachable):
        said.append("no transition leads to a halting state, so this machine never stops there")
    return said


def split_symbols(text: str, machine: Machine) -> tuple[str, ...]:
    """The symbols of an input: separated by blanks; where all are single letters they may stand together.

    >>> ones = parse_machine('blank="0"\\nstart="A"\\nhalt=[]\\ntransitions=[["A","0","1","R","A"],["A","1","1","R","A"]]')
    >>> split_symbols("1 0 1", ones), split_symbols("101", ones), split_symbols("", ones)
    (('1', '0', '1'), ('1', '0', '1'), ())
    """
    parts = text.split()
    if len(parts) == 1 and parts[0] not in machine.symbols and all(len(symbol) == 1 for symbol in machine.symbols):
        parts = list(parts[0])
    return machine.check_symbols(parts)


def _text(value: Any, name: str) -> str:
    if type(value) is not str:
        raise BadInput(f"{name} holds {value!r}, which is not a text in quotation marks")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if type(value) is not list:
        raise BadInput(f"{name} must be a list, not {value!r}")
    return value


def _row(row: Any, number: int) -> tuple[str, str, str, str, str]:
    if type(row) is not list or len(row) != 5:
        raise BadInput(f"transition {number} is not a list of five: state, read, write, move, next state")
    return tuple(_text(part, f"transition {number}") for part in row)  # pyright: ignore[reportReturnType]
