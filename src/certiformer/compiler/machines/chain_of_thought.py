"""The weights of a decoder that writes one token for every step of a machine, and its runs.

The theorem, its proof and its rule are in `axioms.chain_of_thought_machine`. The tokens are the symbols, `start`
and one for each thing that a step can do (symbol written, move, state entered). The stream of a token is laid out as

    symbol (G) | state (S) | move | input | step | one | index | log | register | sum | query (B) | key (B) | read (G) | out

*First block.* One head adds up the moves; `sum` holds ANCHOR plus the cell of the head. Three rows of pairs of units turn
it into signs: the head's cell, the cell that a step wrote to, the cell of an input symbol.

*Second block.* One head finds the latest write to the head's cell; the register holds the blank. Two units for each pair
of state and symbol choose the next step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from certiformer.compiler.machines.decoder import Decoder
from certiformer.compiler.machines.simulate import Simulation
from certiformer.compiler.stored import stored
from certiformer.kernel.meanings.machine import MOVES, Transition
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout

LEAD = 16.0  # by which the latest write leads the one before
# 3 * 2^(p - 5): a sum near it is rounded to multiples of 1/8, which takes the noise off a whole number.
ANCHORS = {"float64": 3.0 * 2.0**48, "float32": 3.0 * 2.0**19}


@dataclass(frozen=True)
class ChainOfThought(Decoder):
    """The decoder of `machine` for inputs of at most `symbols` symbols and `steps` steps.

    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> decoder = ChainOfThought(busy_beaver(3), steps=30)
    >>> decoder.run().ones, decoder.run().steps
    (5, 21)
    """

    form: ClassVar[str] = "chain of thought"
    rule: ClassVar[str] = "chain_of_thought_machine"

    def reaches(self, steps: int) -> bool:
        from certiformer.axioms.chain_of_thought_machine import reaches
        from certiformer.axioms.thought_weights import ThoughtShape
        from certiformer.kernel.rounding import FORMATS

        return reaches(ThoughtShape(self.machine, steps, self.symbols), FORMATS[self.dtype])

    @property
    def longest(self) -> int:
        """N: input, start and one token for each step."""
        return self.symbols + 1 + self.steps

    @cached_property
    def config(self) -> Config:
        n, bits, count = self.longest, self._bits, len(self.machine.symbols)
        first = Block(_causal(1, 1), FeedForward(4 * self._levels + 2 * self.symbols))
        second = Block(_causal(bits + 2, count), FeedForward(2 * len(self._pairs)))
        return Config(
            Input("ids", tokens=n, vocabulary=count + 1 + len(self.machine.steps)),
            width=self._width,
            outputs=len(self.machine.steps) + 1,
            readout=Readout("all"),
            code=Code("table"),
            registers=1,
            blocks=(first, second),
            dtype=self.dtype,
        )

    @cached_property
    def tensors(self) -> dict[str, np.ndarray]:
        parts = {**self._tokens(), **self._sum_of_moves(), **self._cells(), **self._latest_write(), **self._table()}
        read = np.zeros((self._width, len(self.machine.steps) + 1))
        read[self._places["out"] :] = np.eye(len(self.machine.steps) + 1)
        parts |= {"readout.weight": read, "readout.bias": np.zeros(len(self.machine.steps) + 1)}
        return {name: stored(tensor, self.dtype) for name, tensor in parts.items()}

    def decoded(self, word: tuple[str, ...], limit: int) -> list[int]:
        from certiformer.compiler.decode import greedy

        count, thoughts = len(self.machine.symbols), self.machine.steps
        prompt = np.array([[*(self.machine.symbols.index(symbol) for symbol in word), count]])
        writes = np.array([*range(count + 1, count + 1 + len(thoughts)), -1])
        return greedy(self.config, self.tensors, prompt, writes, limit)[0].tolist()

    def step(self, output: int, scratch: Simulation) -> Transition | None:
        return self.machine.steps[output] if output < len(self.machine.steps) else None

    @cached_property
    def _places(self) -> dict[str, int]:
        """Where each part of the stream begins."""
        sizes = {"symbol": len(self.machine.symbols), "state": len(self.machine.states)}
        sizes |= dict.fromkeys(("move", "input", "step", "one", "index", "log", "register", "sum"), 1)
        sizes |= {"query": self._bits, "key": self._bits, "read": len(self.machine.symbols)}
        starts, at = {}, 0
        for name, size in sizes.items():
            starts[name], at = at, at + size
        return {**starts, "out": at}

    @property
    def _width(self) -> int:
        return self._places["out"] + len(self.machine.steps) + 1

    @property
    def _range(self) -> tuple[int, int]:
        return -self.steps, max(self.steps, self.symbols - 1)

    @property
    def _levels(self) -> int:
        return self._range[1] - self._range[0] + 1

    @property
    def _bits(self) -> int:
        return self._levels.bit_length()

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(q, g) for q in range(len(self.machine.states)) for g in range(len(self.machine.symbols))]

    def _signs(self) -> Float[np.ndarray, "codes bits"]:
        digits = (np.arange(self._levels + 1)[:, None] >> np.arange(self._bits)) & 1
        return 2.0 * digits - 1.0

    def _tokens(self) -> dict[str, np.ndarray]:
        at, machine, count = self._places, self.machine, len(self.machine.symbols)
        embed = np.zeros((count + 1 + len(machine.steps), self._width))
        embed[np.arange(count), np.arange(count)] = 1.0
        embed[:count, at["input"]] = 1.0
        embed[count, at["state"]] = 1.0
        for row, (write, move, state) in zip(embed[count + 1 :], machine.steps, strict=True):
            row[machine.symbols.index(write)] = row[at["state"] + machine.states.index(state)] = row[at["step"]] = 1.0
            row[at["move"]] = MOVES[move]
        code, index = np.zeros((self.longest, self._width)), np.arange(self.longest)
        code[:, at["one"]], code[:, at["index"]], code[:, at["log"]] = 1.0, index, np.log(self.longest - index)
        code[:, at["sum"]] = ANCHORS[self.dtype]
        for part in ("query", "key"):
            code[:, at[part] : at[part] + self._bits] = self._signs()[0]
        register = np.zeros((1, self._width))
        register[0, at["symbol"]] = register[0, at["register"]] = 1.0  # the blank is symbol 0
        return {"embed.weight": embed, "code.table": code, "registers": register}

    def _sum_of_moves(self) -> dict[str, np.ndarray]:
        at, zero = self._places, np.zeros((1, self._width, 1))
        query, key, value, output = zero.copy(), zero.copy(), zero.copy(), np.zeros((1, 1, self._width))
        query[0, at["log"], 0] = key[0, at["register"], 0] = output[0, 0, at["sum"]] = 1.0
        value[0, at["move"], 0] = self.longest + 1
        return _group(0, query=query, key=key, value=value, output=output)

    def _cells(self) -> dict[str, np.ndarray]:
        """Pairs of units: the head's cell, the cell that a step wrote to, the cell of an input symbol."""
        at, (low, high), signs = self._places, self._range, self._signs()
        off, anchor = float(self._levels + 2), ANCHORS[self.dtype]
        rows: list[tuple[str, dict[int, float], float, int, int]] = [("query", {at["sum"]: 1.0}, -anchor, low, high)]
        rows += [("key", {at["sum"]: 1.0, at["move"]: -1.0, at["step"]: off}, -off - anchor, low, high)]
        # Below cell 0 all differences come at once: an input symbol is never there.
        rows += [("key", {at["index"]: 1.0, at["input"]: off}, -off, 0, self.symbols - 1)]
        units = 4 * self._levels + 2 * self.symbols
        up, biases, down = np.zeros((self._width, units)), np.zeros(units), np.zeros((units, self._width))
        unit = 0
        for part, ins, bias, first, last in rows:
            for cell in range(first, last + 1):
                number = cell - low + 1
                change = signs[number] - signs[number - 1 if cell > first else 0]
                for threshold, factor in ((0.75, 2.0), (0.25, -2.0)):
                    up[list(ins), unit] = list(ins.values())
                    down[unit, at[part] : at[part] + self._bits] = factor * change
                    biases[unit] = bias - cell + threshold
                    unit += 1
        return _units(0, up, biases, down)

    def _latest_write(self) -> dict[str, np.ndarray]:
        at, bits, count = self._places, self._bits, len(self.machine.symbols)
        sharp = LEAD * (self.longest + 2)
        query, key = np.zeros((1, self._width, bits + 2)), np.zeros((1, self._width, bits + 2))
        query[0, at["query"] : at["query"] + bits, :bits] = sharp * np.eye(bits)
        key[0, at["key"] : at["key"] + bits, :bits] = np.eye(bits)
        query[0, at["one"], bits], key[0, at["index"], bits] = LEAD, 1.0
        query[0, at["one"], bits + 1], key[0, at["register"], bits + 1] = sharp * (bits - 1), 1.0
        value, output = np.zeros((1, self._width, count)), np.zeros((1, count, self._width))
        value[0, :count] = np.eye(count)
        output[0, :, at["read"] : at["read"] + count] = np.eye(count)
        return _group(1, query=query, key=key, value=value, output=output)

    def _table(self) -> dict[str, np.ndarray]:
        at, machine = self._places, self.machine
        units = 2 * len(self._pairs)
        up, bias, down = np.zeros((self._width, units)), np.zeros(units), np.zeros((units, self._width))
        for number, (state, symbol) in enumerate(self._pairs):
            transition = machine.transition(machine.states[state], machine.symbols[symbol])
            chosen = len(machine.steps) if transition is None else machine.steps.index(transition)
            for part, (threshold, factor) in enumerate(((0.25, 2.0), (0.75, -2.0))):
                unit = 2 * number + part
                up[at["state"] : at["state"] + len(machine.states), unit] = -1.0
                up[at["state"] + state, unit], up[at["input"], unit] = 0.0, -1.0
                up[at["read"] + symbol, unit], bias[unit] = 1.0, -threshold
                down[unit, at["out"] + chosen] = factor
        return _units(1, up, bias, down)


def _causal(key: int, value: int) -> Attention:
    return Attention((Heads(1, key, value),), scale="unit", mask="causal")


def _group(block: int, **parts: np.ndarray) -> dict[str, Any]:
    return {f"blocks.{block}.attention.groups.0.{name}": tensor for name, tensor in parts.items()}


def _units(block: int, up: np.ndarray, bias: np.ndarray, down: np.ndarray) -> dict[str, Any]:
    name = f"blocks.{block}.ffn"
    zero = np.zeros(down.shape[1])
    return {f"{name}.up": up, f"{name}.up_bias": bias, f"{name}.down": down, f"{name}.down_bias": zero}
