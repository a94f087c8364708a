"""Automata that read a word pass by pass: what a row means, and how the stream is planned.

Row 0 begins the word, row i holds symbol i and, before pass k + 1, the state after i symbols if i <= k. Time has the
classes row 0; 1 <= i <= k; i = k + 1; i > k + 1: one pass moves row k + 1 from the third into the second, and the
state of a row is the table's of the state of the row before it and of its symbol. What the plan calls "state after"
before a pass is what it calls "state" before the next one, so a pass that keeps the contents proves all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import AUTOMATON, CONFIG, MODEL
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.situations.cells import Cell, Link, Meaning
from certiformer.kernel.situations.numbers import UNIT
from certiformer.kernel.situations.plan import EMPTIED, Held, Step, unit_vectors
from certiformer.kernel.situations.reports import NOT_CLAIMED as NOT_CLAIMED
from certiformer.kernel.situations.reports import Report, automaton_claim, automaton_finding, report_of
from certiformer.kernel.situations.walk import Walk
from certiformer.kernel.weights import Tensor, read_model

# Before pass k + 1: row 0; rows 1 to k; row k + 1; rows after that.
FIRST, PAST, NEXT, LATER = "first", "past", "next", "later"
BEGIN = "begin"


def looped_meaning(automaton: Automaton, rows: int) -> Meaning:
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


def looped_walk(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Walk:
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


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    automaton, (config, _) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    how = f"{config['loops']:,} passes of the block" if config["loops"] > 1 else "one pass of the block"
    return automaton_claim(automaton, config["input"]["tokens"] - 1, how, config["dtype"])


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    automaton, (config, tensors) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    return automaton_finding(prove(automaton, config, tensors), automaton, config["input"]["tokens"] - 1)


def prove(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored block is the automaton; raises `Refused` with the reason when it is not."""
    return report_of(looped_walk(automaton, config, tensors))
