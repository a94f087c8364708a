"""Whole transformers with random weights against a naive forward pass in balls, for every option of the model."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from certiformer.enclose.network import enclose_model
from certiformer.enclose.taylor import enclosed_range
from certiformer.errors import BadInput
from certiformer.interval import rigorous_jit
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
    tensor_specs,
)
from enclose.balls import model_values
from enclose.forms import assert_enclosed, compiled

TWO_TOKENS = Input("continuous", tokens=2, width=1)


def config(
    attention: Attention | None = None, ffn: FeedForward | None = None, norm: Norm | None = None, **other
) -> Config:
    return Config(
        **{
            "input": TWO_TOKENS,
            "width": 4,
            "outputs": 1,
            "readout": Readout("mean"),
            "blocks": (Block(attention, ffn, norm),),
            **other,
        }
    )


HEADS = (Heads(2, 3, 2), Heads(1, 2, 4))
CASES = {
    "softmax": config(Attention(HEADS, bias=True), code=Code("table")),
    "causal registers": config(
        Attention(HEADS, mask="causal", score_bias="toeplitz"), registers=2, readout=Readout("token", 1)
    ),
    "masked table bias": config(
        Attention(HEADS, mask="table", score_bias="table", scale="unit", residual=False),
        registers=1,
        readout=Readout("all"),
        outputs=2,
    ),
    "hard": config(Attention(HEADS, kind="hard", scale="unit"), code=Code("one-hot", offset=1), readout=Readout("sum")),
    "linear": config(Attention(HEADS, kind="linear", bias=True), code=Code("circle", offset=0, period=3)),
    "relu attention": config(Attention(HEADS, kind="relu", bias=True, mask="causal"), registers=1),
    "relu": config(Attention((Heads(1, 4, 4),)), FeedForward(6), code=Code("sinusoidal", offset=0, width=4)),
    "pre-norm": config(Attention((Heads(1, 4, 4),)), FeedForward(5), Norm("pre"), code=Code("table")),
    "post-norm": config(
        Attention((Heads(1, 4, 4),)), FeedForward(5, "gelu", residual=False), Norm("post", epsilon=1e-3)
    ),
    "two blocks": config(
        blocks=(Block(Attention((Heads(2, 2, 2),))), Block(None, FeedForward(4, "identity"))), registers=1
    ),
    "looped": config(Attention((Heads(1, 4, 4),)), FeedForward(4), loops=2, readout=Readout("token", 0)),
    "no block": config(blocks=()),
    "register": config(Attention(HEADS, bias=True), FeedForward(3), registers=2, readout=Readout("register", 1)),
    "register, two blocks": config(
        blocks=2 * (Block(Attention((Heads(1, 2, 2),))),), registers=2, readout=Readout("register", 0)
    ),
    "wide token": config(
        Attention((Heads(1, 4, 4),)), input=Input("continuous", tokens=1, width=3), registers=2, dtype="float32"
    ),
}


def boxes(dimension: int):
    widths = [1e-12, 1e-6, 1e-2, 0.3, 3.0, 1e3]
    rng = np.random.default_rng(1)
    return rng.normal(size=(len(widths), dimension)), np.array(widths)[:, None] / 2 * rng.uniform(
        0.5, 1, (len(widths), dimension)
    )


def sharpened(model: Transformer, factor: float) -> Transformer:
    """The same model with its query matrices times `factor`: scores of hundreds of nats."""
    tensors = {n: t * factor if n.endswith(".query") else t for n, t in model.tensors.items()}
    return Transformer(model.config, tensors)


@pytest.mark.parametrize("name", CASES)
def test_every_option(name):
    """Order 1 and 2 alternate over the cases: both see every kind of layer."""
    model = Transformer.random(CASES[name], seed=3)
    order = 1 + list(CASES).index(name) % 2
    dimension = model.config.tokens * model.config.input.width
    form, _ = assert_enclosed(
        enclose_model(model, order), lambda p: model_values(model, p), *boxes(dimension), points=2
    )
    assert (form.rem[:2] < 1e-3).all(), "a tiny box must be enclosed tightly, or the test says nothing"


@pytest.mark.parametrize(("order", "name"), [(0, "relu"), (3, "softmax")])
def test_other_orders(order, name):
    model = Transformer.random(CASES[name], seed=5)
    assert_enclosed(enclose_model(model, order), lambda p: model_values(model, p), *boxes(2), points=2)


def test_scores_of_700_nats():
    """Softmax as sharp as a step: at most boxes one key has all the weight, at some boxes the winner changes."""
    model = sharpened(Transformer.random(CASES["relu"], seed=2), 400.0)
    assert_enclosed(enclose_model(model, 1), lambda p: model_values(model, p), *boxes(2), points=3, jit=rigorous_jit)


def softmax_pair(first_slope: float, second_offset: float, value_slope: float = 0.0) -> Transformer:
    """One token x, two registers with scores (first_slope x, second_offset); output: the second weight + value_slope x."""
    # Width 3: x, constant one, value. Keys: register 0 carries (slope, 0, 0), register 1 (0, offset, 1).
    spec = Config(
        Input("continuous", 1, 1),
        width=3,
        outputs=1,
        readout=Readout("token", 0),
        registers=2,
        blocks=(Block(Attention((Heads(1, 2, 1),), scale="unit", mask="table")),),
    )
    tensors = {n: np.zeros(s.shape) for n, s in tensor_specs(spec).items()}
    tensors["embed.weight"][0, 0] = 1.0
    tensors["embed.bias"][1] = 1.0
    tensors["registers"][0, 0], tensors["registers"][1, 1], tensors["registers"][1, 2] = first_slope, second_offset, 1.0
    attention = "blocks.0.attention.groups.0"
    for role in ("query", "key"):
        tensors[f"{attention}.{role}"][0, :2, :2] = np.eye(2)
    tensors[f"{attention}.value"][0, 2, 0] = 1.0
    tensors[f"{attention}.output"][0, 0, 2] = 1.0
    tensors["blocks.0.attention.mask"][:, :2] = 1
    tensors["readout.weight"][2, 0], tensors["readout.weight"][0, 0] = 1.0, value_slope
    return Transformer(spec, tensors)


def test_softmax_of_x_and_minus_40_reaches_one():
    """x in [-60, 0]: the second weight is 1 at the left end up to 2e-9; a known peer bounds it by 4.2e-6."""
    model = softmax_pair(1.0, -40.0)
    boxes = [[-30.0], [-40.0]], [[30.0], [1.0]]
    whole = assert_enclosed(enclose_model(model, 1), lambda p: model_values(model, p), *boxes)[1]
    assert whole.hi[0, 0] >= 1 / (1 + np.exp(-20.0)), whole


@pytest.mark.parametrize("left", [-60.0, -20.0])
def test_softmax_minus_a_line_keeps_its_maximum(left):
    """softmax_1(x, 0) - 0.03 x on [left, 0] is -0.03 left (up to e^left) at the left end; known peers say 0.627 and 0.550."""
    model = softmax_pair(-1.0, 0.0, value_slope=-0.03)  # weight of the second key with scores (-x, 0): softmax_1(x, 0)
    half = -left / 2
    whole = assert_enclosed(enclose_model(model, 1), lambda p: model_values(model, p), [[-half]], [[half]])[1]
    assert whole.hi[0, 0] >= -0.03 * left, whole


def test_a_decided_hard_attention_keeps_its_form():
    """Away from ties the winner's value is linear in x, and so is the form: no remainder beyond rounding."""
    model = Transformer.random(CASES["hard"], seed=3)
    form = compiled(jax.vmap(enclose_model(model, 1)))(np.full((1, 2), 0.4), np.full((1, 2), 1e-9))
    # A few hundred roundings of numbers of size one, each charged eight times over.
    assert float(form.rem[0, 0]) < 1e-12


def test_infinite_and_undefined_boxes_give_no_bound():
    model = Transformer.random(CASES["relu"], seed=0)
    centre = np.array([[np.nan, 0.0], [np.inf, 0.0], [0.0, 0.0], [0.0, 0.0]])
    radius = np.array([[1.0, 1.0], [1.0, 1.0], [np.nan, 1.0], [1.0, np.inf]])
    whole = compiled(jax.vmap(lambda c, r: enclosed_range(enclose_model(model, 1)(c, r))))(centre, radius)
    assert not (np.isfinite(whole.lo) & np.isfinite(whole.hi)).any()


def test_token_ids_have_no_enclosure():
    model = Transformer.random(Config(Input("ids", 2, vocabulary=3), 2, 1, Readout("mean")), seed=0)
    with pytest.raises(BadInput, match="token ids"):
        enclose_model(model, 1)


def test_nearest_attention_has_no_enclosure():
    blocks = (Block(Attention((Heads(1, 1, 1),), "nearest")),)
    model = Transformer.random(Config(Input("continuous", 2, width=1), 2, 1, Readout("mean"), blocks), seed=0)
    with pytest.raises(BadInput, match="nearest attention has no enclosure here"):
        enclose_model(model, 1)(np.zeros(2), np.ones(2))
