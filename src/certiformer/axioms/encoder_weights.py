"""The numbers of an encoder-decoder, as the theorem `axioms.encoder_decoder_machine` states them.

Independent of the compiler: a tensor is a dictionary of its nonzero entries by their indices. The numbers that are not
whole (1 / (i + 1), its square and 1/3) are not here; the theorem bounds them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.meanings.machine import Machine
from certiformer.kernel.weights import Tensor

FAR = 4.0
LEFT, STAY, RIGHT = 0, 1, 2  # the moves of a token, in this order

Entries = dict[tuple[int, ...], float]


@dataclass(frozen=True)
class EncoderShape:
    """A machine with its horizon: `steps` steps on inputs of at most `symbols` symbols."""

    machine: Machine
    steps: int
    symbols: int

    @staticmethod
    def of(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> EncoderShape:
        """The horizon of a stored model: the first tokens are marked as cells, the others are steps."""
        whole, codes = EncoderShape(machine, 0, 0), tensors.get("code.table")
        if codes is None or codes.shape[1] != whole.width:
            raise Refused("the stream does not have the parts of an encoder-decoder")
        marks = codes.data[whole.at["encoder"] :: whole.width]
        cells = sum(1 for mark in marks if mark)
        if cells < 2 or cells >= len(marks):
            raise Refused("the model has no room for a cell and a step")
        return EncoderShape(machine, len(marks) - cells, cells - 2)

    @cached_property
    def at(self) -> dict[str, int]:
        """Where each part of the stream begins."""
        states, count = len(self.machine.states), len(self.machine.symbols)
        sizes = [
            ("state", states),
            ("symbol", count),
            ("left", 1),
            ("right", 1),
            ("one", 1),
            ("index", 1),
            ("inverse", 1),
        ]
        sizes += [("square", 1), ("next", states), ("write", count), ("goes_left", 1), ("goes_right", 1), ("cell", 1)]
        sizes += [
            ("cell_before", 1),
            ("latest", count),
            ("winner", 1),
            ("initial", count),
            ("fresh", 1),
            ("read", count),
        ]
        sizes += [("encoder", 1), ("place", 1), ("held", count)]
        found, at = {}, 0
        for name, size in sizes:
            found[name], at = at, at + size
        return {**found, "end": at}

    @property
    def width(self) -> int:
        return self.at["end"]

    @property
    def rounded(self) -> dict[str, list[tuple[tuple[int, ...], int]]]:
        """The entries that are not whole: where they stand, and the whole number whose inverse they are."""
        at, first = self.at, self.symbols + 2
        codes: list[tuple[tuple[int, ...], int]] = []
        # The first step has the inverse 1, which is whole but stands here all the same.
        for i in range(self.steps):
            codes += [((first + i, at["inverse"]), i + 1), ((first + i, at["square"]), (i + 1) ** 2)]
        return {"code.table": codes, "blocks.2.attention.groups.0.query": [((0, at["square"], 2), 3)]}

    def expected(self) -> dict[str, Entries]:
        """The nonzero entries of every tensor, without those that are not whole."""
        return {**self._tokens(), **self._table(), **self._heads(), **self._units(), **self._readout()}

    def _tokens(self) -> dict[str, Entries]:
        at, count = self.at, len(self.machine.symbols)
        embed: Entries = {(symbol, at["held"] + symbol): 1.0 for symbol in range(count)}
        for pair in range(len(self.machine.states) * count):
            state, symbol = divmod(pair, count)
            for move in (LEFT, STAY, RIGHT):
                token = count + 3 * pair + move
                embed |= {(token, at["state"] + state): 1.0, (token, at["symbol"] + symbol): 1.0}
                if move != STAY:
                    embed[token, at["left" if move == LEFT else "right"]] = 1.0
        code: Entries = {(row, at["encoder"]): 1.0 for row in range(self.symbols + 2)}
        code |= {(row, at["place"]): float(row - 1) for row in range(self.symbols + 2) if row != 1}
        code |= {(self.symbols + 2 + i, at["one"]): 1.0 for i in range(self.steps)}
        code |= {(self.symbols + 2 + i, at["index"]): float(i) for i in range(1, self.steps)}
        return {"embed.weight": embed, "code.table": code}

    def _table(self) -> dict[str, Entries]:
        machine, at, count = self.machine, self.at, len(self.machine.symbols)
        up: Entries = {}
        down: Entries = {}
        for unit in range(len(machine.states) * count):
            state, symbol = divmod(unit, count)
            up |= {(at["state"] + state, unit): 1.0, (at["symbol"] + symbol, unit): 1.0, (at["one"], unit): -1.0}
            found = machine.transition(machine.states[state], machine.symbols[symbol])
            write, move, following = found or (machine.symbols[symbol], "S", machine.states[state])
            down[unit, at["next"] + machine.states.index(following)] = 1.0
            down[unit, at["write"] + machine.symbols.index(write)] = 1.0
            if move in "LR":
                down[unit, at["goes_left" if move == "L" else "goes_right"]] = 1.0
        return _ffn(0, up, down)

    def _heads(self) -> dict[str, Entries]:
        at, symbols = self.at, range(len(self.machine.symbols))
        count = len(symbols)
        moves: Entries = {(0, at["goes_right"], 0): 1.0, (0, at["goes_left"], 0): -1.0}
        moves |= {(0, at["right"], 1): 1.0, (0, at["left"], 1): -1.0}
        latest_key: Entries = {(0, at["inverse"], 0): 1.0, (0, at["cell_before"], 1): -1.0, (0, at["square"], 2): 1.0}
        near: Entries = {(0, at["cell"], 0): 1.0, (0, at["inverse"], 1): 1.0}
        heads: dict[str, tuple[Entries, Entries, Entries, Entries]] = {
            "1.attention.groups.0": (
                {(0, at["one"], 0): 1.0},
                {(0, at["encoder"], 0): 1.0},
                moves,
                {(0, 0, at["cell"]): 1.0, (0, 1, at["cell_before"]): 1.0},
            ),
            "2.attention.groups.0": (
                {**near, (0, at["one"], 3): FAR},
                {**latest_key, (0, at["encoder"], 3): 1.0},
                {(0, at["write"] + g, g): 1.0 for g in symbols} | {(0, at["index"], count): 1.0},
                {(0, g, at["latest"] + g): 1.0 for g in symbols} | {(0, count, at["winner"]): 1.0},
            ),
            "2.attention.groups.1": (
                {**near, (0, at["one"], 2): FAR},
                {(0, at["encoder"], 0): 1.0, (0, at["place"], 1): -1.0, (0, at["one"], 2): 1.0},
                {(0, at["held"] + g, g): 1.0 for g in symbols},
                {(0, g, at["initial"] + g): 1.0 for g in symbols},
            ),
        }
        parts = ("query", "key", "value", "output")
        return {f"blocks.{n}.{part}": e for n, found in heads.items() for part, e in zip(parts, found, strict=True)}

    def _units(self) -> dict[str, Entries]:
        at, count = self.at, len(self.machine.symbols)
        same: Entries = {(at["winner"], 0): 1.0, (at["index"], 0): -1.0, (at["one"], 0): 1.0}
        moved: Entries = {(at["fresh"], 0): 1.0, (at["goes_left"], 0): 1.0, (at["goes_right"], 0): 1.0}
        moved |= {(at["one"], 0): -1.0, (at["fresh"], 1): 1.0}
        up: Entries = {}
        down: Entries = {}
        for g in range(count):
            up |= {(at["latest"] + g, g): 1.0, (at["fresh"], g): -1.0, (at["initial"] + g, count + g): 1.0}
            up |= {(at["fresh"], count + g): 1.0, (at["one"], count + g): -1.0}
            down |= {(g, at["read"] + g): 1.0, (count + g, at["read"] + g): 1.0}
        replaced: Entries = {(0, at["fresh"]): 1.0, (1, at["fresh"]): -1.0}
        return {**_ffn(2, same, {(0, at["fresh"]): 1.0}), **_ffn(3, moved, replaced), **_ffn(4, up, down)}

    def _readout(self) -> dict[str, Entries]:
        at, count = self.at, len(self.machine.symbols)
        weight: Entries = {}
        bias: Entries = {}
        for output in range(3 * len(self.machine.states) * count):
            pair, move = divmod(output, 3)
            weight |= {(at["next"] + pair // count, output): 1.0, (at["read"] + pair % count, output): 1.0}
            if move == STAY:
                weight |= {(at["goes_left"], output): -1.0, (at["goes_right"], output): -1.0}
                bias[(output,)] = 1.0
            else:
                weight[at["goes_left" if move == LEFT else "goes_right"], output] = 1.0
        return {"readout.weight": weight, "readout.bias": bias}


def _ffn(block: int, up: Entries, down: Entries) -> dict[str, Entries]:
    name = f"blocks.{block}.ffn"
    return {f"{name}.up": up, f"{name}.up_bias": {}, f"{name}.down": down, f"{name}.down_bias": {}}


def nonzero_entries(tensor: Tensor) -> Entries:
    """The nonzero numbers of a stored tensor by their indices."""
    found: Entries = {}
    for place, number in enumerate(tensor.data):
        if number:
            index = []
            for size in reversed(tensor.shape):
                place, here = divmod(place, size)
                index.append(here)
            found[tuple(reversed(index))] = number
    return found
