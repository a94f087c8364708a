"""The method `ridge`: sizes that the project promises, transformers that do what the plan says, refusals with a reason."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.construct.method import Size, Task
from certiformer.construct.program_values import as_numpy
from certiformer.construct.ridge import plan, separated
from certiformer.kernel import Refused
from certiformer.target import parse_formula, ridge_split
from negative.forge import target_of

# formula, box, epsilon, most units, whether it has to be fitted
CASES = [
    ("sin(x1) + sin(x2)", "[0,2*pi]^2", "0.01", 32, False),
    ("abs(x1 - x2)", "[0,1]^2", "1e-9", 1, False),
    ("[max(x1, x2), min(x1, x2)]", "[0,1]^2", "1e-9", 2, False),
    ("3 - 2*x1", "[0,1]", "1e-9", 0, False),
    ("x1*x2", "[0,1]^2", "0.01", 9, True),
    ("x1*x2 + abs(x1 - 0.5) - 4*x2", "[0,1]^2", "0.02", 8, True),
    ("[x2*x3, x1 + x3]", "[0,1]^3", "0.05", 5, True),
    ("tanh(20*(x1 - x2))", "[0,1]^2", "0.02", 6, False),
]


@pytest.mark.parametrize(("formula", "on", "epsilon", "most", "is_fitted"), CASES)
def test_what_is_planned_is_built_and_close(formula, on, epsilon, most, is_fitted):
    target = target_of(formula, on)
    task = Task.of(target, Fraction(epsilon))
    found = plan(task)
    assert found.units <= most
    assert (found.through is not None) == is_fitted
    assert found.bound <= float(epsilon)
    model = found.realise().model
    assert found.size() == Size.of(model)
    low, high = found.gather_arguments()[1:3]
    points = low + (high - low) * np.random.default_rng(2).random((3_000, len(low)))
    error = np.abs(model.evaluate(points) - as_numpy(target.program)(points)).max()
    # Rounding of values up to 10 in the run; the bound itself is sampled finely, not proved.
    assert error <= found.bound * (1 + 1e-3) + 1e-14


def test_the_size_that_was_asked_for():
    size = plan(Task.of(target_of("sin(x1) + sin(x2)", "[0,2*pi]^2"), Fraction(1, 100))).size()
    assert size.nonzero <= 120  # wanted: 250, and 700 in all
    assert size.dense <= 400


def test_a_changed_path_is_noticed():
    """The negative control of the first test: one knot moved by a hundredth of the range breaks the bound."""
    found = plan(Task.of(target_of("abs(x1 - x2)", "[0,1]^2"), Fraction(1, 10**9)))
    found.outputs[0].paths[0].knots[1] += 0.01
    points = np.random.default_rng(2).random((1_000, 2))
    error = np.abs(found.realise().model.evaluate(points)[:, 0] - np.abs(points[:, 0] - points[:, 1])).max()
    assert error > 1e-3


@pytest.mark.parametrize(
    ("formula", "on", "epsilon", "why"),
    [
        ("where(x1 < 0.5, 0, 1)", "[0,1]", "0.1", "jumps"),
        ("x1*x2*x3*x4*x5", "[0,1]^5", "0.1", "at most 4 variables"),
        ("where(x1*x2 < 0.3, 0, 1)", "[0,1]^2", "0.1", "no sum of polynomial ridges"),
        ("1/x1", "[0,1]", "0.1", "finite value"),
    ],
)
def test_refusals_say_why(formula, on, epsilon, why):
    with pytest.raises(Refused, match=why):
        plan(Task.of(target_of(formula, on), Fraction(epsilon)))


def test_terms_are_separated_exactly():
    program = parse_formula("[x1*x2 + sin(x1) - 2*(x1*x2*x1 - exp(x1 - x2)), x1]")
    exact, rest = separated(program)
    assert all(ridge_split(exact, o) is not None for o in range(2))
    x = np.random.default_rng(0).random((50, 2))
    # Two orders of summation of values of size 10.
    assert np.abs(as_numpy(exact)(x) + as_numpy(rest)(x) - as_numpy(program)(x)).max() <= 1e-14
    assert np.ptp(as_numpy(rest)(x)[:, 1]) == 0
