"""The rule for looped automata."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.kernel import Refused
from certiformer.kernel.situations.automata import looped_automaton
from compiler.automata.random_automata import random_automaton
from theorems.automaton_rule import DOWN, HEAD, PROVE, WRONG, changed, stored
from theorems.automaton_rule import folder as folder
from theorems.automaton_rule import (
    test_a_better_claim_than_proved_is_refused as test_a_better_claim_than_proved_is_refused,
)
from theorems.automaton_rule import (
    test_a_changed_number_is_refused_or_harmless as test_a_changed_number_is_refused_or_harmless,
)
from theorems.automaton_rule import test_a_lead_that_just_suffices as test_a_lead_that_just_suffices
from theorems.automaton_rule import test_a_resealed_lie_is_refused as test_a_resealed_lie_is_refused
from theorems.automaton_rule import test_a_run_with_such_scores_is_wrong as test_a_run_with_such_scores_is_wrong
from theorems.automaton_rule import test_another_architecture_is_refused as test_another_architecture_is_refused
from theorems.automaton_rule import test_another_table_is_refused as test_another_table_is_refused
from theorems.automaton_rule import test_compiled_automata_are_proved as test_compiled_automata_are_proved
from theorems.automaton_rule import test_planted_faults_are_named as test_planted_faults_are_named
from theorems.automaton_rule import (
    test_scores_that_a_run_cannot_hold_are_refused as test_scores_that_a_run_cannot_hold_are_refused,
)
from theorems.automaton_rule import test_the_folder_is_checked as test_the_folder_is_checked


@pytest.fixture
def form() -> str:
    return "looped"


def test_the_situations_are_counted(form):
    automaton = random_automaton(2, 5, 3)
    walk = looped_automaton(automaton, *stored(form, automaton))
    known = walk.meaning.known
    # Row 0; for each symbol nothing arriving, and 5 states arriving at a row without and with its own state. A row of
    # the past and the next one that lead to the same states are one situation each.
    assert len(known["arriving", "state", "state after", "token"]) == 1 + 3 * (1 + 2 * 5)
    assert len(known["arriving",]) == 1 + 5
    assert walk.meaning.tally.total == walk.meaning.tally.checked


def test_one_thing_too_many_is_refused(form):
    """The two units of a step also write another state: each output is exact, and there is one too many."""
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)

    def twice(down: np.ndarray) -> None:
        (target,) = np.flatnonzero(down[0])
        down[:2, target + 1 if target in (0, 6) else target - 1] = down[:2, target]

    with pytest.raises(Refused, match=WRONG):
        PROVE[form](automaton, config, changed(tensors, DOWN, twice))


@pytest.mark.parametrize(("row", "at"), [(3, 3), (3, 1)])
def test_a_look_at_another_row_is_refused(form, row, at):
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)
    bits = tensors[f"{HEAD}.key"].shape[2]

    def look(codes: np.ndarray) -> None:
        codes[row, -bits:] = codes[at, -2 * bits : -bits]

    with pytest.raises(Refused, match="do not tell the row that a head looks at"):
        PROVE[form](automaton, config, changed(tensors, "code.table", look))


def test_the_wrong_number_of_passes_is_refused(form):
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)
    with pytest.raises(Refused, match="pass"):
        PROVE[form](automaton, {**config, "loops": 3}, tensors)
