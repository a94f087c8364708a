"""A Toeplitz bias cannot reverse: the bounds in balls, attained where they say so, and not beaten by optimisation."""

from __future__ import annotations

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.expressivity.position_head import position_head
from certiformer.expressivity.reversal import error_bound, reversal
from certiformer.expressivity.toeplitz_cannot_reverse import lower_bound, near_optimal_bias, sup_error

biases = st.integers(2, 9).flatmap(lambda n: st.lists(st.floats(-30, 30), min_size=2 * n - 1, max_size=2 * n - 1))


def ball(fraction):
    return arb(fraction.numerator) / fraction.denominator


@settings(max_examples=200, deadline=None, derandomize=True)
@given(biases)
def test_no_bias_beats_the_bound(bias):
    length = (len(bias) + 1) // 2
    # Never certainly below: zero tolerance on both sides.
    assert not sup_error(bias) < ball(lower_bound(length))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(biases, st.floats(-3, 3), st.floats(-3, 3))
def test_no_value_and_residual_weight_beat_the_zero_output(bias, value, residual):
    if len(bias) >= 7:
        assert not sup_error(bias, value, residual) < 1


@pytest.mark.parametrize("length", [4, 6, 8, 16, 40])
def test_even_lengths_attain_the_bound(length):
    with ctx.workprec(200):
        excess = sup_error(near_optimal_bias(length, 30.0)) - ball(lower_bound(length))
        small = arb(-30).exp()
        assert excess > 0
        assert excess.overlaps(4 * small / (length * (1 + small)))  # what the proof says, below 1e-13


@pytest.mark.parametrize("length", [1, 2, 3])
def test_short_sequences_can_be_reversed(length):
    assert lower_bound(length) == 0
    assert sup_error(near_optimal_bias(length, 40.0)) < 1e-15
    # ... up to the rounding of the run
    tokens = np.random.default_rng(0).uniform(-1, 1, (3, length))
    head = position_head(length, score_bias=np.array(near_optimal_bias(length, 40.0)))
    np.testing.assert_allclose(head.evaluate(tokens), tokens[:, ::-1], atol=1e-14, rtol=0)


def test_the_values_of_the_bound():
    assert [lower_bound(n) for n in range(2, 9)] == [0, 0, 1, 1, Fraction(4, 3), Fraction(4, 3), Fraction(3, 2)]


def soft_maximum_of_errors(parameters, length, sharpness):
    """A smooth stand-in for the largest row error, with value and residual weights free."""
    bias, value, residual = parameters
    row, column = np.arange(length)[:, None], np.arange(length)[None, :]
    weights = jax.nn.softmax(bias[row - column + length - 1], axis=1)
    form = value * weights + residual * (row == column) - (row + column == length - 1)
    errors = jnp.sum(jnp.sqrt(form**2 + 1e-12), axis=1)
    return jax.nn.logsumexp(sharpness * errors) / sharpness


def optimised(length, seed, free):
    """The best (bias, value, residual) that gradient descent finds; `free` lets value and residual move."""
    generator = np.random.default_rng(seed)
    start = (2 * generator.standard_normal(2 * length - 1), jnp.asarray(1.0), jnp.asarray(0.0))
    gradient = jax.grad(soft_maximum_of_errors)

    def step(state, index):
        parameters, momentum = state
        slope = gradient(parameters, length, 10.0 + 0.2 * index)
        if not free:
            slope = (slope[0], 0.0 * slope[1], 0.0 * slope[2])
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, slope)
        return (jax.tree.map(lambda p, m: p - 0.05 * m, parameters, momentum), momentum), None

    run = jax.jit(lambda p: jax.lax.scan(step, (p, jax.tree.map(jnp.zeros_like, p)), jnp.arange(2000.0))[0][0])
    bias, value, residual = run(jax.tree.map(jnp.asarray, start))
    return np.asarray(bias).tolist(), float(value), float(residual)


@pytest.mark.parametrize("length", [3, 4, 5, 8])
def test_optimisation_finds_nothing_better(length):
    best = min((optimised(length, seed, free=False)[0] for seed in range(2)), key=lambda b: float(sup_error(b)))
    assert not sup_error(best) < ball(lower_bound(length))
    # The search is a search: it comes near what is possible (n = 5: the infimum is 2 - 2/(1 + sqrt 2) = 1.172).
    reachable = {3: 0.0, 4: 1.0, 5: 2 - 2 / (1 + 2**0.5), 8: 1.5}[length]
    assert float(sup_error(best)) < reachable + 0.1


@pytest.mark.parametrize("length", [4, 5, 7])
def test_optimisation_with_value_and_residual_finds_nothing_better(length):
    errors = [sup_error(*optimised(length, seed, free=True)) for seed in range(3)]
    assert not any(error < 1 for error in errors)
    # The search is a search: its best restart comes near the bound.
    assert min(float(error) for error in errors) < 1.2


@settings(max_examples=10, deadline=None, derandomize=True)
@given(st.lists(st.floats(-3, 3), min_size=7, max_size=7))
def test_the_supremum_is_that_of_the_model(bias):
    """The worst input of each row is a corner: try all sixteen."""
    corners = np.array(np.meshgrid(*[[-1.0, 1.0]] * 4)).reshape(4, -1).T
    errors = np.abs(position_head(4, score_bias=np.array(bias)).evaluate(corners) - corners[:, ::-1])
    # Float64 against balls at 53 bits, sums of four terms.
    np.testing.assert_allclose(errors.max(), float(sup_error(bias)), atol=1e-13, rtol=0)


def test_the_bound_needs_a_toeplitz_bias():
    """A full table of the same length does what no Toeplitz bias can."""
    assert error_bound(8, 20.0) < 1e-7 < ball(lower_bound(8))
    numbers = np.random.default_rng(1).uniform(-1, 1, (1, 8))
    assert np.abs(reversal(8, 20.0).evaluate(numbers) - numbers[:, ::-1]).max() < 1e-7


def test_what_is_no_toeplitz_bias_is_refused():
    with pytest.raises(BadInput, match="odd number"):
        sup_error([0.0, 1.0])
    with pytest.raises(BadInput, match="finite"):
        sup_error([0.0, float("nan"), 1.0])
    with pytest.raises(BadInput, match="positive integer"):
        lower_bound(0)


def test_a_larger_constant_would_be_false():
    """The mutations floor(n/2) -> floor(n/2) + 1 and n >= 4 -> n >= 3 are refuted by a bias."""
    assert sup_error(near_optimal_bias(8, 30.0)) < ball(2 - Fraction(2, 8 // 2 + 1))
    assert sup_error(near_optimal_bias(3, 30.0), 1, 0) < 1
