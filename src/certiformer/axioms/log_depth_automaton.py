"""Two causal blocks, applied log2 T times, are a finite automaton on words of up to T symbols: exactly, for every word.

Statement
    Let a complete deterministic automaton with Q states be given by its table, its states numbered from 0, those that
    accept last. A word a_1, ..., a_L with L <= T is fed as the token that begins a word, on row 0, and its symbols, on
    rows 1 to L. Suppose the stored blocks pass the checks below and K passes are made with 2^K >= T. Then for every
    such word, the empty one too, row i reads out exactly the number of the state after i symbols, and the same less R -
    1/2, where R states reject: positive if and only if the state accepts, and never closer to 0 than 1/2. This holds in
    real arithmetic and in every run in the stored type.

Source
    That depth log2 T suffices is in Liu et al. 2023 (liu2023), who also show that solvable automata need no depth that
    grows with T. The weights are our own.

Differs from the source in
    The passes share their weights: a row copies the pointer of the row it points to, so that pointers double their
    reach (pointer jumping), where the source has one layer for every power of two. Maps are composed by Q^2 units on
    numbers instead of gates for Q^3 triples, and made exact again in every pass. The claim is checked from the stored
    weights.

Proof
    *Invariant.* After k passes row i holds, exactly: the map f_i of states that a_(j+1), ..., a_i make together, j =
    p_i = max(i - 2^k, 0), as the Q numbers f_i(q); the digits of p_i, 0 or 1; its own code; no rungs and empty slots.
    At k = 0 this is the embedding: f_i is the row of the table of a_i, f_0 the identity, p_i = max(i - 1, 0).

    *Look-up.* The query of row i is lambda (2 digit - 1) = lambda times the code of row p_i <= i, which the causal mask
    shows. Values are maps and digits. By `axioms.automaton_head` the slot of q lies in an interval around g(q), where
    g is the map of row p_i, as no number anywhere exceeds Q - 1, and the slot of a digit in one around 0 or 1.

    *Rungs.* The units of block 0 fall into groups that read and write disjoint coordinates: for every q its slot and
    its rungs, for every digit its slot and the pointer's digit. So each group may be run by itself
    (`axioms.automaton_units`), for every number a slot can hold: rung (q, s) must become [g(q) >= s] and the digit
    that of the arrived pointer, and slots must be emptied.

    *Composition.* All numbers are now exact. Block 1 has for every (q, s) one unit relu(f(s) + o), o a sum over the
    rungs of q, with o = 0 if g(q) = s and o <= 1 - Q for every other value of g(q), so that it is f(s) [g(q) = s];
    their sum over s is f(g(q)). One unit takes away each old f(q), one each rung. Sums of whole numbers below 2^p do
    not round. So row i holds f_i after f_j, j = p_i, which is the map of a_(p_j + 1), ..., a_i, and the pointer p_j =
    max(i - 2^(k+1), 0): the invariant for k + 1. Row 0 points to itself and stays the identity.

    *Read-out.* After K passes p_i = 0, as i <= T <= 2^K, so f_i(start) is the state after i symbols. QED.

Assumptions
    form (**checked**): a block of one causal softmax head and ReLU units, a block of ReLU units, K passes, 2^K >= T.
    weights (**checked**): the numbers satisfy what the proof uses, for every number that a slot can hold.
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between sub-layers is one array of
    numbers of the stored type.

Certified
    The statement, for all words of 0 to T symbols at once.

Not certified
    Words with more than T symbols; that the table is the language its author wanted.

Example
    >>> from certiformer.axioms.automaton_head import share_bounds
    >>> from certiformer.kernel.rounding import FORMATS
    >>> slot = share_bounds(FORMATS["float32"], 1001, 10, 32.0).slot(FORMATS["float32"], 19, 19)
    >>> bool(slot.low > 18.99), bool(slot.high < 19.01)
    (True, True)

Tests
    tests/theorems/test_log_depth_automaton.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from certiformer.axioms.automaton_head import (
    HEAD,
    Shares,
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
from certiformer.axioms.automaton_units import QUARTERS, HiddenUnits, Situations
from certiformer.kernel.balls import working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import AUTOMATON, CONFIG, MODEL
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS, Format
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.log_depth_automaton",
    "title": "Two blocks, applied log2 T times, are a finite automaton, exactly, for every word of up to T symbols.",
    "kind": "exact",
    "sources": (
        "classical",
        "liu2023",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one causal softmax head, ReLU units, enough passes, a table of position codes", "checked"),
        ("weights", "scores, values and hidden units compose maps, for every number of a slot", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
    "uses": (),
}


@dataclass(frozen=True)
class Places:
    """The coordinates of Q states and codes of B signs."""

    states: int
    bits: int

    @property
    def pointer(self) -> int:
        return self.states * self.states  # after Q numbers and Q (Q - 1) rungs

    @property
    def map_slot(self) -> int:
        return self.pointer + self.bits

    @property
    def pointer_slot(self) -> int:
        return self.map_slot + self.states

    @property
    def own(self) -> int:
        return self.pointer_slot + self.bits

    @property
    def one(self) -> int:
        return self.own + self.bits

    def rung(self, q: int, s: int) -> int:
        """The coordinate of [g(q) >= s], s = 1, ..., Q - 1."""
        return self.states + q * (self.states - 1) + s - 1

    def rungs(self, q: int) -> range:
        return range(self.rung(q, 1), self.rung(q, self.states))


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    automaton, (config, _) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    loops = config["loops"]
    how = f"{loops:,} passes of the two blocks" if loops > 1 else "one pass of the two blocks"
    return claim(automaton, config["input"]["tokens"] - 1, how, config["dtype"])


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    return finding(prove(Automaton.from_text(files[AUTOMATON]), *read_model(files[CONFIG], files[MODEL])))


def prove(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored blocks are the automaton; raises `Refused` with the reason when they are not."""
    working_precision()
    states, symbols = len(automaton.states), len(automaton.symbols)
    attention = config["blocks"][0]["attention"] if config["blocks"] else None
    places = Places(states, attention["heads"][0]["key"] if attention else 0)
    require_form(config, 2, symbols + 1, 2, places.one + 1)
    rows, form = config["input"]["tokens"], FORMATS[config["dtype"]]
    if 2 ** config["loops"] < rows - 1:
        raise Refused(f"{config['loops']:,} passes do not reach over a word of {rows - 1:,} symbols")
    _require_ends(automaton, tensors)
    sharpness = _require_lookups(tensors, places)
    carried = {q: places.map_slot + q for q in range(states)}
    require_carried(tensors, carried | {places.pointer + b: places.pointer_slot + b for b in range(places.bits)})
    shares = share_bounds(form, rows, places.bits, sharpness)
    situations = _require_rungs(HiddenUnits.read(tensors, 0), form, shares, places)
    _require_composition(HiddenUnits.read(tensors, 1), form, places)
    return Report(automaton, rows - 1, config["dtype"], shares.leak, situations.margin, situations.count)


def _require_ends(automaton: Automaton, tensors: Mapping[str, Tensor]) -> None:
    tokens = [*automaton.following, range(len(automaton.states))]
    maps = [{q: float(after) for q, after in enumerate(following) if after} for following in tokens]
    require_rows(tensors["embed.weight"], maps, "the embedding")
    weight, bias = tensors["readout.weight"], tensors["readout.bias"]
    read = [{0: 1.0, 1: 1.0} if c == automaton.first else {} for c in range(weight.shape[0])]
    require_rows(weight, read, "the read-out")
    if bias.data != [0.0, 0.5 - automaton.rejecting]:
        raise Refused("the read-out does not count from between the states that reject and those that accept")


def _require_lookups(tensors: Mapping[str, Tensor], places: Places) -> float:
    """Every row points to the row before it, in digits of the codes of rows; returns lambda."""
    codes, bits = tensors["code.table"], range(places.bits)
    if columns(tensors[f"{HEAD}.key"]) != [{places.own + b: 1.0} for b in bits]:
        raise Refused("the keys are not the codes of the rows")
    signs = [{places.pointer + b: 2.0, places.one: -1.0} for b in bits]
    sharpness = sharpness_of(columns(tensors[f"{HEAD}.query"]), signs)
    known = own_codes(codes, slice(places.own, places.one))
    content = {*range(places.pointer), *range(places.map_slot, places.own)}
    for row in range(codes.shape[0]):
        entries = sparse_row(codes, row)
        if content & entries.keys() or entries.get(places.one) != 1.0:
            raise Refused(f"the position code of row {row} changes the content, or does not hold a one")
        pointer = [entries.get(places.pointer + b, 0.0) for b in bits]
        if known.get(tuple(2 * digit - 1 for digit in pointer)) != max(row - 1, 0):
            raise Refused(f"row {row} does not point to the row before it")
    return sharpness


def _require_rungs(units: HiddenUnits, form: Format, shares: Shares, places: Places) -> Situations:
    """Block 0: every group of units, for every number that its slot can hold."""
    states, bits = places.states, places.bits
    situations = Situations(units, form, range(places.map_slot, places.own))
    touched: list[set[int]] = [set(row) for row in units.downs]
    for coordinate, readers in units.ups.items():
        for unit, _ in readers:
            touched[unit].add(coordinate)
    group_of = {c: q for q in range(states) for c in (places.map_slot + q, *places.rungs(q))}
    group_of |= {c: states + b for b in range(bits) for c in (places.pointer_slot + b, places.pointer + b)}
    groups: list[list[int]] = [[] for _ in range(states + bits)]
    for unit, coordinates in enumerate(touched):
        owners = {group_of.get(coordinate) for coordinate in coordinates}
        if len(owners) != 1 or None in owners:
            raise Refused("a hidden unit of block 0 connects coordinates that must not know of each other")
        groups[next(owner for owner in owners if owner is not None)].append(unit)
    numbers = [shares.slot(form, value, states - 1) for value in range(states)]
    for q in range(states):
        for value, slot in enumerate(numbers):
            wanted = {places.rung(q, s): 1 for s in range(1, value + 1)}
            _run(situations, {}, places.map_slot + q, slot, groups[q], wanted)
    digits = [shares.slot(form, value, 1) for value in (0, 1)]
    for b in range(bits):
        for old in (0, 1):
            for value, slot in enumerate(digits):
                wanted = {places.pointer + b: 1} if value else {}
                held = {places.pointer + b: old}
                _run(situations, held, places.pointer_slot + b, slot, groups[states + b], wanted)
    return situations


def _run(situations: Situations, held: dict[int, int], at: int, slot: Any, units: list[int], wanted: dict) -> None:
    sums, live = situations.live(held, {at: slot}, units)
    if situations.after(held, {at: slot}, sums, live) != wanted:
        raise Refused("a number that the head brings is not written down as it should be")


def _require_composition(units: HiddenUnits, form: Format, places: Places) -> None:
    """Block 1: one unit for each (q, s), one that takes away each number and each rung, and no other."""
    states = places.states
    reads: list[dict[int, int]] = [{} for _ in units.biases]
    for coordinate, readers in units.ups.items():
        for unit, weight in readers:
            reads[unit][coordinate] = weight
    cleared: list[int] = []
    selected: list[tuple[int, int]] = []
    for unit, (read, written) in enumerate(zip(reads, units.downs, strict=True)):
        if len(written) != 1:
            raise Refused("a hidden unit of block 1 does not act on one coordinate")
        ((target, weight),) = written.items()
        if weight == -1:
            if read != {target: QUARTERS} or units.biases[unit]:
                raise Refused("a hidden unit of block 1 does not take its coordinate away")
            cleared.append(target)
        else:
            selected.append((target, _selected(target, weight, read, units.biases[unit], form, places)))
    if sorted(cleared) != list(range(places.pointer)):
        raise Refused("block 1 does not take away each old number and each rung once")
    if sorted(selected) != [(q, s) for q in range(states) for s in range(states)]:
        raise Refused("block 1 does not have one unit for each pair of states")
    # At most two numbers below Q are added to or taken from a coordinate, beside units that are zero.
    if not 4 * states < 2**form.precision:
        raise Refused("the sum of hidden units may be rounded")


def _selected(q: int, weight: int, read: dict[int, int], bias: int, form: Format, places: Places) -> int:
    """The s of a unit that is f(s) where g(q) = s and 0 elsewhere."""
    rungs = list(places.rungs(q)) if q < places.states else []
    numbers = [c for c in read if c < places.states]
    if weight != 1 or q >= places.states or len(numbers) != 1 or read[numbers[0]] != QUARTERS:
        raise Refused("a hidden unit of block 1 does not select one number")
    if set(read) - {*numbers, *rungs}:
        raise Refused("a hidden unit of block 1 reads what it must not know of")
    size = abs(bias) + sum(map(abs, read.values())) + QUARTERS * places.states
    if size > 2**form.precision:
        raise Refused("the argument of a hidden unit may be rounded")
    (s,), offset = numbers, bias
    for value in range(places.states):
        if value:
            offset += read.get(rungs[value - 1], 0)
        if not (offset == 0 if value == s else offset <= QUARTERS * (1 - places.states)):
            raise Refused("a hidden unit of block 1 selects a number that is not the one looked for")
    return s
