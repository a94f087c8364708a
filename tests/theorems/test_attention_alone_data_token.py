"""Attention alone at data tokens: random and trained layers are blind to the 3 x 3 determinant, others are not."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

from certiformer.errors import BadInput
from certiformer.expressivity.attention_alone_data_token import (
    frame_quadrature,
    lower_bound,
    projection_bound,
    projection_inequality,
    reasons_not_covered,
    token_quadrature,
)
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer
from theorems.sup_training import frames, largest_error, layer, trained_on_determinant, unit_tokens

FIRST = Readout("token", 0)
AFFINE = FeedForward(4, kind="identity")


def random_model(seed, tokens=3, readout=FIRST, registers=1, ffn=AFFINE, **attention):
    """A random layer; queries, keys and values all depend on the tokens."""
    block = Block(Attention((Heads(2, 2, 2), Heads(1, 1, 3)), bias=True, **attention), ffn)
    source, code = Input("continuous", tokens, width=tokens), Code("table")
    return Transformer.random(Config(source, 6, 1, readout, blocks=(block,), registers=registers, code=code), seed)


def padded(model, rows):
    """Three tokens on the unit sphere as the first three of more tokens with more coordinates."""
    tokens = model.config.tokens
    whole = np.zeros((len(rows), tokens, tokens))
    whole[:, :3, :3] = rows.reshape(-1, 3, 3)
    return model.evaluate(whole.reshape(len(rows), -1))


def test_the_constants():
    assert projection_bound().overlaps(16 / (9 * arb.pi()))
    assert lower_bound(1).overlaps(arb.pi() / 8)
    assert (lower_bound(2) ** 2).overlaps(arb(2) / 9)
    assert lower_bound() == 1
    bounds = [lower_bound(p) for p in (1, 1.5, 2, 10, 10_000)]
    assert all(smaller < larger < 1 for smaller, larger in zip(bounds, bounds[1:], strict=False))
    assert bounds[-1] > 0.99


@pytest.mark.parametrize("exponent", [1, 2, 3, 4])
def test_the_moments_are_those_of_random_tokens(exponent):
    points = 200_000
    powers = np.abs(np.linalg.det(unit_tokens(np.random.default_rng(0), (points,), 3))) ** exponent
    expected = float(lower_bound(exponent)) ** exponent
    # Five standard deviations of the mean.
    assert abs(powers.mean() - expected) < 5 * powers.std() / points**0.5


def test_the_quadratures_are_the_laws_they_say():
    tokens, orthonormal = token_quadrature(2), frame_quadrature(4)
    for rows, weights, target in (tokens, orthonormal):
        matrices = rows.reshape(-1, 3, 3)
        assert weights.min() > 0
        # Sums of up to 512 rounded terms of size one.
        np.testing.assert_allclose(weights.sum(), 1, atol=1e-13, rtol=0)
        np.testing.assert_allclose(np.linalg.norm(matrices, axis=2), 1, atol=1e-14, rtol=0)
        np.testing.assert_allclose(np.linalg.det(matrices), target, atol=1e-14, rtol=0)
        # Every token has mean 0 and covariance I/3.
        np.testing.assert_allclose(np.einsum("p,pij->ij", weights, matrices), 0, atol=1e-14)
        covariance = np.einsum("p,pij,pik->ijk", weights, matrices, matrices)
        np.testing.assert_allclose(covariance, np.broadcast_to(np.eye(3) / 3, (3, 3, 3)), atol=1e-14, rtol=0)
    np.testing.assert_allclose(tokens.weights @ tokens.target**2, 2 / 9, atol=1e-14, rtol=0)
    np.testing.assert_allclose(np.abs(orthonormal.target), 1, atol=1e-14, rtol=0)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"readout": Readout("mean"), "score_bias": "table", "registers": 0},
        {"readout": Readout("token", 1), "mask": "causal", "residual": False, "ffn": None},
        {"kind": "linear", "readout": Readout("sum")},
        {"tokens": 4, "readout": Readout("token", 3)},
    ],
    ids=lambda options: "-".join(options) or "plain",
)
def test_random_layers_are_uncorrelated_with_the_determinant(options):
    for seed in range(3):
        model = random_model(seed, **options)
        assert reasons_not_covered(model) == []
        found = projection_inequality(lambda rows, model=model: padded(model, rows), frame_quadrature(16))
        # The integrand is analytic; 32 angles and 16 heights leave this much of it unresolved (1e-8 with 40 and 20).
        assert abs(found.correlation) < 1e-6
        assert found.sampled_sup > 1 - 1e-6
        assert found.sampled_sup > found.implied - 1e-12


def test_independent_tokens_give_the_weaker_bound():
    found = projection_inequality(random_model(0).evaluate, token_quadrature(4))
    assert abs(found.correlation) < 1e-4  # exact up to degree 7 in each token only
    assert abs(found.implied - float(projection_bound())) < 0.03  # |f| has kinks


def test_a_relu_network_and_a_third_order_head_see_the_determinant():
    """Negative controls of the two lines above: they do not hold for everything."""
    relu = random_model(0, ffn=FeedForward(32))
    assert reasons_not_covered(relu) == ["its feed-forward network is not affine"]
    assert abs(projection_inequality(relu.evaluate, frame_quadrature(8)).correlation) > 1e-4

    def product(rows):
        x, y, z = (rows[:, 3 * token : 3 * token + 3] for token in range(3))
        return (x[:, 0] * y[:, 1] * z[:, 2])[:, None]

    found = projection_inequality(product, token_quadrature(4))
    np.testing.assert_allclose(found.correlation, 1 / 27, atol=1e-12, rtol=0)  # E[x1^2] E[y2^2] E[z3^2]


def test_fewer_tokens_or_coordinates_are_not_covered():
    small = Config(
        Input("continuous", 3, width=2), 4, 1, Readout("mean"), blocks=(Block(Attention((Heads(1, 1, 1),))),)
    )
    assert reasons_not_covered(Transformer.random(small, 0)) == ["it takes fewer than 3 tokens of width 3"]


def test_wrong_arguments_are_refused():
    with pytest.raises(BadInput, match="exponent"):
        lower_bound(0.5)
    for quadrature in (token_quadrature, frame_quadrature):
        with pytest.raises(BadInput, match="positive number of points"):
            quadrature(0)


def trained(ffn, law=frames, heads=16, steps=500, hidden=128, batch=128):
    """Restarts that learn the determinant from orthonormal tokens, where it is 1 or -1, or from independent ones."""
    return trained_on_determinant(layer(3, heads, ffn, hidden), steps, 2, False, law, batch, rate=0.005)


def is_blind(model, law):
    """The largest error is at least 1, and so above 16/(9 pi), by the theorem's own inequality."""
    assert reasons_not_covered(model) == []
    found = projection_inequality(model.evaluate, frame_quadrature(14))
    assert abs(found.correlation) < 1e-3  # trained heads are sharper than random ones
    return found.sampled_sup > 1 - 1e-3 and largest_error(model, law) > float(projection_bound())


@pytest.mark.slow
def test_training_attention_alone_stays_above_the_bound():
    for model in trained("identity"):
        assert is_blind(model, frames)
        assert largest_error(model, frames) < 1.3  # the training is a training: it comes near the best, 1


@pytest.mark.slow
def test_the_same_training_with_a_relu_network_goes_below_it():
    assert min(largest_error(model, frames) for model in trained("relu")) < float(projection_bound())


@pytest.mark.slow
def test_many_heads_and_independent_tokens_do_not_help():
    """All unit tokens instead of orthonormal ones only; a ReLU network of the same size goes below the bound there too."""
    budget = {"law": unit_tokens, "steps": 2000, "hidden": 256, "batch": 256}
    assert all(is_blind(model, unit_tokens) for model in trained("identity", heads=64, **budget))
    assert all(is_blind(model, unit_tokens) for model in trained("identity", **budget))
    assert min(largest_error(model, unit_tokens) for model in trained("relu", **budget)) < float(projection_bound())
