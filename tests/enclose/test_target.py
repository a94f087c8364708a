"""Forms of targets against ball arithmetic: every operation, orders 0 to 6, one to four variables, widths 1e-12 to 1e3."""

from __future__ import annotations

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.enclose.target import enclose_target
from certiformer.enclose.taylor import enclosed_range
from certiformer.target import parse_formula
from enclose.balls import program_values
from enclose.forms import WIDTHS, assert_enclosed, compiled


def boxes(dimension: int, centres=(0.0, 0.3, -1.7, 12.0), widths=WIDTHS):
    """Every centre with every width, the axes shifted and scaled differently."""
    c = [[m + 0.37 * i for i in range(dimension)] for m in centres for _ in widths]
    r = [[w / 2 * (1 + 0.5 * i) for i in range(dimension)] for _ in centres for w in widths]
    return c, r


def landmarks(*values: Fraction):
    """Normalised points where the first variable passes a landmark: a stationary point, a kink, a zero."""

    def extra(centre, radius):
        return [[(v - centre[0]) / radius[0], *([Fraction(1, 3)] * (len(centre) - 1))] for v in values]

    return extra


def ranges(text: str, order: int, centre: list[float], radius: list[float]):
    """The ends of the range of every output on one box."""
    enclose = enclose_target(parse_formula(text), order)
    whole = compiled(lambda c, r: enclosed_range(enclose(c, r)))(jnp.array(centre), jnp.array(radius))
    return np.asarray(whole.lo), np.asarray(whole.hi)


HALF_PI = Fraction(jnp.pi) / 2


@pytest.mark.parametrize("order", [0, 1, 4])
@pytest.mark.parametrize(
    "text",
    [
        "[sin(x1), cos(x1), exp(x1), tanh(x1), atan(x1), erf(x1)]",
        "[abs(x1), max(x1, 0.25), min(x1, x1**2), x1**2, x1**3, x1**7, -x1]",
        "[where(x1 < 0.3, x1, x1**2), where(x1 <= 0.3, 1, -1), 0.1*x1 + pi, x1*x1 - e*x1]",
    ],
)
def test_one_variable(text, order):
    program = parse_formula(text)
    marks = landmarks(HALF_PI, -HALF_PI, Fraction(0), Fraction(1, 4), Fraction(3, 10), Fraction(1), Fraction(0.3))
    assert_enclosed(
        enclose_target(program, order), lambda p: program_values(program, p), *boxes(1), extra=marks, points=4
    )


@pytest.mark.parametrize("order", [1, 4])
def test_functions_with_a_domain(order):
    program = parse_formula("[log(x1), sqrt(x1), 1/x1, tan(x1), x1/(1+x1**2)]")
    centres = [1e-9, 0.5, 1.0, 3.0, 40.0, -0.4, 1.5707]
    assert_enclosed(enclose_target(program, order), lambda p: program_values(program, p), *boxes(1, centres), points=4)


@pytest.mark.parametrize("order", [2, 6])
def test_two_variables(order):
    program = parse_formula("[sin(x1*x2), exp(sin(x1)*x2), x1*x2/(2+cos(x1)), sqrt(1+x1**2+x2**2)]")
    assert_enclosed(enclose_target(program, order), lambda p: program_values(program, p), *boxes(2), points=4)


def test_three_and_four_variables():
    for dimension, text in ((3, "x1*sin(x2+x3) - tanh(x1*x2)"), (4, "sin(x1*x2)+exp(-x3*x4)")):
        program = parse_formula(text)
        assert_enclosed(
            enclose_target(program, 3), lambda p, t=program: program_values(t, p), *boxes(dimension), points=3
        )


def test_a_higher_order_is_tighter():
    """Remainders fall like width^(order + 1): on a box of width 0.01, by a factor of 100 and more per order."""
    program = parse_formula("sin(3*x1*x2)")
    c, r = jnp.array([0.4, 0.7]), jnp.array([0.005, 0.005])
    rem = [float(compiled(enclose_target(program, k))(c, r).rem[0]) for k in (1, 2, 3)]
    # 20 of the expected 100 to 200, because constants differ between orders.
    assert all(after < before / 20 for before, after in zip(rem, rem[1:], strict=False)), rem


@pytest.mark.parametrize(
    "text",
    [
        "[1/x1, log(x1), log(x1-0.5), tan(2*x1), sqrt(-1-x1**2), tanh(log(x1)), exp(-1/x1**2), min(log(x1), 0)]",
        "[x1/x1**3, sin(1/x1), abs(tan(2*x1)), max(0, log(x1)), (log(x1)+1)*x1, where(x1 < 0.5, log(x1), 0)]",
    ],
)
@pytest.mark.parametrize("order", [0, 2])
def test_a_singular_argument_is_never_bounded(text, order):
    lo, hi = ranges(text, order, [0.0], [1.0])
    assert not (np.isfinite(lo) & np.isfinite(hi)).any(), (lo, hi)


def test_an_undefined_branch_that_is_not_taken_does_no_harm():
    assert ranges("where(x1 < 0, 1, log(x1))", 2, [-1.0], [0.5])[1][0] < 1.001


def test_a_spike_narrower_than_any_grid_is_seen():
    """exp(-1e12 (x1 - 0.3)^2) reaches 1 at 0.3; no box around it, however wide or narrow, may claim less."""
    program = parse_formula("exp(-1e12*(x1-0.3)**2)")
    fn = compiled(jax.vmap(lambda c, r: enclosed_range(enclose_target(program, 2)(c, r))))
    radius = np.array([[w] for w in (1e3, 10.0, 1.0, 0.1, 1e-3, 1e-5, 1e-6, 1e-7, 1e-9)])
    centre = 0.3 + radius * np.linspace(-0.99, 0.99, len(radius))[:, None]
    high = np.asarray(fn(centre, radius).hi)[:, 0]
    assert not (high < 1).any(), high
    assert (high < 1.1).all(), "the square is known to be >= 0 on every box, so the spike never exceeds 1 by much"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_bad_boxes_give_no_bound(bad):
    for c, r in (([bad, 0.0], [1.0, 1.0]), ([0.0, 0.0], [1.0, abs(bad)])):
        lo, hi = ranges("sin(x1)*x2 + 1", 2, c, r)
        assert not (np.isfinite(lo) & np.isfinite(hi)).any()
