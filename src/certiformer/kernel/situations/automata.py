"""Automata in two forms: what a row means, and how the stream is planned.

*Looped.* Row 0 begins the word, row i holds symbol i and, before pass k + 1, the state after i symbols if i <= k. Time has
the classes row 0; 1 <= i <= k; i = k + 1; i > k + 1: one pass moves row k + 1 from the third into the second, and the state
of a row is the table's of the state of the row before it and of its symbol. What the plan calls "state after" before a pass
is what it calls "state" before the next one, so a pass that keeps the contents proves all of them.

*Chain of thought.* The prompt is the word on rows 0 to L - 1, the token `end` on rows L to T, and the start state on row
T + 1. Row T + 1 + t holds the state after t symbols, and looks at row t: a symbol, or `end` at t = L. It writes the state
that the table says, or on `end` whether the state accepts; induction over t.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.situations.cells import Cell, Link, Meaning
from certiformer.kernel.situations.numbers import UNIT
from certiformer.kernel.situations.plan import EMPTIED, Held, Step, unit_vectors
from certiformer.kernel.situations.walk import Walk
from certiformer.kernel.weights import Tensor

# Before pass k + 1: row 0; rows 1 to k; row k + 1; rows after that.
FIRST, PAST, NEXT, LATER = "first", "past", "next", "later"
BEGIN = "begin"


def looped_meaning(automaton: Any, rows: int) -> Meaning:
    """Row i >= 1 holds symbol i and, from pass i on, the state after i symbols; row 0 begins the word."""
    states, symbols = range(len(automaton.states)), range(len(automaton.symbols))

    def step(q: int, a: int) -> int:
        return automaton.following[a][q]

    def token(time: str, a: int) -> object:
        return BEGIN if time == FIRST else a

    def state(time: str, q: int, a: int) -> object:
        return automaton.first if time == FIRST else step(q, a) if time == PAST else None

    def after(time: str, q: int, a: int) -> object:
        return automaton.first if time == FIRST else step(q, a) if time in (PAST, NEXT) else None

    def arriving(time: str, q: int) -> object:
        return automaton.first if time == FIRST else q if time in (PAST, NEXT) else None

    held = (None, *states)
    cells = {
        "row": Cell(tuple(range(rows)), ("row",), lambda row: row),
        "token": Cell((*symbols, BEGIN), ("time", "symbol"), token),
        "state": Cell(held, ("time", "before", "symbol"), state),
        "state after": Cell(held, ("time", "before", "symbol"), after),
        "arriving": Cell(held, ("time", "before"), arriving),
    }
    bases = {
        "row": tuple(range(rows)),
        "time": (FIRST, PAST, NEXT, LATER),
        "before": tuple(states),
        "symbol": tuple(symbols),
    }
    links = {"before": Link(lambda row: max(row - 1, 0), {"state": "arriving"})}
    return Meaning(bases, cells, (), links)


def looped_automaton(automaton: Any, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Walk:
    """The walk of a proof: after as many passes as a word has symbols every row reads out its state."""
    states, symbols, rows = len(automaton.states), len(automaton.symbols), config["input"]["tokens"]
    if config["loops"] < rows - 1:
        raise Refused(f"{config['loops']:,} passes do not reach the end of a word of {rows - 1:,} symbols")
    slots, meaning = states + symbols + 1, looped_meaning(automaton, rows)
    held = meaning.cell("state").domain
    walk = Walk(config, tensors, meaning)
    empty = {slots + q: EMPTIED for q in range(states)}
    steps = [
        Step(unit_vectors("arriving", held, slots, range(states)), ("before",)),
        Step({**unit_vectors("state after", held, 0, range(states)), **empty}),
    ]
    start = {**unit_vectors("state", held, 0, range(states)), **empty}
    before = walk.renamed(walk.embedding(), start, meaning.restricted("time", (FIRST, NEXT, LATER)))
    contents = walk.looped(before, steps, range(rows), {"state after": "state"})
    accepts = Held("state", tuple(UNIT * (q is not None and q >= automaton.rejecting) for q in held))
    answer = [*unit_vectors("state", held, 0, range(states)).values(), accepts]
    walk.require_outputs(contents, answer, meaning.restricted("time", (FIRST, PAST)))
    return walk


END = "end"


def written_meaning(automaton: Any, rows: int) -> Meaning:
    """Rows from T + 1 on hold a state and look at a symbol or `end`; the tokens are symbols, `end`, and states."""
    states, kinds = range(len(automaton.states)), (*range(len(automaton.symbols)), END)
    tokens = (*(("read", kind) for kind in kinds), *(("state", q) for q in states))
    rejected = len(automaton.states)

    def written(q: int, kind: object) -> int:
        return rejected + (q >= automaton.rejecting) if kind == END else automaton.following[kind][q]

    cells = {
        "row": Cell(tuple(range(rows)), ("row",), lambda row: row),
        "token": Cell(tokens, ("state",), lambda q: ("state", q)),
        "read": Cell(tokens, ("kind",), lambda kind: ("read", kind)),
        "written": Cell(tuple(range(rejected + 2)), ("state", "kind"), written),
    }
    bases = {"row": tuple(range(rows)), "state": tuple(states), "kind": kinds}
    return Meaning(bases, cells, (), {"to read": Link(lambda row: row - rows // 2, {"token": "read"})})


def written_automaton(automaton: Any, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Walk:
    """The walk of a proof: every row that holds a state reads out the token that is to be written next."""
    states, kinds, rows = len(automaton.states), len(automaton.symbols) + 1, config["input"]["tokens"]
    if rows < 2 or rows % 2:
        raise Refused("a chain of thought has room for a prompt and as many states")
    meaning = written_meaning(automaton, rows)
    outputs, tokens = meaning.cell("written").domain, meaning.cell("token").domain
    first = states + kinds
    walk = Walk(config, tensors, meaning)
    walk.require_decoder()
    steps = [
        Step(unit_vectors("read", tokens, first + len(outputs), tokens[:kinds]), ("to read",)),
        Step(unit_vectors("written", outputs, first, outputs)),
    ]
    contents = walk.passed(walk.embedding(), steps, range(rows // 2, rows))
    walk.require_outputs(contents, [*unit_vectors("written", outputs, 0, outputs).values()], meaning)
    return walk
