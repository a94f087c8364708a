"""Transformers for tests: one for each option, and any combination of options as a strategy."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from certiformer.model import (
    Attention,
    Block,
    Code,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    Transformer,
)

# float64 and sums of at most a few dozen terms of size one: a few hundred roundings of 1.1e-16 stay below 1e-12.
AGREEMENT = 1e-12

TWO_GROUPS = (Heads(2, 3, 2), Heads(1, 1, 4))


def model_of(seed=0, **options):
    base = {"input": Input("continuous", 3, width=2), "width": 5, "outputs": 2, "readout": Readout("all")}
    config = Config(**{**base, "blocks": (Block(Attention(TWO_GROUPS), FeedForward(4)),), **options})
    model = Transformer.random(config, seed)
    masks = {n: random_mask(seed, t.shape) for n, t in model.tensors.items() if n.endswith("mask")}
    return Transformer(config, {**model.tensors, **masks})


def random_mask(seed, shape):
    mask = np.random.default_rng(seed).integers(0, 2, shape)
    mask[-1] = 0  # a row without any allowed key
    return mask


def inputs_of(config, seed=1):
    generator = np.random.default_rng(seed)
    if config.input.kind == "ids":
        return generator.integers(0, config.input.vocabulary, config.tokens)
    return generator.standard_normal((config.tokens, config.input.width))


def attention(**options):
    return (Block(Attention(TWO_GROUPS, **options), None),)


OPTIONS = {
    "plain": {},
    "registers": {"registers": 2},
    "no blocks": {"blocks": (), "registers": 1},
    "one-hot": {"code": Code("one-hot", offset=2)},
    "sinusoidal": {"code": Code("sinusoidal", offset=1, width=3), "registers": 1},
    "circle": {"code": Code("circle", offset=3, period=4)},
    "table code": {"code": Code("table"), "registers": 1},
    "causal": {"blocks": attention(mask="causal"), "registers": 2},
    "mask table": {"blocks": attention(mask="table"), "registers": 1},
    "mask table, hard": {"blocks": attention(mask="table", kind="hard"), "registers": 1},
    "mask table, linear": {"blocks": attention(mask="table", kind="linear", bias=True), "registers": 1},
    "score table": {"blocks": attention(score_bias="table"), "registers": 1},
    "score toeplitz": {"blocks": attention(score_bias="toeplitz"), "registers": 2},
    "toeplitz, read one token": {
        "blocks": 2 * attention(score_bias="toeplitz", mask="causal"),
        "registers": 2,
        "readout": Readout("token", 1),
    },
    "biases": {"blocks": attention(bias=True)},
    "unit scale": {"blocks": attention(scale="unit")},
    "hard": {"blocks": attention(kind="hard")},
    "nearest": {"blocks": attention(kind="nearest")},
    "linear, causal": {"blocks": attention(kind="linear", mask="causal")},
    "relu": {"blocks": attention(kind="relu", bias=True), "registers": 1},
    "mask table, relu": {"blocks": attention(kind="relu", mask="table", score_bias="table"), "registers": 1},
    "no residual": {"blocks": (Block(Attention(TWO_GROUPS, residual=False), FeedForward(3, residual=False)),)},
    "ffn only, gelu": {"blocks": (Block(None, FeedForward(6, "gelu")),)},
    "ffn identity": {"blocks": (Block(None, FeedForward(6, "identity")),), "readout": Readout("mean")},
    "pre-norm": {"blocks": (Block(Attention(TWO_GROUPS), FeedForward(4), Norm("pre")),), "registers": 1},
    "post-norm": {"blocks": (Block(Attention(TWO_GROUPS), FeedForward(4), Norm("post", epsilon=0.1)),)},
    "norm without attention": {"blocks": (Block(None, FeedForward(4), Norm("post")),)},
    "loops": {"loops": 3, "registers": 1, "readout": Readout("token", 2)},
    "deep": {"blocks": 3 * (Block(Attention(TWO_GROUPS), FeedForward(4)),), "registers": 1, "readout": Readout("sum")},
    "ids": {"input": Input("ids", 4, vocabulary=7), "code": Code("table"), "registers": 1},
    "read one token": {"readout": Readout("token", 0)},
    "read the mean": {"readout": Readout("mean"), "registers": 2},
    "read the sum": {"readout": Readout("sum"), "registers": 2},
    "read a register": {"readout": Readout("register", 1), "registers": 2},
    "read a register, deep": {
        "blocks": 2 * attention(score_bias="table", mask="causal"),
        "registers": 3,
        "readout": Readout("register", 2),
        "loops": 2,
    },
    "read a register, no blocks": {"blocks": (), "readout": Readout("register", 0), "registers": 1},
}


heads = st.lists(st.builds(Heads, st.integers(1, 2), st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=2)
attentions = st.builds(
    Attention,
    heads.map(tuple),
    st.sampled_from(["softmax", "hard", "nearest", "linear", "relu"]),
    st.booleans(),
    st.sampled_from(["inverse-sqrt", "unit"]),
    st.sampled_from(["none", "causal", "table"]),
    st.sampled_from(["none", "table", "toeplitz"]),
    st.booleans(),
)
ffns = st.builds(FeedForward, st.integers(1, 4), st.sampled_from(["relu", "gelu", "identity"]), st.booleans())
norms = st.builds(Norm, st.sampled_from(["pre", "post"]), st.just("layer"), st.sampled_from([1e-5, 0.1]))
blocks = st.builds(Block, st.none() | attentions, ffns, st.none() | norms) | st.builds(Block, attentions)
configs = st.builds(
    Config,
    st.builds(Input, st.just("continuous"), st.integers(1, 3), st.integers(1, 2))
    | st.builds(lambda n, v: Input("ids", n, vocabulary=v), st.integers(1, 3), st.integers(1, 4)),
    st.integers(4, 5),
    st.integers(1, 2),
    st.sampled_from([Readout("token", 0), Readout("mean"), Readout("sum"), Readout("all")]),
    st.lists(blocks, max_size=2).map(tuple),
    st.integers(0, 2),
    st.sampled_from([Code(), Code("one-hot", 1), Code("sinusoidal", 0, 4), Code("circle", 2, period=3), Code("table")]),
    st.integers(1, 2),
)
