"""Majority: two units a letter whatever the length, exact at ties, proved for a thousand tokens."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.axioms import exact_count
from certiformer.construct.majority import majority_network, majority_values
from certiformer.kernel.certificate import Theorem
from certiformer.model import Transformer
from certiformer.target import CountMap
from theorems.sequence_claims import problem_of

NODE = Theorem("1", "exact_count")


@pytest.mark.parametrize(("alphabet", "tokens"), [(2, 1000), (3, 999), (26, 100)])
def test_long_sequences_are_proved(alphabet, tokens):
    network = majority_network(alphabet, tokens)
    assert network[0].blocks[0].ffn.width == 2 * alphabet
    assert exact_count.check(NODE, problem_of(network, CountMap("", alphabet, tokens, "majority"))) < 1e-20


@pytest.mark.parametrize("tokens", [1, 10, 11])
def test_a_tie_is_no_majority(tokens):
    model = Transformer(*majority_network(2, tokens))
    rows = np.array([[1] * c + [0] * (tokens - c) for c in range(tokens + 1)])
    wanted = [[int(2 * (tokens - c) > tokens), int(2 * c > tokens)] for c in range(tokens + 1)]
    assert np.max(np.abs(model.evaluate(rows) - wanted)) < 1e-12  # rounding of counts up to 11
    assert majority_values(tokens) == [w[1] for w in wanted]


def test_a_threshold_that_is_one_off_is_seen():
    config, tensors = majority_network(2, 10)
    moved = {**tensors, "blocks.0.ffn.up_bias": tensors["blocks.0.ffn.up_bias"] + 1}
    assert abs(float(exact_count.check(NODE, problem_of((config, moved), CountMap("", 2, 10, "majority")))) - 1) < 1e-12
