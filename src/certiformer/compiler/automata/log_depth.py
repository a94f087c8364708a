"""The log-depth form: two blocks, applied log2 of the length times, compose the maps of the symbols.

The theorem, its proof and its rule are in `axioms.log_depth_automaton`. Every row holds a map from states to
states as Q numbers, and a pointer to an earlier row. One pass composes the row's map with that of the row it points to
and takes over that row's pointer, so that both reach twice as far (pointer jumping). The stream is laid out as

    map (Q) | rungs (Q (Q - 1)) | pointer (B) | arrived map (Q) | arrived pointer (B) | own code (B) | one

Block 0 looks up the row that the pointer names; its units write the arrived map g as rungs, rung (q, s) = [g(q) >= s],
exactly 0 or 1, and the arrived pointer in place of the old one. Block 1 has no attention: unit (q, s) is relu(f(s) + Q
[g(q) = s] - Q), which is f(g(q)) where g(q) = s and 0 elsewhere, as [g(q) = s] is the rung s less the rung s + 1. So
Q^2 units compose two maps, and about 4 Q^2 units do everything, where gates for all triples (q, s, f(s)) would be 2
Q^3. Weights do not depend on the length; only the B = log2(length) signs of a position and the number of passes do.
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.automata.parts import SHARPNESS, Tensors, Units, attention, bits_of, head, signs
from certiformer.errors import BadInput
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.model.config import Block, Code, Config, FeedForward, Input, Readout

MAX_STATES = 40  # 21 million weights


def passes_for(length: int) -> int:
    """How often a reach of one row must be doubled to cover `length` rows.

    >>> [passes_for(length) for length in (1, 2, 3, 4, 5, 1000)]
    [1, 1, 2, 2, 3, 10]
    """
    return max(1, (length - 1).bit_length())


def log_depth_automaton(automaton: Automaton, length: int, dtype: str) -> tuple[Config, Tensors]:
    """The transformer that reads words of up to `length` symbols in log2(length) passes."""
    states, symbols, rows = len(automaton.states), len(automaton.symbols), length + 1
    if states > MAX_STATES:
        raise BadInput(
            f"the log-depth form takes up to {MAX_STATES} states, not {states}, as its weights grow as the fourth power;"
            " take looped or chain-of-thought"
        )
    bits, rungs = bits_of(rows), states * (states - 1)
    pointer = states + rungs
    map_slot = pointer + bits
    pointer_slot = map_slot + states
    own = slice(pointer_slot + bits, pointer_slot + 2 * bits)
    one, width = own.stop, own.stop + 1
    lookup, compose = _lookup(states, bits), _compose(states)
    config = Config(
        Input("ids", tokens=rows, vocabulary=symbols + 1),
        width=width,
        outputs=2,
        readout=Readout("all"),
        code=Code("table"),
        blocks=(
            Block(attention(bits, states + bits), FeedForward(len(lookup))),
            Block(None, FeedForward(len(compose))),
        ),
        loops=passes_for(length),
        dtype=dtype,
    )
    embed, codes, read = np.zeros((symbols + 1, width)), np.zeros((rows, width)), np.zeros((width, 2))
    embed[:, :states] = [*automaton.following, range(states)]  # the token that begins a word is the identity
    numbers = np.arange(rows)
    codes[:, pointer:map_slot] = (1.0 + signs(np.maximum(numbers - 1, 0), bits)) / 2.0
    codes[:, own] = signs(numbers, bits)
    codes[:, one] = 1.0
    read[automaton.first] = 1.0
    # Twice a bit less one is a sign.
    query = {(pointer + b, b): 2.0 * SHARPNESS for b in range(bits)} | {(one, b): -SHARPNESS for b in range(bits)}
    carried = [(q, map_slot + q) for q in range(states)] + [(pointer + b, pointer_slot + b) for b in range(bits)]
    return config, {
        "embed.weight": embed,
        "code.table": codes,
        **head(width, query, own, carried),
        **lookup.tensors(0, width),
        **compose.tensors(1, width),
        "readout.weight": read,
        # The number of the state, and the same counted from between the states that reject and those that accept.
        "readout.bias": np.array([0.0, 0.5 - automaton.rejecting]),
    }


def _rung(states: int, q: int, s: int) -> int:
    """The coordinate of [g(q) >= s], s = 1, ..., Q - 1."""
    return states + q * (states - 1) + s - 1


def _lookup(states: int, bits: int) -> Units:
    units = Units()
    pointer = states * states
    map_slot, pointer_slot = pointer + bits, pointer + bits + states
    for q in range(states):
        for s in range(1, states):
            units.step(map_slot + q, [], s, _rung(states, q, s))
        units.clear(map_slot + q)
    for b in range(bits):
        units.step(pointer_slot + b, [], 1, pointer + b)
        units.clear(pointer_slot + b)
        units.clear(pointer + b)
    return units


def _compose(states: int) -> Units:
    units, most = Units(), float(states)
    for q in range(states):
        for s in range(states):
            ins = {s: 1.0}
            if s >= 1:
                ins[_rung(states, q, s)] = most
            if s + 1 < states:
                ins[_rung(states, q, s + 1)] = -most
            units.add(ins, 0.0 if s == 0 else -most, {q: 1.0})
        units.clear(q)
        for s in range(1, states):
            units.clear(_rung(states, q, s))
    return units
