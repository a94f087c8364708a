"""The transformer of an encoder-decoder, as the theorem `axioms.encoder_decoder_machine` states it. The numbers that are
not whole (1 / (i + 1), its square and 1/3) are taken as they are stored; the theorem bounds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.construction import Construction, Unit, copy
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.weights import Tensor

FAR = 4.0
LEFT, STAY, RIGHT = 0, 1, 2  # the moves of a token, in this order
LATEST = "blocks.2.attention.groups.0.query"


@dataclass(frozen=True)
class EncoderShape:
    """A machine with its horizon: `steps` steps on inputs of at most `symbols` symbols."""

    machine: Machine
    steps: int
    symbols: int

    @staticmethod
    def of(machine: Machine, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> EncoderShape:
        """The horizon of a stored model: the first tokens are marked as cells, the others are steps."""
        whole, codes = EncoderShape(machine, 0, 0), tensors.get("code.table")
        if codes is None or codes.shape[1:] != (whole.width,) or LATEST not in tensors:
            raise Refused("the stream does not have the parts of an encoder-decoder")
        marks = codes.data[whole.at["encoder"] :: whole.width]
        cells = sum(1 for mark in marks if mark)
        if cells < 2 or cells >= len(marks):
            raise Refused("the model has no room for a cell and a step")
        return EncoderShape(machine, len(marks) - cells, cells - 2)

    @cached_property
    def at(self) -> dict[str, int]:
        """Where each part of the stream begins, and the width as `end`."""
        count = len(self.machine.symbols)
        sizes = {"state": len(self.machine.states), "symbol": count}
        sizes |= dict.fromkeys(("left", "right", "one", "index", "inverse", "square"), 1)
        sizes |= {"next": len(self.machine.states), "write": count}
        sizes |= dict.fromkeys(("goes_left", "goes_right", "cell", "cell_before"), 1)
        sizes |= {"latest": count, "winner": 1, "initial": count, "fresh": 1, "read": count}
        sizes |= {"encoder": 1, "place": 1, "held": count}
        return dict(zip((*sizes, "end"), accumulate(sizes.values(), initial=0), strict=True))

    @property
    def width(self) -> int:
        return self.at["end"]

    def rounded(self, tensors: Mapping[str, Tensor]) -> list[float]:
        """The stored numbers that are not whole: 1 / i and 1 / i^2 for each step, and 1/3."""
        codes, first, at = tensors["code.table"].data, self.symbols + 2, self.at
        rows = range(first * self.width, (first + self.steps) * self.width, self.width)
        query = tensors[LATEST]
        third = query.data[at["square"] * query.shape[-1] + 2 : at["square"] * query.shape[-1] + 3]
        return [x for row in rows for x in (codes[row + at["inverse"]], codes[row + at["square"]])] + (third or [0.0])

    def construction(self, dtype: str, rounded: Sequence[float]) -> Construction:
        """The transformer, with these numbers where they are not whole."""
        at, symbols = self.at, len(self.machine.symbols)
        pairs = [divmod(pair, symbols) for pair in range(len(self.machine.states) * symbols)]
        moves = {LEFT: {at["left"]: 1.0}, STAY: {}, RIGHT: {at["right"]: 1.0}}
        embed = [{at["held"] + symbol: 1.0} for symbol in range(symbols)]
        embed += [{q: 1.0, at["symbol"] + s: 1.0, **moves[move]} for q, s in pairs for move in (LEFT, STAY, RIGHT)]
        codes = [{at["encoder"]: 1.0, at["place"]: float(row - 1)} for row in range(self.symbols + 2)]
        for i, (inverse, square) in enumerate(zip(rounded[:-1:2], rounded[1::2], strict=True)):
            codes.append({at["one"]: 1.0, at["index"]: float(i), at["inverse"]: inverse, at["square"]: square})
        goes = {LEFT: {at["goes_left"]: 1.0}, RIGHT: {at["goes_right"]: 1.0}}
        goes[STAY] = {at["goes_left"]: -1.0, at["goes_right"]: -1.0}
        answers = [(q, s, move) for q, s in pairs for move in (LEFT, STAY, RIGHT)]
        read = [{at["next"] + q: 1.0, at["read"] + s: 1.0, **goes[move]} for q, s, move in answers]
        stays = {output: 1.0 for output, (_, _, move) in enumerate(answers) if move == STAY}
        made = Construction.of_rows("nearest", self.width, embed, codes, read, stays)
        made.block()
        made.units(self._table())
        made.block()
        moved = [(at["goes_right"], 0, 1.0), (at["goes_left"], 0, -1.0), (at["right"], 1, 1.0), (at["left"], 1, -1.0)]
        cells = [(0, at["cell"], 1.0), (1, at["cell_before"], 1.0)]
        made.heads(1, 2, [([(at["one"], 0, 1.0)], [(at["encoder"], 0, 1.0)], moved, cells)])
        made.block()
        near = [(at["cell"], 0, 1.0), (at["inverse"], 1, 1.0)]
        ask = [*near, (at["square"], 2, rounded[-1]), (at["one"], 3, FAR)]
        show = [(at["inverse"], 0, 1.0), (at["cell_before"], 1, -1.0), (at["square"], 2, 1.0), (at["encoder"], 3, 1.0)]
        written = [*copy(at["write"], symbols), (at["index"], symbols, 1.0)]
        found = [*copy(0, symbols, at["latest"]), (symbols, at["winner"], 1.0)]
        made.heads(4, symbols + 1, [(ask, show, written, found)])
        cell = [(at["encoder"], 0, 1.0), (at["place"], 1, -1.0), (at["one"], 2, 1.0)]
        initial = copy(at["held"], symbols), copy(0, symbols, at["initial"])
        made.heads(3, symbols, [([*near, (at["one"], 2, FAR)], cell, *initial)])
        made.units([({at["winner"]: 1.0, at["index"]: -1.0, at["one"]: 1.0}, 0.0, {at["fresh"]: 1.0})])
        made.block()
        has_moved = {at["fresh"]: 1.0, at["goes_left"]: 1.0, at["goes_right"]: 1.0, at["one"]: -1.0}
        made.units([(has_moved, 0.0, {at["fresh"]: 1.0}), ({at["fresh"]: 1.0}, 0.0, {at["fresh"]: -1.0})])
        made.block()
        old = [({at["latest"] + g: 1.0, at["fresh"]: -1.0}, 0.0, {at["read"] + g: 1.0}) for g in range(symbols)]
        at_start = {at["fresh"]: 1.0, at["one"]: -1.0}
        new = [({at["initial"] + g: 1.0, **at_start}, 0.0, {at["read"] + g: 1.0}) for g in range(symbols)]
        made.units([*old, *new])
        return made.finished(1, dtype)

    def _table(self) -> Iterator[Unit]:
        """One unit for each pair of state and symbol writes next state, symbol and move."""
        machine, at = self.machine, self.at
        for state, name in enumerate(machine.states):
            for symbol, under in enumerate(machine.symbols):
                write, move, following = machine.transition(name, under) or (under, "S", name)
                made = {at["next"] + machine.states.index(following): 1.0}
                made[at["write"] + machine.symbols.index(write)] = 1.0
                if move in "LR":
                    made[at["goes_left" if move == "L" else "goes_right"]] = 1.0
                yield {state: 1.0, at["symbol"] + symbol: 1.0, at["one"]: -1.0}, 0.0, made
