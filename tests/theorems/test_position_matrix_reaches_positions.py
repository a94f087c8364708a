"""URPE: the head computes i/n exactly in rationals, its stored error is the formula's, and the checker certifies it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.position_matrix_reaches_positions import position_error, position_matrix_head
from certiformer.expressivity.relative_bias_not_universal import equal_tokens_stay_equal, position_target, spread_bound
from certiformer.kernel.problem import PointNetwork
from certiformer.kernel.weights import read_model
from certiformer.model.store import tensors_to_bytes


def urpe_weights(scores, factor):
    """The definition of Luo et al.: softmax, then times a Toeplitz matrix entry by entry, nothing renormalised."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    n = len(scores)
    toeplitz = factor[np.arange(n)[:, None] - np.arange(n)[None, :] + n - 1]
    return powers / powers.sum(axis=1, keepdims=True) * toeplitz


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 49, 1000])
def test_the_error_of_the_stored_weights(length):
    share = Fraction(1.0 / length)
    exact = max(abs(i * share - Fraction(i, length)) for i in range(1, length + 1))
    assert position_error(length) == exact <= Fraction(1, 2**53)
    assert (exact == 0) == (length & (length - 1) == 0)


@pytest.mark.parametrize("length", [1, 3, 8])
def test_the_model_is_the_head_of_the_definition(length):
    model = position_matrix_head(length, width=2)
    ((weights,),) = model.attention_weights(np.ones((length, 2)))
    step = (np.arange(2 * length - 1) >= length - 1).astype(float)
    # 1/n rounded once on either side.
    np.testing.assert_allclose(weights[0], urpe_weights(np.zeros((length, length)), step), rtol=2.0**-52, atol=0)


@pytest.mark.parametrize("length", [3, 7])
def test_in_balls_it_is_the_position_whatever_the_tokens_hold(length):
    model = position_matrix_head(length)
    network = PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))
    for point in ([Fraction(0)] * length, [Fraction(10**9)] * length, [Fraction(i) for i in range(length)]):
        for value, wanted in zip(network.values(tuple(point)), position_target(length), strict=True):
            gap = abs(value - wanted.numerator / network.values(tuple(point))[0].__class__(wanted.denominator))
            assert gap <= 2.0**-53


def test_it_beats_what_no_bias_inside_can_do():
    assert position_error(5) < Fraction(1, 10**15) < spread_bound([[v] for v in position_target(5)])
    assert not equal_tokens_stay_equal(position_matrix_head(5).config).holds


def test_other_matrices_behind_the_softmax():
    """A constant C tells nothing apart, a random one does: it is the row sums that carry the position."""
    generator = np.random.default_rng(0)
    scores = np.zeros((6, 6))  # equal tokens, no bias
    assert np.ptp(urpe_weights(scores, np.full(11, 3.0)).sum(axis=1)) < 1e-15  # sums of six thirds of 3
    assert np.ptp(urpe_weights(scores, generator.uniform(0, 1, 11)).sum(axis=1)) > 1e-2


def test_the_checker_certifies_it():
    from certiformer import prove

    run = prove(position_matrix_head(3), "[1/3, 2/3, 1]", on="[-5,5]^3", eps="1e-15")
    assert run.certified and run.upper <= 2.0**-53


@pytest.mark.parametrize("bad", [0, -1, 2.0, 2**53])
def test_lengths_that_cannot_be_stored_are_refused(bad):
    for function in (position_error, position_matrix_head):
        with pytest.raises(BadInput, match="positive integer"):
            function(bad)
