"""The numbers of a chain of thought, as the theorem `axioms.chain_of_thought_machine` states them.

Independent of the compiler: a tensor is a dictionary of its nonzero entries by their place in row-major order. The
logarithms and the last units are not here; the theorem bounds and runs them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from certiformer.kernel.meanings.machine import MOVES, Machine
from certiformer.kernel.refusal import Refused
from certiformer.kernel.weights import Tensor

LEAD = 16.0
ANCHOR_BITS = 5  # the anchor is 3 * 2^(p - ANCHOR_BITS)

Entries = dict[int, float]


@dataclass(frozen=True)
class ThoughtShape:
    """A machine with its horizon: `steps` steps on inputs of at most `symbols` symbols."""

    machine: Machine
    steps: int
    symbols: int

    @staticmethod
    def of(machine: Machine, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> ThoughtShape:
        """The horizon of a stored model: two units look at `input` for each symbol; the rest of the tokens are steps."""
        place, up = len(machine.symbols) + len(machine.states) + 1, tensors.get("blocks.0.ffn.up")
        if up is None or up.shape[0] <= place:
            raise Refused("the model does not have the parts of a chain of thought")
        units = up.shape[1]
        symbols = sum(1 for weight in up.data[place * units : (place + 1) * units] if weight) // 2
        steps = config["input"]["tokens"] - 1 - symbols
        if steps < 1:
            raise Refused("the model has no room for a step")
        return ThoughtShape(machine, steps, symbols)

    @property
    def longest(self) -> int:
        return self.symbols + 1 + self.steps

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest cell that is numbered."""
        return -self.steps, max(self.steps, self.symbols - 1)

    @property
    def levels(self) -> int:
        return self.ends[1] - self.ends[0] + 1

    @property
    def bits(self) -> int:
        return self.levels.bit_length()

    @property
    def units(self) -> int:
        return 4 * self.levels + 2 * self.symbols

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each part of the stream begins."""
        count = len(self.machine.symbols)
        sizes = [
            ("symbol", count),
            ("state", len(self.machine.states)),
            ("move", 1),
            ("input", 1),
            ("step", 1),
            ("one", 1),
        ]
        sizes += [("index", 1), ("log", 1), ("register", 1), ("sum", 1), ("query", self.bits), ("key", self.bits)]
        sizes += [("read", count), ("out", len(self.machine.steps) + 1)]
        found, at = {}, 0
        for name, size in sizes:
            found[name], at = at, at + size
        return {**found, "end": at}

    @property
    def width(self) -> int:
        return self.places["end"]

    def signs(self, number: int) -> list[float]:
        return [1.0 if number >> bit & 1 else -1.0 for bit in range(self.bits)]

    def expected(self, precision: int) -> dict[str, Entries]:
        """The nonzero entries of every tensor that must be exactly this."""
        anchor = 3.0 * 2.0 ** (precision - ANCHOR_BITS)
        return {**self._tokens(anchor), **self._sum_of_moves(), **self._cells(anchor), **self._latest_write()}

    def _tokens(self, anchor: float) -> dict[str, Entries]:
        machine, at, width, count = self.machine, self.places, self.width, len(self.machine.symbols)
        embed: Entries = {}
        for symbol in range(count):
            embed |= {symbol * width + symbol: 1.0, symbol * width + at["input"]: 1.0}
        embed[count * width + at["state"]] = 1.0
        for number, (write, move, state) in enumerate(machine.steps, count + 1):
            held = {machine.symbols.index(write): 1.0, at["state"] + machine.states.index(state): 1.0, at["step"]: 1.0}
            held[at["move"]] = float(MOVES[move])
            embed |= {number * width + coordinate: amount for coordinate, amount in held.items() if amount}
        code: Entries = {}
        for row in range(self.longest):
            held = {at["one"]: 1.0, at["sum"]: anchor, at["index"]: float(row)}
            for part in ("query", "key"):
                held |= {at[part] + bit: sign for bit, sign in enumerate(self.signs(0))}
            code |= {row * width + coordinate: amount for coordinate, amount in held.items() if amount}
        registers = {at["symbol"]: 1.0, at["register"]: 1.0}
        return {"embed.weight": embed, "code.table": code, "registers": registers}

    def _sum_of_moves(self) -> dict[str, Entries]:
        at, name = self.places, "blocks.0.attention.groups.0"
        value = {at["move"]: float(self.longest + 1)}
        parts = {"query": {at["log"]: 1.0}, "key": {at["register"]: 1.0}, "value": value, "output": {at["sum"]: 1.0}}
        return {f"{name}.{part}": entries for part, entries in parts.items()}

    def _cells(self, anchor: float) -> dict[str, Entries]:
        at, (low, high), width, units = self.places, self.ends, self.width, self.units
        off = float(self.levels + 2)
        up: Entries = {}
        biases: Entries = {}
        down: Entries = {}
        steps = {at["sum"]: 1.0, at["move"]: -1.0, at["step"]: off}
        kinds: list[tuple[str, dict[int, float], float, int, int]] = [
            ("query", {at["sum"]: 1.0}, -anchor, low, high),
            ("key", steps, -off - anchor, low, high),
            ("key", {at["index"]: 1.0, at["input"]: off}, -off, 0, self.symbols - 1),
        ]
        unit = 0
        for part, ins, bias, first, last in kinds:
            before = self.signs(0)
            for cell in range(first, last + 1):
                here = self.signs(cell - low + 1)
                for threshold, factor in ((0.75, 2.0), (0.25, -2.0)):
                    up |= {coordinate * units + unit: weight for coordinate, weight in ins.items()}
                    biases[unit] = bias - cell + threshold
                    for bit, (new, old) in enumerate(zip(here, before, strict=True)):
                        if new != old:
                            down[unit * width + at[part] + bit] = factor * (new - old)
                    unit += 1
                before = here
        name = "blocks.0.ffn"
        nonzero = {place: number for place, number in biases.items() if number}
        return {f"{name}.up": up, f"{name}.up_bias": nonzero, f"{name}.down": down, f"{name}.down_bias": {}}

    def _latest_write(self) -> dict[str, Entries]:
        at, bits, count, width = self.places, self.bits, len(self.machine.symbols), self.width
        size, sharp = bits + 2, LEAD * (self.longest + 2)
        query = {(at["query"] + bit) * size + bit: sharp for bit in range(bits)}
        query |= {at["one"] * size + bits: LEAD, at["one"] * size + bits + 1: sharp * (bits - 1)}
        key = {(at["key"] + bit) * size + bit: 1.0 for bit in range(bits)}
        key |= {at["index"] * size + bits: 1.0, at["register"] * size + bits + 1: 1.0}
        value = {symbol * count + symbol: 1.0 for symbol in range(count)}
        output = {symbol * width + at["read"] + symbol: 1.0 for symbol in range(count)}
        parts = {"query": {place: x for place, x in query.items() if x}, "key": key, "value": value, "output": output}
        return {f"blocks.1.attention.groups.0.{part}": entries for part, entries in parts.items()}
