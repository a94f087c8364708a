"""A decoder with one block runs a finite automaton by writing down one state for every symbol: exactly, for every word.

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
    By the rule of situations (`kernel.situations`), with the meaning and the plan of `kernel.situations.automata`.

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

from collections.abc import Mapping
from typing import Any

from certiformer.axioms.automaton_report import NOT_CLAIMED as NOT_CLAIMED
from certiformer.axioms.automaton_report import Report, claim, finding, report_of
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import AUTOMATON, CONFIG, MODEL
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.situations.automata import written_automaton
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.chain_of_thought_automaton",
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


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    automaton, (config, _) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    return claim(automaton, config["input"]["tokens"] // 2 - 1, "the tokens that the decoder writes", config["dtype"])


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    return finding(prove(Automaton.from_text(files[AUTOMATON]), *read_model(files[CONFIG], files[MODEL])))


def prove(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored decoder is the automaton; raises `Refused` with the reason when it is not."""
    walk = written_automaton(automaton, config, tensors)
    return report_of(automaton, config["input"]["tokens"] // 2 - 1, walk)
