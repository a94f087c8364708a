"""Automaton files: a small TOML file becomes an `Automaton`, and every mistake in it one sentence.

    start = "even"
    accept = ["odd"]
    transitions = [["even", "1", "odd"], ...]   # state, symbol, next state

Three entries are optional: `alphabet` and `states` (otherwise what the transitions name, in order of appearance), and
`missing = "reject"`, which sends every pair without a transition to one more state that never accepts (otherwise such a
gap is refused, since it is far more often a forgotten line than an intention).
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from certiformer.errors import BadInput
from certiformer.target.automaton import Automaton

_NEEDED, _OPTIONAL = ("start", "accept", "transitions"), ("alphabet", "states", "missing")
MISSING = ("refuse", "reject")


def read_automaton(path: str | Path) -> Automaton:
    """The automaton of a TOML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path} is not a text file") from None
    try:
        return parse_automaton(text)
    except BadInput as problem:
        raise BadInput(f"{path}: {problem}") from None


def parse_automaton(text: str) -> Automaton:
    """The automaton that TOML text describes.

    >>> parse_automaton('start = ["A", "B"]\\naccept = []\\ntransitions = []')
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: an automaton has one start state, not 2 (A, B)
    """
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"this is not TOML: {error}") from None
    for name in _NEEDED:
        if name not in data:
            raise BadInput(f"the automaton file has no entry {name!r}; it needs {', '.join(_NEEDED)}")
    for name in data:
        if name not in _NEEDED + _OPTIONAL:
            raise BadInput(f"the automaton file has an entry {name!r}; known are {', '.join(_NEEDED + _OPTIONAL)}")
    if isinstance(data["start"], list):
        states = ", ".join(map(str, data["start"]))
        raise BadInput(f"an automaton has one start state, not {len(data['start'])} ({states})")
    start = _text(data["start"], "start")
    accepting = tuple(_text(state, "accept") for state in _list(data["accept"], "accept"))
    rows = tuple(_row(row, number) for number, row in enumerate(_list(data["transitions"], "transitions"), 1))
    # In order of appearance, so that the same file always gives the same weights.
    named = dict.fromkeys([start, *(name for row in rows for name in (row[0], row[2])), *accepting])
    states = _listed(data, "states", tuple(named))
    symbols = _listed(data, "alphabet", tuple(dict.fromkeys(row[1] for row in rows)))
    if not symbols:
        raise BadInput("the alphabet is empty; list at least one symbol under alphabet or use one in a transition")
    missing = _text(data.get("missing", "refuse"), "missing")
    if missing not in MISSING:
        raise BadInput(f"missing is one of {', '.join(MISSING)}, not {missing!r}")
    return completed(symbols, states, start, accepting, rows, missing == "reject")


def completed(
    symbols: tuple[str, ...],
    states: tuple[str, ...],
    start: str,
    accepting: tuple[str, ...],
    rows: tuple[tuple[str, str, str], ...],
    reject: bool,
) -> Automaton:
    """The automaton with these rows; gaps lead to one more state that rejects for ever, or are refused."""
    given = {(state, symbol) for state, symbol, _ in rows}
    gaps = [(state, symbol) for state in states for symbol in symbols if (state, symbol) not in given]
    if gaps and not reject:
        state, symbol = gaps[0]
        more = f" (and {len(gaps) - 1:,} more are missing)" if len(gaps) > 1 else ""
        raise BadInput(
            f'there is no transition for state {state} reading {symbol}{more}; add it, or write missing = "reject" to'
            " reject every word that comes there"
        )
    if gaps:
        dead = "dead"
        while dead in states:
            dead += "'"
        rows += tuple((*gap, dead) for gap in gaps) + tuple((dead, symbol, dead) for symbol in symbols)
        states += (dead,)
    return Automaton(symbols, states, start, accepting, rows)


def notes(automaton: Automaton) -> list[str]:
    """What is worth saying about an automaton that is nevertheless sound.

    >>> notes(parse_automaton('start = "A"\\naccept = []\\ntransitions = [["A", "0", "A"], ["B", "0", "A"]]'))
    ['no word leads to the state B', 'no state that a word leads to accepts, so every word is rejected']
    """
    said = []
    lost = automaton.unreachable
    if lost:
        said.append(f"no word leads to the state{'s' * (len(lost) > 1)} {', '.join(lost)}")
    reached = set(automaton.states) - set(lost)
    if not reached & set(automaton.accepting):
        said.append("no state that a word leads to accepts, so every word is rejected")
    if reached <= set(automaton.accepting):
        said.append("every state that a word leads to accepts, so every word is accepted")
    return said


def split_word(text: str, automaton: Automaton) -> tuple[str, ...]:
    """The symbols of a word: separated by blanks; where all are single letters they may stand together.

    >>> twice = parse_automaton('start = "A"\\naccept = []\\ntransitions = [["A", "0", "A"], ["A", "1", "A"]]')
    >>> split_word("1 0 1", twice), split_word("101", twice), split_word("", twice)
    (('1', '0', '1'), ('1', '0', '1'), ())
    """
    parts = text.split()
    if len(parts) == 1 and parts[0] not in automaton.symbols and all(len(symbol) == 1 for symbol in automaton.symbols):
        parts = list(parts[0])
    return automaton.check_word(parts)


def _listed(data: dict[str, Any], name: str, otherwise: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_text(part, name) for part in _list(data[name], name)) if name in data else otherwise


def _text(value: Any, name: str) -> str:
    if type(value) is not str:
        raise BadInput(f"{name} holds {value!r}, which is not a text in quotation marks")
    return value


def _list(value: Any, name: str) -> list[Any]:
    if type(value) is not list:
        raise BadInput(f"{name} must be a list, not {value!r}")
    return value


def _row(row: Any, number: int) -> tuple[str, str, str]:
    if type(row) is not list or len(row) != 3:
        raise BadInput(f"transition {number} is not a list of three: state, symbol, next state")
    return tuple(_text(part, f"transition {number}") for part in row)  # pyright: ignore[reportReturnType]
