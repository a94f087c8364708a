"""Parity: 1,000 bits exact and proved, the weights that the theorem states, and the same table in compiled programs."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.axioms import exact_count
from certiformer.compiler.driver import compile_program
from certiformer.construct.parity import parity_network, parity_values
from certiformer.construct.selector_width import inverse_units
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Theorem
from certiformer.kernel.rounding.runs import letters_error
from certiformer.model import Transformer
from certiformer.rasp.library import catalogue
from certiformer.target import CountMap
from theorems.sequence_claims import changed, problem_of

NODE = Theorem("1", "exact_count")


def test_a_thousand_bits_are_exact_and_proved():
    network, target = parity_network(1000), CountMap("", 2, 1000, "parity")
    problem = problem_of(network, target)
    assert exact_count.check(NODE, problem) < 1e-20
    run = letters_error(problem.network, "float64")
    assert run.bound is not None
    assert run.bound < 1e-6
    bits = np.random.default_rng(0).integers(0, 2, (64, 1000))
    bits[:32] = np.tri(1000, dtype=int)[:: 1000 // 32][:32]  # all counts from few to many
    outputs = Transformer(*network).evaluate(bits)[:, 0]
    assert np.max(np.abs(outputs - bits.sum(axis=1) % 2)) < float(run.bound)


def test_one_changed_weight_of_a_thousand_is_seen():
    network = changed(parity_network(1000), "blocks.0.ffn.down", (500, 3), 1e-6)
    bound = exact_count.check(NODE, problem_of(network, CountMap("", 2, 1000, "parity")))
    assert 4.9e-4 < bound < 5.1e-4  # the unit is 500 at the count 1,000


def test_the_weights_are_those_of_the_theorem():
    _, tensors = parity_network(7)
    assert tensors["blocks.0.ffn.down"][:, -1].tolist() == [1, -2, 2, -2, 2, -2, 2]
    assert tensors["blocks.0.ffn.up_bias"].tolist() == [-j for j in range(7)]
    base, units = inverse_units(parity_values(7))
    assert (base, [factor for _, factor in units]) == (0, [(-1) ** j * (2 * j + 2) for j in range(7)])
    assert [unit for unit, _ in units] == [(-(j + 1), 1) for j in range(7)]


def test_the_compiled_program_has_the_weights_of_the_gadget():
    """The library's parity counts with a selector width; its units are `inverse_units`, its weights the theorem's."""
    compiled = compile_program(catalogue()["parity"].make(), (0, 1), 7, dtype="float64")
    rows = []
    for index, block in enumerate(compiled.config.blocks):
        if block.ffn is not None:
            up, bias, down = (compiled.tensors[f"blocks.{index}.ffn.{part}"] for part in ("up", "up_bias", "down"))
            rows += [
                (up[:, i][up[:, i] != 0].tolist(), bias[i], down[i][down[i] != 0].tolist())
                for i in range(block.ffn.width)
            ]
    _, units = inverse_units(parity_values(7))
    assert rows == [([float(slope)], float(shift), [float(factor)]) for (slope, shift), factor in units]


def test_fewer_units_cannot_do_it():
    """Without one unit the bound is the damage: 2 relu(c - j) at c = n."""
    config, tensors = parity_network(9)
    down = tensors["blocks.0.ffn.down"].copy()
    down[4] = 0
    bound = exact_count.check(
        NODE, problem_of((config, {**tensors, "blocks.0.ffn.down": down}), CountMap("", 2, 9, "parity"))
    )
    assert abs(float(bound) - 10) < 1e-12


def test_an_alphabet_without_ones_is_refused():
    with pytest.raises(BadInput, match="at least two letters"):
        parity_network(5, alphabet=1)
    with pytest.raises(BadInput, match="at least two letters"):
        CountMap("", 1, 5, "parity")
