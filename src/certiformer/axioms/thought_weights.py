"""The transformer of a chain of thought: what `axioms.chain_of_thought_machine` states and the compiler stores.

The tokens are the symbols, `start` and one for each thing that a step can do (symbol written, move, state entered).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from certiformer.kernel import Refused
from certiformer.kernel.construction import Construction, Unit, copy
from certiformer.kernel.meanings.machine import MOVES, Machine
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.weights import Tensor

LEAD = 16.0  # by which the latest write leads the one before


def anchor(dtype: str) -> float:
    """3 * 2^(p - 5): a sum near it is rounded to multiples of 1/8, which takes the noise off a whole number."""
    return 3.0 * 2.0 ** (FORMATS[dtype].precision - 5)


@dataclass(frozen=True)
class ThoughtShape:
    """A machine with its horizon: `steps` steps on inputs of at most `symbols` symbols."""

    machine: Machine
    steps: int
    symbols: int

    @staticmethod
    def of(machine: Machine, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> ThoughtShape:
        """The horizon of a stored model: two units look at `input` for each symbol; the rest of the tokens are steps."""
        place, up = len(machine.symbols) + len(machine.states) + 1, tensors.get("blocks.0.ffn.up")
        if up is None or up.shape[0] <= place or "code.table" not in tensors:
            raise Refused("the model does not have the parts of a chain of thought")
        units = up.shape[1]
        symbols = sum(1 for weight in up.data[place * units : (place + 1) * units] if weight) // 2
        steps = config["input"]["tokens"] - 1 - symbols
        if steps < 1:
            raise Refused("the model has no room for a step")
        return ThoughtShape(machine, steps, symbols)

    @property
    def longest(self) -> int:
        """N: input, start and one token for each step."""
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

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each part of the stream begins, and the width as `end`."""
        count = len(self.machine.symbols)
        sizes = {"symbol": count, "state": len(self.machine.states)}
        sizes |= dict.fromkeys(("move", "input", "step", "one", "index", "log", "register", "sum"), 1)
        sizes |= {"query": self.bits, "key": self.bits, "read": count, "out": len(self.machine.steps) + 1}
        return dict(zip((*sizes, "end"), accumulate(sizes.values(), initial=0), strict=True))

    def construction(self, dtype: str, logs: Sequence[float]) -> Construction:
        """The transformer; `logs` are the logarithms of N, N - 1, ..., 1, up to rounding."""
        machine, at, count, bits = self.machine, self.places, len(self.machine.symbols), self.bits
        embed = [{symbol: 1.0, at["input"]: 1.0} for symbol in range(count)] + [{at["state"]: 1.0}]
        for write, move, state in machine.steps:
            held = (machine.symbols.index(write), at["state"] + machine.states.index(state), at["step"])
            embed.append({**dict.fromkeys(held, 1.0), at["move"]: float(MOVES[move])})
        fixed = {at["one"]: 1.0, at["sum"]: anchor(dtype)} | dict.fromkeys(range(at["query"], at["read"]), -1.0)
        codes = [{**fixed, at["index"]: float(row), at["log"]: log} for row, log in enumerate(logs)]
        read = [{place: 1.0} for place in range(at["out"], at["end"])]
        blank = {at["symbol"]: 1.0, at["register"]: 1.0}
        made = Construction.of_rows("softmax", at["end"], embed, codes, read, registers=[blank])
        made.block()
        adding = [(at["move"], 0, float(self.longest + 1))]
        made.heads(1, 1, [([(at["log"], 0, 1.0)], [(at["register"], 0, 1.0)], adding, [(0, at["sum"], 1.0)])])
        made.units(self._cells(anchor(dtype)))
        made.block()
        sharp = LEAD * (self.longest + 2)
        ask = [*copy(at["query"], bits, 0, sharp), (at["one"], bits, LEAD), (at["one"], bits + 1, sharp * (bits - 1))]
        show = [*copy(at["key"], bits), (at["index"], bits, 1.0), (at["register"], bits + 1, 1.0)]
        made.heads(bits + 2, count, [(ask, show, copy(0, count), copy(0, count, at["read"]))])
        made.units(self._table())
        return made.finished(1, dtype)

    def _cells(self, anchor: float) -> Iterator[Unit]:
        """Pairs of units: the head's cell, the cell that a step wrote to, the cell of an input symbol."""
        at, (low, high), off = self.places, self.ends, float(self.levels + 2)
        for part, reads, bias, first, last in (
            ("query", {at["sum"]: 1.0}, -anchor, low, high),
            ("key", {at["sum"]: 1.0, at["move"]: -1.0, at["step"]: off}, -off - anchor, low, high),
            # An input symbol is never below cell 0: there all differences come at once.
            ("key", {at["index"]: 1.0, at["input"]: off}, -off, 0, self.symbols - 1),
        ):
            before = 0
            for cell in range(first, last + 1):
                here = cell - low + 1
                changed = [bit for bit in range(self.bits) if (here ^ before) >> bit & 1]
                signs = {at[part] + bit: 2.0 if here >> bit & 1 else -2.0 for bit in changed}
                for threshold, factor in ((0.75, 2.0), (0.25, -2.0)):
                    yield reads, bias - cell + threshold, {c: factor * sign for c, sign in signs.items()}
                before = here

    def _table(self) -> Iterator[Unit]:
        """Two units for each pair of state and symbol choose the next step."""
        machine, at = self.machine, self.places
        for state, name in enumerate(machine.states):
            for symbol, read in enumerate(machine.symbols):
                chosen = (*machine.steps, None).index(machine.transition(name, read))
                reads = dict.fromkeys(range(at["state"], at["move"]), -1.0) | {
                    at["input"]: -1.0,
                    at["read"] + symbol: 1.0,
                }
                del reads[at["state"] + state]
                yield reads, -0.25, {at["out"] + chosen: 2.0}
                yield reads, -0.75, {at["out"] + chosen: -2.0}
