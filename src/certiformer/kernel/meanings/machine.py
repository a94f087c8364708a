"""Turing machines as targets: the table of a machine, checked when it is made, and its file `machine.json`.

A machine has one tape that is infinite in both directions, one head, and for each pair (state, symbol read) at most one
transition (symbol to write, move, next state). It stops in a halting state. A pair without a transition is refused,
since it is far more often a forgotten line than an intention; with `missing = "halt"` the machine stops there too.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.meanings.description import canonical_text, read_entries, require_canonical, require_entries

FORMAT = "certiformer-machine-1"
MOVES = {"L": -1, "S": 0, "R": 1}
MISSING = ("refuse", "halt")
MAX_PAIRS = 20_000

Transition = tuple[str, str, str]  # symbol written, move, next state


@dataclass(frozen=True)
class Machine:
    """A deterministic Turing machine; `symbols[0]` is the blank, `states[0]` the start state.

    `rows` are (state, read, write, move, next). Two machines are equal when their tables are, in the same order.

    >>> flip = Machine(("0", "1"), ("A", "H"), ("H",), (("A", "0", "1", "R", "H"), ("A", "1", "0", "R", "A")))
    >>> flip.transition("A", "1"), flip.transition("H", "0")
    (('0', 'R', 'A'), None)
    """

    symbols: tuple[str, ...]
    states: tuple[str, ...]
    halting: tuple[str, ...]
    rows: tuple[tuple[str, str, str, str, str], ...]
    missing: str = "refuse"

    def __post_init__(self) -> None:
        _names(self.symbols, "symbol")
        _names(self.states, "state")
        for state in self.halting:
            if state not in self.states:
                raise BadInput(f"the halting state {state!r} is not a state of the machine")
        if len(self.symbols) * len(self.states) > MAX_PAIRS:
            raise BadInput(f"a machine has at most {MAX_PAIRS:,} pairs of a state and a symbol")
        if self.missing not in MISSING:
            raise BadInput(f"missing is one of {', '.join(MISSING)}, not {self.missing!r}")
        self._check_rows()
        if self.missing == "refuse":
            self._refuse_gaps()

    def _check_rows(self) -> None:
        seen: dict[tuple[str, str], int] = {}
        for number, row in enumerate(self.rows, 1):
            if not isinstance(row, tuple) or len(row) != 5 or any(type(part) is not str for part in row):
                raise BadInput(f"transition {number} is not five texts: state, read, write, move, next state")
            state, read, write, move, following = row
            for name in (state, following):
                if name not in self.states:
                    raise BadInput(f"transition {number} names {name!r}, which is not a state of the machine")
            for symbol in (read, write):
                if symbol not in self.symbols:
                    known = ", ".join(self.symbols)
                    raise BadInput(f"transition {number} uses {symbol!r}, which is not in the alphabet {known}")
            if move not in MOVES:
                raise BadInput(f"transition {number} moves {move!r}; a move is L, R or S")
            if state in self.halting:
                raise BadInput(f"transition {number} leaves the halting state {state}")
            if seen.setdefault((state, read), number) != number:
                earlier = seen[state, read]
                raise BadInput(f"transitions {earlier} and {number} both say what {state} does on reading {read}")

    def _refuse_gaps(self) -> None:
        gaps = [pair for pair in product(self.states, self.symbols) if pair[0] not in self.halting]
        gaps = [pair for pair in gaps if pair not in self.table]
        if gaps:
            state, symbol = gaps[0]
            more = f" (and {len(gaps) - 1} more are missing)" if len(gaps) > 1 else ""
            raise BadInput(
                f"there is no transition for state {state} reading {symbol}{more}; add it, list {state} under halt,"
                ' or write missing = "halt" to stop there'
            )

    @cached_property
    def table(self) -> dict[tuple[str, str], Transition]:
        """(state, symbol read) -> (symbol written, move, next state)."""
        return {(state, read): (write, move, following) for state, read, write, move, following in self.rows}

    @cached_property
    def steps(self) -> tuple[Transition, ...]:
        """(symbol written, move, next state): everything that a step can do, each once, in the order of the rows."""
        return tuple(dict.fromkeys(self.table.values()))

    @property
    def blank(self) -> str:
        return self.symbols[0]

    @property
    def start(self) -> str:
        return self.states[0]

    def transition(self, state: str, symbol: str) -> Transition | None:
        """What the machine does, or None where it stops."""
        return self.table.get((state, symbol))

    @cached_property
    def unreachable(self) -> tuple[str, ...]:
        """States that no run from the start state can enter, by the graph of transitions."""
        reached, open_ends = {self.start}, [self.start]
        while open_ends:
            here = open_ends.pop()
            for (state, _), (_, _, following) in self.table.items():
                if state == here and following not in reached:
                    reached.add(following)
                    open_ends.append(following)
        return tuple(state for state in self.states if state not in reached)

    def check_symbols(self, symbols: Iterable[str]) -> tuple[str, ...]:
        """The symbols, if the machine knows each of them."""
        checked = tuple(symbols)
        for place, symbol in enumerate(checked, 1):
            if symbol not in self.symbols:
                known = ", ".join(self.symbols)
                raise BadInput(
                    f"symbol {place} of the input is {str(symbol)[:40]!r}, which is not in the alphabet {known}"
                )
        return checked

    def to_text(self) -> str:
        """The canonical content of `machine.json`."""
        data = {
            "format": FORMAT,
            "symbols": list(self.symbols),
            "states": list(self.states),
            "halting": list(self.halting),
            "transitions": [list(row) for row in self.rows],
            "missing": self.missing,
        }
        return canonical_text(data)

    @staticmethod
    def from_text(text: str | bytes) -> Machine:
        """The machine that `to_text` wrote; only the canonical bytes are accepted."""
        data, lists = read_entries(text, "machine.json"), ("symbols", "states", "halting", "transitions")
        require_entries(data, "machine.json", FORMAT, lists, ("missing",))
        if any(type(row) is not list for row in data["transitions"]):
            raise BadInput("machine.json has an entry that should be a list and is not")
        rows = tuple(tuple(row) for row in data["transitions"])
        found = Machine(tuple(data["symbols"]), tuple(data["states"]), tuple(data["halting"]), rows, data["missing"])  # pyright: ignore[reportArgumentType]
        require_canonical(found.to_text(), text, "machine.json")
        return found


def _names(names: Sequence[Any], what: str) -> None:
    if not isinstance(names, tuple) or not names:
        raise BadInput(f"a machine has at least one {what}")
    for name in names:
        if type(name) is not str or not name or name.split() != [name] or not name.isprintable():
            raise BadInput(f"a {what} is a text without blanks, not {name!r}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInput(f"the {what} {twice!r} is listed twice")
