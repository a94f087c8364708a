"""A causal decoder writes one token for every step of a Turing machine, and so computes what the machine computes.

Statement
    Let a machine have G symbols, and let N, T, L bound the length of the sequence, the steps and the input, N = L +
    1 + T. The decoder reads the input symbols and a token `start`; every further token says which state was
    entered, which symbol was written and where the head moved. Two causal softmax blocks with one register suffice:
    at the last token the read-out is the unit vector of the next token (or of `stop`), exactly in real arithmetic,
    for every input of at most L symbols and for each of the first T steps. A float64 run decodes the same tokens as
    long as `proved_margin` is positive; for machines that begin on blank cells this holds up to T = 500 steps. (In
    float32 the bound holds for no useful T.)

Source
    Merrill and Sabharwal 2024 (merrill2024): one token a step, the head's place as a sum of moves, the
    latest write at that place by attention.

Differs from the source in
    There, sums are uniform averages, places are compared by normalised vectors (h, 1, -h, -1) and the latest write
    wins by a term of size j^-4, for every length at once, with hard attention and precision that grows with the
    length. Here the horizon is fixed: a register turns the average into the sum, ReLU units turn it into a sign
    vector, the lead of the right token is at least 16, and plain softmax is enough. The price is 4 (2 T + 1) + 2 L
    hidden units.

Proof
    *Sum of moves.* At token i (counted from 0) the keys score 0 and the register log(N - i). So every token has the
    share 1 / (i + 1 + N - i) = 1 / (N + 1), and values (N + 1) move add up to the cell h of the head.

    *Cells.* For an integer x and c = lowest, ..., highest, 2 relu(x - c + 3/4) - 2 relu(x - c + 1/4) is 1 if x >= c
    and else 0, also when x is off by up to 1/4. Let k(c) = c - lowest + 1 number the cells and s(k) be the binary
    digits of k as signs. The sum of the differences s(k(c)) - s(k(c) - 1) over all c <= x, plus s(0), is s(k(x)).
    This gives s(k(h)) for queries and s(k(h - move)), the cell that the token wrote to, for keys; at input token i
    the key is s(k(i)), and at `start` s(0), which no cell has. Units of one sort of token are kept off at the
    others by a bias.

    *Latest write.* The score of token j is lambda <s, s_j> + 16 j, that of the register lambda (B - 1), with B
    signs and lambda = 16 (N + 2). Tokens that wrote to h score at least lambda B, others at most lambda (B - 2) +
    16 N <= lambda (B - 1) - 32. So the latest write leads by at least 16; without one the register leads by 32, and
    it carries the blank. What is read differs from the unit vector of the symbol by at most e = N exp(-16) < 1/8
    for N < 10^6.

    *Table.* For each (state, symbol) the units 2 relu(read - (other states) - input - 1/4) - 2 relu(... - 3/4) are
    exactly 0 or 1, and the next token is their sum along the table. Induction over the tokens. QED.

    *Runs.* With u the unit roundoff, g_m = m u / (1 - m u), K cells and exponentials within 8 u, quotients within 4
    u: the sum errs by e1 <= N (2 g_(N+2) + (2 log(N + 1) + 16) u). Both units of a pair see the same number, so e1
    < 1/4 does not matter beyond their own rounding: arguments are sums of five numbers of total size at most A = 3
    K + 6, and a sign is a sum of 2 K products of at most 4 A each, and s(0), so signs err by e2 <= 8 K A (g_5 +
    g_(2K+2)). Scores err by e3 <= lambda B (2 e2 + e2^2) + g_(B+3) (lambda (2 B + 1) + 16 N), leads by 2 e3. What
    is read errs by N exp(2 e3 - 16) + 2 g_(N+2) + 16 u, which `proved_margin` subtracts from 1/4. Below 1/4 the
    last units give 0 or 1 up to 8 g_4 G S, and the larger of two outputs is right.

Assumptions
    horizon (**checked**): the input has at most L symbols and the run at most T steps; otherwise it is refused.
    run (**trusted**): a run rounds as `checker.rounding` describes.

Certified
    Nothing is stored in a certificate; `proved_margin` evaluates the bound of the proof, rounded up.

Not certified
    Runs beyond the horizon, which are refused; stored weights that were changed.

Example
    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> decoder = ChainOfThought(busy_beaver(3), steps=30)
    >>> decoder.run().ones, decoder.run().steps
    (5, 21)

Tests
    tests/theorems/test_chain_of_thought.py
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import exp, log

import numpy as np
from jaxtyping import Float

from certiformer.compiler.machines.simulate import Result, Simulation
from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout
from certiformer.target.machine import MOVES, Machine
from certiformer.theorem import Assumption, Theorem

THEOREM = Theorem(
    id="compiler.machines.chain_of_thought",
    title="A causal decoder that writes one token a step computes what a Turing machine computes.",
    kind="exact",
    sources=("merrill2024",),
    verb="compile",
    assumptions=(
        Assumption("horizon", "at most L input symbols and T steps; longer ones are refused", "checked"),
        Assumption("run", "a run rounds as checker.rounding describes", "trusted"),
    ),
    uses=(),
)

LEAD = 16.0  # by which the latest write leads the one before
_UNIT = 2.0**-53


class ChainOfThought:
    """The decoder of `machine` for inputs of at most `symbols` symbols and `steps` steps."""

    def __init__(self, machine: Machine, steps: int, symbols: int = 0):
        if type(steps) is not int or steps < 1 or type(symbols) is not int or symbols < 0:
            raise BadInput(f"a chain of thought has a positive number of steps, not {steps!r}, for {symbols!r} symbols")
        self.machine, self.steps, self.symbols = machine, steps, symbols
        self.margin = proved_margin(machine, steps, symbols)
        if not self.margin > 0:
            raise BadInput(f"{steps:,} steps are beyond the proved horizon of a chain of thought in float64")

    @property
    def longest(self) -> int:
        """N: input, start and one token for each step."""
        return self.symbols + 1 + self.steps

    @cached_property
    def thoughts(self) -> list[tuple[str, str, str]]:
        """(written, move, state entered): the tokens that the decoder writes, after the symbols and `start`."""
        return list(dict.fromkeys(self.machine.table.values()))

    @cached_property
    def config(self) -> Config:
        n, bits, count = self.longest, self._bits, len(self.machine.symbols)
        first = Block(_causal(1, 1), FeedForward(4 * self._levels + 2 * self.symbols))
        second = Block(_causal(bits + 2, count), FeedForward(2 * len(self._pairs)))
        return Config(
            Input("ids", tokens=n, vocabulary=count + 1 + len(self.thoughts)),
            width=self._width,
            outputs=len(self.thoughts) + 1,
            readout=Readout("all"),
            code=Code("table"),
            registers=1,
            blocks=(first, second),
        )

    @cached_property
    def tensors(self) -> dict[str, Float[np.ndarray, ...]]:
        parts = {**self._tokens(), **self._sum_of_moves(), **self._cells(), **self._latest_write(), **self._table()}
        read = np.zeros((self._width, len(self.thoughts) + 1))
        read[self._out :] = np.eye(len(self.thoughts) + 1)
        parts |= {"readout.weight": read, "readout.bias": np.zeros(len(self.thoughts) + 1)}
        return parts

    def run(self, symbols: Iterable[str] = (), steps: int | None = None) -> Result:
        """Decode until `stop` or `steps` steps; the tape is rebuilt from the tokens alone."""
        from certiformer.model.transformer import Transformer

        word = self.machine.check_symbols(symbols)
        limit = self.steps if steps is None else steps
        if len(word) > self.symbols or limit > self.steps:
            raise BadInput(f"this chain of thought is for {self.symbols:,} symbols and {self.steps:,} steps at most")
        count, model = len(self.machine.symbols), Transformer(self.config, self.tensors)
        # Later tokens do not matter to a causal model: one length, one compilation.
        tokens = np.full(self.longest, count)
        tokens[: len(word)] = [self.machine.symbols.index(symbol) for symbol in word]
        scratch = Simulation(self.machine, word)  # its tape and head only; its table is not used
        for step in range(limit):
            last = len(word) + step
            rows = model.evaluate(tokens[None]).reshape(self.longest, -1)
            chosen = int(np.argmax(rows[last]))
            if chosen == len(self.thoughts):
                break
            write, move, state = self.thoughts[chosen]
            tokens[last + 1] = count + 1 + chosen
            scratch.tape[scratch.cell], scratch.state = write, state
            scratch.cell, scratch.step = scratch.cell + MOVES[move], step + 1
            scratch.lowest, scratch.highest = min(scratch.lowest, scratch.cell), max(scratch.highest, scratch.cell)
        return scratch.result()

    @property
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
    def _out(self) -> int:
        return self._places["out"]

    @property
    def _width(self) -> int:
        return self._out + len(self.thoughts) + 1

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
        embed = np.zeros((count + 1 + len(self.thoughts), self._width))
        embed[np.arange(count), np.arange(count)] = 1.0
        embed[:count, at["input"]] = 1.0
        embed[count, at["state"]] = 1.0
        for row, (write, move, state) in zip(embed[count + 1 :], self.thoughts, strict=True):
            row[machine.symbols.index(write)] = row[at["state"] + machine.states.index(state)] = row[at["step"]] = 1.0
            row[at["move"]] = MOVES[move]
        code, index = np.zeros((self.longest, self._width)), np.arange(self.longest)
        code[:, at["one"]], code[:, at["index"]], code[:, at["log"]] = 1.0, index, np.log(self.longest - index)
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
        """Three rows of pairs of units: the head's cell, the cell that a step wrote to, the cell of an input symbol."""
        at, (low, high), signs = self._places, self._range, self._signs()
        off = float(self._levels + 2)
        rows = [("query", {at["sum"]: 1.0}, 0.0, low, high)]
        rows += [("key", {at["sum"]: 1.0, at["move"]: -1.0, at["step"]: off}, -off, low, high)]
        # Below cell 0 all differences come at once: an input symbol is never there.
        rows += [("key", {at["index"]: 1.0, at["input"]: off}, -off, 0, self.symbols - 1)]
        ups, biases, downs = [], [], []
        for part, ins, bias, first, last in rows:
            for cell in range(first, last + 1):
                number = cell - low + 1
                change = signs[number] - signs[number - 1 if cell > first else 0]
                for threshold, factor in ((0.75, 2.0), (0.25, -2.0)):
                    up, down = np.zeros(self._width), np.zeros(self._width)
                    up[list(ins)] = list(ins.values())
                    down[at[part] : at[part] + self._bits] = factor * change
                    ups.append(up)
                    biases.append(bias - cell + threshold)
                    downs.append(down)
        return _units(0, np.array(ups).T, np.array(biases), np.array(downs))

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
            chosen = len(self.thoughts) if transition is None else self.thoughts.index(transition)
            for part, (threshold, factor) in enumerate(((0.25, 2.0), (0.75, -2.0))):
                unit = 2 * number + part
                up[at["state"] : at["state"] + len(machine.states), unit] = -1.0
                up[at["state"] + state, unit], up[at["input"], unit] = 0.0, -1.0
                up[at["read"] + symbol, unit], bias[unit] = 1.0, -threshold
                down[unit, at["out"] + chosen] = factor
        return _units(1, up, bias, down)


def _causal(key: int, value: int) -> Attention:
    return Attention((Heads(1, key, value),), scale="unit", mask="causal")


def _group(block: int, **parts: np.ndarray) -> dict[str, np.ndarray]:
    return {f"blocks.{block}.attention.groups.0.{name}": tensor for name, tensor in parts.items()}


def _units(block: int, up: np.ndarray, bias: np.ndarray, down: np.ndarray) -> dict[str, np.ndarray]:
    name = f"blocks.{block}.ffn"
    return {
        f"{name}.up": up,
        f"{name}.up_bias": bias,
        f"{name}.down": down,
        f"{name}.down_bias": np.zeros(down.shape[1]),
    }


def proved_margin(machine: Machine, steps: int, symbols: int = 0) -> float:
    """1/4 minus the error of what a run reads, by the proof; not positive beyond the horizon.

    The formulas are evaluated in float64 with a factor of 1 + 2^-20 on every error, far more than their own rounding.

    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> [proved_margin(busy_beaver(4), steps) > 0.2 for steps in (107, 500, 5_000)]
    [True, True, False]
    """
    u, n = _UNIT, symbols + 1 + steps
    levels = steps + max(steps, symbols - 1) + 1
    bits = levels.bit_length()

    def gamma(m: int) -> float:
        return m * u / (1 - m * u) if m * u < 0.5 else float("inf")

    grown = 1 + 2.0**-20
    moves = grown * n * (2 * gamma(n + 2) + (2 * log(n + 1) + 16) * u)
    size = 3 * levels + 6
    sign = grown * 8 * levels * size * (gamma(5) + gamma(2 * levels + 2))
    sharp = LEAD * (n + 2)
    score = grown * (sharp * bits * (2 * sign + sign * sign) + gamma(bits + 3) * (sharp * (2 * bits + 1) + LEAD * n))
    if not (moves < 0.2 and 2 * score < LEAD):
        return -1.0
    last = 8 * gamma(4) * len(machine.states) * len(machine.symbols)
    return 0.25 - grown * (n * exp(2 * score - LEAD) + 2 * gamma(n + 2) + 16 * u) - grown * last
