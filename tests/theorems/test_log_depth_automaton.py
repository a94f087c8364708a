"""The rule for automata of logarithmic depth."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.kernel.refusal import Refused
from certiformer.kernel.weights import Tensor
from compiler.automata.random_automata import random_automaton
from theorems.automaton_rule import PROVE, changed, stored
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
    return "log-depth"


def test_the_situations_are_counted(form):
    automaton = random_automaton(2, 5, 3)
    # 5 slots with 5 numbers each, and old and new digit for each of 3 digits.
    assert PROVE[form](automaton, *stored(form, automaton)).situations == 25 + 3 * 4


def test_many_states_of_log_depth_are_too_fine_for_bfloat16():
    """Numbers up to 19 with a relative error of some 2^-6 are not within 1/4: undecided, not wrong."""
    automaton = random_automaton(0, 20, 1)
    with pytest.raises(Refused, match="may fall short of a threshold"):
        PROVE["log-depth"](automaton, *stored("log-depth", automaton, 4, "bfloat16"))


def test_a_pointer_to_the_wrong_row_is_refused():
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored("log-depth", automaton)
    pointer = 3 * 3
    with pytest.raises(Refused, match="row 3 does not point to the row before it"):
        PROVE["log-depth"](
            automaton, config, changed(tensors, "code.table", lambda t: t.__setitem__((3, pointer), 1 - t[3, pointer]))
        )


def test_units_of_the_composition_are_looked_at_one_by_one():
    """Block 1 of log-depth: a unit too many, one that is missing, one that selects for two numbers, one that knows too much."""
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored("log-depth", automaton)
    up, bias, down = (f"blocks.1.ffn.{part}" for part in ("up", "up_bias", "down"))
    faults = [
        (down, lambda a: a.__setitem__((0, 0), 0.0), "does not act on one coordinate"),
        (down, lambda a: a.__setitem__((0, 1), 1.0), "does not act on one coordinate"),
        (down, lambda a: a.__setitem__((0,), a[1] * 0 + np.eye(a.shape[1])[1]), "reads what it must not|each pair"),
        (up, lambda a: a.__setitem__((0, 1), 1.0), "does not select one number"),
        (up, lambda a: a.__setitem__((-1, 0), 1.0), "reads what it must not know of"),
        (up, lambda a: a.__setitem__((slice(3, 9), 1), a[3:9, 1] / 3), "selects a number that is not the one"),
        (bias, lambda a: a.__setitem__(0, 0.25), "selects a number that is not the one"),
        (bias, lambda a: a.__setitem__(3, 0.25), "does not take its coordinate away"),
    ]
    for name, fault, problem in faults:
        with pytest.raises(Refused, match=problem):
            PROVE["log-depth"](automaton, config, changed(tensors, name, fault))


def test_each_unit_of_the_composition_is_needed():
    """One that takes the place of another, and one that is too weak to keep the numbers out that were not looked for."""
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored("log-depth", automaton)
    up, bias, down = (f"blocks.1.ffn.{part}" for part in ("up", "up_bias", "down"))

    def replaced(unit: int, by: int) -> dict[str, Tensor]:
        other = changed(tensors, up, lambda a: a.__setitem__((slice(None), unit), a[:, by].copy()))
        other = changed(other, bias, lambda a: a.__setitem__(unit, a[by]))
        return changed(other, down, lambda a: a.__setitem__((unit,), a[by].copy()))

    # Units 0 to 2 select for the first state, 3 takes its number away, 4 and 5 its rungs.
    with pytest.raises(Refused, match="does not take away each old number and each rung once"):
        PROVE["log-depth"](automaton, config, replaced(4, 5))
    with pytest.raises(Refused, match="does not have one unit for each pair of states"):
        PROVE["log-depth"](automaton, config, replaced(0, 1))
    weak = changed(tensors, up, lambda a: a.__setitem__((slice(3, 9), 1), a[3:9, 1] / 3))
    weak = changed(weak, bias, lambda a: a.__setitem__(1, a[1] / 3))
    with pytest.raises(Refused, match="selects a number that is not the one looked for"):
        PROVE["log-depth"](automaton, config, weak)


def test_the_wrong_number_of_passes_is_refused(form):
    automaton = random_automaton(11, 3, 2)
    config, tensors = stored(form, automaton)
    with pytest.raises(Refused, match="pass"):
        PROVE[form](automaton, {**config, "loops": 1}, tensors)
