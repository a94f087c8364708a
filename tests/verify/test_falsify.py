"""The lower end: found by ascent, exact as a witness."""

from fractions import Fraction

import jax.numpy as jnp
import pytest

from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.target import parse_domain
from certiformer.verify import Falsifier, FloatDomain

working_precision()


@pytest.mark.parametrize(
    ("error", "text", "peak"),
    [
        (lambda x: jnp.sin(3 * x[:, :1]) * 0.2 + 0.1, "[0, 2*pi]", 0.3),
        (lambda x: (x[:, :1] - 0.31) ** 2 * (x[:, 1:] + 1), "[0, 1]^2", 0.69**2 * 2),
        (lambda x: jnp.concatenate([0 * x[:, :1], -jnp.abs(x[:, :1] - 0.7)], 1), "[0, 1]", 0.7),
    ],
)
def test_finds_the_peak(error, text, peak):
    domain = FloatDomain(BallDomain(parse_domain(text)))
    _, value = Falsifier(error, domain).search()
    assert value <= peak * (1 + 1e-12)
    assert value >= peak * (1 - 1e-3)  # ascent stops near a stationary point; a quadratic peak loses the square of that


@pytest.mark.parametrize("at_once", [1, 7, 700, 2047, 5000])
def test_points_in_pieces_give_the_same_point(at_once):
    domain = FloatDomain(BallDomain(parse_domain("[0, 1]^2")))
    seen = []

    def error(x):
        seen.append(len(x))
        return (x[:, :1] - 0.31) ** 2 * (x[:, 1:] + 1)

    point, value = Falsifier(error, domain, at_once=at_once).search()
    assert max(seen) <= at_once  # rows that are traced together
    expected, largest = Falsifier(error, domain).search()
    assert max(seen) == 2048  # the negative control: all of them
    assert point == pytest.approx(expected, abs=1e-9) and value == pytest.approx(largest, rel=1e-12)


def test_witness_is_an_exact_rational_inside_the_domain():
    ends = BallDomain(parse_domain("[0, 2*pi]"))
    falsifier = Falsifier(lambda x: x[:, :1], FloatDomain(ends))
    point, _ = falsifier.search()
    witness = falsifier.witness(point)
    assert Fraction(witness.point[0]) == Fraction(float(point[0]))
    from certiformer.kernel.balls import ball

    assert ends.contains([ball(Fraction(witness.point[0]))])


def test_not_a_number_does_not_hide_a_peak():
    error = lambda x: jnp.where(x[:, :1] < 0.5, jnp.nan, x[:, :1])  # noqa: E731
    _, value = Falsifier(error, FloatDomain(BallDomain(parse_domain("[0, 1]")))).search()
    assert value == pytest.approx(1.0)
