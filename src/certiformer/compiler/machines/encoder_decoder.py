"""An encoder-decoder with hard attention simulates a Turing machine for ever, in exact rationals.

Statement
    There is an encoder-decoder with hard attention, score -|<query, key>|, the activation min(max(t, 0), 1) and
    position codes (1, i, 1/(i+1), 1/(i+1)^2), whose weights are rational and depend on the machine alone, and whose
    decoder token i is exactly (state, symbol under the head, last move) after i steps, for every input and every i.
    In float64 the same weights give the same tokens for i < 3,000 (`HORIZON`) and inputs of at most 3,000 symbols.

Source
    Pérez, Barceló and Marinkovic 2021 (perez2021).

Differs from the source in
    There a reading phase first copies the input while the head walks right, and every step moves. Here the encoder
    ends in a blank on either side and is asked for the nearest cell, so no state is added, and moves may be S: the
    cell under the head is fresh only if the winner is the newest token *and* the head has moved. This score is not
    a dot product, so the transformer of `model` cannot have it; the weights are evaluated here, in rationals or in
    float64.

Proof
    Let c_i be the cell of the head after i steps (c_0 = 0), v_i the symbol written in step i and m_i its move.

    *Table.* Token i holds unit vectors of state and symbol, so min(max(q + s - 1, 0), 1) over all pairs is the unit
    vector of the pair, and one linear map gives the next state, v_i and m_i (where the machine stops: the same
    state and symbol, S).

    *Cell.* Uniform attention over the tokens 0, ..., i of m_j and of the move before it, m_{j-1}, gives c_{i+1} /
    (i + 1) and c_i / (i + 1).

    *Latest write.* The query of token i is (c_{i+1} / (i+1), 1 / (i+1), 1 / (3 (i+1)^2)), the key of token j (1 /
    (j+1), -c_j / (j+1), 1 / (j+1)^2); their product is a = (c_{i+1} - c_j) / ((i+1) (j+1)) + 1 / (3 (i+1)^2
    (j+1)^2). If c_j = c_{i+1} then |a| = 1 / (3 (i+1)^2 (j+1)^2), smallest for the latest such j. Otherwise |a| >=
    (2/3) / ((i+1) (j+1)) >= (2/3) / (i+1)^2, which is more. So the latest write at c_{i+1} wins if there is one. If
    there is none, then the head has moved, and j = i wins: |c_{i+1} - c_i| = 1 gives |a| <= (1 + 1 / (3 (i+1)^2)) /
    (i+1)^2, and for j < i |a| >= (1 - 1 / (3 (i+1) (j+1))) / ((i+1) (j+1)). With k = j + 1 <= i the second is more
    by at least (i + 1 - k) / (k (i+1)^2) - 1 / (3 (i+1)^2 k^2) - 1 / (3 (i+1)^4) >= (1 - 1/3 - 1/12) / (k (i+1)^2)
    > 1 / (2 k (i+1)^2). So the winner l is i after a move exactly when the cell is fresh: fresh = step(step(l - i +
    1) + moved - 1).

    *Encoder.* Its keys are (1, -j) for j = -1, ..., n, with the symbols of the input and a blank at both ends. The
    query (c_{i+1} / (i+1), 1 / (i+1)) has the product (c_{i+1} - j) / (i+1): the nearest j wins, alone, and holds
    what cell c_{i+1} held at the start. The next symbol is step(v_l - fresh) + step(initial - (1 - fresh)).
    Induction. QED.

    *Float64.* Everything but the two scores is an integer, computed exactly. With u = 2^-53: c / (i+1) and 1 /
    (j+1) have one rounding each, their product one and the sum two, so each of the two large terms, at most 1 /
    (j+1) as |c| <= i + 1, errs by 5 u relatively and the small one by less than 9 u: together at most 12 u / (j+1).
    Two writes j' < j to the same cell differ in |a| by at least 1 / (3 (i+1)^2 (j'+1)^2 (j'+2)), since 1 - x^2 >= 1
    - x for x = (j'+1) / (j'+2); this exceeds both errors, at most 24 u / (j'+1) together, if 72 u (i+1)^2 (j'+1)
    (j'+2) < 1. With i + 1 <= 3,000 and j' + 2 <= 3,000 the left side is below 0.66. A write at another cell is
    (1/3) / (i+1)^2 > 3e-8 away; where the cell is fresh, j < i loses by at least 1 / (2 (i+1)^2 (j+1)), against 24
    u / (j+1); and at the encoder the nearest cell leads by 1 / (i+1), against 10 u (i + 1 + n) / (i + 1).

Assumptions
    horizon (**checked**): a float64 run takes at most 3,000 steps on at most 3,000 symbols; otherwise it is refused.

Certified
    Nothing is stored in a certificate. The tests run the exact rationals, in which the proof has no gap.

Not certified
    Float64 beyond the horizon, which is refused.

Example
    >>> from certiformer.compiler.machines.examples import busy_beaver
    >>> EncoderDecoder(busy_beaver(3), exact=True).run(steps=30).ones
    5

Tests
    tests/theorems/test_encoder_decoder.py
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from certiformer.compiler.machines.simulate import Result, Simulation
from certiformer.errors import BadInput
from certiformer.target.machine import Machine
from certiformer.theorem import Assumption, Theorem

THEOREM = Theorem(
    id="compiler.machines.encoder_decoder",
    title="An encoder-decoder with hard attention simulates a Turing machine for ever, in exact rationals.",
    kind="exact",
    sources=("perez2021",),
    verb="compile",
    assumptions=(
        Assumption("horizon", "a float64 run has at most 3,000 steps and symbols; more is refused", "checked"),
    ),
    uses=(),
)

HORIZON = 3_000

Vector = np.ndarray  # of Fractions or of float64


@dataclass
class Memory:
    """What the tokens so far offer to later ones: their moves, keys and values. A token never changes afterwards."""

    moves: list[Vector] = field(default_factory=list)
    keys: list[Vector] = field(default_factory=list)
    values: list[Vector] = field(default_factory=list)


class EncoderDecoder:
    """The weights for `machine`, evaluated in rationals (`exact`) or in float64."""

    def __init__(self, machine: Machine, exact: bool = False):
        self.machine, self.exact = machine, exact
        self._number = Fraction if exact else float
        states, symbols = len(machine.states), len(machine.symbols)
        sizes = {"state": states, "symbol": symbols, "left": 1, "right": 1}  # a token, as it is fed back
        sizes |= {"one": 1, "index": 1, "inverse": 1, "square": 1}  # its position
        sizes |= {"next": states, "write": symbols, "goes_left": 1, "goes_right": 1}  # from the table
        sizes |= {"cell": 1, "cell_before": 1}  # c_{i+1} / (i+1) and c_i / (i+1)
        sizes |= {"latest": symbols, "winner": 1, "initial": symbols, "fresh": 1, "read": symbols}
        self._at, at = {}, 0
        for name, size in sizes.items():
            self._at[name], at = slice(at, at + size), at + size
        self._width = at

    def run(self, symbols: Iterable[str] = (), steps: int = 100) -> Result:
        """Decode `steps` tokens, or fewer when the machine stops; the tape is rebuilt from the tokens."""
        word = self.machine.check_symbols(symbols)
        if not self.exact and (steps > HORIZON or len(word) > HORIZON):
            raise BadInput(
                f"float64 is proved for at most {HORIZON:,} steps and symbols, not {max(steps, len(word)):,}"
            )
        encoder = self._encode(word)
        memory = Memory()
        scratch = Simulation(self.machine, word)  # its tape and head only; its table is not used
        token = self._first(word)
        for step in range(steps):
            if scratch.stopped:
                break
            stream = self._decode(token, step, memory, encoder)
            token = np.concatenate([stream[self._at[part]] for part in ("next", "read", "goes_left", "goes_right")])
            written, moved = self._unit(stream, "write"), int(token[-1]) - int(token[-2])
            scratch.tape[scratch.cell] = self.machine.symbols[written]
            scratch.cell, scratch.step = scratch.cell + moved, step + 1
            scratch.state = self.machine.states[self._unit(stream, "next")]
            scratch.lowest, scratch.highest = min(scratch.lowest, scratch.cell), max(scratch.highest, scratch.cell)
            if self.machine.symbols[self._unit(stream, "read")] != scratch.symbol:
                raise ValueError("the decoder reads a symbol that was not written there")
        return scratch.result()

    def _decode(self, token: Vector, i: int, memory: Memory, encoder: tuple[Vector, Vector]) -> Vector:
        """The stream of token `i` after all layers; the tokens before it are in `memory`, which gets this one."""
        at, weights = self._at, self._weights
        x = self._zeros(self._width)
        x[: len(token)] = token
        inverse = self._number(1) / (i + 1)
        x[at["one"]], x[at["index"]] = self._number(1), self._number(i)
        x[at["inverse"]], x[at["square"]] = inverse, inverse * inverse
        x = x + weights["table.out"] @ self._step(weights["table.in"] @ x)
        memory.moves.append(weights["moves"] @ x)
        x[at["cell"]], x[at["cell_before"]] = (column.sum() / (i + 1) for column in np.array(memory.moves).T)
        memory.keys.append(weights["key"] @ x)
        memory.values.append(weights["recall"] @ x)
        x = x + memory.values[_hardest(np.array(memory.keys) @ (weights["query"] @ x))]
        initial_keys, initial_values = encoder
        x[at["initial"]] = initial_values[_hardest(initial_keys @ (weights["ask"] @ x))]
        for name in ("same", "fresh", "read"):
            x = x + weights[f"{name}.out"] @ self._step(weights[f"{name}.in"] @ x)
        return x

    @cached_property
    def _weights(self) -> dict[str, Any]:
        machine, at = self.machine, {name: part.start for name, part in self._at.items()}
        pairs = [(q, g) for q in range(len(machine.states)) for g in range(len(machine.symbols))]
        found = {"table.in": self._zeros(len(pairs), self._width), "table.out": self._zeros(self._width, len(pairs))}
        for number, (q, g) in enumerate(pairs):
            found["table.in"][number, [at["state"] + q, at["symbol"] + g]] = 1
            found["table.in"][number, at["one"]] = -1
            stay = (machine.symbols[g], "S", machine.states[q])
            write, move, following = machine.transition(machine.states[q], machine.symbols[g]) or stay
            found["table.out"][at["next"] + machine.states.index(following), number] = 1
            found["table.out"][at["write"] + machine.symbols.index(write), number] = 1
            if move != "S":
                found["table.out"][at["goes_left" if move == "L" else "goes_right"], number] = 1
        third = self._number(1) / 3
        found["moves"] = self._rows([{"goes_right": 1, "goes_left": -1}, {"right": 1, "left": -1}])
        found["query"] = self._rows([{"cell": 1}, {"inverse": 1}, {"square": third}])
        # c_i / (i+1) is `cell_before` of token i.
        found["key"] = self._rows([{"inverse": 1}, {"cell_before": -1}, {"square": 1}])
        found["ask"] = self._rows([{"cell": 1}, {"inverse": 1}])
        found["recall"] = self._zeros(self._width, self._width)
        for g in range(len(machine.symbols)):
            found["recall"][at["latest"] + g, at["write"] + g] = 1
        found["recall"][at["winner"], at["index"]] = 1
        # winner - index + 1 is 1 for the newest token; then both units join with whether the head has moved.
        found["same.in"] = self._rows([{"winner": 1, "index": -1, "one": 1}])
        found["same.out"] = self._rows([{"fresh": 1}]).T
        found["fresh.in"] = self._rows([{"fresh": 1, "goes_left": 1, "goes_right": 1, "one": -1}, {"fresh": 1}])
        found["fresh.out"] = self._rows([{"fresh": 1}, {"fresh": -1}]).T
        count = len(machine.symbols)
        found["read.in"], found["read.out"] = self._zeros(2 * count, self._width), self._zeros(self._width, 2 * count)
        for g in range(count):
            found["read.in"][g, [at["latest"] + g, at["fresh"]]] = 1, -1
            found["read.in"][count + g, [at["initial"] + g, at["fresh"], at["one"]]] = 1, 1, -1
            found["read.out"][at["read"] + g, [g, count + g]] = 1
        return found

    def _encode(self, word: tuple[str, ...]) -> tuple[Vector, Vector]:
        """Keys (1, -j) and unit vectors of the symbols, a blank before and after the input."""
        cells = [self.machine.blank, *word, self.machine.blank]
        keys, values = self._zeros(len(cells), 2), self._zeros(len(cells), len(self.machine.symbols))
        for place, symbol in enumerate(cells):
            keys[place] = [self._number(1), self._number(1 - place)]
            values[place, self.machine.symbols.index(symbol)] = self._number(1)
        return keys, values

    def _first(self, word: tuple[str, ...]) -> Vector:
        token = self._zeros(len(self.machine.states) + len(self.machine.symbols) + 2)
        token[0] = self._number(1)
        under = word[0] if word else self.machine.blank
        token[len(self.machine.states) + self.machine.symbols.index(under)] = self._number(1)
        return token

    def _rows(self, rows: list[dict[str, Any]]) -> Vector:
        matrix = self._zeros(len(rows), self._width)
        for row, entries in zip(matrix, rows, strict=True):
            for name, weight in entries.items():
                row[self._at[name]] = self._number(weight)
        return matrix

    def _zeros(self, *shape: int) -> Vector:
        return np.full(shape, Fraction(0), object) if self.exact else np.zeros(shape)

    def _step(self, values: Vector) -> Vector:
        zero: Any = self._number(0)
        one: Any = self._number(1)
        return np.minimum(np.maximum(values, zero), one)

    def _unit(self, stream: Vector, name: str) -> int:
        """The place of the 1; the entries must be exactly 0 and 1."""
        part = stream[self._at[name]].tolist()
        if sorted(part) != [0] * (len(part) - 1) + [1]:
            raise ValueError(f"{name} is not a unit vector")
        return part.index(1)


def _hardest(products: Vector) -> int:
    """The one key with the largest -|product|; the proof says that it is alone."""
    sizes = np.abs(products)
    best = [place for place, size in enumerate(sizes.tolist()) if size == sizes.min()]
    if len(best) != 1:
        raise ValueError("two keys have the same score")
    return best[0]
