"""The weights of the looped block: one pass of the one block is one step of the machine, at every cell at once.

The theorem, its proof and its rule are in `axioms.looped_machine`; `layout` says what the coordinates hold.

*Attention.* Two heads. The left head of cell i looks at cell i - 1 and brings the next state if the machine moves
right from there; the right head looks at i + 1 and brings it if the machine moves left. At an end of the tape a cell
looks at itself, which the hidden units below ignore. Scores are SHARPNESS times the product of two sign vectors: the
wanted cell leads by at least 2 SHARPNESS = 64, whatever the length of the tape, and scores are small integers,
exact in every stored type. (On a circle code the lead is SHARPNESS (1 - cos(2 pi / n)), which for n = 400 needs scores
of half a million, where float32 knows them to 1/32 only; with the code (pos, pos^2) scores reach SHARPNESS n^2.)
exp(-64) n is below 2^-53 for every tape up to a million cells, so that in float64 the share of the wanted cell is 1.

*Hidden units.* For a transition of the pair (q, g) that writes w:

- move: relu(pair - end), where `end` is the end of the tape that the move would leave (none for S): erases the pair
  and the symbol, writes w, and for S the new pair;
- off: relu(pairs that move left + left end - 1), and the same on the right: raises `off`; relu(off) takes the old one away;
- arrival of state q on symbol g, two units:
  2 relu(arrival_q - (other symbols) - (all pairs) - 1/4) - 2 relu(arrival_q - (other symbols) - (all pairs) - 3/4),
  exactly 0 or 1 as long as the arrival is within 1/4 of 0 or 1; relu(arrival_q) empties the slot.

So 1 + 2 + (transitions) + (states entered by a move) (1 + 2 G) units: 43 for the five-state busy beaver.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.compiler.machines.layout import Layout, cell_signs
from certiformer.compiler.tensors import require_room
from certiformer.kernel.meanings.machine import Machine
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout

SHARPNESS = 32.0
_HEAD, _FFN = "blocks.0.attention.groups.0", "blocks.0.ffn"

Tensors = dict[str, Float[np.ndarray, "..."]]


class _Units:
    """Hidden units, collected one by one."""

    def __init__(self) -> None:
        self.ins: list[dict[int, float]] = []
        self.biases: list[float] = []
        self.outs: list[dict[int, float]] = []

    def add(self, ins: dict[int, float], bias: float, outs: dict[int, float]) -> None:
        self.ins.append(ins)
        self.biases.append(bias)
        self.outs.append(outs)

    def tensors(self, width: int) -> Tensors:
        up, down = np.zeros((width, len(self.ins))), np.zeros((len(self.ins), width))
        for unit, (ins, outs) in enumerate(zip(self.ins, self.outs, strict=True)):
            up[list(ins), unit] = list(ins.values())
            down[unit, list(outs)] = list(outs.values())
        biases = {f"{_FFN}.up_bias": np.array(self.biases), f"{_FFN}.down_bias": np.zeros(width)}
        return {f"{_FFN}.up": up, f"{_FFN}.down": down, **biases}


def looped_block(machine: Machine, layout: Layout, dtype: str) -> tuple[Config, Tensors]:
    """The transformer whose block is one step; its numbers are exact in every stored type."""
    units = _units(machine, layout)
    config = Config(
        Input("ids", tokens=layout.cells, vocabulary=layout.vocabulary),
        width=layout.width,
        outputs=layout.outputs,
        readout=Readout("all"),
        code=Code("table"),
        blocks=(Block(Attention((Heads(2, layout.bits, layout.states),), scale="unit"), FeedForward(len(units.ins))),),
        dtype=dtype,
    )
    require_room(config, "take a smaller --tape")
    read = np.eye(layout.width, layout.outputs)
    tensors = {
        "embed.weight": _embedding(layout),
        "code.table": _codes(layout),
        **_heads(machine, layout),
        **units.tensors(layout.width),
        "readout.weight": read,
        "readout.bias": np.zeros(layout.outputs),
    }
    return config, tensors


def _embedding(layout: Layout) -> Float[np.ndarray, "vocabulary width"]:
    tokens = np.arange(layout.vocabulary)
    rows = np.zeros((layout.vocabulary, layout.width))
    rows[tokens, tokens % layout.symbols] = 1.0
    rows[tokens[layout.symbols :], tokens[layout.symbols :]] = 1.0
    return rows


def _codes(layout: Layout) -> Float[np.ndarray, "cells width"]:
    rows, signs = np.zeros((layout.cells, layout.width)), cell_signs(layout)
    own = np.arange(layout.cells)
    rows[0, layout.left_end] = rows[-1, layout.right_end] = 1.0
    rows[:, layout.code(0)] = signs
    rows[:, layout.code(1)] = signs[np.maximum(own - 1, 0)]
    rows[:, layout.code(2)] = signs[np.minimum(own + 1, layout.cells - 1)]
    return rows


def _heads(machine: Machine, layout: Layout) -> Tensors:
    query = np.zeros((2, layout.width, layout.bits))
    key, value = np.zeros_like(query), np.zeros((2, layout.width, layout.states))
    output = np.zeros((2, layout.states, layout.width))
    for head in (0, 1):
        query[head, layout.code(1 + head)] = SHARPNESS * np.eye(layout.bits)
        key[head, layout.code(0)] = np.eye(layout.bits)
        output[head, :, layout.arrival(0) : layout.arrival(layout.states)] = np.eye(layout.states)
    for (state, read), (_, move, following) in machine.table.items():
        if move != "S":
            pair = layout.pair(machine.states.index(state), machine.symbols.index(read))
            value[0 if move == "R" else 1, pair, machine.states.index(following)] = 1.0
    parts = {"query": query, "key": key, "value": value, "output": output}
    return {f"{_HEAD}.{name}": tensor for name, tensor in parts.items()}


def _units(machine: Machine, layout: Layout) -> _Units:
    units = _Units()
    states, symbols = machine.states.index, machine.symbols.index
    leaving: dict[str, list[int]] = {"L": [], "R": []}
    entered: set[int] = set()
    ends = {"L": layout.left_end, "R": layout.right_end}
    for (state, read), (write, move, following) in machine.table.items():
        pair = layout.pair(states(state), symbols(read))
        change: dict[int, float] = {pair: -1.0}
        for coordinate, amount in ((symbols(read), -1.0), (symbols(write), 1.0)):
            change[coordinate] = change.get(coordinate, 0.0) + amount
        if move == "S":
            after = layout.pair(states(following), symbols(write))
            change[after] = change.get(after, 0.0) + 1.0
        else:
            leaving[move].append(pair)
            entered.add(states(following))
        blocked = {ends[move]: -1.0} if move in ends else {}
        units.add({pair: 1.0, **blocked}, 0.0, change)
    for move, pairs in leaving.items():
        if pairs:
            units.add({**dict.fromkeys(pairs, 1.0), ends[move]: 1.0}, -1.0, {layout.off: 1.0})
    units.add({layout.off: 1.0}, 0.0, {layout.off: -1.0})
    for state in sorted(entered):
        slot = layout.arrival(state)
        for symbol in range(layout.symbols):
            against = [s for s in range(layout.symbols) if s != symbol]
            against += range(layout.pairs.start, layout.pairs.stop)
            for threshold, factor in ((0.25, 2.0), (0.75, -2.0)):
                ins = {slot: 1.0, **dict.fromkeys(against, -1.0)}
                units.add(ins, -threshold, {layout.pair(state, symbol): factor})
        units.add({slot: 1.0}, 0.0, {slot: -1.0})
    return units
