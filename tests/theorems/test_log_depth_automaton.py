"""The rule for automata of logarithmic depth."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest
from flint import arb, ctx

from certiformer.axioms import log_depth_automaton as axiom
from certiformer.compiler.automata import word_reader
from certiformer.kernel import Refused
from certiformer.kernel.construction import step
from certiformer.kernel.situations.numbers import Run
from certiformer.kernel.situations.reports import Report, automaton_finding
from certiformer.kernel.weights import Tensor
from compiler.automata.random_automata import is_right, random_automaton
from theorems.automaton_rule import LENGTH, PROVE, arrays, stored
from theorems.automaton_rule import folder as folder
from theorems.automaton_rule import (
    test_a_better_claim_than_proved_is_refused as test_a_better_claim_than_proved_is_refused,
)
from theorems.automaton_rule import (
    test_a_changed_number_is_refused_or_harmless as test_a_changed_number_is_refused_or_harmless,
)
from theorems.automaton_rule import test_a_resealed_lie_is_refused as test_a_resealed_lie_is_refused
from theorems.automaton_rule import test_another_architecture_is_refused as test_another_architecture_is_refused
from theorems.automaton_rule import test_another_table_is_refused as test_another_table_is_refused
from theorems.automaton_rule import test_compiled_automata_are_proved as test_compiled_automata_are_proved
from theorems.automaton_rule import test_planted_faults_are_named as test_planted_faults_are_named
from theorems.automaton_rule import test_the_folder_is_checked as test_the_folder_is_checked


@pytest.fixture
def form() -> str:
    return "log-depth"


def test_the_numbers_of_a_slot_are_counted(form):
    for states, cases in ((1, 2), (2, 2), (5, 5)):
        automaton = random_automaton(2, states, 3)
        assert PROVE[form](automaton, *stored(form, automaton)).cases == cases
        files = word_reader(automaton, LENGTH, form).files()
        assert axiom.find(files).cases == cases


def test_many_states_of_log_depth_are_too_fine_for_bfloat16(form):
    """Numbers up to 19 with a relative error of some 2^-6 are not within 1/4: undecided, not wrong."""
    automaton = random_automaton(0, 20, 1)
    with pytest.raises(Refused, match="may fall short of a threshold"):
        PROVE[form](automaton, *stored(form, automaton, 4, "bfloat16"))


def test_numbers_that_a_type_does_not_have_are_refused(form, monkeypatch):
    """65 states need multiples of 1/4 up to 65; whether slots would be near enough is not asked any more."""
    monkeypatch.setattr("certiformer.compiler.automata.log_depth.MAX_STATES", 65)
    monkeypatch.setattr("certiformer.kernel.weights.MAX_NUMBERS", 10**9)
    automaton = random_automaton(0, 33, 1)
    with pytest.raises(Refused, match="may fall short"):
        PROVE[form](automaton, *stored(form, automaton, 2, "bfloat16"))
    monkeypatch.setattr(Run, "precision", property(lambda self: 7, lambda self, value: None), raising=False)
    with pytest.raises(Refused, match="33 states on 3 rows are not exact in bfloat16"):
        PROVE[form](automaton, *stored(form, automaton, 2, "bfloat16"))


@pytest.mark.parametrize("sharpness", [8.0, 1.0, 0.25])
def test_a_lead_that_does_not_suffice_is_refused(form, sharpness, monkeypatch):
    """The lead of 64 is needed by the proof as written: the same weights with less are no proof at some length."""
    monkeypatch.setattr(axiom, "SHARPNESS", sharpness)
    automaton = random_automaton(11, 3, 2)
    if sharpness == 8.0:
        assert 0.2 < PROVE[form](automaton, *stored(form, automaton)).margin < 0.25 - 2 * 4 * np.exp(-16)
    else:
        with pytest.raises(Refused, match="fall short|no bound"):
            PROVE[form](automaton, *stored(form, automaton, 40))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_slots_hold_what_runs_give(dtype, monkeypatch):
    """Random scores with the promised lead, added up in order and backwards, and the same in 60 digits."""
    kind, rng = {"float64": np.float64, "float32": np.float32}[dtype], np.random.default_rng(0)
    for rows, sharpness, states in ((2, 2.5, 2), (9, 4.0, 6), (60, 8.0, 20)):
        monkeypatch.setattr(axiom, "SHARPNESS", sharpness)
        margin = axiom.arrivals(dtype, rows, states)[1]
        farthest = 0.0
        for trial in range(30):
            value = int(rng.integers(0, states)) if trial else 0
            lower = rng.integers(1, 5, rows - 1) if trial else np.ones(rows - 1)
            scores = np.concatenate([[0.0], -2 * sharpness * lower])
            values = np.concatenate([[value], np.full(rows - 1, states - 1)])
            for order in (slice(None), slice(None, None, -1)):
                weights = np.exp(scores[order].astype(kind))
                weights = weights / np.cumsum(weights)[-1]
                run = np.cumsum(weights * values[order].astype(kind))[-1]
                farthest = max(farthest, abs(float(run) - value))
            with ctx.workdps(60):
                exact = [arb(float(score)).exp() for score in scores]
                real = sum((w * float(v) for w, v in zip(exact, values, strict=True)), arb(0)) / sum(exact, arb(0))
                assert abs(real - value) <= arb("0.25") - margin
        assert 0 < farthest <= 0.25 - margin


def test_what_is_called_exact_is_exact_in_every_order():
    """2 (a - 1/4) - 2 (a - 3/4) - 1 in float32, all orders of the three terms, for many a that are within 1/4 of 1; and the
    negative control: with 16 in place of 1 the order matters."""
    ((_, less, _), (_, more, _)) = step(0, 1, 1)
    for a in np.random.default_rng(1).uniform(0.75, 1.25, 400).astype(np.float32):
        terms = [np.float32(2) * (a + np.float32(less)), np.float32(-2) * (a + np.float32(more)), np.float32(-1)]
        assert {float((x + y) + z) for x, y, z in permutations(terms)} == {0.0}
    found = set()
    for a in np.random.default_rng(1).uniform(0.75, 1.0, 400).astype(np.float32):
        terms = [np.float32(2) * (a + np.float32(less)), np.float32(-2) * (a + np.float32(more)), np.float32(-16)]
        found |= {float((x + y) + z) for x, y, z in permutations(terms)}
    assert len(found) > 1


def test_a_fault_in_the_construction_would_be_seen(form):
    """The axiom and the compiler share it, so what it computes is compared with automata; this is the control."""
    automata = [random_automaton(seed, 3, 2) for seed in range(8)]
    of_all = [(automaton, *stored(form, automaton, 5)) for automaton in automata]  # rows 4 and 5 need the third digit
    unseen, total = [], 0
    for name in ("blocks.0.ffn.up", "blocks.0.ffn.down", "blocks.1.ffn.up", "blocks.1.ffn.down"):
        for place in np.flatnonzero(of_all[0][2][name].data):
            data = [*of_all[0][2][name].data]
            data[place] = -data[place]
            faulty = Tensor(of_all[0][2][name].shape, data)
            total += 1
            if all(
                is_right(form, automaton, config, arrays({**tensors, name: faulty}), word)
                for automaton, config, tensors in of_all
                for word in product(automaton.symbols, repeat=5)
            ):
                _, columns = faulty.shape
                unseen.append(int(place) // columns if name.endswith("up") else int(place) % columns)
    # Digits of pointers (9 to 11) and their slots (15 to 17): half of one too much still looks at the same row.
    assert total == 102 and len(unseen) == 10 and set(unseen) <= {9, 10, 11, 15, 16, 17}


def test_the_wrong_number_of_passes_is_refused(form):
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)
    for passes in (1, 3):
        with pytest.raises(Refused, match="of the construction: loops differs"):
            PROVE[form](automaton, {**config, "loops": passes}, tensors)


def test_without_a_margin_nothing_is_found():
    automaton = random_automaton(0, 2, 1)
    assert automaton_finding(Report(arb(1e-20), arb(0.2), 7), automaton, 5).parameters["margin"] == "0.2"
    for margin in (arb(0), arb(-1), arb("nan")):
        with pytest.raises(Refused, match="either side of a threshold"):
            automaton_finding(Report(arb(1e-20), margin, 7), automaton, 5)
