"""One causal block, applied T times, is a finite automaton on words of up to T symbols: exactly, for every word.

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
    By the rule of situations (`kernel.situations`), with the meaning and the plan of `kernel.situations.automata`: before
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

from collections.abc import Mapping
from typing import Any

from certiformer.axioms.automaton_report import NOT_CLAIMED as NOT_CLAIMED
from certiformer.axioms.automaton_report import Report, claim, finding, report_of
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import AUTOMATON, CONFIG, MODEL
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.situations.automata import looped_automaton
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.looped_automaton",
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


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    automaton, (config, _) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    how = f"{config['loops']:,} passes of the block" if config["loops"] > 1 else "one pass of the block"
    return claim(automaton, config["input"]["tokens"] - 1, how, config["dtype"])


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    return finding(prove(Automaton.from_text(files[AUTOMATON]), *read_model(files[CONFIG], files[MODEL])))


def prove(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored block is the automaton; raises `Refused` with the reason when it is not."""
    walk = looped_automaton(automaton, config, tensors)
    return report_of(automaton, config["input"]["tokens"] - 1, walk)
