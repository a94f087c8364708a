"""One causal block, applied T times, is a finite automaton on words of up to T symbols: exactly, for every word.

The looped form: one block, applied as often as a word may have symbols. The stream of a token is laid out as

    state (Q) | symbol (A) | first | arrival (Q) | own code (B) | code of the row before (B)

for Q states and A symbols. Row 0 is the token that begins a word: it holds the start state and the flag `first`; the
symbols follow. The head of a row brings the state of the row before it into `arrival`, and for every pair of a state
and a symbol two hidden units turn it into the next state: 2 Q A + 2 Q units with those that empty arrival and old
state. After k passes the rows 0 to k hold their states, for good.

Statement
    Let a complete deterministic automaton with Q states and A symbols be given by its table. A word a_1, ..., a_L with
    L <= T is fed as the token that begins a word, on row 0, and its symbols, on rows 1 to L. Suppose the stored block
    passes the checks below. Then for every such word, the empty one too, after k passes the rows 0 to min(k, L) hold
    exactly the unit vector of the state after as many symbols, and the other rows hold no state; so after T passes,
    which the transformer makes, every row reads out its state, as a unit vector, and one bit that says whether the
    state accepts, in real arithmetic and in every run in the stored type.

Source
    Own derivation; that one looped block can run a machine is in Giannou et al. 2023 (giannou2023). Liu et al. 2023
    (liu2023) build shallower transformers, see `log_depth_automaton`.

Differs from the source in
    Positions are sign vectors, so scores are small integers and the wanted row leads by the same amount at every
    length. Hidden units turn what the softmax leaks into exact bits; the claim is checked from the stored weights.

Proof
    By the rule of situations, with the meaning and the plan of its module of this name (`kernel.situations`): before
    pass k + 1 row 0 holds the start state and its flag, rows 1 to k a symbol and their state, later rows a symbol only.

    *Arrivals.* Every row looks at row max(i - 1, 0), a row that the causal mask shows, and gets the state of that row, if
    it has one, in a slot: an interval around 1, and all other slots in one around 0.

    *Hidden units.* The situations of a row are all combinations of where it stands (row 0, up to row k, row k + 1, later),
    the state before it and its symbol. In each of them the stored units leave the symbol and the flag alone, empty all
    slots, and leave the state that the table says. So row 0 stays, row i <= k stays, row k + 1 gets its state, later
    rows get none: what holds before a pass holds after it, one row further. Induction over k. The read-out is compared
    with state and answer. QED.

Assumptions
    form (**checked**): softmax heads, ReLU units and residuals, T passes, a table of rows.
    weights (**checked**): the numbers satisfy what the proof uses, enumerated over all situations of a row.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all words of 0 to T symbols at once.

Not certified
    Words with more than T symbols; that the table is the language its author wanted.

Example
    >>> from flint import arb
    >>> from certiformer.kernel.rounding import FORMATS
    >>> from certiformer.kernel.situations.heads import shares_of
    >>> shares = shares_of(FORMATS["float32"], 1000, arb(64))
    >>> bool(shares.low > 0.999), bool(shares.leak < 1e-27)
    (True, True)

Tests
    tests/theorems/test_looped_automaton.py
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.automata.parts import SHARPNESS, Tensors, Units, attention, bits_of, head, signs
from certiformer.compiler.tensors import require_room
from certiformer.errors import BadInput
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.model.config import Block, Code, Config, FeedForward, Input, Readout

THEOREM = {
    "id": "compiler.automata.looped_automaton",
    "title": "One looped block is a finite automaton, exactly, for every word up to the length it was made for.",
    "kind": "exact",
    "sources": (
        "classical",
        "giannou2023",
        "liu2023",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one block of one causal softmax head and ReLU units, a table of position codes", "checked"),
        ("weights", "scores, values and hidden units act as the table says in every situation", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}

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
