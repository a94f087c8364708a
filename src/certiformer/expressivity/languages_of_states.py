r"""Regular languages with k states: one looped block suffices, and so many bits are needed.

What tells automata apart is the table of states and symbols; naming the states in another order does not count. Both
counts agree in their leading term, (a - 1) k log2 k.

Statement
---------
Let R be the languages of words of up to T symbols out of a that complete deterministic automata with at most k states
accept.

(a) For each there is a block of the form of `compiler.automata.looped_automaton`, applied T times, with one head,
2 k (a + 1) hidden units and at most a k (2 a + 6) + 9 k + a + 2 + 2 B (T + 2) nonzero weights, where
B = max(1, ceil(log2(T + 1))), of which 2 a k outgoing weights of its units and k of the answer depend on the language.

(b) |R| <= sum_{m=1}^{k} m^(a m) 2^m / (m - 1)!.

(c) Let a >= 2 and q = min(k, floor((T + 1)/2)). Then |R| >= q^((a-1) q). For a = 1 and q = min(k, T + 1), |R| >= 2^q.

Hence, for T >= 2 k - 1 and a >= 2, the bits of (b) and (c) are both (a - 1) k log2 k up to a term linear in k.

Source
------
Classical: Domaratzki, Kisman and Shallit 2002 count languages of automata with two letters in this way.

Differs from the source in
--------------------------
Words of bounded length, any alphabet, every constant explicit.

Proof
-----
(a) The construction, its weights counted. Languages of fewer states have smaller tables.

(b) Take for each language an automaton with the least number m of states. All of them are reached from the start.
Renaming the m - 1 others gives (m - 1)! different automata, because a renaming that changes nothing leaves every state
that is reached where it is. There are m^(a m) 2^m automata with m numbered states and the first as start.

(c) Let the first symbol, 0, lead from state i to i + 1 modulo q, let the other a - 1 symbols do anything, and accept in
state 0 alone, where it starts. State i is reached by 0^i, and is the only one that 0^j accepts from, j = (q - i) mod q.
So the state after 0^i s is read off which of the words 0^i s 0^j, j < q, are accepted; they have at most 2 q - 1 <= T
symbols. Different tables of the other symbols thus accept different words. For a = 1 accept in any set of states: 0^i,
i < q, tells it. QED.

Assumptions
-----------
- complete: **checked** automata are complete and deterministic (the file is refused otherwise, or completed when asked).

Certified
---------
`weights` and `described_bits` are rounded up, `needed_bits` is rounded down. The block of an automaton is proved when it is
compiled, for all words at once.

Not certified
-------------
Other devices for regular languages, such as expressions, which may describe some with fewer bits. How many passes are
needed: `axioms.log_depth_automaton` has log2 T, at the price of about 4 k^2 units.

Example
-------
Ten states, two symbols, words of up to 100 symbols:

>>> described_bits(10, 2), needed_bits(10, 2, 100), weights(10, 2, 100)
(58, 33, 1722)

Tests
-----
`tests/theorems/test_languages_of_states.py`
"""

from __future__ import annotations

import math
from fractions import Fraction

from certiformer.errors import BadInput
from certiformer.expressivity.logarithms import log2_above, log2_below

THEOREM = {
    "id": "expressivity.languages_of_states",
    "title": "Regular languages with k states: one looped block suffices, and so many bits are needed",
    "kind": "upper bound",
    "sources": ("classical",),
    "verb": "size",
    "assumptions": (("complete", "Automata are complete and deterministic.", "checked"),),
    "uses": ("compiler.automata.looped_automaton",),
}


def weights(states: int, symbols: int, length: int) -> int:
    """At most so many nonzero weights does the looped block have."""
    digits = max(1, length.bit_length())
    tables = symbols * states * (2 * symbols + 6)
    return tables + 9 * states + symbols + 2 + 2 * digits * (length + 2)


def width(states: int, symbols: int, length: int) -> int:
    """The width of its stream."""
    return 2 * states + symbols + 1 + 2 * max(1, length.bit_length())


def described_bits(states: int, symbols: int) -> int:
    """The logarithm of (b), rounded up."""
    _require(states, symbols)
    count = sum(Fraction(m ** (symbols * m) * 2**m, math.factorial(m - 1)) for m in range(1, states + 1))
    return math.ceil(log2_above(math.ceil(count)))


def needed_bits(states: int, symbols: int, length: int) -> int:
    """The logarithm of (c), rounded down."""
    _require(states, symbols)
    if symbols == 1:
        return min(states, length + 1)
    told = min(states, (length + 1) // 2)
    return math.floor((symbols - 1) * told * log2_below(told)) if told else 0


def _require(states: int, symbols: int) -> None:
    if states < 1 or symbols < 1:
        raise BadInput("an automaton has at least one state and one symbol")
