"""Counting by a uniform head: exact counts, any table of them, and the formula of the interpolation."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from certiformer.axioms import exact_count
from certiformer.construct.counting import counting_network, symmetric_network
from certiformer.construct.one_block import interpolated
from certiformer.errors import BadInput
from certiformer.kernel.certificate import Theorem
from certiformer.model import Transformer
from certiformer.target import CountMap
from theorems.sequence_claims import problem_of

GENERATOR = np.random.default_rng(0)


def test_the_weights_are_second_differences():
    values = [int(f) for f in GENERATOR.integers(-9, 9, 30)]
    base, units = interpolated(list(enumerate(values)))
    before = [values[0], *values]
    wanted = {j: values[j + 1] - 2 * values[j] + before[j] for j in range(29)}
    assert base == values[0]
    assert {-bias: factor for (_, bias), factor in units} == {j: d for j, d in wanted.items() if d}
    assert all(slope == 1 for (slope, _), _ in units)


@pytest.mark.parametrize("tokens", [1, 2, 9])
def test_any_table_of_a_count_is_met_exactly_in_rationals(tokens):
    values = [Fraction(int(p), int(q)) for p, q in GENERATOR.integers(1, 20, (tokens + 1, 2))]
    base, units = interpolated(list(enumerate(values)))
    for count, value in enumerate(values):
        assert base + sum(f * max(slope * count + bias, 0) for (slope, bias), f in units) == value


def test_the_transformer_counts():
    letters = GENERATOR.integers(0, 7, (50, 60))
    outputs = Transformer(*counting_network(7, 60)).evaluate(letters)
    wanted = np.stack([(letters == v).sum(axis=1) for v in range(7)], axis=1)
    assert np.max(np.abs(outputs - wanted)) < 1e-11  # 60 weights of 1/60 with values of 60: 2^-53 * 60 * 60 * 2


def test_a_symmetric_function_of_more_letters_than_two():
    values = [int(f) for f in GENERATOR.integers(-9, 9, 13)]
    letters = GENERATOR.integers(0, 3, (40, 12))
    outputs = Transformer(*symmetric_network(3, 12, (2, 0), values)).evaluate(letters)
    wanted = [[values[int((row == v).sum())] for v in (2, 0)] for row in letters]
    assert np.max(np.abs(outputs - wanted)) < 1e-10  # slopes up to 72 enlarge the rounding of the counts


def test_large_counts_are_proved_at_once():
    problem = problem_of(counting_network(50, 1000), CountMap("", 50, 1000, "count"))
    bound = exact_count.check(Theorem("1", "exact_count"), problem)
    assert bound < 1e-20


def test_sizes_that_nobody_can_store_are_refused():
    with pytest.raises(BadInput, match="too many weights"):
        symmetric_network(2000, 10_000, range(2000), [0, 1] * 5_000 + [0])


def test_the_gadgets_need_numpy_alone():
    """The compiler uses them, and compiles without JAX."""
    names = ["counting", "parity", "majority", "selector_width", "induction_head", "adaptive_halting", "sort_alphabet"]
    code = (
        "import sys, importlib;"
        f"[importlib.import_module('certiformer.construct.' + name) for name in {names}];"
        "sys.exit(any(name.partition('.')[0] in ('jax', 'jaxlib', 'equinox', 'flint', 'scipy') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
