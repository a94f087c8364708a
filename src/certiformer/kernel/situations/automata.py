"""Automata: what a row of the two forms means, and the plan of the stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flint import arb

from certiformer.kernel.balls import working_precision
from certiformer.kernel.refusal import Refused
from certiformer.kernel.situations.cells import Cell, Link, Meaning
from certiformer.kernel.situations.numbers import UNIT, as_ball, sure
from certiformer.kernel.situations.plan import Held, Step, unit_vectors
from certiformer.kernel.situations.walk import Walk
from certiformer.kernel.weights import Tensor

FIRST, PAST, NEXT, LATER = "first", "past", "next", "later"  # row 0; rows 1 to k; row k + 1; rows after that, before pass k + 1
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
    working_precision()
    states, symbols, rows = len(automaton.states), len(automaton.symbols), config["input"]["tokens"]
    slots = states + symbols + 1
    meaning = looped_meaning(automaton, rows)
    held = meaning.cell("state").domain
    start = meaning.restricted("time", (FIRST, NEXT, LATER))
    walk = Walk(config, tensors, meaning)
    state = unit_vectors("state", held, 0, range(states))
    empty = {slots + q: Held(None, (0,)) for q in range(states)}
    steps = [
        Step(unit_vectors("arriving", held, slots, range(states)), ("before",)),
        Step({**unit_vectors("state after", held, 0, range(states)), **empty}),
    ]
    before = walk.renamed(walk.embedding(), {**state, **empty}, start)
    contents = walk.looped(before, steps, range(rows), {"state after": "state"})
    outputs = walk.read_out(contents, "state")
    for place, value in enumerate(held):
        if value is not None:
            wanted = [sure(UNIT * (q == value)) for q in range(states)] + [sure(UNIT * (value >= automaton.rejecting))]
            if not all(x.within(y) for x, y in zip(outputs[place], wanted, strict=True)):
                raise Refused(f"the read-out does not name the state {automaton.numbered[value]}")
    return walk
