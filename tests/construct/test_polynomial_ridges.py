"""Polynomial ridges: exact identities are found, fits keep what they claim, and the program is the fit, ridge by ridge."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.construct.polynomial_ridges import fit_ridges
from certiformer.construct.program_values import as_numpy
from certiformer.construct.ridge import fitted_program
from certiformer.construct.ridge_frame import Frame, predicted_size, primitive_directions
from certiformer.target import parse_formula, ridge_split
from target.reading import read


def fitted(text: str, epsilon: float, low: float = 0.0, high: float = 1.0):
    values = as_numpy(parse_formula(text))
    axes = parse_formula(text).inputs
    return fit_ridges(lambda x: values(x)[:, 0], np.full(axes, low), np.full(axes, high), epsilon), values


@pytest.mark.parametrize(
    ("text", "directions", "degree"),
    [("x1*x2", 2, 2), ("x1*x2*x3", 4, 3), ("x1*x2*x3*x4", 8, 4), ("x1**2 - 3*x1*x2 + x2", 2, 2)],
)
def test_polynomials_are_represented_exactly(text, directions, degree):
    """x1 ... xn is a sum of 2^(n-1) n-th powers of +-x1 +- ... +- xn."""
    fit, values = fitted(text, 1e-3)
    assert len(fit.directions) <= directions
    assert fit.degree == degree
    x = np.random.default_rng(5).random((500, fit.directions.shape[1]))
    assert np.abs(fit(x) - values(x)[:, 0]).max() <= 1e-13  # rounding of some dozen terms of size 1


@pytest.mark.parametrize(
    ("text", "epsilon", "most"),
    [
        # Found when this was written: 162.5, 3.3, 67.0 and 1.3 pieces; the limits leave room for another rounding.
        pytest.param("sin(8*x1*x2)", 0.02, 180, marks=pytest.mark.slow),
        pytest.param("1/(1.05 - x1*x2)", 1.9, 4, marks=pytest.mark.slow),
        ("exp(-(x1**2 + x2**2))", 0.001, 75),
        ("sqrt(x1**2 + x2**2)", 0.14, 2),
    ],
)
def test_a_fit_is_as_close_as_it_says_and_small(text, epsilon, most):
    fit, values = fitted(text, epsilon)
    x = np.random.default_rng(7).random((20_000, 2))
    error = np.abs(fit(x) - values(x)[:, 0]).max()
    assert error <= fit.residual * 1.1  # other points than those of the fit; the plan keeps 15 % for that
    assert fit.residual < epsilon
    assert fit.predicted <= most


def test_the_box_may_be_any_box():
    """Ends that are not rational, lengths that differ by 1000: the same target in other units needs the same profiles."""
    plain, _ = fitted("sin(3*x1*x2)", 0.01)
    values = as_numpy(parse_formula("sin(3*(x1/1000 - pi)*(x2*7))"))
    low, high = np.array([1000 * np.pi, 0.0]), np.array([1000 * np.pi + 1000, 1 / 7])
    other = fit_ridges(lambda x: values(x)[:, 0], low, high, 0.01)
    # The frame rounds lengths up by at most 1/16, which may change the choice of directions a little.
    assert other.predicted == pytest.approx(plain.predicted, rel=0.3)


def test_the_program_is_the_fit_and_splits_into_its_ridges():
    fit, values = fitted("sin(3*x1*x2)", 0.01)
    exact = parse_formula("abs(x1 - x2)")
    program = fitted_program([fit], exact)
    x = np.random.default_rng(3).random((200, 2))
    # Two orders of summation of values of size 1.
    assert np.abs(as_numpy(program)(x)[:, 0] - fit(x) - np.abs(x[:, 0] - x[:, 1])).max() <= 1e-12
    found = ridge_split(program)
    assert {d for d, _ in found.ridges} == {tuple(a) for a in fit.directions.tolist()} | {(1, -1)}
    assert len(program.nodes) < 20_000


def test_the_program_has_no_rounding():
    """In exact rational arithmetic the program is the sum that the float64 coefficients say."""
    fit, _ = fitted("x1*x2", 0.01)
    program = fitted_program([fit])
    x = [Fraction(1, 3), Fraction(2, 7)]
    total = Fraction(fit.affine[0])
    z = [(a - m) / h for a, m, h in zip(x, fit.frame.middle, fit.frame.half, strict=True)]
    total += sum((Fraction(c) * v for c, v in zip(fit.affine[1:], z, strict=True)), Fraction(0))
    for direction, (w,) in zip(fit.directions.tolist(), fit.coefficients.tolist(), strict=True):
        t = sum((a * v for a, v in zip(direction, z, strict=True)), Fraction(0)) / sum(map(abs, direction))
        total += Fraction(w) * (2 * t * t - 1)
    assert read(program, x, _Exact())[0] == total


class _Exact:
    def constant(self, text):
        return Fraction(text)

    def __getattr__(self, name):
        return {
            "add": lambda a, b: a + b,
            "sub": lambda a, b: a - b,
            "mul": lambda a, b: a * b,
            "neg": lambda a: -a,
            "pow": lambda a, n: a**n,
        }[name]


def test_what_cannot_be_fitted_is_said_to_be_so():
    assert fitted("where(x1*x2 < 0.3, 0, 1)", 0.1)[0] is None
    assert fitted("1/(x1*x2)", 0.1)[0] is None


def test_an_affine_target_needs_no_direction():
    fit, _ = fitted("0*x1*x2 + 2*x1 - x2", 0.1)
    assert len(fit.directions) == 0
    assert fit.predicted == 0.0


def test_directions_are_primitive_and_different():
    found = primitive_directions(3, 2)
    assert len(found) == len({tuple(a) for a in found.tolist()}) == 49
    assert not any((-a).tolist() in found.tolist() for a in found)


def test_the_frame_covers_the_box():
    low, high = np.array([0.0, -3.0, 1e-9]), np.array([2 * np.pi, 1e6, 3e-9])
    frame = Frame.of(low, high)
    assert np.abs(frame.scaled(np.stack([low, high]))).max() <= 1 + 1e-6  # middles are rounded to 2^-20 of the length


def test_the_predicted_size_of_squares():
    """g = T_2 / 2 on two directions: c = sqrt(2)/2 each, together 2^(3/2) c = 2."""
    assert predicted_size(np.array([[0.5], [0.5]])) == pytest.approx(2.0, rel=1e-5)  # quadrature of a smooth function
