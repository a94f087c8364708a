"""A layer with W_O = 0 changes no number; pooled vectors determine position and tokens exactly."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.expressivity.two_layer_density import pooled, read_back, weights, with_idle_layer
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer


def one_layer(residual: bool) -> Transformer:
    attention = Attention((Heads(2, 3, 4),), bias=True, residual=residual)
    blocks = (Block(ffn=FeedForward(9, residual=False)), Block(attention, FeedForward(7)))
    return Transformer.random(Config(Input("continuous", 5, width=2), 6, 2, Readout("all"), blocks), seed=1)


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("idle", [Attention((Heads(1, 2, 3),)), Attention((Heads(3, 1, 2),), bias=True, mask="causal")])
def test_one_layer_is_among_two(residual, idle):
    model = one_layer(residual)
    larger = with_idle_layer(model, idle, seed=7)
    x = np.random.default_rng(0).normal(size=(50, 10))
    assert len(larger.config.blocks) == 3
    assert np.array_equal(larger.evaluate(x), model.evaluate(x))
    first = larger.tensors["blocks.1.attention.groups.0.query"]
    assert np.abs(first).max() > 0.1  # the layer attends; only what it says is thrown away


def test_the_same_layer_with_its_output_changes_everything():
    model = one_layer(True)
    larger = with_idle_layer(model, Attention((Heads(1, 2, 3),)))
    tensors = dict(larger.tensors)
    tensors["blocks.1.attention.groups.0.output"] = np.ones_like(tensors["blocks.1.attention.groups.0.output"])
    x = np.random.default_rng(0).normal(size=(50, 10))
    assert np.abs(Transformer(larger.config, tensors).evaluate(x) - model.evaluate(x)).max() > 0.01


def test_a_layer_without_a_residual_cannot_do_nothing():
    with pytest.raises(BadInput, match="residual"):
        with_idle_layer(one_layer(True), Attention((Heads(1, 2, 3),), residual=False))


@pytest.mark.parametrize("length", [2, 3, 7])
def test_pooled_vectors_are_read_back_exactly(length):
    generator = np.random.default_rng(length)
    tokens = [[Fraction(int(a), int(b)) for a, b in generator.integers(1, 99, (3, 2))] for _ in range(length)]
    seen = []
    for place in range(1, length + 1):
        vector = pooled(tokens, place)
        assert len(vector) == length * (3 + 1)
        assert read_back(vector, length) == (place, tokens)
        seen.append(tuple(vector))
    assert len(set(seen)) == length


@pytest.mark.parametrize("length", [2, 4])
def test_the_weights_are_the_softmax_of_a_kernel_of_rank_one(length):
    """query t, key log 2 [s = 1]: e^score is 2^t or 1, so the softmax is rational; 1e-15 is rounding of the comparison."""
    for place in range(1, length + 1):
        scores = [place * math.log(2) * (s == 1) for s in range(1, length + 1)]
        total = sum(map(math.exp, scores))
        assert sum(weights(length, place)) == 1
        for share, score in zip(weights(length, place), scores, strict=True):
            assert abs(float(share) - math.exp(score) / total) < 1e-15


def test_vectors_that_no_input_gives_are_refused():
    vector = pooled([[Fraction(1)], [Fraction(2)], [Fraction(3)]], 2)
    for broken in (
        [vector[0] * 2, *vector[1:]],
        [vector[0], vector[1], vector[2] / 2, *vector[3:]],
        [Fraction(0), *vector[1:]],
        vector[:-1],
        vector[:2],
    ):
        with pytest.raises(BadInput, match="no pooled vector"):
            read_back(broken, 3)


def test_equal_weights_would_not_tell_the_position():
    """The planted fault: without a kernel that tells t, all positions pool to the same vector."""
    tokens = [[Fraction(1)], [Fraction(2)]]
    assert pooled(tokens, 1) != pooled(tokens, 2)
    flat = [[Fraction(1, 2)] * 2 + [Fraction(1, 2) * token[0] for token in tokens] for _ in (1, 2)]
    assert flat[0] == flat[1]


@pytest.mark.parametrize(("length", "place"), [(1, 1), (3, 0), (3, 4)])
def test_positions_are_checked(length, place):
    with pytest.raises(BadInput, match="position"):
        weights(length, place)


def test_distinct_positions_have_distinct_weights():
    for length in (2, 5, 9):
        for first, second in itertools.combinations(range(1, length + 1), 2):
            assert weights(length, first) != weights(length, second)
