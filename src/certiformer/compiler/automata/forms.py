"""The three forms of a compiled automaton: their configurations, tensors and layouts.

*Looped*: one block, applied as often as a word may have symbols. The theorem, its proof and its rule are in
`axioms.looped_automaton`. The stream of a token is laid out as

    state (Q) | symbol (A) | first | arrival (Q) | own code (B) | code of the row before (B)

for Q states and A symbols. Row 0 is the token that begins a word: it holds the start state and the flag `first`; the
symbols follow. The head of a row brings the state of the row before it into `arrival`, and for every pair of a state
and a symbol two hidden units turn it into the next state: 2 Q A + 2 Q units with those that empty arrival and old
state. After k passes the rows 0 to k hold their states, for good.

*Log-depth*: two blocks, applied log2 of the length times, compose the maps of the symbols. The theorem, its proof and
the weights are in `axioms.log_depth_automaton`. Every row holds a map from states to states as Q numbers, and a
pointer to an earlier row. One pass composes the row's map with that of the row it points to and takes over that row's
pointer, so that both reach twice as far (pointer jumping). Weights do not depend on the length; only the log2(length)
signs of a position and the number of passes do.

*Chain of thought*: a causal decoder with one block writes down one state for every symbol, then the answer. The
theorem, its proof and its rule are in `axioms.chain_of_thought_automaton`. For words of up to T symbols the prompt is
the word, filled up to T + 1 tokens with the token `end`, and then the start state. So row T + 1 + t, which holds the
state after t symbols, finds the next symbol (or `end`) on row t at every length of the word. The decoder writes the
states after 1, 2, ... symbols, one token each, and on meeting `end` the answer. The stream of a token is laid out as

    state (Q) | symbol or end (A + 1) | next (Q + 2) | arrival (A + 1) | own code (B) | code of the row to look at (B)

where `next` is a state, or `rejected`, or `accepted`: 2 Q (A + 1) hidden units.
"""

from __future__ import annotations

import numpy as np

from certiformer.axioms.log_depth_automaton import construction
from certiformer.compiler.automata.parts import SHARPNESS, Tensors, Units, attention, bits_of, head, signs
from certiformer.compiler.tensors import arrays, require_room
from certiformer.errors import BadInput
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


MAX_STATES = 40  # 21 million weights


def log_depth_automaton(automaton: Automaton, length: int, dtype: str) -> tuple[Config, Tensors]:
    """The transformer that reads words of up to `length` symbols in log2(length) passes."""
    states = len(automaton.states)
    if states > MAX_STATES:
        raise BadInput(
            f"the log-depth form takes up to {MAX_STATES} states, not {states}, as its weights grow as the fourth power;"
            " take looped or chain-of-thought"
        )
    made = construction(automaton, length, dtype)
    return Config.from_json(made.config), arrays(made)


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
