"""The looped form: one block, applied as often as a word may have symbols.

The theorem, its proof and its rule are in `axioms.looped_automaton`. The stream of a token is laid out as

    state (Q) | symbol (A) | first | arrival (Q) | own code (B) | code of the row before (B)

for Q states and A symbols. Row 0 is the token that begins a word: it holds the start state and the flag `first`; the
symbols follow. The head of a row brings the state of the row before it into `arrival`, and for every pair of a state
and a symbol two hidden units turn it into the next state: 2 Q A + 2 Q units with those that empty arrival and old
state. After k passes the rows 0 to k hold their states, for good.
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.automata.parts import SHARPNESS, Tensors, Units, attention, bits_of, head, signs
from certiformer.compiler.room import require_room
from certiformer.errors import BadInput
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.model.config import Block, Code, Config, FeedForward, Input, Readout

MAX_LENGTH = 1_000  # as many passes as the checker follows


def looped_automaton(automaton: Automaton, length: int, dtype: str) -> tuple[Config, Tensors]:
    """The transformer that reads words of up to `length` symbols in `length` passes."""
    if length > MAX_LENGTH:
        raise BadInput(
            f"the looped form reads words of up to {MAX_LENGTH:,} symbols, not {length:,}; take chain-of-thought or"
            " log-depth"
        )
    states, symbols, rows = len(automaton.states), len(automaton.symbols), length + 1
    first, bits = states + symbols, bits_of(rows)
    arrival = first + 1
    own = slice(arrival + states, arrival + states + bits)
    width = own.stop + bits
    units = Units()
    for a, following in enumerate(automaton.following):
        others = [states + b for b in range(symbols) if b != a] + [first]
        for q, after in enumerate(following):
            units.step(arrival + q, others, 1, after)
    for q in range(states):
        units.clear(arrival + q)
        units.clear(q, unless=first)
    config = Config(
        Input("ids", tokens=rows, vocabulary=symbols + 1),
        width=width,
        outputs=states + 1,
        readout=Readout("all"),
        code=Code("table"),
        blocks=(Block(attention(bits, states), FeedForward(len(units))),),
        loops=length,
        dtype=dtype,
    )
    require_room(config, "take an automaton with fewer states or symbols")
    embed, codes, read = np.zeros((symbols + 1, width)), np.zeros((rows, width)), np.zeros((width, states + 1))
    embed[range(symbols), range(states, first)] = 1.0
    embed[symbols, [automaton.first, first]] = 1.0
    numbers = np.arange(rows)
    codes[:, own] = signs(numbers, bits)
    codes[:, own.stop :] = signs(np.maximum(numbers - 1, 0), bits)
    read[range(states), range(states)] = 1.0
    read[automaton.rejecting : states, states] = 1.0
    query = {(own.stop + b, b): SHARPNESS for b in range(bits)}
    return config, {
        "embed.weight": embed,
        "code.table": codes,
        **head(width, query, own, [(q, arrival + q) for q in range(states)]),
        **units.tensors(0, width),
        "readout.weight": read,
        "readout.bias": np.zeros(states + 1),
    }
