"""Induction heads: random strings against the library's oracle, long ones proved, one head in each of two layers."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.axioms import exact_induction
from certiformer.construct.induction_head import GAP, induction_network
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Theorem
from certiformer.model import Transformer
from certiformer.rasp.library.catalogue import induction
from certiformer.target import InductionMap
from theorems.sequence_claims import problem_of

NODE = Theorem("1", "exact_induction", {"lead": "63.999"})


@pytest.mark.parametrize(("alphabet", "tokens"), [(4, 24)])
def test_random_strings_agree_with_the_oracle_of_the_program_library(alphabet, tokens):
    letters = np.random.default_rng(0).integers(0, alphabet, (100, tokens))
    outputs = Transformer(*induction_network(alphabet, tokens)).evaluate(letters).reshape(100, tokens, alphabet)
    unit = np.vstack([np.eye(alphabet), np.zeros(alphabet)])  # the last row: there was none
    wanted = [[unit[-1 if x is None else x] for x in induction(row.tolist())] for row in letters]
    assert np.max(np.abs(outputs - wanted)) < 2 * np.exp(-GAP)  # beside 1 it is lost, beside 0 it is all there is


@pytest.mark.parametrize(("alphabet", "tokens"), [(5, 60), (20, 150)])
def test_long_sequences_are_proved(alphabet, tokens):
    problem = problem_of(induction_network(alphabet, tokens), InductionMap("", alphabet, tokens))
    assert exact_induction.check(NODE, problem) < 4 * tokens * np.exp(-GAP) * 1.01


@pytest.mark.slow
def test_a_thousand_tokens_are_proved():
    problem = problem_of(induction_network(26, 1000), InductionMap("", 26, 1000))
    assert exact_induction.check(NODE, problem) < 1e-23


def test_the_size_is_that_of_the_theorem():
    config, tensors = induction_network(7, 30)
    assert config.width == 3 * 7 + 3
    assert [(b.attention.heads[0].count, b.attention.heads[0].key, b.ffn) for b in config.blocks] == [
        (1, 2, None),
        (1, 8, None),
    ]
    scores = np.concatenate([tensors[f"blocks.{b}.attention.groups.0.query"].ravel() for b in (0, 1)])
    assert np.array_equal(scores % GAP, np.zeros_like(scores))  # whole multiples of the gap


def test_sizes_that_nobody_can_store_are_refused():
    with pytest.raises(BadInput, match="too many weights"):
        induction_network(3000, 3000)
