"""Uniform pooling: exact in rational arithmetic on the stored weights, and the rounding of its run."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.uniform_pooling import mean_pooling, sum_pooling
from certiformer.model import Transformer

HEAD = "blocks.0.attention.groups.0"


def exactly(model, tokens):
    """The real-number function of the stored weights, for a head whose scores are all equal."""
    w = {name: np.vectorize(Fraction, otypes=[object])(tensor) for name, tensor in model.tensors.items()}
    h = tokens @ w["embed.weight"] + w["embed.bias"]
    query, key = h @ w[f"{HEAD}.query"][0], h @ w[f"{HEAD}.key"][0]
    scores = query[0] @ key.T
    if len(set(scores.tolist())) > 1:
        return None
    mixed = sum(h @ w[f"{HEAD}.value"][0]) / Fraction(len(tokens))
    return mixed @ w[f"{HEAD}.output"][0] @ w["readout.weight"] + w["readout.bias"]


def rational_tokens(length, width):
    generator = np.random.default_rng(length)
    entries = [Fraction(int(a), int(b)) for a, b in generator.integers(1, 50, (length * width, 2))]
    return np.array(entries, dtype=object).reshape(length, width)


@pytest.mark.parametrize(("length", "width"), [(1, 1), (2, 1), (3, 2), (7, 3), (100, 1)])
def test_exactly_the_mean_and_the_sum(length, width):
    tokens = rational_tokens(length, width)
    total = tokens.sum(axis=0)
    assert exactly(mean_pooling(length, width), tokens).tolist() == (total / length).tolist()
    assert exactly(sum_pooling(length, width), tokens).tolist() == total.tolist()


@pytest.mark.parametrize(("length", "width"), [(1, 1), (5, 1), (33, 2)])
def test_the_run_differs_by_rounding_only(length, width):
    tokens = np.random.default_rng(0).uniform(-1, 1, (length, width))
    exact = np.array([[float(sum(map(Fraction, column))) for column in tokens.T]])
    # One rounding of 1/n, n products and n sums, each 2^-53 of numbers up to n.
    rounding = 4 * length * length * 2.0**-53
    np.testing.assert_allclose(sum_pooling(length, width).evaluate(tokens.reshape(1, -1)), exact, atol=rounding, rtol=0)
    mean = mean_pooling(length, width).evaluate(tokens.reshape(1, -1))
    np.testing.assert_allclose(mean, exact / length, atol=rounding, rtol=0)


def test_the_weights_do_not_depend_on_the_tokens():
    ((weights,),) = mean_pooling(4).attention_weights(np.array([[1e6], [-1e6], [3.0], [0.0]]))
    assert np.array_equal(weights, np.full((1, 4, 4), 0.25))


@pytest.mark.parametrize("bad", [0, -1, 2.0, 2**53])
def test_lengths_that_are_not_stored_exactly_are_refused(bad):
    for build in (mean_pooling, sum_pooling):
        with pytest.raises(BadInput, match="positive integers"):
            build(bad)
    with pytest.raises(BadInput, match="positive integers"):
        mean_pooling(2, width=0)


def test_a_score_that_is_not_zero_breaks_it():
    model = mean_pooling(3)
    changed = {f"{HEAD}.query": np.ones((1, 1, 1)), f"{HEAD}.key": np.ones((1, 1, 1))}
    broken = Transformer(model.config, {**model.tensors, **changed})
    assert exactly(broken, rational_tokens(3, 1)) is None
    assert abs(broken.evaluate([[1.0, 0.0, 0.0]]).item() - 1 / 3) > 0.2
