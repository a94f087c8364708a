"""A batch gives what its points give one by one: the compiler may not round the two sides of a comparison differently."""

import numpy as np
import pytest

from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer


@pytest.mark.parametrize("kind", ["softmax", "hard", "nearest", "linear", "relu"])
def test_a_batch_agrees_with_its_points(kind):
    heads = (Heads(2, 3, 2), Heads(1, 2, 4))
    config = Config(
        Input("ids", 4, vocabulary=7),
        width=6,
        outputs=2,
        readout=Readout("all"),
        blocks=(
            Block(Attention((Heads(2, 3, 2),), score_bias="table"), FeedForward(3, "gelu")),
            Block(Attention(heads, kind, mask="causal", score_bias="toeplitz")),
        ),
        registers=1,
        code=Code("table"),
    )
    model = Transformer.random(config, seed=3)
    points = np.random.default_rng(5).integers(0, 7, (512, 4))
    small = np.concatenate([model.evaluate(points[i : i + 8]) for i in range(0, 512, 8)])
    # float64 sums in another order; a flipped comparison would differ by whole units
    assert np.abs(model.evaluate(points) - small).max() <= 1e-12 * max(1.0, np.abs(small).max())
