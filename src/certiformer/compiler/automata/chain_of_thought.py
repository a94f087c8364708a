"""The chain-of-thought form: a causal decoder with one block writes down one state for every symbol, then the answer.

The theorem, its proof and its rule are in `axioms.chain_of_thought_automaton`. For words of up to T symbols the
prompt is the word, filled up to T + 1 tokens with the token `end`, and then the start state. So row T + 1 + t, which
holds the state after t symbols, finds the next symbol (or `end`) on row t at every length of the word. The decoder
writes the states after 1, 2, ... symbols, one token each, and on meeting `end` the answer. The stream of a token is
laid out as

    state (Q) | symbol or end (A + 1) | next (Q + 2) | arrival (A + 1) | own code (B) | code of the row to look at (B)

where `next` is a state, or `rejected`, or `accepted`: 2 Q (A + 1) hidden units.
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.automata.parts import SHARPNESS, Tensors, Units, attention, bits_of, head, signs
from certiformer.compiler.room import require_room
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.model.config import Block, Code, Config, FeedForward, Input, Readout


def chain_of_thought_automaton(automaton: Automaton, length: int, dtype: str) -> tuple[Config, Tensors]:
    """The decoder that reads words of up to `length` symbols; its tokens are symbols, `end`, and states."""
    states, kinds, rows = len(automaton.states), len(automaton.symbols) + 1, 2 * length + 2
    bits, outputs = bits_of(rows), states + 2
    following = states + kinds
    arrival = following + outputs
    own = slice(arrival + kinds, arrival + kinds + bits)
    width = own.stop + bits
    units = Units()
    answers = tuple(states + (q >= automaton.rejecting) for q in range(states))
    for kind, after in enumerate((*automaton.following, answers)):
        for q in range(states):
            units.step(arrival + kind, [p for p in range(states) if p != q], 1, following + after[q])
    config = Config(
        Input("ids", tokens=rows, vocabulary=kinds + states),
        width=width,
        outputs=outputs,
        readout=Readout("all"),
        code=Code("table"),
        blocks=(Block(attention(bits, kinds), FeedForward(len(units))),),
        dtype=dtype,
    )
    require_room(config, "take an automaton with fewer states or symbols, or a smaller --length")
    embed, codes, read = np.zeros((kinds + states, width)), np.zeros((rows, width)), np.zeros((width, outputs))
    embed[range(kinds), range(states, following)] = 1.0
    embed[range(kinds, kinds + states), range(states)] = 1.0
    numbers = np.arange(rows)
    codes[:, own] = signs(numbers, bits)
    # What the rows of the prompt look at does not matter; they look at row 0, which every row may see.
    codes[:, own.stop :] = signs(np.maximum(numbers - length - 1, 0), bits)
    read[range(following, arrival), range(outputs)] = 1.0
    query = {(own.stop + b, b): SHARPNESS for b in range(bits)}
    return config, {
        "embed.weight": embed,
        "code.table": codes,
        **head(width, query, own, [(states + a, arrival + a) for a in range(kinds)]),
        **units.tensors(0, width),
        "readout.weight": read,
        "readout.bias": np.zeros(outputs),
    }
