"""Reversal by a score table: the stored weights in balls for every length, and the run of the model."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from certiformer.errors import BadInput
from certiformer.expressivity.reversal import error_bound, reversal
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer

LONGEST = 512
SHARPNESS = 6.0  # the bound, at least 0.005, is far above every rounding
SCORE_BIAS = "blocks.0.attention.groups.0.score_bias"


def worst_tokens(length):
    """One input per position (the first, the middle, the last): -1 at the right token, 1 elsewhere."""
    positions = np.array([0, length // 2, length - 1])
    tokens = np.ones((3, length))
    tokens[np.arange(3), length - 1 - positions] = -1.0
    return positions, tokens


def test_stored_weights_of_every_length_in_balls():
    """The supremum of the error is 2 (1 - p) with p the weight on the right token, recomputed from the stored table."""
    for length in range(1, LONGEST + 1):
        (table,) = reversal(length, SHARPNESS).tensors[SCORE_BIAS]
        # Every row is the same up to order, with its one large entry at the right place.
        assert np.array_equal(np.sort(table, axis=1), np.sort(table[:1], axis=1).repeat(length, axis=0))
        assert np.array_equal(table.argmax(axis=1), np.arange(length)[::-1])
        powers = [arb(score).exp() for score in np.sort(table[0]).tolist()]
        supremum = 2 * (1 - powers[-1] / sum(powers, arb(0)))
        assert supremum.overlaps(error_bound(length, SHARPNESS))
        assert abs(supremum - error_bound(length, SHARPNESS)) < 1e-11  # 512 terms at 53 bits
    assert error_bound(1, SHARPNESS) == 0


def padded_to_the_longest(length):
    """The same head inside a model of the longest length whose mask hides the other tokens: one compilation for all."""
    model = reversal(LONGEST, SHARPNESS)
    attention = Attention((Heads(1, 1, 1),), scale="unit", score_bias="table", residual=False, mask="table")
    config = Config(Input("continuous", LONGEST, width=1), 1, 1, Readout("all"), blocks=(Block(attention),))
    table, mask = np.zeros((1, LONGEST, LONGEST)), np.zeros((LONGEST, LONGEST))
    table[0, :length, :length] = reversal(length, SHARPNESS).tensors[SCORE_BIAS][0]
    mask[:length, :length] = 1
    return Transformer(config, {**model.tensors, SCORE_BIAS: table, "blocks.0.attention.mask": mask})


def check_run(model, length, outputs_of):
    positions, worst = worst_tokens(length)
    random = np.random.default_rng(length).uniform(-1, 1, (1, length))
    tokens = np.concatenate([worst, random])
    errors = np.abs(outputs_of(model, tokens) - tokens[:, ::-1])
    bound = float(error_bound(length, SHARPNESS))
    # Rounding of at most 512 terms of size one; the bound is attained, so it needs this much room and no more.
    rounding = 1e-12
    assert errors.max() <= bound + rounding
    assert np.abs(errors[np.arange(3), positions] - bound).max() <= rounding
    if length > 2:
        assert errors[3].max() < bound


def test_run_of_every_length():
    def outputs_of(model, tokens):
        filled = np.pad(tokens, ((0, 0), (0, LONGEST - tokens.shape[1])))
        return model.evaluate(filled)[:, : tokens.shape[1]]

    for length in range(1, LONGEST + 1):
        check_run(padded_to_the_longest(length), length, outputs_of)


@pytest.mark.parametrize("length", [1, 2, 3, 5, 64, 512])
def test_run_of_the_model_itself(length):
    check_run(reversal(length, SHARPNESS), length, lambda model, tokens: model.evaluate(tokens))


def test_tokens_of_any_width():
    tokens = np.random.default_rng(0).uniform(-1, 1, (5, 3))
    outputs = reversal(5, 60.0, width=3).evaluate(tokens.reshape(1, -1)).reshape(5, 3)
    assert np.array_equal(outputs, tokens[::-1])


def test_the_bound_shrinks_with_the_sharpness_and_grows_with_the_tokens():
    assert error_bound(10, 5) > error_bound(10, 6) > 0
    assert error_bound(10, 6, largest=3).overlaps(3 * error_bound(10, 6))
    assert error_bound(10, Fraction(0)).overlaps(arb(18) / 10)  # no sharpness: the mean


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_sharpness_that_is_not_a_number_is_refused(bad):
    with pytest.raises(BadInput, match="finite"):
        reversal(4, bad)
    with pytest.raises(BadInput, match="finite"):
        error_bound(4, bad)
    with pytest.raises(BadInput, match="positive integer"):
        error_bound(0, 1.0)


def test_tokens_beyond_the_promise_break_the_bound():
    _, worst = worst_tokens(4)
    errors = np.abs(reversal(4, SHARPNESS).evaluate(2 * worst) - 2 * worst[:, ::-1])
    assert errors.max() > 1.9 * float(error_bound(4, SHARPNESS, largest=1))


def test_one_moved_entry_is_noticed():
    model = reversal(6, SHARPNESS)
    table = model.tensors[SCORE_BIAS].copy()
    table[0, 2] = np.roll(table[0, 2], 1)
    broken = Transformer(model.config, {**model.tensors, SCORE_BIAS: table})
    tokens = 1.0 - 2.0 * np.eye(6)
    assert np.abs(model.evaluate(tokens) - tokens[:, ::-1]).max() < 0.1
    assert np.abs(broken.evaluate(tokens) - tokens[:, ::-1]).max() > 1.9
