"""The bounds against runs: in float64 as the real numbers, in float32, and with noise at every norm. Never exceeded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.export.decoder import decoder_of
from certiformer.export.gpt2_folder import head_gaps
from certiformer.export.ridge_bounds import ridge_forms, ridge_range
from certiformer.export.stream_bounds import Bounds, stream_bounds
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer
from export.decoder_run import run
from export.stock_cases import CASES, case

# A float64 run stands for the real numbers: its own error is below 1e-9 of the numbers here, a few hundred at most.
REAL = 1e-6


def random_decoder(seed: int, mask: str = "causal"):
    attention = Attention((Heads(2, 1, 2), Heads(1, 4, 3)), bias=True, mask=mask)
    blocks = (Block(attention, FeedForward(7)), Block(None, FeedForward(3)), Block(attention, FeedForward(5)))
    # The weights are float32 numbers: the bounds are about runs of the stored weights.
    shape = (Input("ids", 4, vocabulary=3), 5, 3, Readout("all"), blocks)
    config = Config(*shape, registers=1, code=Code("table"), dtype="float32")
    return decoder_of(Transformer.random(config, seed), "", causal=False)


def within_bounds(decoder, bounds, inputs, kind, disturb=None) -> float:
    """Asserts that nothing leaves its bounds; returns the largest share of an error bound that was used."""
    used = 0.0
    for ids in inputs:
        real, real_logits = run(decoder, ids)
        states, logits = run(decoder, ids, kind, disturb)
        for bound, x, y in zip(
            (*bounds.before_norms, bounds.logits), [*real, real_logits], [*states, logits], strict=True
        ):
            assert (x >= bound.low[0] - REAL).all() and (x <= bound.high[0] + REAL).all()
            assert (y >= bound.low[1] - REAL).all() and (y <= bound.high[1] + REAL).all()
            off = np.abs(y.astype(np.float64) - x)
            assert (off <= bound.error + 1e-9).all()
            assert (off <= bound.floor + bound.relative * np.abs(x) + 1e-9).all()
            used = max(used, float((off / np.maximum(bound.error, 1e-30)).max(where=bound.error > 1e-8, initial=0.0)))
    return used


def test_a_run_that_is_not_a_number_is_outside_every_bound():
    """Negative control: no comparison takes NaN for a number, whatever warnings are ignored."""
    decoder = random_decoder(0)
    bounds = stream_bounds(decoder, "float32")
    within_bounds(decoder, bounds, [[0, 1]], np.float32)
    with pytest.raises(AssertionError):
        within_bounds(decoder, bounds, [[0, 1]], np.float32, lambda x, place: x * (np.nan if place == 1 else 1))


@given(st.integers(0, 10**6), st.sampled_from(["causal", "none"]))
@settings(max_examples=25, deadline=None)
def test_random_decoders_stay_within_their_bounds(seed, mask):
    decoder, generator = random_decoder(seed, mask), np.random.default_rng(seed)
    inputs = [generator.integers(0, 3, n).tolist() for n in (1, 2, 4, 4)]
    within_bounds(decoder, stream_bounds(decoder, "float32"), inputs, np.float32)


@given(st.integers(0, 10**6))
@settings(max_examples=15, deadline=None)
def test_noise_at_the_norms_is_accounted_for(seed):
    decoder, generator = random_decoder(seed), np.random.default_rng(seed)
    inputs = [generator.integers(0, 3, n).tolist() for n in (1, 4, 4)]

    def noise(bounds: Bounds) -> np.ndarray:
        return np.full_like(bounds.error, 1e-3)

    def disturb(x: np.ndarray, _: int) -> np.ndarray:
        return x + generator.choice([-1e-3, 1e-3], x.shape)

    bounds = stream_bounds(decoder, "float64", noise)
    assert within_bounds(decoder, bounds, inputs, np.float64, disturb) > 1e-6  # the noise is seen at all
    # The negative control: without the noise the bounds are exceeded.
    with pytest.raises(AssertionError):
        within_bounds(decoder, stream_bounds(decoder, "float64"), inputs, np.float64, disturb)


@pytest.mark.parametrize("name", CASES)
def test_compiled_programs_stay_within_their_bounds(name):
    this = case(name)
    decoder = decoder_of(this.model, "", causal=True)
    inputs = [this.ids(xs)[1:] for xs in this.inputs()]
    within_bounds(decoder, stream_bounds(decoder, "float32"), inputs, np.float32)


def test_the_bounds_of_a_table_are_those_of_its_values():
    """The zigzag of a parity: terms that sum up to far more than they leave.

    It leaves 0 and 1 on the means 1/13 .. 1 that occur, and 12 at the mean 0, which the interval of a mean cannot exclude.
    """
    this = case("parity of the prefix")
    decoder = decoder_of(this.model, "", causal=True)
    *_, before, last = stream_bounds(decoder, "float64").before_norms
    layer = decoder.layers[-1]
    written = np.flatnonzero(layer.down.any(0))
    units = np.maximum(np.maximum(before.low[0] @ layer.up, before.high[0] @ layer.up) + layer.up_bias, 0.0)
    assert (units @ np.abs(layer.down)).max() > 5 * last.reach[written].max()
    assert last.reach[written].max() < 12.1


def test_a_cleared_coordinate_is_known_to_be_cleared():
    """x - relu(x) on [0, 9] is 0."""
    part = ridge_range([(0.0, 9.0)] * 2, (0.0, 0.0, 0.0), 0.0, np.ones(1), np.zeros(1), -np.ones((1, 1)), np.ones(1))
    assert not part.low.any() and not part.high.any() and not part.error.any()
    apart = ridge_range([(0.0, 9.0)] * 2, (0.0, 0.0, 0.0), 0.0, np.ones(1), np.zeros(1), -np.ones((1, 1)), np.zeros(1))
    assert apart.low.tolist() == [[-9.0], [-9.0]]


def test_relative_errors_count_where_numbers_are_small():
    """The slope 1/s^2 of a count at s = 1/100 .. 1: with a relative error of 1e-6, at most 1e-4 off, not 1e-2."""
    ends = [(0.01, 1.0)] * 2
    kinks = 1.0 / np.arange(2.0, 100.0)
    scales, down = -np.ones(len(kinks)), np.full((len(kinks), 1), 2.0)
    absolute = ridge_range(ends, (1e-6, 1e-6, 0.0), 0.0, scales, kinks, down * 100, np.zeros(1))
    relative = ridge_range(ends, (1e-6, 0.0, 1e-6), 0.0, scales, kinks, down * 100, np.zeros(1))
    assert relative.error[0] < absolute.error[0] / 3


def test_units_that_read_nothing_are_constants():
    (form, scales, members) = ridge_forms(np.zeros((2, 1)))[0]
    part = ridge_range([(0.0, 0.0)] * 2, (0.0, 0.0, 0.0), 0.0, scales, np.array([3.0]), np.array([[2.0]]), np.zeros(1))
    assert not form.any() and members.tolist() == [0] and part.low.tolist() == part.high.tolist() == [[6.0], [6.0]]


def test_a_gap_makes_a_head_that_reads_one_position_exact():
    """The gap of 128 that the compiler made: the other positions weigh nothing, whatever the noise of the scores."""
    this = case("shift")
    decoder = decoder_of(this.model, "", causal=True)
    assert this.labels.single_heads == ((0, 0, 0),)
    gaps = head_gaps(this.model.config, replace(this.labels, gap=128.0))
    assert gaps == {(0, 0): 128.0} and head_gaps(this.model.config, this.labels) == {}

    def noise(bounds: Bounds) -> np.ndarray:
        return 1e-6 * bounds.reach

    generator = np.random.default_rng(0)

    def disturb(x: np.ndarray, _: int) -> np.ndarray:
        return x * (1 + generator.choice([-1e-6, 1e-6], x.shape))

    without, known = (stream_bounds(decoder, "float64", noise, found) for found in ({}, gaps))
    written = np.flatnonzero(decoder.layers[0].output.any((0, 1)))
    assert known.before_norms[1].error[written].max() < without.before_norms[1].error[written].max() / 100
    inputs = [this.ids(xs)[1:] for xs in this.inputs()]
    within_bounds(decoder, known, inputs, np.float64, disturb)
    # The negative control: a gap that is not there promises too much.
    sharp = decoder.layers[0]
    soft = replace(sharp, query=sharp.query / 512, query_bias=sharp.query_bias / 512)
    soft = replace(decoder, layers=(soft, *decoder.layers[1:]))
    with pytest.raises(AssertionError):
        within_bounds(soft, stream_bounds(soft, "float64", noise, gaps), inputs, np.float64, disturb)
