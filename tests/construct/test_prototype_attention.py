"""The weights of prototype attention: the softmax average they are meant to be, and nothing from the data token."""

from __future__ import annotations

import numpy as np
import pytest
from flint import arb

from certiformer.axioms.perturbation import registers_only
from certiformer.construct.prototype_attention import SELF_WEIGHT_NATS, prototype_transformer
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.kernel.layers import as_prototypes
from certiformer.target import parse_domain
from kernel.networks import network_of

working_precision()


def random_case(seed: int, inputs: int, outputs: int, count: int = 9):
    rng = np.random.default_rng(seed)
    centres, values = rng.uniform(-2, 2, (count, inputs)), rng.normal(size=(count, outputs))
    return centres, values, rng.uniform(-3, 3, inputs), rng.uniform(0.5, 2, inputs), rng.uniform(0.1, 20, inputs)


@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (2, 1), (3, 2)])
def test_the_output_is_the_softmax_average_of_the_values(inputs, outputs):
    centres, values, middle, half, steepness = random_case(inputs, inputs, outputs)
    model = prototype_transformer(centres, values, middle, half, steepness)
    points = middle + half * np.random.default_rng(9).uniform(-1, 1, (50, inputs))
    scores = -0.5 * ((points[:, None, :] - middle - centres) ** 2 * steepness).sum(-1)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    expected = (weights / weights.sum(axis=1, keepdims=True)) @ values
    # Scores of size up to 1e2, rounded in float64: errors of 1e-14 each.
    np.testing.assert_allclose(model.evaluate(points), expected, atol=1e-11)


@pytest.mark.parametrize("seed", range(8))
def test_the_data_token_weighs_less_than_e_to_the_minus_64_on_the_domain(seed):
    centres, values, middle, half, steepness = random_case(seed, 2, 1)
    found = as_prototypes(network_of(prototype_transformer(centres, values, middle, half, steepness)))
    assert found is not None
    ends = " x ".join(f"[{m - h!r},{m + h!r}]" for m, h in zip(middle.tolist(), half.tolist(), strict=True))
    kept = registers_only(found, BallDomain(parse_domain(ends)))
    # `slack` is the proved weight of the data token times the spread of the values (its own value is 0).
    spread = max(values.max(), 0.0) - min(values.min(), 0.0)
    assert kept.slack[0] <= arb(spread) * arb(-SELF_WEIGHT_NATS + 1).exp()


def test_far_outside_the_domain_nothing_is_promised():
    """Negative control: the data token's key is a constant, so far away it may win over every register."""
    model = prototype_transformer(
        np.array([[0.5], [-0.5]]), np.array([[1.0], [1.0]]), np.zeros(1), np.ones(1), np.array([4.0])
    )
    assert abs(model.evaluate([[0.9]])[0, 0] - 1) < 1e-12
    registers_gone = prototype_transformer(
        np.array([[0.5]]), np.array([[1.0]]), np.zeros(1), np.ones(1), np.array([4.0])
    )
    assert registers_gone.evaluate([[-100.0]])[0, 0] < 0.5


def test_the_model_is_an_ordinary_transformer():
    model = prototype_transformer(*random_case(0, 2, 1))
    attention = model.config.blocks[0].attention
    assert attention.kind == "softmax"
    assert attention.scale == "inverse-sqrt"
    assert model.config.blocks[0].ffn is None
    assert model.config.registers == 9
