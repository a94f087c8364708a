"""Heads as kernels: ranks, gauge, the bias of sampled sequences; and models whose features are piecewise linear."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer
from certiformer.rates.pod import pod_of_kernel
from certiformer.rates.sine_model import constructed_model, feature_cost, hat_tensors, sine_config
from certiformer.rates.targets import SineTarget
from certiformer.rates.trained_kernel import head_kernel, head_scores, sampled_pod, sampling_bias, trained_pod
from certiformer.rates.truncation import truncation_errors


@pytest.fixture(scope="module")
def random_model() -> Transformer:
    attention = Attention((Heads(2, 3, 4),), bias=True)
    blocks = (Block(ffn=FeedForward(24, "gelu")), Block(attention))
    return Transformer.random(Config(Input("continuous", 6, width=1), 8, 1, Readout("all"), blocks), seed=3)


def test_scores_of_a_head_have_the_rank_of_its_keys(random_model):
    inputs = np.random.default_rng(0).uniform(size=(3, 6, 1))
    for head in (0, 1):
        values = np.linalg.svd(head_scores(random_model, inputs, 1, head=head), compute_uv=False)
        assert (values[:, 3] < 1e-14 * values[:, 0]).all()  # rounding of products of size 1
        assert (values[:, 2] > 1e-12 * values[:, 0]).all()
    assert (
        np.abs(head_scores(random_model, inputs, 1, head=0) - head_scores(random_model, inputs, 1, head=1)).max() > 0.1
    )


def test_the_softmax_of_the_scores_are_the_weights_of_the_model(random_model):
    x = np.random.default_rng(1).uniform(size=(6, 1))
    scores = head_scores(random_model, x[None], 1, head=1)[0]
    weights = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    assert random_model.attention_weights(x)[0][0][1] == pytest.approx(weights, abs=1e-14)


def test_kernel_and_scores_agree(random_model):
    x = np.random.default_rng(2).uniform(size=6)
    u, v = np.meshgrid(x, x, indexing="ij")
    assert head_kernel(random_model, 1)(u, v) == pytest.approx(
        head_scores(random_model, x[None, :, None], 1)[0], abs=1e-13
    )
    assert trained_pod(random_model, 1, nodes=16).values[3] < 1e-14


@pytest.mark.parametrize(
    "change", [{"code": Code("one-hot", offset=0)}, {"registers": 1}, {"input": Input("continuous", 6, width=2)}]
)
def test_heads_that_see_more_than_two_numbers_are_no_kernel(random_model, change):
    model = Transformer.random(replace(random_model.config, **change), seed=0)
    with pytest.raises(BadInput, match="no kernel"):
        head_kernel(model, 1)


@pytest.mark.parametrize("place", [{"block": 0}, {"block": 7}, {"block": 1, "head": 2}, {"block": 1, "group": 1}])
def test_heads_that_are_not_there_are_refused(random_model, place):
    with pytest.raises(BadInput, match="there is no head"):
        head_scores(random_model, np.zeros((1, 6, 1)), **place)


def test_short_sequences_show_larger_values():
    """True values 1/k. Means over 400 sequences; the deviation of one is 0.3 at n = 16, so 0.06 is four of the mean."""
    target = SineTarget(1.0)
    short, long = sampling_bias(target, 16, draws=400), sampling_bias(target, 256, draws=8)
    assert short == pytest.approx([1.33, 0.76, 0.55, 0.43], abs=0.06)
    assert long == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4], abs=0.1)
    assert all(a > b for a, b in zip(short, long, strict=True))


def test_a_constructed_head_has_the_values_of_its_target_and_the_sampled_ones_are_larger():
    """Interpolation of sine k at 256 intervals loses at most (2 pi k / 256)^2 / 8 of it: 3e-3 for k = 6."""
    target = SineTarget(1.0, rank=6)
    model = constructed_model(target, 6, intervals=256)
    found = trained_pod(model, 1, nodes=64)
    assert found.values[:6] == pytest.approx(target.values, rel=6e-3)
    assert found.values[6] < 1e-12
    inputs = target.draw(np.random.default_rng(0), 50)[..., None]
    sampled = sampled_pod(model, inputs, 1)
    assert sampled.centred and "biased" in sampled.note
    assert sampled.values[0] > 1.1
    assert pod_of_kernel(head_kernel(model, 1), 64).values[:6] == pytest.approx(found.values[:6], rel=1e-3)


def test_hats_are_a_partition_of_unity_and_carry_the_number():
    config = sine_config(SineTarget(1.0, length=2), 1, intervals=8)
    tensors = hat_tensors(config)
    x = np.linspace(0, 1, 101)
    hidden = np.maximum(x[:, None] * tensors["blocks.0.ffn.up"][0] + tensors["blocks.0.ffn.up_bias"], 0)
    hats = hidden @ tensors["blocks.0.ffn.down"]
    knots = np.arange(9) / 8
    assert hats == pytest.approx(np.maximum(1 - 8 * np.abs(x[:, None] - knots), 0), abs=1e-14)
    assert hats @ tensors["blocks.1.attention.groups.0.value"][0, :, 0] == pytest.approx(x, abs=1e-14)


@pytest.mark.parametrize(("masked", "layers"), [(False, 1), (True, 2)])
def test_constructed_transformers_are_within_their_certified_distance(masked, layers):
    target = SineTarget(1.0, rank=4, masked=masked, length=8)
    x = target.draw(np.random.default_rng(3), 200)
    coarse, fine = (constructed_model(target, 4, n, layers) for n in (64, 128))
    errors = [np.abs(model.evaluate(x) - target.outputs(x)).max() for model in (coarse, fine)]
    bounds = [feature_cost(model, target.values) for model in (coarse, fine)]
    assert all(error < bound for error, bound in zip(errors, bounds, strict=True))
    assert 3 < errors[0] / errors[1] < 5  # interpolation has order 2
    # The planted fault: with one term less the model is outside of it.
    less = constructed_model(target, 3, 128, layers)
    assert np.abs(less.evaluate(x) - target.outputs(x)).max() > bounds[1]


def test_two_layers_and_one_are_the_same_numbers():
    target = SineTarget(1.5, rank=3, length=5)
    x = target.draw(np.random.default_rng(4), 20)
    one, two = (constructed_model(target, 2, 32, layers).evaluate(x) for layers in (1, 2))
    assert np.array_equal(one, two)


def test_the_interpolated_model_has_the_errors_of_the_truncation():
    target = SineTarget(1.0, rank=6)
    x = target.draw(np.random.default_rng(5), 500)
    for kept in (2, 4):
        mse = ((constructed_model(target, kept, 256).evaluate(x) - target.outputs(x)) ** 2).mean()
        # 500 inputs against 4096 others: the relative deviation of such a mean is about 6 %.
        assert mse == pytest.approx(truncation_errors(target, (kept,)).mse.mean(), rel=0.25)


@pytest.mark.parametrize("bad", [{"intervals": 48}, {"intervals": 1}, {"layers": 3}, {"key": 0}])
def test_shapes_that_have_no_hats_are_refused(bad):
    with pytest.raises(BadInput):
        sine_config(SineTarget(1.0), **{"key": 2, **bad})
