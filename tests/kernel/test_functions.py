"""Whole target programs in forms: random compositions, planted spikes, singular points."""

from __future__ import annotations

import random

import pytest
from flint import arb

from certiformer.kernel.balls import Box, working_precision
from certiformer.kernel.taylor import bounds, magnitude, target_forms
from certiformer.target import Program, parse_formula
from kernel.oracle import places, point_of, random_box, values, violation
from kernel.programs import random_program

working_precision()


def assert_random_programs_are_enclosed(seed: int) -> None:
    rng, informative = random.Random(seed), 0
    for _ in range(10):
        dimension, order = rng.randrange(1, 4), rng.randrange(7)
        program = random_program(rng, dimension, rng.randrange(3, 16))
        box = random_box(rng, dimension, width=None if rng.random() < 0.3 else 10 ** rng.uniform(-4, 0.3))
        forms = target_forms(program, box, order)
        informative += any(not form.singular and form.rem.is_finite() for form in forms)
        # NaN marks a singular point, but also a comparison that is exactly on its boundary.
        undecided = any(node[0] == "where" for node in program.nodes)
        for e in places(rng, dimension, 6):
            for form, value in zip(forms, values(program, point_of(box, e)), strict=True):
                if value.is_finite() or (value.is_nan() and not undecided):  # else it overflowed
                    assert violation(form, e, value) == "", program
    assert informative >= 2


@pytest.mark.parametrize("seed", range(40))
def test_random_programs_contain_their_values(seed):
    assert_random_programs_are_enclosed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(1000, 21000, 1000))
def test_very_many_random_programs_contain_their_values(start):
    for seed in range(start, start + 1000):
        assert_random_programs_are_enclosed(seed)


SPIKES = {
    "exp(-1e12*(x1 - 0.3)**2)": 0.3,
    "exp(-1e30*(x1 - 1/3)**2)": 1 / 3,
    "where(x1 < 0.3, 0, where(x1 < 0.3 + 1e-13, 1, 0))": 0.3,
    "where(abs(x1 - 0.7) <= 1e-20, 1, 0)": 0.7,
    "max(0, 1 - 1e9*abs(x1 - 0.5))": 0.5,
    "1/(1 + 1e18*(x1 - 0.123456789)**2)": 0.123456789,
    "(1 - tanh(1e8*(x1 - 0.6))**2)": 0.6,
}


@pytest.mark.parametrize("text", SPIKES)
@pytest.mark.parametrize("order", [0, 1, 2, 4, 6, 10])
def test_a_spike_narrower_than_any_grid_is_never_overlooked(text, order):
    """The value 1 is reached in every box around the spike, however wide the box or narrow the spike."""
    place = SPIKES[text]
    for width in (1e-3, 0.01, 0.1, 0.25):
        for shift in (-0.9, 0.0, 0.371, 0.9):
            box = Box((arb(place + shift * width),), (arb(width),))
            assert not bounds(target_forms(parse_formula(text), box, order)[0])[1] < 1
    # Far away from it the enclosure is small: the test above does not pass because everything is wide.
    box = Box((arb(place + 0.2),), (arb(0.001),))
    assert magnitude(target_forms(parse_formula(text), box, order)[0]) < 0.01


def test_a_spike_in_two_variables():
    program = parse_formula("exp(-1e12*((x1 - 0.3)**2 + (x2 - 0.6)**2))")
    for order in range(7):
        for width in (0.01, 0.5):
            box = Box((arb(0.3 + width / 3), arb(0.6 - width / 7)), (arb(width), arb(width)))
            assert not bounds(target_forms(program, box, order)[0])[1] < 1


SINGULAR = {
    "1/x1": "zero", "x1/(x1**2 - 0.25)": "zero", "log(x1)": "log", "log(x1**2)": "log", "sqrt(x1)": "sqrt",
    "sqrt(x1 - 1e-30)": "sqrt", "tan(3*x1)": "pole", "0*(1/x1)": "zero", "1/x1 - 1/x1": "zero", "sin(1/x1)": "zero",
    "exp(-1/x1**2)": "zero", "min(1, 1/x1**2)": "zero", "tanh(1/x1)": "zero", "where(1/x1 < 0, 0, 1)": "zero",
    "where(x1 < 0.5, 1/x1, 0)": "zero", "1/(1/x1)": "zero", "atan(tan(2*x1))": "pole", "(1/x1)*0 + 1": "zero", "where(sin(1/x1) < 2, 0, 1)": "zero", "max(2, sin(1/x1))": "zero",
    "min(tanh(1/x1), -3)": "zero", "abs(3 + sin(1/x1))": "zero",
}  # fmt: skip


@pytest.mark.parametrize("text", SINGULAR)
@pytest.mark.parametrize("order", [0, 1, 3, 6])
def test_a_singular_target_is_poisoned_with_its_reason(text, order):
    form = target_forms(parse_formula(text), Box((arb(0.25),), (arb(0.75),)), order)[0]
    assert SINGULAR[text] in form.singular
    assert not magnitude(form) <= 1e300


@pytest.mark.parametrize(
    "text", ["where(x1 < -1, 1/x1, 2)", "where(x1 > 5, log(x1 - 3), x1)", "where(x1 < 9, 1, tan(3*x1))"]
)
def test_a_branch_that_is_never_taken_may_be_singular(text):
    form = target_forms(parse_formula(text), Box((arb(0.25),), (arb(0.75),)), 2)[0]
    assert form.singular == ""
    assert magnitude(form) < 3


def test_the_zeroth_power_keeps_the_singular_points_of_its_base():
    # x1 -> (1/x1)**0: 1 for x1 != 0, without a value at 0. The parser never writes it, but a file may.
    program = Program(1, (("var", 0), ("const", "1"), ("div", 1, 0), ("pow", 2, 0)), (3,))
    around, away = Box((arb(0),), (arb(1),)), Box((arb(3),), (arb(1),))
    assert target_forms(program, around, 2)[0].singular
    form = target_forms(program, away, 2)[0]
    assert not form.singular
    assert bounds(form) == (1, 1)


@pytest.mark.parametrize("text", ["exp(exp(exp(exp(exp(x1 + 9)))))", "x1*exp(exp(exp(exp(9))))", "tan(exp(x1)*1e300)"])
def test_overflow_is_never_small(text):
    for order in (0, 2):
        form = target_forms(parse_formula(text), Box((arb(2),), (arb(1),)), order)[0]
        assert not magnitude(form) <= 1e300


def test_literals_are_exact():
    # 0.1 + 0.2 - 0.3 is 0, not 5.6e-17; pi is pi, not the nearest double (1.2e-16 below it).
    point = Box((arb(0),), (arb(0),))
    assert magnitude(target_forms(parse_formula("0.1 + 0.2 - 0.3 + x1"), point, 0)[0]) < 1e-27
    assert not magnitude(target_forms(parse_formula("sin(pi) + x1"), point, 0)[0]) > 1e-27
    nearest = "3.141592653589793115997963468544185161590576171875"
    low, high = bounds(target_forms(parse_formula(f"sin({nearest}) + x1"), point, 0)[0])
    assert low > 1.2246e-16
    assert high < 1.2247e-16
