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
    *Arrivals.* Rows T + 1 + t, 0 <= t <= T, have the query lambda times the code of row t, which the causal mask shows.
    Values are the symbols (or `end`) of rows; rows of states have none. By `axioms.automaton_head` the slot of the
    symbol on row t lies in an interval around 1, the other slots in one around 0.

    *Hidden units.* Row T + 1 + t holds the state q, on which no pass has acted before (there is one block, one pass),
    and one of A + 1 slots is full. All Q (A + 1) situations are run through the stored hidden units
    (`axioms.automaton_units`): `next` must become the unit vector of the state that the table says, or on `end` that
    of the answer. The read-out copies `next`.

    *Induction.* On row T + 1 the token is the start state. If row T + 1 + t holds the state after t < L symbols, row t
    holds a_(t+1), so the next state is written on row T + 2 + t. At t = L <= T row t holds `end`, and the answer is
    written. QED.

Assumptions
    form (**checked**): one block of one causal softmax head and ReLU units, one pass, a table of position codes.
    weights (**checked**): the numbers satisfy what the proof uses, enumerated over all situations of a row.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all words of 0 to T symbols at once.

Not certified
    Words with more than T symbols; prompts of another shape; that the table is the language its author wanted.

Example
    >>> from certiformer.axioms.automaton_head import share_bounds
    >>> from certiformer.kernel.rounding import FORMATS
    >>> full = share_bounds(FORMATS["bfloat16"], 2002, 11, 32.0).slot(FORMATS["bfloat16"], 1, 1)
    >>> bool(full.low > 0.9), bool(full.high < 1.1)
    (True, True)

Tests
    tests/theorems/test_chain_of_thought_automaton.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certiformer.axioms.automaton_head import (
    HEAD,
    columns,
    own_codes,
    require_carried,
    require_form,
    require_rows,
    share_bounds,
    sharpness_of,
    sparse_row,
)
from certiformer.axioms.automaton_report import NOT_CLAIMED as NOT_CLAIMED
from certiformer.axioms.automaton_report import Report, claim, finding
from certiformer.axioms.automaton_units import HiddenUnits, Situations
from certiformer.kernel.balls import working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import AUTOMATON, CONFIG, MODEL
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.weights import Tensor, read_model
from certiformer.target.automaton import Automaton

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
    working_precision()
    states, kinds = len(automaton.states), len(automaton.symbols) + 1
    following = states + kinds
    arrival = following + states + 2
    rest = arrival + kinds
    attention = config["blocks"][0]["attention"] if config["blocks"] else None
    bits = attention["heads"][0]["key"] if attention else 0
    require_form(config, 1, kinds + states, states + 2, rest + 2 * bits)
    rows, form = config["input"]["tokens"], FORMATS[config["dtype"]]
    if config["loops"] != 1 or rows < 2 or rows % 2:
        raise Refused("a chain of thought has one pass, and room for a prompt and as many states")
    _require_ends(automaton, tensors, following)
    sharpness = _require_lookups(tensors, rest, bits)
    require_carried(tensors, {states + a: arrival + a for a in range(kinds)})
    shares = share_bounds(form, rows, bits, sharpness)
    full, empty = shares.slot(form, 1, 1), shares.slot(form, 0, 1)
    units = HiddenUnits.read(tensors, 0)
    if any(c >= rest for c in units.read_coordinates | units.written_coordinates):
        raise Refused("a hidden unit reads or changes the position of a row")
    situations = Situations(units, form, range(arrival, rest), must_empty=False)
    slots = {arrival + a: empty for a in range(kinds)}
    answers = tuple(states + (q >= automaton.rejecting) for q in range(states))
    for q, name in enumerate(automaton.numbered):
        sums, live = situations.live({q: 1}, dict.fromkeys(slots, full))
        for kind, after in enumerate((*automaton.following, answers)):
            found = situations.after({q: 1}, {**slots, arrival + kind: full}, sums, live)
            # Only `next` is read out; what happens to the rest of the row is of no consequence.
            if {c: v for c, v in found.items() if following <= c < arrival} != {following + after[q]: 1}:
                read = (*automaton.symbols, "the end")[kind]
                raise Refused(f"the decoder does not write what the table says when {name} reads {read}")
    return Report(automaton, rows // 2 - 1, config["dtype"], shares.leak, situations.margin, situations.count)


def _require_ends(automaton: Automaton, tensors: Mapping[str, Tensor], following: int) -> None:
    states, kinds = len(automaton.states), len(automaton.symbols) + 1
    tokens = [{states + a: 1.0} for a in range(kinds)] + [{q: 1.0} for q in range(states)]
    require_rows(tensors["embed.weight"], tokens, "the embedding")
    width, outputs = tensors["readout.weight"].shape
    copied = {following + output: {output: 1.0} for output in range(outputs)}
    require_rows(tensors["readout.weight"], [copied.get(c, {}) for c in range(width)], "the read-out")
    if any(tensors["readout.bias"].data):
        raise Refused("the read-out adds a constant")


def _require_lookups(tensors: Mapping[str, Tensor], rest: int, bits: int) -> float:
    """Row T + 1 + t looks at row t; returns lambda."""
    codes, own, ahead = tensors["code.table"], rest, rest + bits
    if columns(tensors[f"{HEAD}.key"]) != [{own + b: 1.0} for b in range(bits)]:
        raise Refused("the keys are not the codes of the rows")
    sharpness = sharpness_of(columns(tensors[f"{HEAD}.query"]), [{ahead + b: 1.0} for b in range(bits)])
    known = own_codes(codes, slice(own, ahead))
    for row in range(codes.shape[0]):
        entries = sparse_row(codes, row)
        if any(c < rest for c in entries):
            raise Refused(f"the position code of row {row} changes the content")
        looked = known.get(tuple(entries.get(ahead + b, 0.0) for b in range(bits)))
        if row >= codes.shape[0] // 2 and looked != row - codes.shape[0] // 2:
            raise Refused(f"row {row} does not look at the symbol it has to read")
    return sharpness
