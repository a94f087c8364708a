"""Transformers that together use every option of the configuration, and what they compute at many points."""

from __future__ import annotations

from functools import cache

import numpy as np

from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer
from model import oracle
from model.cases import model_of

POINTS = 10_000

# Both sides round sums of at most a few dozen terms of size one, some hundred times 1.1e-16, in different orders; linear
# attention in two passes multiplies that by the size of its cubes, up to 1e3. Measured: below 1e-12. A weight or constant
# that fell to float32 on the way shows as 1e-8 or more.
AGREEMENT = 1e-10

ONE, TWO = (Heads(2, 3, 3),), (Heads(2, 3, 2), Heads(1, 1, 4))

CASES = {
    "plain": {},
    "one block with registers": {
        "blocks": (
            Block(Attention(TWO, bias=True, mask="causal", score_bias="toeplitz"), FeedForward(4, "gelu"), Norm("pre")),
        ),
        "registers": 2,
        "code": Code("one-hot", offset=2),
        "readout": Readout("token", 1),
    },
    "hard, one block with registers": {
        "blocks": (
            Block(
                Attention(TWO, "hard", scale="unit", mask="table", score_bias="table"),
                FeedForward(6, "identity", residual=False),
                Norm("post", epsilon=0.1),
            ),
        ),
        "registers": 1,
        "code": Code("circle", offset=3, period=4),
        "readout": Readout("mean"),
    },
    "linear, looped": {
        "blocks": (
            Block(Attention(ONE, "linear", bias=True, mask="causal", residual=False)),
            Block(Attention(TWO, "linear", mask="table"), None, Norm("post")),
        ),
        "loops": 2,
        "registers": 2,
        "code": Code("sinusoidal", offset=1, width=3),
        "readout": Readout("sum"),
    },
    "relu attention": {
        "blocks": (Block(Attention(TWO, "relu", bias=True, mask="table", score_bias="table"), FeedForward(3)),),
        "registers": 1,
        "readout": Readout("sum"),
    },
    "nearest": {"blocks": (Block(Attention(TWO, "nearest", bias=True, mask="causal"), FeedForward(3)),)},
    "ids": {
        "input": Input("ids", 4, vocabulary=7),
        "blocks": (
            Block(Attention(ONE, mask="table", score_bias="table"), FeedForward(3, "gelu")),
            Block(Attention(TWO, "hard", mask="causal", score_bias="toeplitz")),
        ),
        "registers": 1,
        "code": Code("table"),
    },
    "ids, one block without a code": {
        "input": Input("ids", 3, vocabulary=5),
        "blocks": (Block(Attention(ONE)),),
        "registers": 2,
        "readout": Readout("mean"),
    },
    "no blocks": {"blocks": (), "registers": 1, "readout": Readout("token", 2)},
    "register": {"blocks": (Block(Attention(TWO), FeedForward(3)),), "registers": 2, "readout": Readout("register", 1)},
    "register, no blocks": {"blocks": (), "registers": 2, "readout": Readout("register", 0)},
    "register, ids": {
        "input": Input("ids", 3, vocabulary=5),
        "blocks": 2 * (Block(Attention(ONE, mask="causal", score_bias="toeplitz")),),
        "registers": 2,
        "readout": Readout("register", 1),
    },
    "feed-forward only": {"blocks": 2 * (Block(None, FeedForward(6), Norm("pre")),), "readout": Readout("mean")},
}


@cache
def case(name: str) -> Transformer:
    return model_of(seed=3, **CASES[name])


def points_of(config: Config, count: int = POINTS, seed: int = 5) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if config.input.kind == "ids":
        return generator.integers(0, config.input.vocabulary, (count, config.tokens))
    return generator.standard_normal((count, config.tokens * config.input.width))


@cache
def expected(name: str) -> np.ndarray:
    """What the model itself computes at its points, in float64."""
    model = case(name)
    return model.evaluate(points_of(model.config))


def by_definition(model: Transformer, points: np.ndarray) -> np.ndarray:
    """What the naive loops over plain floats compute: for a few points, where compiling would take longer."""
    rows = points if model.config.input.kind == "ids" else points.reshape(len(points), model.config.tokens, -1)
    return np.array([oracle.run(model, row.tolist()) for row in rows])


def ties() -> Transformer:
    """Hard attention over three registers whose first two always tie: small integers, so that no rounding breaks a tie."""
    config = Config(
        Input("continuous", 1, width=1),
        width=2,
        outputs=1,
        readout=Readout("token", 0),
        blocks=(Block(Attention((Heads(1, 1, 1),), "hard", scale="unit", residual=False)),),
        registers=3,
    )
    head = "blocks.0.attention.groups.0"
    return Transformer(
        config,
        {
            "embed.weight": [[1, 0]],
            "embed.bias": [0, 0],
            "registers": [[2, 10], [2, 20], [-2, 70]],
            f"{head}.query": [[[1], [0]]],
            f"{head}.key": [[[1], [0]]],
            f"{head}.value": [[[0], [1]]],
            f"{head}.output": [[[1, 0]]],
            "readout.weight": [[1], [0]],
            "readout.bias": [0],
        },
    )


# Scores: 2x, 2x, -2x for the registers and x*x for the data token, whose value is 0. At x = 2 all but one tie.
TIES = {1.0: 15.0, -1.0: 70.0, 2.0: 10.0, 3.0: 0.0, 0.0: 25.0}
