"""Outcomes and their exit codes."""

from __future__ import annotations

import pytest

from certiformer.kernel.certificate import Outcome


def test_only_a_proof_that_level_2_accepted_exits_with_0():
    codes = {(outcome, level): outcome.exit_code(level) for outcome in Outcome for level in (0, 1, 2)}
    assert [key for key, code in codes.items() if code == 0] == [(Outcome.PROVED, 2)]


def test_the_other_codes():
    assert Outcome.PROVED.exit_code(1) == 3
    assert Outcome.REFUTED.exit_code(2) == 1
    assert Outcome.INVALID.exit_code(2) == 2
    assert Outcome.UNDECIDED.exit_code(1) == 3


def test_a_refusal_is_no_outcome_of_a_claim():
    with pytest.raises(ValueError, match="refused"):
        Outcome("refused")
