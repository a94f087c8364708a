"""Euclid's algorithm in a looped block: the answer after any number of passes past the halt, at each token's own time."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

import numpy as np
import pytest

from certiformer.construct.adaptive_halting import HALT, STEPS, euclid_network, euclid_points, frozen_margin, gated
from certiformer.errors import BadInput
from certiformer.model import Transformer

LARGEST = 40
FFN = "blocks.0.ffn"


def subtractions(a: int, b: int) -> int:
    """In plain Python, how many passes change the numbers."""
    steps = 0
    while b:
        a, b, steps = abs(a - b), min(a, b), steps + 1
    return steps


PAIRS = [(a, b) for a in range(LARGEST + 1) for b in range(LARGEST + 1)]


def passes(tensors, state, count):
    """The block in NumPy, `count` times: the state of every pass."""
    states = [state]
    for _ in range(count):
        hidden = np.maximum(state @ tensors[f"{FFN}.up"] + tensors[f"{FFN}.up_bias"], 0)
        state = state + (hidden @ tensors[f"{FFN}.down"] + tensors[f"{FFN}.down_bias"])
        states.append(state)
    return states


@pytest.mark.parametrize(
    ("count", "dtype"),
    [(LARGEST + 2, "float64"), (3 * LARGEST, "float64"), (LARGEST + 3, "float32"), (LARGEST + 3, "bfloat16")],
)
def test_the_answer_is_exact_for_every_pair_after_any_number_of_passes(count, dtype):
    model = Transformer(*euclid_network(LARGEST, count, dtype=dtype))
    outputs = model.evaluate(euclid_points(PAIRS, LARGEST), dtype)
    assert np.array_equal(outputs, [(gcd(a, b), subtractions(a, b), 1) for a, b in PAIRS])


def test_nothing_moves_after_the_halt_and_the_halt_comes_when_it_should():
    _, tensors = euclid_network(LARGEST, 1)
    start = np.array([(a, b, 0, 0) for a, b in PAIRS], float)
    states = passes(tensors, start, 2 * LARGEST)
    time = np.array([subtractions(a, b) for a, b in PAIRS])
    assert time.max() == LARGEST + 1  # as the theorem says, and data dependent
    assert len(set(time.tolist())) > 20
    for number, (before, after) in enumerate(zip(states, states[1:], strict=False)):
        halted = number > time
        assert np.array_equal(before[:, HALT], halted)
        assert np.array_equal(before[halted], after[halted])  # the identity, to the bit
        assert np.all((before != after).any(axis=1)[~halted])  # and no pass before it is idle


def test_every_token_halts_at_its_own_time():
    model = Transformer(*euclid_network(LARGEST, LARGEST + 2, tokens=4))
    found = model.evaluate(euclid_points([[1, 40, 7, 7, 6, 9, 0, 0]], LARGEST)).reshape(4, 3)
    assert found.tolist() == [[1, 41, 1], [7, 2, 1], [3, 4, 1], [0, 0, 1]]


BOX = [(0, LARGEST), (0, LARGEST), (0, 10**6), (1, 1)]


def test_the_gate_is_proved_from_the_weights_and_a_weaker_one_is_not():
    config, tensors = euclid_network(LARGEST, LARGEST + 2)
    assert frozen_margin(tensors, BOX) == 1
    weaker = {**tensors, f"{FFN}.up": gated(tensors[f"{FFN}.up"], HALT, -1.5)}
    assert frozen_margin(weaker, BOX) == Fraction(-1, 2)
    without = {**tensors, f"{FFN}.up": gated(tensors[f"{FFN}.up"], HALT, -(LARGEST + 1.0))}
    assert frozen_margin(without, BOX) < 0
    # Without the gate the halt is raised again and again.
    assert Transformer(config, without).evaluate([[6.0, 4.0]])[0, 2] > 1
    biased = {**tensors, f"{FFN}.down_bias": np.eye(4)[STEPS]}
    with pytest.raises(BadInput, match="never the identity"):
        frozen_margin(biased, BOX)


def test_what_is_not_whole_or_out_of_range_is_refused():
    for rows in ([[1.5, 2]], [[-1, 2]], [[1, 41]], [[float("nan"), 1]], [1, 2]):
        with pytest.raises(BadInput, match="whole numbers"):
            euclid_points(rows, LARGEST)
    with pytest.raises(BadInput, match="not exact in bfloat16"):
        euclid_network(127, 5, dtype="bfloat16")
    with pytest.raises(BadInput, match="at least 1"):
        euclid_network(0, 5)
