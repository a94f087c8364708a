"""A batch gives what its points give one by one: the compiler may not round the two sides of a comparison differently."""

import numpy as np
import pytest

from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer
from certiformer.model.transformer import _forward_some

OTHERS = ("nearest", "linear", "relu")  # each compiles programs of its own
KINDS = ["softmax", "hard", *(pytest.param(kind, marks=pytest.mark.slow) for kind in OTHERS)]


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_sequences_of_all_lengths_together_give_what_each_gives_alone(kind, mask):
    block = Block(Attention((Heads(2, 3, 2),), kind, mask=mask, score_bias="toeplitz"), FeedForward(3, "gelu"))
    config = Config(
        Input("ids", 5, vocabulary=7),
        width=6,
        outputs=2,
        readout=Readout("all"),
        blocks=(block, block),
        registers=1,
        code=Code("table"),
        loops=2,
    )
    model, random = Transformer.random(config, seed=3), np.random.default_rng(5)
    sequences = [random.integers(0, 7, length) for length in (3, 5, 1, 5)]
    together = model.evaluate_sequences(sequences)
    for ids, outputs in zip(sequences, together, strict=True):
        alone = model.evaluate(ids[None])[0].reshape(len(ids), 2)
        # float64 sums in another order; a head that saw a filler would differ by whole units
        assert np.abs(outputs - alone).max() <= 1e-12 * max(1.0, np.abs(alone).max())
    if mask == "none":  # the negative control: who does see a filler answers something else
        filled = model.evaluate(np.array([[*sequences[0], 0, 0]]))[0].reshape(5, 2)[:3]
        assert np.abs(filled - together[0]).max() > 1e-6


def test_all_lengths_share_one_compilation():
    config = Config(Input("ids", 40, vocabulary=3), width=2, outputs=1, readout=Readout("all"), code=Code("table"))
    model, compiled = Transformer.random(config, seed=0), []
    for length in (1, 7, 39, 40):
        before = _forward_some._cache_size()
        model.evaluate_sequences([np.zeros(length, int)])
        compiled.append(_forward_some._cache_size() - before)
    assert compiled[0] == 1 and sum(compiled) == 1
