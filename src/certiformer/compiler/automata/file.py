"""Automaton files: a small TOML file becomes an `Automaton`, and every mistake in it one sentence.

    start = "even"
    accept = ["odd"]
    transitions = [["even", "1", "odd"], ...]   # state, symbol, next state

Three entries are optional: `alphabet` and `states` (otherwise what the transitions name, in order of appearance), and
`missing = "reject"`, which sends every pair without a transition to one more state that never accepts (otherwise such a
gap is refused, since it is far more often a forgotten line than an intention).
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
from certiformer.kernel.meanings.automaton import Automaton

_NEEDED, _OPTIONAL = ("start", "accept", "transitions"), ("alphabet", "states", "missing")
MISSING = ("refuse", "reject")


def read_automaton(path: str | Path) -> Automaton:
    """The automaton of a TOML file."""
    return read_described(path, parse_automaton)


def parse_automaton(text: str) -> Automaton:
    """The automaton that TOML text describes.

    >>> parse_automaton('start = ["A", "B"]\\naccept = []\\ntransitions = []')
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: an automaton has one start state, not 2 (A, B)
    """
    data = parse_entries(text, "automaton", _NEEDED, _OPTIONAL)
    start = start_state(data, "an automaton")
    accepting = as_texts(data["accept"], "accept")
    rows = transition_rows(data["transitions"], 3, "three: state, symbol, next state")
    # In order of appearance, so that the same file always gives the same weights.
    named = dict.fromkeys([start, *(name for row in rows for name in (row[0], row[2])), *accepting])
    states = as_texts(data["states"], "states") if "states" in data else tuple(named)
    used = tuple(dict.fromkeys(row[1] for row in rows))
    symbols = as_texts(data["alphabet"], "alphabet") if "alphabet" in data else used
    if not symbols:
        raise BadInput("the alphabet is empty; list at least one symbol under alphabet or use one in a transition")
    missing = as_text(data.get("missing", "refuse"), "missing")
    if missing not in MISSING:
        raise BadInput(f"missing is one of {', '.join(MISSING)}, not {missing!r}")
    triples = cast("tuple[tuple[str, str, str], ...]", rows)
    return completed(symbols, states, start, accepting, triples, missing == "reject")


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
    return automaton.check_word(split_symbols_of(text, automaton.symbols))
