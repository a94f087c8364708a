"""Slots and hidden units of automata: the bounds hold what runs give, and what is called exact is exact in every order."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from flint import arb, ctx

from certiformer.axioms.automaton_head import Slot, share_bounds
from certiformer.axioms.automaton_report import Report, finding
from certiformer.axioms.automaton_units import HiddenUnits, Situations, _power
from certiformer.kernel.balls import working_precision
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS
from compiler.automata.random_automata import random_automaton

TYPES = {"float64": np.float64, "float32": np.float32}


@pytest.fixture(autouse=True)
def precision():
    working_precision()


@pytest.mark.parametrize("dtype", TYPES)
def test_slots_hold_what_runs_give(dtype):
    """Random scores with the promised lead, added up in order and backwards, and the same in 60 digits."""
    form, kind, rng = FORMATS[dtype], TYPES[dtype], np.random.default_rng(0)
    for rows, sharpness, most in ((2, 2.0, 1), (9, 4.0, 5), (60, 8.0, 19)):
        shares = share_bounds(form, rows, 7, sharpness)
        for trial in range(30):
            value = int(rng.integers(0, most + 1))
            lower = (
                np.where(rng.random(rows - 1) < 0.5, 1, rng.integers(1, 5, rows - 1)) if trial else np.ones(rows - 1)
            )
            scores = np.concatenate([[0.0], -2 * sharpness * lower])
            values = np.concatenate([[value], np.full(rows - 1, most)])
            slot = shares.slot(form, value, most)
            for order in (slice(None), slice(None, None, -1)):
                weights = np.exp(scores[order].astype(kind))
                weights = weights / np.cumsum(weights)[-1]
                run = np.cumsum(weights * values[order].astype(kind))[-1]
                assert slot.low <= arb(float(run)) <= slot.high
            with ctx.workdps(60):
                exact = [arb(float(score)).exp() for score in scores]
                real = sum((w * float(v) for w, v in zip(exact, values, strict=True)), arb(0)) / sum(exact, arb(0))
                assert slot.low <= real <= slot.high


def test_a_slot_of_one_row_is_its_value():
    form = FORMATS["float64"]
    slot = share_bounds(form, 1, 1, 32.0).slot(form, 3, 3)
    assert abs(slot.low - 3) < 1e-14 and abs(slot.high - 3) < 1e-14
    assert share_bounds(form, 1, 1, 32.0).slot(form, 0, 3).high < 1e-300


def test_without_a_lead_there_is_no_bound_or_a_wide_one():
    form = FORMATS["float64"]
    with pytest.raises(Refused, match="over 1,000 rows have no bound"):
        share_bounds(form, 1000, 10, 0.5)
    slot = share_bounds(form, 10, 10, 2.0).slot(form, 1, 1)
    assert slot.low < 0.8 and slot.high > 1.16  # 9 other rows with a share of up to exp(-4) each
    with pytest.raises(Refused, match="not exact in bfloat16"):
        share_bounds(FORMATS["bfloat16"], 2, 100, 32.0)


def test_powers_of_two_below():
    assert [_power(arb(x)) for x in (0.0, 0.25, 0.75, 1.0, 15.75, 16.0)] == [None, -2, -1, 0, 3, 4]


def step_units(threshold: int, extra: dict[int, int] | None = None) -> HiddenUnits:
    """Coordinate 0 gets a step of the slot 1; `extra` are further weights of a unit that is 1 where coordinate 2 is."""
    ups = {1: [(0, 4), (1, 4), (2, 4)], 2: [(3, 4)]}
    downs = [{0: 2}, {0: -2}, {1: -1}, extra or {}]
    return HiddenUnits(ups, [3 - 4 * threshold, 1 - 4 * threshold, 0, 0], downs)


def run_one(
    units: HiddenUnits, held: dict[int, int], slot: Slot, dtype: str = "float32"
) -> tuple[dict[int, int], arb | None]:
    situations = Situations(units, FORMATS[dtype], [1])
    sums, live = situations.live(held, {1: slot})
    return situations.after(held, {1: slot}, sums, live), situations.margin


def test_a_step_is_a_step():
    near = [Slot(arb(max(v - 0.125, 0)), arb(v + 0.125)) for v in range(6)]
    for threshold in range(1, 6):
        for value, slot in enumerate(near):
            found, margin = run_one(step_units(threshold), {}, slot)
            assert found == ({0: 1} if value >= threshold else {}) and margin is not None
            if abs(value - threshold + 0.5) < 1:  # the numbers on both sides of the step
                assert abs(margin - 0.125) < 1e-5


@pytest.mark.parametrize(
    ("slot", "problem"),
    [
        (Slot(arb(0.7), arb(1.1)), "may fall short of a threshold"),
        (Slot(arb(0.1), arb(0.3)), "may fall short of a threshold"),
        (Slot(arb(0.0), arb(0.5)), "may fall short of a threshold"),
    ],
)
def test_a_slot_that_may_be_on_either_side_is_refused(slot, problem):
    with pytest.raises(Refused, match=problem):
        run_one(step_units(1), {}, slot)


def test_what_is_called_exact_is_exact_in_every_order():
    """2 (a - 1/4) - 2 (a - 3/4) - 1 in float32, all orders of the three terms, for many a of the interval."""
    slot = Slot(arb(0.875), arb(1.0625))
    assert run_one(step_units(1, {0: -1}), {0: 1, 2: 1}, slot)[0] == {0: 1, 2: 1}
    rng = np.random.default_rng(1)
    for a in rng.uniform(0.875, 1.0625, 400).astype(np.float32):
        terms = [np.float32(2) * (a - np.float32(0.25)), np.float32(-2) * (a - np.float32(0.75)), np.float32(-1)]
        assert {float((x + y) + z) for x, y, z in permutations(terms)} == {0.0}


def test_what_may_round_is_refused_and_does_round():
    """The same with 16 instead of 1: one order of float32 gives another number."""
    slot = Slot(arb(0.875), arb(1.0625))
    with pytest.raises(Refused, match="may be rounded when it is added"):
        run_one(step_units(1, {0: -16}), {0: 1, 2: 1}, slot)
    rng = np.random.default_rng(1)
    found = set()
    for a in rng.uniform(0.875, 1.0, 400).astype(np.float32):
        terms = [np.float32(2) * (a - np.float32(0.25)), np.float32(-2) * (a - np.float32(0.75)), np.float32(-16)]
        found |= {float((x + y) + z) for x, y, z in permutations(terms)}
    assert len(found) > 1


def test_a_slot_must_be_emptied_by_itself():
    full = Slot(arb(0.9), arb(1.1))
    units = step_units(1)
    for downs, problem in (
        ([{0: 2}, {0: -2}, {}, {}], "not emptied"),
        ([{0: 2}, {0: -2}, {1: -2}, {}], "not emptied"),
        ([{0: 2}, {0: -2}, {1: -1, 0: 1}, {}], "without being rounded"),
        ([{0: 2, 1: 1}, {0: -2}, {1: -1}, {}], "not emptied"),
        ([{0: 2}, {}, {1: -1}, {}], "without being rounded"),
        ([{0: 3}, {0: -3}, {1: -1}, {}], "may round"),
    ):
        with pytest.raises(Refused, match=problem):
            run_one(HiddenUnits(units.ups, units.biases, downs), {}, full)


def test_two_slots_in_one_unit_are_refused():
    units = HiddenUnits({1: [(0, 4)], 3: [(0, 4)]}, [-1], [{0: 2}])
    situations = Situations(units, FORMATS["float64"], [1, 3], must_empty=False)
    slots = {1: Slot(arb(0.9), arb(1.1)), 3: Slot(arb(0), arb(0.01))}
    sums, live = situations.live({}, slots)
    with pytest.raises(Refused, match="may round what the head brings"):
        situations.after({}, slots, sums, live)


def test_without_a_margin_nothing_is_found():
    automaton = random_automaton(0, 2, 1)
    assert finding(Report(automaton, 5, "float64", arb(1e-20), arb(0.2), 7)).parameters["margin"] == "0.2"
    for margin in (None, arb(0), arb(-1), arb("nan")):
        with pytest.raises(Refused, match="either side of a threshold"):
            finding(Report(automaton, 5, "float64", arb(1e-20), margin, 7))
