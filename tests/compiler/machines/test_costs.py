"""The costs of machines over inputs, against formulas and against the transformer itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from certiformer.compiler.machines import ChainOfThought, costs_of, machine_loop, parse_machine
from certiformer.compiler.machines.examples import increment, palindrome
from certiformer.compiler.machines.simulate import simulate
from certiformer.errors import BadInput


def test_the_costs_of_counting_are_those_of_the_carry():
    costs = costs_of(machine_loop(increment(), tape=20), longest=5)
    for each in costs.lengths:
        n = each.length
        # To the right end and back over k trailing ones; a word of ones alone needs a new digit.
        wanted = sorted([n + 2 + k for k in range(n) for _ in range(2 ** (n - 1 - k))] + [2 * n + 2])
        assert list(each.steps) == wanted and each.every and each.quantile(1.0) == 2 * n + 2
        assert each.quantile(0.0) == wanted[0] and each.mean == pytest.approx(np.mean(wanted))
    assert costs.costliest == ("1",) * 5 and costs.states == {"done": 63} and sum(costs.histogram().values()) == 63


def test_a_machine_may_halt_early_in_a_state_of_its_own():
    costs = costs_of(machine_loop(palindrome(), tape=24), longest=6)
    assert costs.states == {"yes": 1 + 2 + 2 + 4 + 4 + 8 + 8, "no": 0 + 0 + 2 + 4 + 12 + 24 + 56}
    by_length = costs.lengths[6]
    assert by_length.quantile(0.5) < by_length.quantile(1.0) / 2  # half of the words differ at their ends
    assert (by_length.quantile(1.0), len(costs.costliest)) == (simulate(palindrome(), costs.costliest).steps, 6)


def test_what_does_not_halt_is_counted_apart():
    runs = parse_machine('blank="_"\nstart="A"\nhalt=["H"]\nsymbols=["a","b","_"]\nmissing="halt"\n'
                         'transitions=[["A","a","a","S","A"],["A","b","b","R","A"]]')  # fmt: skip
    costs = costs_of(machine_loop(runs, tape=4), longest=2, steps=9)
    last = costs.lengths[2]
    assert (last.inputs, len(last.steps), last.running, last.off) == (4, 0, 3, 1)
    assert last.quantile(0.5) is None and last.mean is None


def test_long_inputs_are_drawn_and_the_horizon_of_a_decoder_is_kept():
    costs = costs_of(machine_loop(increment(), tape=40), longest=13)
    assert [each.every for each in costs.lengths[-2:]] == [True, False] and costs.lengths[-1].inputs == 4096
    decoder = ChainOfThought(increment(), steps=8, symbols=4)
    assert costs_of(decoder, longest=3).costliest == ("1", "1", "1")
    assert costs_of(decoder, longest=4).lengths[4].running == 2  # 8 steps are not enough for 0111 and 1111
    for wrong in ({"longest": 5}, {"longest": -1}):
        with pytest.raises(BadInput):
            costs_of(decoder, **wrong)
    with pytest.raises(BadInput, match="does not fit"):
        costs_of(machine_loop(increment(), tape=4), longest=3)


def test_a_transformer_that_takes_other_steps_is_not_believed():
    loop = machine_loop(increment(), tape=12)
    idle = dataclasses.replace(
        loop, tensors={**loop.tensors, "blocks.0.ffn.down": 0 * loop.tensors["blocks.0.ffn.down"]}
    )
    with pytest.raises(ValueError):
        costs_of(idle, longest=2)
