"""The rule of situations: numbers of runs, situations that are all counted, and planted faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from flint import arb, ctx

from certiformer.kernel import Refused
from certiformer.kernel.balls import working_precision
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.situations import automata
from certiformer.kernel.situations.automata import looped_automaton, looped_meaning
from certiformer.kernel.situations.cells import Cell, Content, Equation, Meaning, Tally
from certiformer.kernel.situations.heads import brought, shares_of
from certiformer.kernel.situations.numbers import UNIT, Number, Run, as_ball, gathered, sure, term
from certiformer.kernel.situations.plan import EMPTIED, Held
from certiformer.kernel.situations.units import Pieces, Sublayer
from compiler.automata.random_automata import random_automaton
from theorems.automaton_rule import HEAD, blunt, changed, stored

RUN = Run("float32")


def fixed(value: float) -> int:
    top, bottom = float(value).as_integer_ratio()
    return (top * UNIT) // bottom


def holds(number: Number, value: float) -> bool:
    return number.low <= fixed(value) <= number.high


def test_a_sum_holds_the_sums_of_runs_in_any_order():
    rng = np.random.default_rng(2)
    for size in (1, 2, 5, 30):
        for _ in range(60):
            values = rng.choice([rng.normal(size=size), rng.integers(-3, 4, size)]).astype(np.float32)
            weights = rng.choice([rng.normal(size=size), 2.0 ** rng.integers(-3, 4, size)]).astype(np.float32)
            noise = (rng.normal(size=size) * rng.choice([0, 1e-12, 1e-3])).astype(np.float32)
            held = [
                Number(fixed(v), min(fixed(v), fixed(v + e)), max(fixed(v), fixed(v + e)))
                for v, e in zip(values, noise, strict=True)
            ]
            bound = RUN.total(gathered(term(fixed(w), x) for w, x in zip(weights, held, strict=True)))
            run = np.float32(0)
            for place in rng.permutation(size):
                run = np.float32(run + np.float32(np.float32(values[place] + noise[place]) * weights[place]))
            assert holds(bound, float(run)) and holds(bound, float(values.astype(float) @ weights.astype(float)))


def test_a_noisy_number_less_a_quarter_is_exact():
    """Twice a - 1/4 less twice a - 3/4 is 1 in every run; a bias of 2^-30 is not kept by a run."""
    slot = Number(UNIT, UNIT - UNIT // 2**10, UNIT + UNIT // 2**10)
    assert RUN.finest(gathered([term(UNIT, slot), term(UNIT, sure(-UNIT // 4))])) is not None
    assert RUN.finest(gathered([term(UNIT, slot), term(UNIT, sure(-UNIT // 2**30))])) is None
    assert RUN.finest(gathered([term(UNIT, slot), term(UNIT, slot)])) is None
    for value in np.linspace(0.75, 1.2, 1_001, dtype=np.float32):
        assert 2 * np.float32(value - np.float32(0.25)) - 2 * np.float32(value - np.float32(0.75)) == 1


def test_overflow_is_refused():
    huge = sure(UNIT << 127)
    assert RUN.total(term(UNIT, sure(UNIT << 120))).known
    with pytest.raises(Refused, match="may exceed the largest finite float32"):
        RUN.total(gathered([term(UNIT, huge), term(UNIT, huge)]))


def test_pieces_hold_the_function():
    rng = np.random.default_rng(5)
    for _ in range(200):
        units = []
        for _ in range(rng.integers(1, 6)):
            k, b, a = (fixed(x) for x in rng.integers(-8, 9, 3) / 4 + [0.125, 0, 0])
            units.append((k, b, a))
        own = bool(rng.integers(2))
        low, high = sorted(rng.normal(size=2))
        bottom, top = Pieces(units, own).span(fixed(low), fixed(high))
        for s in np.linspace(low, high, 33):
            value = (
                sum(a * max(k * s + b, 0) for k, b, a in ((k / UNIT, b / UNIT, a / UNIT) for k, b, a in units))
                + own * s
            )
            assert bottom / UNIT - 1e-12 <= value <= top / UNIT + 1e-12


def test_shares_hold_a_softmax():
    """Against softmax in 60 digits, and in float32 with every sum in order; a gap below what the rows need is seen."""
    for others, gap in ((1, 2.0), (8, 6.0), (400, 16.0)):
        working_precision()
        shares = shares_of(FORMATS["float32"], others, arb(gap))
        one, none = (
            brought(RUN, shares, sure(UNIT), [sure(0), sure(UNIT)]),
            brought(RUN, shares, sure(0), [sure(0), sure(UNIT)]),
        )
        ctx.dps = 60
        e = others * (-arb(gap)).exp()
        assert shares.low <= 1 / (1 + e) and shares.high >= 1 and e / (1 + e) / others <= shares.leak
        assert as_ball(one.low) <= 1 / (1 + e) and as_ball(one.high) >= 1 and as_ball(none.high) >= e / (1 + e)
        run = np.exp(np.array([0.0] + [-gap] * others, np.float32))
        run = run / np.float32(sum(run))
        assert (
            holds(one, float(run[0])) and holds(one, float(np.float32(sum(run)))) and holds(none, float(sum(run[1:])))
        )
        assert none.low == 0
    working_precision()
    with pytest.raises(Refused, match="no bound|no correct digit|may vanish|lose every digit"):
        shares_of(FORMATS["bfloat16"], 1_000_000, arb(1))


def test_a_case_that_is_dropped_is_refused():
    meaning = Meaning({"a": (0, 1, 2), "b": (0, 1)}, {"sum": Cell((0, 1, 2), ("a", "b"), lambda a, b: a + b)})
    with pytest.raises(Refused, match="a value that is not in its list: 3"):
        meaning.situations(["sum"])
    small = replace(meaning, equations=(Equation("too large", ("a", "b"), lambda a, b: a + b < 3),))
    assert small.situations(["sum"]) == [(0,), (1,), (2,)]
    assert (small.tally.total, small.tally.checked, small.tally.excluded["too large"]) == (6, 5, 1)
    with pytest.raises(Refused, match="4 of 6 situations were checked or excluded"):
        Tally().close(6, 4, small.tally.excluded - small.tally.excluded)


def test_too_many_situations_are_refused():
    many = tuple(range(3_000))
    cells = {name: Cell(many, (name,), lambda x: x) for name in "ab"}
    with pytest.raises(Refused, match="9,000,000 combinations"):
        Meaning({"a": many, "b": many}, cells).situations(["a", "b"])


def written(code: int, noise: int = 0) -> Number:
    """A coordinate that a step of units writes from a noisy bit: the step is at 1/4 to 3/4."""
    meaning = Meaning({"bit": (0, 1)}, {"bit": Cell((0, 1), ("bit",), lambda bit: bit)})
    bit = Content("bit", tuple(Number(UNIT * b, UNIT * b - noise * b, UNIT * b + noise) for b in (0, 1)))
    half = UNIT // 4
    units = [({0: UNIT}, -half, {1: 2 * UNIT}), ({0: UNIT}, -3 * half, {1: -2 * UNIT}), ({0: UNIT}, 0, {0: -UNIT})]
    layer = Sublayer(RUN, meaning, [bit, Content(None, (sure(0),))], units, {})
    after = layer.after({0: EMPTIED, 1: Held("bit", (0, code))})
    assert after[0].numbers[0].high <= RUN.tiny
    return after[1].numbers[1]


def test_units_round_a_noisy_bit_and_no_noisier_one():
    assert written(UNIT) == sure(UNIT) == written(UNIT, UNIT // 8) == written(UNIT, UNIT // 4)
    assert not written(UNIT, UNIT // 3).known
    # A planted fault in the code: the number that the weights make is what counts, not what the plan says.
    assert written(2 * UNIT)[1:] == (UNIT, UNIT)


def small():
    automaton = random_automaton(11, 3, 2)
    return automaton, *stored("looped", automaton)


def test_a_relation_that_is_not_preserved_is_refused(monkeypatch):
    """The state of a row two passes too early."""
    automaton, config, tensors = small()
    looped_automaton(automaton, config, tensors)

    def early(automaton, rows):
        meaning = looped_meaning(automaton, rows)
        after = meaning.cell("state after")
        return meaning.with_cell("state after", replace(after, value=lambda time, q, a: after.value("past", q, a)))

    monkeypatch.setattr(automata, "looped_meaning", early)
    with pytest.raises(Refused):
        looped_automaton(automaton, config, tensors)


def test_two_values_with_one_code_are_refused(monkeypatch):
    """A plan by which two states look alike: the weights tell them apart, and the read-out is not what it says."""
    automaton, config, tensors = small()
    vectors = automata.unit_vectors

    def collided(cell, domain, first, values):
        held = vectors(cell, domain, first, values)
        return held | {first + 1: held[first]} if cell == "state" else held

    monkeypatch.setattr(automata, "unit_vectors", collided)
    with pytest.raises(Refused):
        looped_automaton(automaton, config, tensors)


def test_a_gap_below_what_the_rows_need_is_refused():
    automaton = random_automaton(11, 3, 2)
    for rows, factor, accepted in ((24, 1 / 8, True), (24, 1 / 32, False), (1_000, 1 / 8, False)):
        config, tensors = stored("looped", automaton, rows)
        blunted = changed(tensors, f"{HEAD}.query", blunt(factor))
        if accepted:
            assert (looped_automaton(automaton, config, blunted).margin or 0) > 0
        else:
            with pytest.raises(Refused):
                looped_automaton(automaton, config, blunted)


def test_rows_beyond_the_pairs_that_are_compared_need_signs(monkeypatch):
    automaton, config, tensors = small()
    both = looped_automaton(automaton, config, tensors).gap
    monkeypatch.setattr("certiformer.kernel.situations.heads.MOST_PAIRS", 1)
    assert looped_automaton(automaton, config, tensors).gap == both == 64
    keys = changed(tensors, f"{HEAD}.key", lambda key: key.__imul__(2))
    with pytest.raises(Refused, match="not different vectors of signs"):
        looped_automaton(automaton, config, keys)
