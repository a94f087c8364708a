"""Turing machines on a bounded tape: what a cell of the tape means, before and after a step.

A configuration has one head. A cell of the tape has the head, or its left or its right neighbour has it, or none of them:
the four windows. `entering` is the state that arrives from a neighbour whose head moves here; at an end of the tape a cell
looks at itself instead. A step that would leave the tape is not made and raises the flag `off` on the cell of the head; the
configuration stays, so that the flag, once it is up, stands where it belongs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, MACHINE, MODEL
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.situations.cells import Cell, Equation, Link, Meaning
from certiformer.kernel.situations.numbers import UNIT
from certiformer.kernel.situations.plan import EMPTIED, Held, Step, unit_vectors
from certiformer.kernel.situations.reports import Report, finding, report_of
from certiformer.kernel.situations.walk import ROW, Walk
from certiformer.kernel.weights import Tensor, read_model

NOT_CLAIMED = (
    "Longer tapes: a step off the tape is not made; it raises a flag, and `run` says which cell was needed.",
    "Whether the machine halts: the proof is about every single step.",
)
HERE, LEFT, RIGHT, AWAY = "here", "left", "right", "away"  # where the head stands, seen from a cell
Ends = tuple[bool, bool]  # whether a cell is the left and the right end of the tape


def ends_of(cells: int) -> tuple[Ends, ...]:
    """The ends that cells can be, each once."""
    return tuple(dict.fromkeys((cell == 0, cell == cells - 1) for cell in {0, min(1, cells - 1), cells - 1}))


class _Window:
    """The equations of a step, for a cell and its neighbours; states and symbols are numbers."""

    def __init__(self, machine: Machine):
        self.machine = machine

    def step(self, pair: tuple[int, int] | None) -> tuple[int, str, int] | None:
        """Symbol written, move and next state; None where there is no head, or the machine stops."""
        states, symbols = self.machine.states, self.machine.symbols
        found = pair and self.machine.transition(states[pair[0]], symbols[pair[1]])
        return (symbols.index(found[0]), found[1], states.index(found[2])) if found else None

    def pair(self, where: str, state: int, symbol: int) -> tuple[int, int] | None:
        return (state, symbol) if where == HERE else None

    def beside(self, side: int) -> Any:
        """The pair of the left (0) or right (1) neighbour, or of the cell itself where the tape ends."""

        def pair(ends: Ends, where: str, state: int, symbol: int, under: int) -> tuple[int, int] | None:
            if ends[side]:
                return self.pair(where, state, symbol)
            return (state, under) if where == (LEFT, RIGHT)[side] else None

        return pair

    def entering(self, ends: Ends, where: str, state: int, symbol: int, under: int) -> int | None:
        """The state that a neighbour, or at an end the cell itself, sends in this direction."""
        for side, direction in enumerate("RL"):
            step = self.step(self.beside(side)(ends, where, state, symbol, under))
            if step is not None and step[1] == direction:
                return step[2]
        return None

    def blocked(self, ends: Ends, where: str, state: int, symbol: int) -> bool:
        """Whether the head stands here and its step would leave the tape."""
        step = self.step(self.pair(where, state, symbol))
        return step is not None and ((step[1] == "L" and ends[0]) or (step[1] == "R" and ends[1]))

    def after(self, ends: Ends, where: str, state: int, symbol: int, under: int) -> tuple[int, int | None]:
        """Symbol and state (None: no head) of the cell after the step."""
        step = self.step(self.pair(where, state, symbol))
        if where != HERE:
            return symbol, self.entering(ends, where, state, symbol, under)
        if step is None or self.blocked(ends, where, state, symbol):
            return symbol, state
        return step[0], step[2] if step[1] == "S" else None


def machine_meaning(machine: Machine, cells: int) -> Meaning:
    """All windows of all configurations with one head on a tape of so many cells."""
    window, states, symbols = _Window(machine), range(len(machine.states)), tuple(range(len(machine.symbols)))
    pairs = (None, *((state, symbol) for state in states for symbol in symbols))
    tokens = (*((None, symbol) for symbol in symbols), *((pair, pair[1]) for pair in pairs if pair))
    whole, own = ("ends", "where", "state", "symbol", "under"), ("where", "state", "symbol")

    def pair_after(*row: Any) -> tuple[int, int] | None:
        symbol, state = window.after(*row)
        return None if state is None else (state, symbol)

    made = {
        ROW: Cell(tuple(range(cells)), (ROW,), lambda row: row),
        "token": Cell(tokens, own, lambda where, state, symbol: (window.pair(where, state, symbol), symbol)),
        "ends": Cell(ends_of(cells), ("ends",), lambda ends: ends),
        "symbol": Cell(symbols, ("symbol",), lambda symbol: symbol),
        "symbol after": Cell(symbols, whole, lambda *row: window.after(*row)[0]),
        "pair": Cell(pairs, own, window.pair),
        "pair after": Cell(pairs, whole, pair_after),
        "off": Cell((0, 1), ("off",), lambda off: off),
        "off after": Cell((0, 1), ("ends", *own), lambda *row: int(window.blocked(*row))),
        "pair on the left": Cell(pairs, whole, window.beside(0)),
        "pair on the right": Cell(pairs, whole, window.beside(1)),
        "entering": Cell((None, *states), whole, window.entering),
    }
    bases = {
        ROW: tuple(range(cells)), "ends": ends_of(cells), "where": (HERE, LEFT, RIGHT, AWAY), "state": tuple(states),
        "symbol": symbols, "under": symbols, "off": (0, 1),
    }  # fmt: skip
    equations = (
        Equation("the tape ends here", ("ends", "where"), lambda e, w: not (e[0] and w == LEFT or e[1] and w == RIGHT)),
        Equation("off is up", ("off", "ends", *own), lambda off, *row: not off or window.blocked(*row)),
    )
    links = {
        "left": Link(lambda row: max(row - 1, 0), {"pair": "pair on the left"}),
        "right": Link(lambda row: min(row + 1, cells - 1), {"pair": "pair on the right"}),
    }
    return Meaning(bases, made, equations, links)


def machine_walk(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Walk:
    """The walk of a proof: one pass turns what the cells of a configuration hold into what they hold a step later."""
    states, symbols, cells = len(machine.states), len(machine.symbols), config["input"]["tokens"]
    if config["loops"] != 1:
        raise Refused("a looped machine is stored as one pass")
    meaning = machine_meaning(machine, cells)
    walk = Walk(config, tensors, meaning)
    pairs, off = meaning.cell("pair").domain, symbols * (1 + states)
    slots, ends = off + 1, meaning.cell("ends")
    of_row = replace(ends, bases=(ROW,), value=lambda row: (row == 0, row == cells - 1))
    at_start = meaning.with_cell("ends", of_row).restricted("off", (0,))

    def content(later: str) -> dict[int, Held]:
        """Symbol, pair and flag of a cell."""
        held = unit_vectors(f"symbol{later}", range(symbols), 0, range(symbols))
        held |= unit_vectors(f"pair{later}", pairs, symbols, pairs[1:])
        return {**held, off: Held(f"off{later}", (0, UNIT))}

    ends_held = {slots + states + side: Held("ends", tuple(UNIT * e[side] for e in ends.domain)) for side in (0, 1)}
    empty = {slots + state: EMPTIED for state in range(states)}
    before = walk.renamed(walk.embedding(), {**content(""), **empty, **ends_held}, at_start)
    entering = unit_vectors("entering", (None, *range(states)), slots, range(states))
    steps = [Step(entering, ("left", "right")), Step({**content(" after"), **empty})]
    later = {f"{name} after": name for name in ("symbol", "pair", "off")}
    contents = walk.looped(before, steps, range(cells), later)
    walk.require_outputs(contents, [content("")[c] for c in range(off + 1)], meaning)
    return walk


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    machine, (config, _) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
    cells, dtype = config["input"]["tokens"], config["dtype"]
    first = -(cells // 2)
    return (
        f"On the {cells:,} cells {first} to {first + cells - 1}, from every configuration with one head, any number of"
        f" passes of the block gives exactly the configuration that the machine of {len(machine.states)} states and"
        f" {len(machine.symbols)} symbols reaches in as many steps, in real arithmetic and in a run in {dtype}, as long"
        " as its head stays on the tape; a step off the tape is not made and raises a flag."
    )


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    machine, (config, tensors) = Machine.from_text(files[MACHINE]), read_model(files[CONFIG], files[MODEL])
    reason = (
        "all {cases} situations of a cell were run through the stored weights; what arrives from a neighbour stays {margin}"
        " away from the thresholds, and a wrong cell gets less than {leak}"
    )
    return finding(prove_looped(machine, config, tensors), reason, {"cells": config["input"]["tokens"]})


def prove_looped(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored block is one step of the machine; raises `Refused` with the reason when it is not."""
    return report_of(machine_walk(machine, config, tensors))
