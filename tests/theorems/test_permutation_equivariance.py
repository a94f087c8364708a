"""Permutation equivariance: for every option of the model in balls, and broken by everything that sees the order."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from certiformer.expressivity.permutation_equivariance import COLUMNS_ALIKE, is_equivariant
from certiformer.kernel.problem import PointNetwork
from certiformer.kernel.weights import read_model
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
    schema,
)
from certiformer.model.store import tensors_to_bytes

TOKENS = 3
PLAIN = Attention((Heads(1, 2, 1),))
ORDERS = [(1, 0, 2), (2, 0, 1)]


def attention_of(kind, draw):
    groups = tuple(Heads(draw.randint(1, 2), draw.randint(1, 3), draw.randint(1, 2)) for _ in range(draw.randint(1, 2)))
    scale = draw.choice(("inverse-sqrt", "unit"))
    return Attention(groups, kind, draw.random() < 0.5, scale, residual=draw.random() < 0.5)


def configs():
    """Every kind of attention, feed-forward part and norm with every other; the remaining options are drawn, seeded."""
    draw, found = random.Random(0), []
    norms = [None, *(Norm(place, kind) for kind in schema.NORM for place in ("pre", "post"))]
    for kind, ffn, norm in product(schema.ATTENTION, [None, *schema.FFN], norms):
        feed = None if ffn is None else FeedForward(draw.randint(1, 3), ffn, draw.random() < 0.5)
        blocks = (Block(attention_of(kind, draw), feed, norm),)
        if draw.random() < 0.5:
            blocks += (Block(attention_of(kind, draw)), Block(None, FeedForward(2)))[draw.randint(0, 1) :][:1]
        registers = draw.randint(0, 2)
        readouts = [r for r in schema.READOUT if r != "token" and (registers or r != "register")]
        kind_of_input = (
            Input("continuous", TOKENS, width=2) if draw.random() < 0.7 else Input("ids", TOKENS, vocabulary=7)
        )
        code = Code("circle", offset=1, period=1) if draw.random() < 0.2 else Code()
        readout = draw.choice(readouts)
        read = Readout(readout, 0 if readout == "register" else None)
        found.append(Config(kind_of_input, 4, 2, read, blocks, registers, code, loops=draw.randint(1, 2)))
    return found


CONFIGS = configs()


def inputs_of(config, seed=0):
    """Different tokens, as exact rationals, one tuple a token."""
    generator = np.random.default_rng(seed)
    if config.input.kind == "ids":
        return [(Fraction(int(i)),) for i in generator.permutation(7)[:TOKENS]]
    return [tuple(Fraction(float(v)) for v in row) for row in generator.uniform(-2, 2, (TOKENS, 2))]


def values_at(model, rows):
    """Balls around the outputs, from the stored bytes."""
    point = tuple(value for row in rows for value in row)
    return PointNetwork(*read_model(model.config.to_bytes(), tensors_to_bytes(model))).values(point)


def same(left, right):
    """Whether two lists of numbers agree: their balls overlap and are tiny."""
    return all(a.overlaps(b) and tiny(a) and tiny(b) for a, b in zip(left, right, strict=True))


def tiny(ball):
    """Linear attention in a loop makes large numbers, so the radius is measured against the number."""
    return ball.rad() < 1e-15 * (1 + abs(ball.mid()))


def respects_order(model, order, rows):
    """Whether the outputs of permuted tokens are the permuted outputs (read-out all) or the same ones."""
    before, after = values_at(model, rows), values_at(model, [rows[i] for i in order])
    if model.config.readout.kind == "all":
        width = model.config.outputs
        before = [before[i * width + c] for i in order for c in range(width)]
    return same(before, after)


@pytest.mark.parametrize("place", range(len(CONFIGS)))
def test_every_option_is_equivariant(place):
    config = CONFIGS[place]
    assert is_equivariant(config).holds
    model = Transformer.random(config, seed=place)
    for order in ORDERS:
        assert respects_order(model, order, inputs_of(config, place))


def test_every_value_of_every_option_occurs():
    """The drawn options too, so that the test above is about all of them."""
    layers = [(b.attention, b.ffn, b.norm) for c in CONFIGS for b in c.blocks]
    heads = [a for a, _, _ in layers if a is not None]
    assert {(a.kind, a.residual) for a in heads} == set(product(schema.ATTENTION, (True, False)))
    assert {(a.scale, a.bias) for a in heads} == set(product(("inverse-sqrt", "unit"), (True, False)))
    assert {(f.kind, f.residual) for _, f, _ in layers if f} == set(product(schema.FFN, (True, False)))
    assert {n and (n.kind, n.place) for _, _, n in layers} == {None, *product(schema.NORM, ("pre", "post"))}
    assert {c.readout.kind for c in CONFIGS} == set(schema.READOUT) - {"token"}
    assert {c.registers for c in CONFIGS} == {0, 1, 2} and {c.loops for c in CONFIGS} == {1, 2}
    assert {c.input.kind for c in CONFIGS} == set(schema.INPUT)
    assert set(schema.ATTENTION) <= COLUMNS_ALIKE


def basic(**changes) -> Config:
    return replace(Config(Input("continuous", TOKENS, width=2), 4, 1, Readout("all"), (Block(PLAIN),)), **changes)


BREAKERS = {
    "one-hot": basic(code=Code("one-hot", offset=0)),
    "sinusoidal": basic(code=Code("sinusoidal", offset=1, width=2)),
    "circle": basic(code=Code("circle", offset=0, period=5)),
    "table code": basic(code=Code("table")),
    "causal mask": basic(blocks=(Block(replace(PLAIN, mask="causal")),)),
    "table mask": basic(blocks=(Block(replace(PLAIN, mask="table")),)),
    "table bias": basic(blocks=(Block(replace(PLAIN, score_bias="table")),)),
    "toeplitz bias": basic(blocks=(Block(replace(PLAIN, score_bias="toeplitz")),)),
    "token read": basic(readout=Readout("token", 1)),
}


@pytest.mark.parametrize("name", BREAKERS)
def test_what_sees_the_order_breaks_it(name):
    config = BREAKERS[name]
    assert not is_equivariant(config).holds
    model = Transformer.random(config, seed=1)
    if name == "table mask":
        mask = np.array([[1, 1, 0], [1, 1, 1], [0, 1, 1]])
        model = Transformer(config, {**model.tensors, "blocks.0.attention.mask": mask})
    assert not is_equivariant(config, model.tensors).holds
    assert not all(respects_order(model, order, inputs_of(config)) for order in ORDERS)
    # Without the breaker, the same weights elsewhere: the check is about the option and not about the weights.
    assert is_equivariant(basic()).holds and respects_order(
        Transformer.random(basic(), 1), ORDERS[0], inputs_of(config)
    )


def test_tables_that_treat_all_tokens_alike_are_no_obstacle():
    attention = replace(PLAIN, mask="table", score_bias="table")
    config = basic(blocks=(Block(attention),), registers=1, code=Code("table"), loops=2)
    bias = np.array([[3.0, 1, 1, 1], [2, 5, 4, 4], [2, 4, 5, 4], [2, 4, 4, 5]])
    blind = {
        "blocks.0.attention.mask": np.array([[0, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]),
        "blocks.0.attention.groups.0.score_bias": bias[None],
        "code.table": np.tile([[1.0, 2, 3, 4]], (TOKENS, 1)),
    }
    model = Transformer(config, {**Transformer.random(config, 2).tensors, **blind})
    assert is_equivariant(config, model.tensors).holds and not is_equivariant(config).holds
    assert all(respects_order(model, order, inputs_of(config)) for order in ORDERS)
    for name, index in (
        ("blocks.0.attention.mask", (1, 3)),
        ("blocks.0.attention.groups.0.score_bias", (0, 0, 2)),
        ("blocks.0.attention.groups.0.score_bias", (0, 3, 0)),
        ("blocks.0.attention.groups.0.score_bias", (0, 2, 2)),
        ("code.table", (2, 1)),
    ):
        tensors = {n: np.array(t) for n, t in model.tensors.items()}
        tensors[name][index] = 1 - tensors[name][index] if name.endswith("mask") else 9.0
        assert not is_equivariant(config, tensors).holds
        assert not all(respects_order(Transformer(config, tensors), o, inputs_of(config)) for o in ORDERS)


def test_one_token_has_no_order():
    config = Config(Input("continuous", 1, width=2), 4, 1, Readout("token", 0), (Block(replace(PLAIN, mask="causal")),))
    assert is_equivariant(config).holds


def test_an_unknown_kind_of_attention_is_not_covered():
    config = basic()
    object.__setattr__(config.blocks[0].attention, "kind", "novel")
    try:
        found = is_equivariant(config)
    finally:
        object.__setattr__(config.blocks[0].attention, "kind", "softmax")
    assert not found.holds and "we do not know" in found.reason


def test_a_run_of_the_model_agrees_up_to_rounding():
    """The theorem is about real numbers; the run in float64 adds up in another order."""
    model = Transformer.random(basic(), 0)
    rows = np.random.default_rng(0).uniform(-2, 2, (5, TOKENS, 2))
    for order in map(list, ORDERS):
        before = model.evaluate(rows.reshape(5, -1))[:, order]
        # Some dozens of operations on numbers below 100, each 2^-53.
        np.testing.assert_allclose(model.evaluate(rows[:, order].reshape(5, -1)), before, atol=1e-12)
