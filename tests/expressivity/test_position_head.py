"""The gadget that looks at positions only."""

from __future__ import annotations

import numpy as np
import pytest

from certiformer.expressivity.position_head import position_head
from certiformer.model import Readout


@pytest.mark.parametrize("kind", ["table", "toeplitz"])
def test_weights_are_the_softmax_of_the_biases(kind):
    generator = np.random.default_rng(0)
    bias = generator.standard_normal((3, 3) if kind == "table" else 5)
    table = bias if kind == "table" else bias[np.arange(3)[:, None] - np.arange(3)[None, :] + 2]
    expected = np.exp(table) / np.exp(table).sum(axis=1, keepdims=True)
    head = position_head(3, width=2, score_bias=bias)
    tokens = generator.standard_normal((3, 2))
    # Three terms of size one in float64.
    np.testing.assert_allclose(head.attention_weights(tokens)[0][0][0], expected, atol=1e-15, rtol=0)
    outputs = head.evaluate(tokens.reshape(1, -1)).reshape(3, 2)
    np.testing.assert_allclose(outputs, expected @ tokens, atol=1e-14, rtol=0)


def test_readout_and_factor():
    head = position_head(2, readout=Readout("token", 1), factor=6)
    assert head.evaluate([[1.0, 3.0]]).tolist() == [[12.0]]
