"""Finite automata as targets: a complete deterministic table, checked when it is made, and its file `automaton.json`.

An automaton reads a word symbol by symbol and accepts it when the state it ends in is an accepting one. Every pair of a
state and a symbol has exactly one next state; how a file with gaps is completed is a matter of `compiler.automata`.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.meanings.description import canonical_text, read_entries, require_canonical, require_entries

FORMAT = "certiformer-automaton-1"
MAX_PAIRS = 20_000


@dataclass(frozen=True)
class Automaton:
    """A complete deterministic automaton; `rows` are (state, symbol, next state), one for each pair.

    >>> parity = Automaton(("0", "1"), ("even", "odd"), "even", ("odd",),
    ...     (("even", "0", "even"), ("even", "1", "odd"), ("odd", "0", "odd"), ("odd", "1", "even")))
    >>> parity.states_of("1101"), parity.accepts("1101")
    (('odd', 'even', 'even', 'odd'), True)
    """

    symbols: tuple[str, ...]
    states: tuple[str, ...]
    start: str
    accepting: tuple[str, ...]
    rows: tuple[tuple[str, str, str], ...]

    def __post_init__(self) -> None:
        _names(self.symbols, "symbol")
        _names(self.states, "state")
        if self.start not in self.states:
            raise BadInput(f"the start state {self.start!r} is not a state of the automaton")
        for state in self.accepting:
            if state not in self.states:
                raise BadInput(f"the accepting state {state!r} is not a state of the automaton")
        if len(set(self.accepting)) != len(self.accepting):
            raise BadInput("an accepting state is listed twice")
        pairs = len(self.symbols) * len(self.states)
        if pairs > MAX_PAIRS:
            raise BadInput(f"an automaton has at most {MAX_PAIRS:,} pairs of a state and a symbol, not {pairs:,}")
        self._check_rows()
        gaps = [(q, a) for q in self.states for a in self.symbols if (q, a) not in self.table]
        if gaps:
            raise BadInput(f"there is no transition for state {gaps[0][0]} reading {gaps[0][1]}")

    def _check_rows(self) -> None:
        seen: dict[tuple[str, str], int] = {}
        for number, row in enumerate(self.rows, 1):
            if not isinstance(row, tuple) or len(row) != 3 or any(type(part) is not str for part in row):
                raise BadInput(f"transition {number} is not three texts: state, symbol, next state")
            state, symbol, following = row
            for name in (state, following):
                if name not in self.states:
                    raise BadInput(f"transition {number} names {name!r}, which is not a state of the automaton")
            if symbol not in self.symbols:
                known = ", ".join(self.symbols)
                raise BadInput(f"transition {number} reads {symbol!r}, which is not in the alphabet {known}")
            if seen.setdefault((state, symbol), number) != number:
                raise BadInput(
                    f"transitions {seen[state, symbol]} and {number} both say where {state} goes on reading {symbol};"
                    " this automaton must be deterministic"
                )

    @cached_property
    def table(self) -> dict[tuple[str, str], str]:
        """(state, symbol) -> next state."""
        return {(state, symbol): following for state, symbol, following in self.rows}

    @cached_property
    def numbered(self) -> tuple[str, ...]:
        """The states in the order in which they are numbered: first those that reject, then those that accept."""
        chosen = set(self.accepting)
        return tuple(sorted(self.states, key=lambda state: state in chosen))

    @cached_property
    def following(self) -> tuple[tuple[int, ...], ...]:
        """`following[symbol][state]` is the number of the next state; states by number, symbols as they are listed."""
        number = {state: place for place, state in enumerate(self.numbered)}
        return tuple(tuple(number[self.table[q, a]] for q in self.numbered) for a in self.symbols)

    @property
    def first(self) -> int:
        """The number of the start state."""
        return self.numbered.index(self.start)

    @property
    def rejecting(self) -> int:
        """How many states reject; the numbers from there on accept."""
        return len(self.states) - len(self.accepting)

    @cached_property
    def unreachable(self) -> tuple[str, ...]:
        """States that no word leads to."""
        reached, open_ends = {self.start}, [self.start]
        while open_ends:
            here = open_ends.pop()
            for symbol in self.symbols:
                following = self.table[here, symbol]
                if following not in reached:
                    reached.add(following)
                    open_ends.append(following)
        return tuple(state for state in self.states if state not in reached)

    def check_word(self, symbols: Iterable[str]) -> tuple[str, ...]:
        """The symbols, if the automaton knows each of them."""
        checked = tuple(symbols)
        for place, symbol in enumerate(checked, 1):
            if symbol not in self.symbols:
                known = ", ".join(self.symbols)
                raise BadInput(
                    f"symbol {place} of the word is {str(symbol)[:40]!r}, which is not in the alphabet {known}"
                )
        return checked

    def states_of(self, word: Iterable[str]) -> tuple[str, ...]:
        """The state after each symbol, by the table: the simulation that transformers are compared with."""
        state, passed = self.start, []
        for symbol in self.check_word(word):
            state = self.table[state, symbol]
            passed.append(state)
        return tuple(passed)

    def accepts(self, word: Iterable[str]) -> bool:
        return (self.start, *self.states_of(word))[-1] in self.accepting

    def to_text(self) -> str:
        """The canonical content of `automaton.json`."""
        data = {
            "format": FORMAT,
            "symbols": list(self.symbols),
            "states": list(self.states),
            "start": self.start,
            "accepting": list(self.accepting),
            "transitions": [list(row) for row in self.rows],
        }
        return canonical_text(data)

    @staticmethod
    def from_text(text: str | bytes) -> Automaton:
        """The automaton that `to_text` wrote; only the canonical bytes are accepted."""
        data, lists = read_entries(text, "automaton.json"), ("symbols", "states", "accepting", "transitions")
        require_entries(data, "automaton.json", FORMAT, lists, ("start",))
        if any(type(row) is not list for row in data["transitions"]):
            raise BadInput("automaton.json has an entry that should be a list and is not")
        if any(type(name) is not str for name in (data["start"], *data["accepting"])):
            raise BadInput("automaton.json names a state by something that is not a text")
        rows = tuple(tuple(row) for row in data["transitions"])
        found = Automaton(tuple(data["symbols"]), tuple(data["states"]), data["start"], tuple(data["accepting"]), rows)  # pyright: ignore[reportArgumentType]
        require_canonical(found.to_text(), text, "automaton.json")
        return found


def _names(names: Sequence[Any], what: str) -> None:
    if not isinstance(names, tuple) or not names:
        raise BadInput(f"an automaton has at least one {what}")
    for name in names:
        if type(name) is not str or not name or name.split() != [name] or not name.isprintable():
            raise BadInput(f"a {what} is a text without blanks, not {name!r}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the {what} {twice!r} is listed twice")
