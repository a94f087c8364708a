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
    *Arrivals.* The query of row i is lambda times the code of row max(i - 1, 0), a row that the causal mask shows.
    Values are states: unit vectors, or zero. By `axioms.automaton_head` the slot of the state of that row, if it has
    one, lies in an interval around 1, and all other slots in one around 0.

    *Hidden units.* Let row 0 hold the start state and its flag, rows 1 to k hold a symbol and their state, later rows a
    symbol only. In the next pass the situations of a row are: row 0, which sees itself; a row with symbol a, the state
    q arriving, and either no state of its own or already the state that a leads to from q; a row with nothing arriving
    and no state of its own. All are run through the stored hidden units (`axioms.automaton_units`), which must leave
    the symbol and the flag alone, empty all slots, and leave the state that the table says. So row 0 stays, row i <= k
    stays, row k + 1 gets its state, later rows get none. Induction over k. The read-out is a sum over a unit vector.
    QED.

Assumptions
    form (**checked**): one block of one causal softmax head and ReLU units, T passes, a table of position codes.
    weights (**checked**): the numbers satisfy what the proof uses, enumerated over all situations of a row.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between attention and hidden units
    is one array of numbers of the stored type.

Certified
    The statement, for all words of 0 to T symbols at once.

Not certified
    Words with more than T symbols; that the table is the language its author wanted.

Example
    >>> from certiformer.axioms.automaton_head import share_bounds
    >>> from certiformer.kernel.rounding import FORMATS
    >>> full = share_bounds(FORMATS["float32"], 1001, 10, 32.0).slot(FORMATS["float32"], 1, 1)
    >>> bool(full.low > 0.999), bool(full.high < 1.001)
    (True, True)

Tests
    tests/theorems/test_looped_automaton.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from certiformer.axioms.automaton_head import (
    HEAD,
    Slot,
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
    working_precision()
    states, symbols = len(automaton.states), len(automaton.symbols)
    first = states + symbols
    arrival, rest = first + 1, first + 1 + states
    attention = config["blocks"][0]["attention"] if config["blocks"] else None
    bits = attention["heads"][0]["key"] if attention else 0
    require_form(config, 1, symbols + 1, states + 1, rest + 2 * bits)
    rows, form = config["input"]["tokens"], FORMATS[config["dtype"]]
    if config["loops"] < rows - 1:
        raise Refused(f"{config['loops']:,} passes do not reach the end of a word of {rows - 1:,} symbols")
    _require_ends(automaton, tensors)
    sharpness = _require_lookups(tensors, rest, bits)
    require_carried(tensors, {q: arrival + q for q in range(states)})
    shares = share_bounds(form, rows, bits, sharpness)
    full, empty = shares.slot(form, 1, 1), shares.slot(form, 0, 1)
    units = HiddenUnits.read(tensors, 0)
    if any(c >= rest for c in units.read_coordinates | units.written_coordinates):
        raise Refused("a hidden unit reads or changes the position of a row")
    situations = Situations(units, form, range(arrival, rest))
    _compare(automaton, situations, arrival, full, empty)
    return Report(automaton, rows - 1, config["dtype"], shares.leak, situations.margin, situations.count)


def _compare(automaton: Automaton, situations: Situations, arrival: int, full: Slot, empty: Slot) -> None:
    states, first = len(automaton.states), arrival - 1
    slots = {arrival + q: empty for q in range(states)}
    largest = dict.fromkeys(slots, full)

    def run(held: dict[int, int], arriving: list[int | None], after: int | None) -> None:
        """The state `after` must be the one that the row holds afterwards, and nothing else may have changed."""
        kept = {c: v for c, v in held.items() if c >= states}
        sums, live = situations.live(held, largest)
        for q in arriving:
            now = slots if q is None else {**slots, arrival + q: full}
            wanted = kept if after is None else {**kept, after: 1}
            if situations.after(held, now, sums, live) != wanted:
                raise Refused(f"the block does not do what the table says {_situation(automaton, held, q, first)}")

    run({automaton.first: 1, first: 1}, [automaton.first], automaton.first)
    for a, following in enumerate(automaton.following):
        symbol = {states + a: 1}
        run(symbol, [None], None)
        for after in sorted(set(following)):
            arriving: list[int | None] = [q for q in range(states) if following[q] == after]
            run(symbol, arriving, after)
            run({after: 1, **symbol}, arriving, after)


def _situation(automaton: Automaton, held: dict[int, int], q: int | None, first: int) -> str:
    if first in held:
        return "on the row that begins a word"
    symbol = next(automaton.symbols[c - len(automaton.states)] for c in held if c >= len(automaton.states))
    return f"on a row {symbol} " + (
        "that no state reaches" if q is None else f"after the state {automaton.numbered[q]}"
    )


def _require_ends(automaton: Automaton, tensors: Mapping[str, Tensor]) -> None:
    states, symbols = len(automaton.states), len(automaton.symbols)
    tokens = [{states + a: 1.0} for a in range(symbols)] + [{automaton.first: 1.0, states + symbols: 1.0}]
    require_rows(tensors["embed.weight"], tokens, "the embedding")
    answers = [{q: 1.0} | ({states: 1.0} if q >= automaton.rejecting else {}) for q in range(states)]
    width = tensors["readout.weight"].shape[0]
    require_rows(tensors["readout.weight"], answers + [{}] * (width - states), "the read-out")
    if any(tensors["readout.bias"].data):
        raise Refused("the read-out adds a constant")


def _require_lookups(tensors: Mapping[str, Tensor], rest: int, bits: int) -> float:
    """Every row looks at the row before it; returns lambda."""
    codes, own, before = tensors["code.table"], rest, rest + bits
    if columns(tensors[f"{HEAD}.key"]) != [{own + b: 1.0} for b in range(bits)]:
        raise Refused("the keys are not the codes of the rows")
    sharpness = sharpness_of(columns(tensors[f"{HEAD}.query"]), [{before + b: 1.0} for b in range(bits)])
    known = own_codes(codes, slice(own, before))
    for row in range(codes.shape[0]):
        entries = sparse_row(codes, row)
        if any(c < rest for c in entries):
            raise Refused(f"the position code of row {row} changes the content")
        if known.get(tuple(entries.get(before + b, 0.0) for b in range(bits))) != max(row - 1, 0):
            raise Refused(f"row {row} does not look at the row before it")
    return sharpness
