"""A decoder with one block runs a finite automaton by writing down one state for every symbol: exactly, for every word.

The chain-of-thought form: a causal decoder with one block writes down one state for every symbol, then the answer.
For words of up to T symbols the prompt is the word, filled up to T + 1 tokens with the token `end`, and then the
start state. So row T + 1 + t, which holds the state after t symbols, finds the next symbol (or `end`) on row t at
every length of the word. The decoder writes the states after 1, 2, ... symbols, one token each, and on meeting `end`
the answer. The stream of a token is laid out as

    state (Q) | symbol or end (A + 1) | next (Q + 2) | arrival (A + 1) | own code (B) | code of the row to look at (B)

where `next` is a state, or `rejected`, or `accepted`: 2 Q (A + 1) hidden units.

Statement
    Let a complete deterministic automaton with Q states and A symbols be given by its table. For a word a_1, ..., a_L
    with L <= T the prompt is the word on rows 0 to L - 1, the token `end` on rows L to T, and the start state on row T
    + 1. Suppose the stored decoder passes the checks below. Then for every such word, the empty one too, greedy
    decoding writes the states after 1, 2, ..., L symbols and then `accepted` or `rejected`, whichever is true: on every
    row that decides a token the outputs are exactly the unit vector of that token, in real arithmetic and in every run
    in the stored type.

Source
    Own derivation. That n + 1 steps of chain of thought suffice for a regular language is in Merrill and Sabharwal 2024
    (merrill2024).

Differs from the source in
    Softmax instead of saturated attention, no layer-norm hash: the prompt is filled up to a fixed length, so that the
    row to look at depends on the position only, and positions are sign vectors with a constant lead. Checked from
    weights.

Proof
    By the rule of situations, with the meaning and the plan of its module of this name (`kernel.situations`).

    *Arrivals.* Row T + 1 + t, 0 <= t <= T, looks at row t, which the causal mask shows, and gets its symbol (or `end`) in
    a slot: an interval around 1, the other slots in one around 0.

    *Hidden units.* Row T + 1 + t holds the state q. All Q (A + 1) situations are run through the stored hidden units:
    `next` must become the unit vector of the state that the table says, or on `end` that of the answer. The read-out is
    compared with it.

    *Induction.* On row T + 1 the token is the start state. If row T + 1 + t holds the state after t < L symbols, row t
    holds a_(t+1), so the next state is written on row T + 2 + t. At t = L <= T row t holds `end`, and the answer is
    written. QED.

Assumptions
    form (**checked**): softmax heads, ReLU units and residuals, one pass, a table of rows.
    weights (**checked**): the numbers satisfy what the proof uses, enumerated over all situations of a row.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all words of 0 to T symbols at once.

Not certified
    Words with more than T symbols; prompts of another shape; that the table is the language its author wanted.

Example
    >>> from flint import arb
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.kernel.situations.heads import shares_of
    >>> shares = shares_of(FORMATS["bfloat16"], 2001, arb(64))
    >>> bool(shares.low > 0.9), bool(shares.high < 1.1)
    (True, True)

Tests
    tests/theorems/test_chain_of_thought_automaton.py
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.automata.parts import SHARPNESS, Tensors, Units, attention, bits_of, head, signs
from certiformer.compiler.tensors import require_room
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.model.config import Block, Code, Config, FeedForward, Input, Readout

THEOREM = {
    "id": "compiler.automata.chain_of_thought_automaton",
    "title": "A one-block decoder runs a finite automaton in one written state per symbol, exactly, for every word.",
    "kind": "exact",
    "sources": (
        "classical",
        "merrill2024",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one block of one causal softmax head and ReLU units, a table of position codes", "checked"),
        ("weights", "scores, values and hidden units act as the table says in every situation", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}


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
