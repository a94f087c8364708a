"""Two causal blocks, applied log2 T times, are a finite automaton on words of up to T symbols: exactly, for every word.

Statement
    Let a complete deterministic automaton with Q states be given by its table, its states numbered from 0, those that
    accept last. A word a_1, ..., a_L with L <= T is fed as the token that begins a word, on row 0, and its symbols, on
    rows 1 to L. Suppose the stored blocks are those of `construction`, applied K times with 2^K >= T. Then for every such
    word, the empty one too, row i reads out exactly the number of the state after i symbols, and the same less R - 1/2,
    where R states reject: positive if and only if the state accepts, and never closer to 0 than 1/2. This holds in real
    arithmetic and in every run in the stored type.

Source
    That depth log2 T suffices is in Liu et al. 2023 (liu2023), who also show that solvable automata need no depth that
    grows with T. The weights are our own.

Differs from the source in
    The passes share their weights: a row copies the pointer of the row it points to, so that pointers double their
    reach (pointer jumping), where the source has one layer for every power of two. Maps are composed by Q^2 units on
    numbers instead of gates for Q^3 triples, and made exact again in every pass: about 4 Q^2 units for every length.

Proof
    *Layout.* The stream of a row is: a map (Q numbers) | rungs (Q (Q - 1)) | a pointer (B digits) | the slots in which a
    map and a pointer arrive | the code of the row (B signs) | one.

    *Invariant.* After k passes row i holds, exactly: the map f_i of states that a_(j+1), ..., a_i make together, j =
    p_i = max(i - 2^k, 0), as the Q numbers f_i(q); the digits of p_i, 0 or 1; its own code; no rungs, and slots between 0
    and t, the smallest normal number (below which a run may flush). At k = 0 this is the embedding: f_i is the row of the
    table of a_i, f_0 the identity, p_i = max(i - 1, 0).

    *Look-up.* The query of row i is 32 (2 digit - 1) = 32 times the code of row p_i <= i, which the causal mask shows.
    Codes of different rows differ in a sign, so p_i leads all other rows by 64 at least; scores are multiples of 32 of at
    most 32 B, and B <= 2^(p-2), so they and their differences are exact. Values are maps and digits, whole numbers from 0
    to V = max(Q - 1, 1). What a slot then holds is enclosed as rule 6 does it (`kernel.situations.heads`), for each number
    v of the row p_i that it may be, whatever the other rows hold. Checked: the slot a is within 1/4 of v. `margin` is what
    is left of the 1/4.

    *Rungs.* For rung (q, s) two units are 2 relu(a - s + 3/4) - 2 relu(a - s + 1/4) = [v >= s], as v - 1/4 <= a <= v +
    1/4. In a run: if v < s both arguments are at most 0, and rounding is monotone. Else 2^m <= a < 2^(m+1) for an m with
    -1 <= m <= p - 3, as a < Q <= 2^(p-2): then a is a multiple of g = 2^(m+1-p), as is 1/4, so a less a constant between
    0 and a is exact, and so are twice that and the difference 1. A digit takes the pointer's old digit away besides: terms
    are multiples of 2 g >= 2^(1-p) that add up to at most 2 on either side, exact in every order. The unit relu(a) takes
    the slot away; where a < t is flushed, a stays.

    *Composition.* All numbers are now exact. The second block has for every (q, s) one unit relu(f(s) + o), o = Q ([g(q)
    >= s] - [g(q) >= s + 1] - 1) (the first bracket is 1 for s = 0): o = 0 if g(q) = s, and else o <= -Q < -f(s). So the sum
    over s is f(g(q)). One unit takes away each old f(q), one each rung. Whole numbers of at most 2 Q < 2^p do not round. So
    row i holds f_i after f_j, j = p_i, which is the map of a_(p_j + 1), ..., a_i, and the pointer p_j = max(i - 2^(k+1),
    0): the invariant for k + 1. Row 0 points to itself and stays the identity.

    *Read-out.* After K passes p_i = 0, as i <= T <= 2^K, so f_i(start) is the state after i symbols. QED.

Assumptions
    weights (**checked**): every stored number is the one of the construction, K = max(1, ceil(log2 T)) passes.
    numbers (**checked**): a slot is within 1/4 of every number that it may stand for; Q and B are at most 2^(p-2).
    run (**trusted**): arithmetic is as described in `kernel.rounding`, and the stream between sub-layers is one array of
    numbers of the stored type.

Certified: The statement, for all words of 0 to T symbols at once.

Not certified: Words with more than T symbols; that the table is the language its author wanted.

Example
    >>> from certiformer.axioms.log_depth_automaton import arrivals
    >>> leak, margin = arrivals("float32", 1001, 20)
    >>> bool(leak < 1e-27), bool(margin > 0.249)
    (True, True)

Tests: tests/theorems/test_log_depth_automaton.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.construction import Construction, Unit, cleared, copy, step
from certiformer.kernel.files import AUTOMATON, CONFIG, MODEL
from certiformer.kernel.meanings.automaton import Automaton
from certiformer.kernel.situations.heads import brought, shares_of
from certiformer.kernel.situations.numbers import UNIT, Number, Run, as_ball, gathered, sure, term
from certiformer.kernel.situations.reports import NOT_CLAIMED as NOT_CLAIMED
from certiformer.kernel.situations.reports import Report, automaton_claim, automaton_finding
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.log_depth_automaton",
    "title": "Two blocks, applied log2 T times, are a finite automaton, exactly, for every word of up to T symbols.",
    "kind": "exact",
    "sources": ("classical", "liu2023"),
    "verb": "compile",
    "assumptions": (
        ("weights", "every stored number is the one of the construction, and there are enough passes", "checked"),
        ("numbers", "a slot is within 1/4 of every number that it may stand for, and sums are exact", "checked"),
        ("run", "a run rounds as kernel.rounding describes, between sub-layers to the stored type", "trusted"),
    ),
}
SHARPNESS = 32.0


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    automaton, (config, _) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    loops = config["loops"]
    how = f"{loops:,} passes of the two blocks" if loops > 1 else "one pass of the two blocks"
    return automaton_claim(automaton, config["input"]["tokens"] - 1, how, config["dtype"])


def find(files: Files) -> Finding:
    """Why the claim holds, with the smallest margin and what it was found over; raises `Refused` or `BadInput`."""
    automaton, (config, tensors) = Automaton.from_text(files[AUTOMATON]), read_model(files[CONFIG], files[MODEL])
    how = "every stored number is the one of the construction; for the {cases} numbers of a slot"
    return automaton_finding(prove(automaton, config, tensors), automaton, config["input"]["tokens"] - 1, how)


def prove(automaton: Automaton, config: dict[str, Any], tensors: Mapping[str, Tensor]) -> Report:
    """Check that the stored blocks are the automaton; raises `Refused` with the reason when they are not."""
    working_precision()
    length, dtype, states = config["input"]["tokens"] - 1, config["dtype"], len(automaton.states)
    if length < 1:
        raise Refused("the transformer has no room for a symbol")
    construction(automaton, length, dtype).require(config, tensors)
    if 4 * max(states, length.bit_length()) > 2 ** Run(dtype).precision:
        raise Refused(f"the numbers of {states:,} states on {length + 1:,} rows are not exact in {dtype}")
    leak, margin = arrivals(dtype, length + 1, states)
    return Report(leak, margin, max(states, 2))


def arrivals(dtype: str, rows: int, states: int) -> tuple[arb, arb]:
    """The share of a wrong row, and how much closer than 1/4 every slot is to the number that it stands for."""
    run, most = Run(dtype), max(states - 1, 1)
    shares, farthest = shares_of(run.form, rows - 1, arb(2 * SHARPNESS)), 0
    for value in range(most + 1):
        arrived = brought(run, shares, sure(value * UNIT), [sure(0), sure(most * UNIT)])
        left = Number(0, 0, run.tiny)  # of the pass before
        farthest = max(farthest, run.total(gathered([term(UNIT, arrived), term(UNIT, left)])).off)
    if not 4 * farthest < UNIT:
        raise Refused(f"what the head brings may fall short of a threshold, or beyond it, with {states:,} states")
    return shares.leak, as_ball(UNIT // 4 - farthest)


def construction(automaton: Automaton, length: int, dtype: str) -> Construction:
    """The transformer of an automaton for words of up to `length` symbols."""
    states, bits = len(automaton.states), max(1, length.bit_length())
    pointer = states * states  # after Q numbers and Q (Q - 1) rungs
    slots = pointer + bits
    own = slots + states + bits
    one = own + bits
    embed = [dict(enumerate(map(float, following))) for following in (*automaton.following, range(states))]
    codes = [
        {pointer + b: float(max(row - 1, 0) >> b & 1) for b in range(bits)}
        | {own + b: 2.0 * (row >> b & 1) - 1.0 for b in range(bits)}
        | {one: 1.0}
        for row in range(length + 1)
    ]
    # The number of the state, and the same counted from between the states that reject and those that accept.
    read = [{automaton.first: 1.0}] * 2
    made = Construction.of_rows("softmax", one + 1, embed, codes, read, {1: 0.5 - automaton.rejecting})
    made.block()
    ask = [entry for b in range(bits) for entry in ((pointer + b, b, 2 * SHARPNESS), (one, b, -SHARPNESS))]
    carried = [*copy(0, states), *copy(pointer, bits, states)]
    made.heads(
        bits, states + bits, [(ask, copy(own, bits), carried, [(n, slots + n, 1.0) for n in range(states + bits)])]
    )
    made.units(_written(states, bits, pointer, slots))
    made.block()
    made.units(_composed(states))
    return made.finished(max(1, (length - 1).bit_length()), dtype)


def _rung(states: int, q: int, s: int) -> int:
    """The coordinate of [g(q) >= s], s = 1, ..., Q - 1."""
    return states + q * (states - 1) + s - 1


def _written(states: int, bits: int, pointer: int, slots: int) -> Iterator[Unit]:
    """What arrives becomes rungs and digits."""
    for q in range(states):
        for s in range(1, states):
            yield from step(slots + q, s, _rung(states, q, s))
        yield cleared(slots + q)
    for b in range(bits):
        yield from step(slots + states + b, 1, pointer + b)
        yield cleared(slots + states + b)
        yield cleared(pointer + b)


def _composed(states: int) -> Iterator[Unit]:
    """f(g(q)) in place of f(q)."""
    most = float(states)
    for q in range(states):
        for s in range(states):
            reads = {s: 1.0}
            if s >= 1:
                reads[_rung(states, q, s)] = most
            if s + 1 < states:
                reads[_rung(states, q, s + 1)] = -most
            yield reads, 0.0 if s == 0 else -most, {q: 1.0}
        yield cleared(q)
        for s in range(1, states):
            yield cleared(_rung(states, q, s))
