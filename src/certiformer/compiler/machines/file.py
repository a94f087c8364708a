"""Machine files: a small TOML file becomes a `Machine`, and every mistake in it one sentence.

    blank = "0"
    start = "A"
    halt = ["H"]
    transitions = [["A", "0", "1", "R", "B"], ...]   # state, read, write, move (L, R or S), next state

Two entries are optional: `symbols`, the alphabet (otherwise the blank and every symbol that a transition names), and
`missing = "halt"`, which lets the machine stop where no transition is given (otherwise that is refused).
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

from certiformer.compiler.text_file import (
    as_text,
    as_texts,
    parse_entries,
    read_described,
    split_symbols_of,
    start_state,
    transition_rows,
)
from certiformer.errors import BadInput
from certiformer.kernel.meanings.machine import Machine

_NEEDED, _OPTIONAL = ("blank", "start", "halt", "transitions"), ("symbols", "missing")


def read_machine(path: str | Path) -> Machine:
    """The machine of a TOML file."""
    return read_described(path, parse_machine)


def parse_machine(text: str) -> Machine:
    """The machine that TOML text describes.

    >>> parse_machine('blank = "0"\\nstart = ["A", "B"]\\nhalt = []\\ntransitions = []')
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: a machine has one start state, not 2 (A, B)
    """
    data = parse_entries(text, "machine", _NEEDED, _OPTIONAL)
    start, blank = start_state(data, "a machine"), as_text(data["blank"], "blank")
    rows = transition_rows(data["transitions"], 5, "five: state, read, write, move, next state")
    halting = as_texts(data["halt"], "halt")
    # In order of appearance, so that the same file always gives the same weights.
    states = dict.fromkeys([start, *(name for row in rows for name in (row[0], row[4])), *halting])
    if "symbols" in data:
        symbols = as_texts(data["symbols"], "symbols")
        if blank not in symbols:
            raise BadInput(f"the blank {blank!r} is not in the alphabet {', '.join(symbols)}")
        if len(set(symbols)) != len(symbols):
            raise BadInput("the alphabet lists a symbol twice")
        found = dict.fromkeys([blank, *symbols])
    else:
        found = dict.fromkeys([blank, *(symbol for row in rows for symbol in row[1:3])])
    missing = as_text(data.get("missing", "refuse"), "missing")
    if len(set(halting)) != len(halting):
        raise BadInput("halt lists a state twice")
    fives = cast("tuple[tuple[str, str, str, str, str], ...]", rows)
    return Machine(tuple(found), tuple(states), halting, fives, missing)


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
    return machine.check_symbols(split_symbols_of(text, machine.symbols))
