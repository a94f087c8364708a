"""The weights of the encoder-decoder with hard attention that runs a Turing machine, in exact rationals, and its runs.

The theorem, its proof and its rule are in `axioms.encoder_decoder_machine`. The encoder tokens come first: the cells
-1, ..., L with the input from cell 0 on and blanks elsewhere. Then come the decoder tokens, each a state, the symbol under
the head and the last move. Encoder and decoder are one sequence under a causal mask: a query that is meant for one of
them is made large at the other. The stream is laid out as

    state | symbol | left, right | one, index, inverse, square | next | write | goes left, goes right | cell, cell before
    | latest | winner | initial | fresh | read | encoder, place, held

*Blocks.* (0) units: the table. (1) attention: the cell of the head. (2) attention: the latest write to it, and what the
input held there; units: was it the newest token? (3) units: is the cell fresh? (4) units: what is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from certiformer.compiler.machines.decoder import Decoder
from certiformer.compiler.machines.rational_decoder import decode_exactly
from certiformer.compiler.machines.simulate import Result, Simulation
from certiformer.compiler.tensors import stored
from certiformer.kernel.meanings.machine import MOVES, Transition
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout
from certiformer.model.layout import tensor_specs

FAR = 4  # larger than the size of any score that may win
MOVE_ORDER = tuple(MOVES)  # L, S, R

Exact = dict[tuple[int, ...], Fraction]  # the nonzero entries of a tensor


@dataclass(frozen=True)
class EncoderDecoder(Decoder):
    """The encoder-decoder of `machine` for inputs of at most `symbols` symbols and `steps` steps.

    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> EncoderDecoder(busy_beaver(3), steps=30).run_exactly().ones
    5
    """

    form: ClassVar[str] = "encoder-decoder"
    rule: ClassVar[str] = "encoder_decoder_machine"

    def reaches(self, steps: int) -> bool:
        from certiformer.axioms.encoder_decoder_machine import unsafe
        from certiformer.kernel.rounding import FORMATS

        return bool(unsafe(FORMATS[self.dtype], steps) < 1)

    @cached_property
    def config(self) -> Config:
        count, states = len(self.machine.symbols), len(self.machine.states)
        nearest: dict[str, Any] = {"kind": "nearest", "scale": "unit", "mask": "causal"}
        both = (Heads(1, 4, count + 1), Heads(1, 3, count))
        blocks = (
            Block(ffn=FeedForward(states * count)),
            Block(Attention((Heads(1, 1, 2),), **nearest)),
            Block(Attention(both, **nearest), FeedForward(1)),
            Block(ffn=FeedForward(2)),
            Block(ffn=FeedForward(2 * count)),
        )
        return Config(
            Input("ids", tokens=self.symbols + 2 + self.steps, vocabulary=count + 3 * states * count),
            width=self._width,
            outputs=3 * states * count,
            readout=Readout("all"),
            code=Code("table"),
            blocks=blocks,
            dtype=self.dtype,
        )

    @cached_property
    def tensors(self) -> dict[str, np.ndarray]:
        """The exact weights, rounded to the stored type."""
        found = {}
        for name, spec in tensor_specs(self.config).items():
            tensor = np.zeros(spec.shape)
            for place, number in self.exact_tensors[name].items():
                tensor[place] = float(number)
            found[name] = stored(tensor, self.dtype)
        return found

    @cached_property
    def exact_tensors(self) -> dict[str, Exact]:
        """The nonzero weights as rationals."""
        return {**self._tokens(), **self._table(), **self._heads(), **self._units(), **self._readout()}

    def run_exactly(self, symbols: Iterable[str] = (), steps: int | None = None) -> Result:
        """The run in exact rationals, with no rounding anywhere."""
        word, limit = self.within(symbols, steps)
        prompt, writes = self._prompt(word), self._writes()
        stopped = Simulation(self.machine, word).stopped
        outputs = [] if stopped else decode_exactly(self.config, self.exact_tensors, prompt, writes, limit)
        return self.rebuilt(word, outputs)[0]

    def decoded(self, word: tuple[str, ...], limit: int) -> list[int]:
        from certiformer.compiler.decode import greedy

        if Simulation(self.machine, word).stopped:
            return []
        prompt, writes = np.array([self._prompt(word)]), np.array(self._writes())
        return greedy(self.config, self.tensors, prompt, writes, limit)[0].tolist()

    def step(self, output: int, scratch: Simulation) -> Transition | None:
        """The state and the move of a token; its step left what the table says for the token before it."""
        before = self.machine.transition(scratch.state, scratch.symbol)
        if output < 0 or before is None:
            return None
        pair, move = divmod(output, 3)
        state, symbol = divmod(pair, len(self.machine.symbols))
        cell = scratch.cell + MOVES[MOVE_ORDER[move]]
        under = before[0] if cell == scratch.cell else scratch.tape.get(cell, self.machine.blank)
        # The proof says that this cannot happen; a run that breaks it must not go on.
        if self.machine.symbols[symbol] != under:
            raise ValueError("the decoder reads a symbol that was not written there")
        return before[0], MOVE_ORDER[move], self.machine.states[state]

    def _prompt(self, word: tuple[str, ...]) -> list[int]:
        cells = [0, *(self.machine.symbols.index(symbol) for symbol in word)]  # the blank is symbol 0
        cells += [0] * (self.symbols + 2 - len(cells))
        return [*cells, self._token(0, cells[1], MOVE_ORDER.index("S"))]

    def _writes(self) -> list[int]:
        """The token of each output; one with which the machine has stopped is the last."""
        machine, count = self.machine, len(self.machine.symbols)
        pairs = [(state, symbol) for state in machine.states for symbol in machine.symbols]
        stops = [machine.transition(*pair) is None for pair in pairs]
        return [-1 if stops[output // 3] else count + output for output in range(3 * len(pairs))]

    def _token(self, state: int, symbol: int, move: int) -> int:
        count = len(self.machine.symbols)
        return count + (state * count + symbol) * 3 + move

    @cached_property
    def _at(self) -> dict[str, int]:
        states, count = len(self.machine.states), len(self.machine.symbols)
        sizes = {
            "state": states,
            "symbol": count,
            "left": 1,
            "right": 1,
            "one": 1,
            "index": 1,
            "inverse": 1,
            "square": 1,
        }
        sizes |= {"next": states, "write": count, "goes_left": 1, "goes_right": 1, "cell": 1, "cell_before": 1}
        sizes |= {"latest": count, "winner": 1, "initial": count, "fresh": 1, "read": count}
        sizes |= {"encoder": 1, "place": 1, "held": count}
        found, at = {}, 0
        for name, size in sizes.items():
            found[name], at = at, at + size
        return {**found, "end": at}

    @property
    def _width(self) -> int:
        return self._at["end"]

    def _tokens(self) -> dict[str, Exact]:
        at, one, count = self._at, Fraction(1), len(self.machine.symbols)
        embed: Exact = {(symbol, at["held"] + symbol): one for symbol in range(count)}
        for state in range(len(self.machine.states)):
            for symbol in range(count):
                for move, name in enumerate(MOVE_ORDER):
                    token = self._token(state, symbol, move)
                    embed |= {(token, at["state"] + state): one, (token, at["symbol"] + symbol): one}
                    if name != "S":
                        embed[token, at["left" if name == "L" else "right"]] = one
        code: Exact = {}
        for row in range(self.symbols + 2):
            code |= {(row, at["encoder"]): one, (row, at["place"]): Fraction(row - 1)}
        for i in range(self.steps):
            row = self.symbols + 2 + i
            code |= {(row, at["one"]): one, (row, at["index"]): Fraction(i)}
            code |= {(row, at["inverse"]): Fraction(1, i + 1), (row, at["square"]): Fraction(1, (i + 1) ** 2)}
        return {"embed.weight": embed, "code.table": code}

    def _table(self) -> dict[str, Exact]:
        """One unit for each pair: state + symbol - one is 1 for the pair of the token and at most 0 for others."""
        machine, at, one = self.machine, self._at, Fraction(1)
        up: Exact = {}
        down: Exact = {}
        pairs = [(state, symbol) for state in machine.states for symbol in machine.symbols]
        for unit, (state, symbol) in enumerate(pairs):
            q, g = machine.states.index(state), machine.symbols.index(symbol)
            up |= {(at["state"] + q, unit): one, (at["symbol"] + g, unit): one, (at["one"], unit): -one}
            write, move, following = machine.transition(state, symbol) or (symbol, "S", state)
            down[unit, at["next"] + machine.states.index(following)] = one
            down[unit, at["write"] + machine.symbols.index(write)] = one
            if move != "S":
                down[unit, at["goes_left" if move == "L" else "goes_right"]] = one
        return _ffn(0, up, down)

    def _heads(self) -> dict[str, Exact]:
        at, one, count = self._at, Fraction(1), len(self.machine.symbols)
        cell = {
            "query": {(0, at["one"], 0): one},
            "key": {(0, at["encoder"], 0): one},
            "value": {(0, at["goes_right"], 0): one, (0, at["goes_left"], 0): -one,
                      (0, at["right"], 1): one, (0, at["left"], 1): -one},
            "output": {(0, 0, at["cell"]): one, (0, 1, at["cell_before"]): one},
        }  # fmt: skip
        latest = {
            "query": {(0, at["cell"], 0): one, (0, at["inverse"], 1): one, (0, at["square"], 2): Fraction(1, 3),
                      (0, at["one"], 3): Fraction(FAR)},
            # c_j / (j+1) is `cell_before` of token j.
            "key": {(0, at["inverse"], 0): one, (0, at["cell_before"], 1): -one, (0, at["square"], 2): one,
                    (0, at["encoder"], 3): one},
            "value": {(0, at["write"] + g, g): one for g in range(count)} | {(0, at["index"], count): one},
            "output": {(0, g, at["latest"] + g): one for g in range(count)} | {(0, count, at["winner"]): one},
        }  # fmt: skip
        initial = {
            "query": {(0, at["cell"], 0): one, (0, at["inverse"], 1): one, (0, at["one"], 2): Fraction(FAR)},
            "key": {(0, at["encoder"], 0): one, (0, at["place"], 1): -one, (0, at["one"], 2): one},
            "value": {(0, at["held"] + g, g): one for g in range(count)},
            "output": {(0, g, at["initial"] + g): one for g in range(count)},
        }
        groups = {"1.attention.groups.0": cell, "2.attention.groups.0": latest, "2.attention.groups.1": initial}
        return {f"blocks.{name}.{part}": exact for name, parts in groups.items() for part, exact in parts.items()}

    def _units(self) -> dict[str, Exact]:
        at, one, count = self._at, Fraction(1), len(self.machine.symbols)
        # winner - index + 1 is 1 for the newest token and else at most 0.
        same = _ffn(2, {(at["winner"], 0): one, (at["index"], 0): -one, (at["one"], 0): one}, {(0, at["fresh"]): one})
        # The cell is fresh if the newest token won and the head has moved; the second unit takes the old number away.
        moved = {(at[name], 0): one for name in ("fresh", "goes_left", "goes_right")}
        fresh = _ffn(
            3, {**moved, (at["one"], 0): -one, (at["fresh"], 1): one}, {(0, at["fresh"]): one, (1, at["fresh"]): -one}
        )
        up: Exact = {}
        down: Exact = {}
        for g in range(count):
            up |= {(at["latest"] + g, g): one, (at["fresh"], g): -one}
            up |= {(at["initial"] + g, count + g): one, (at["fresh"], count + g): one, (at["one"], count + g): -one}
            down |= {(g, at["read"] + g): one, (count + g, at["read"] + g): one}
        return {**same, **fresh, **_ffn(4, up, down)}

    def _readout(self) -> dict[str, Exact]:
        """next + read + move: 3 for the right token, at most 2 for any other."""
        at, one, count = self._at, Fraction(1), len(self.machine.symbols)
        weight: Exact = {}
        bias: Exact = {}
        for state in range(len(self.machine.states)):
            for symbol in range(count):
                for move, name in enumerate(MOVE_ORDER):
                    output = self._token(state, symbol, move) - count
                    weight |= {(at["next"] + state, output): one, (at["read"] + symbol, output): one}
                    if name == "S":
                        weight |= {(at["goes_left"], output): -one, (at["goes_right"], output): -one}
                        bias[(output,)] = one
                    else:
                        weight[at["goes_left" if name == "L" else "goes_right"], output] = one
        return {"readout.weight": weight, "readout.bias": bias}


def _ffn(block: int, up: Exact, down: Exact) -> dict[str, Exact]:
    name = f"blocks.{block}.ffn"
    return {f"{name}.up": up, f"{name}.up_bias": {}, f"{name}.down": down, f"{name}.down_bias": {}}
