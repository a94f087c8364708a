"""Selector widths: the inverse of 1 / (1 + w), the leakage that the theorem states, and the compiler's use of it."""

from __future__ import annotations

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest

from certiformer.axioms import exact_width
from certiformer.compiler.driver import compile_program
from certiformer.construct.selector_width import histogram_network, inverse_units, sharpness, start_weight
from certiformer.kernel.certificate import Theorem
from certiformer.model import Transformer
from certiformer.rasp.library import catalogue
from certiformer.target import WidthMap
from theorems.sequence_claims import problem_of


def value(base, units, r):
    return base + sum(factor * max(slope * r + bias, 0) for (slope, bias), factor in units)


def test_the_weights_are_whole_and_those_of_the_theorem():
    f = [int(x) for x in np.random.default_rng(0).integers(-9, 9, 40)]
    base, units = inverse_units(f)
    steps = [0, *(b - a for a, b in zip(f, f[1:], strict=False))]  # f(j) - f(j-1), with f(-1) = f(0)
    wanted = {j + 1: (j + 2) * steps[j + 1] - j * steps[j] for j in range(39)}
    assert {-slope: factor for (slope, _), factor in units} == {j: w for j, w in wanted.items() if w}
    assert all(value(base, units, start_weight(w)) == f[w] for w in range(40))


@pytest.mark.parametrize("tokens", [1, 10, 60])
def test_leakage_moves_the_width_by_at_most_two_n_exp(tokens):
    base, units = inverse_units(range(tokens + 1))
    for gap in (log(tokens) + 0.1, log(4 * tokens), 12):
        for w in range(tokens + 1):
            leaked = Fraction((tokens - w) * exp(-gap))
            if leaked >= 1:
                continue
            found = value(base, units, 1 / (1 + w + leaked))
            assert w <= found <= w + 2 * leaked
            if gap >= log(4 * tokens):
                assert round(found) == w


def test_below_log_n_two_widths_look_the_same():
    """The lower bound: n others that weigh 1 together are one selected position."""
    tokens = 20
    assert 1 / (1 + 0 + tokens * exp(-log(tokens))) == pytest.approx(float(start_weight(1)), abs=1e-15)


@pytest.mark.parametrize("tokens", [1, 30, 1000, 10_000])
def test_the_sharpness_is_a_power_of_two_and_enough(tokens):
    gap = sharpness(tokens)
    assert np.frexp(gap)[0] == 0.5
    assert 2 * tokens * exp(-gap) < 1e-15


def test_the_histogram_of_a_hundred_tokens_is_proved_and_runs():
    network = histogram_network(4, 100)
    assert exact_width.check(Theorem("1", "exact_width"), problem_of(network, WidthMap("", 4, 100))) < 1e-20
    letters = np.random.default_rng(0).integers(0, 4, (10, 100))
    wanted = (letters[:, :, None] == letters[:, None, :]).sum(axis=2)
    # 99 units with slopes up to 99 enlarge the rounding of r.
    assert np.max(np.abs(Transformer(*network).evaluate(letters) - wanted)) < 1e-9


def test_the_compiled_program_has_the_units_of_the_gadget():
    compiled = compile_program(catalogue()["hist"].make(), ("a", "b"), 9, dtype="float64")
    name = "blocks.0.ffn"
    up, bias, down = (compiled.tensors[f"{name}.{part}"] for part in ("up", "up_bias", "down"))
    _, units = inverse_units(range(1, 10), first=1)
    assert up[up != 0].tolist() == [float(slope) for (slope, _), _ in units]
    assert bias.tolist() == [float(shift) for (_, shift), _ in units]
    assert down[down != 0].tolist() == [float(factor) for _, factor in units]
