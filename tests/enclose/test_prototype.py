"""Prototype attention: recognising it, its closed form with and without lists, and what it must refuse."""

from __future__ import annotations

from fractions import Fraction

import jax
import numpy as np
import pytest
from flint import arb

from certiformer.enclose.approximate import exact
from certiformer.enclose.lists import prototype_lists
from certiformer.enclose.prototype import PrototypeAttention, PrototypeHead, as_prototypes
from certiformer.enclose.prototype_form import enclose_prototypes
from certiformer.enclose.taylor import enclosed_range
from certiformer.errors import BadInput
from certiformer.model import (
    Attention,
    Block,
    Config,
    FeedForward,
    Heads,
    Input,
    Norm,
    Readout,
    Transformer,
    tensor_specs,
)
from enclose.balls import ball, model_values
from enclose.forms import assert_enclosed, compiled


def voronoi_model(
    dimension: int, per_axis: int, sharpness: float, seed: int = 0, outputs: int = 1, **other
) -> Transformer:
    """Registers on a jittered grid of [0, 1]^D as prototypes: d = x | flag | c | -|c|^2/2 | value | out."""
    rng = np.random.default_rng(seed)
    axes = [(np.arange(per_axis) + 0.5) / per_axis] * dimension
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, dimension)
    grid = grid + rng.uniform(-0.1, 0.1, grid.shape) / per_axis
    d, flag, c, half, value, out = (
        dimension,
        dimension,
        dimension + 1,
        2 * dimension + 1,
        2 * dimension + 2,
        2 * dimension + 2 + outputs,
    )
    config = Config(
        **{
            "input": Input("continuous", 1, dimension),
            "width": 2 * dimension + 2 + 2 * outputs,
            "outputs": outputs,
            "readout": Readout("token", 0),
            "registers": len(grid),
            "blocks": (Block(Attention((Heads(1, dimension + 1, outputs),), scale="unit")),),
            **other,
        }
    )
    t = {n: np.zeros(s.shape) for n, s in tensor_specs(config).items()}
    t["embed.weight"][:, :d] = np.eye(d)
    t["embed.bias"][flag] = 1.0
    t["registers"][:, c : c + d], t["registers"][:, half] = grid, -(grid**2).sum(1) / 2
    t["registers"][:, value:out] = rng.normal(size=(len(grid), outputs))
    name = "blocks.0.attention.groups.0"
    t[f"{name}.query"][0, :d, :d], t[f"{name}.query"][0, flag, d] = sharpness * np.eye(d), sharpness
    t[f"{name}.key"][0, c : c + d, :d], t[f"{name}.key"][0, half, d] = np.eye(d), 1.0
    t[f"{name}.key"][0, flag, d] = -4.0 * d
    t[f"{name}.value"][0, value:out], t[f"{name}.output"][0, :, out:] = np.eye(outputs), np.eye(outputs)
    t["readout.weight"][out:] = np.eye(outputs)
    t["readout.weight"][0, 0] = 0.25  # an affine part
    return Transformer(config, t)


def prototype_values(p: PrototypeAttention, point: list[Fraction]) -> list[arb]:
    x = [ball(v) for v in point]
    out = [
        sum((xi * ball(w) for xi, w in zip(x, p.weight.value[:, o], strict=True)), ball(p.bias.value[o]))
        for o in range(p.outputs)
    ]
    for head in p.heads:
        scores = [
            sum((xi * ball(a) for xi, a in zip(x, row, strict=True)), ball(b))
            for row, b in zip(head.slopes, head.offsets, strict=True)
        ]
        best = scores[0]
        for s in scores:
            best = best.max(s)
        raised = [(s - best).exp() for s in scores]
        total = sum(raised, arb(0))
        for o in range(p.outputs):
            out[o] = out[o] + sum((w * ball(v) for w, v in zip(raised, head.values[:, o], strict=True)), arb(0)) / total
    return out


def random_prototypes(dimension: int, count: int, steep: float, seed: int, heads: int = 1) -> PrototypeAttention:
    rng = np.random.default_rng(seed)
    zero = np.zeros(dimension)
    made = tuple(
        PrototypeHead(
            steep * rng.normal(size=(count, dimension)),
            rng.normal(size=count),
            rng.normal(size=(count, 2)),
            zero,
            0.0,
            np.zeros(2),
        )
        for _ in range(heads)
    )
    return PrototypeAttention(made, exact(rng.normal(size=(dimension, 2))), exact(rng.normal(size=2)))


WIDTHS = np.array([1e-12, 1e-5, 0.01, 0.1, 0.5, 3.0, 1e3])


@pytest.mark.parametrize(
    ("dimension", "order", "steep"), [(1, 6, 10.0), (2, 4, 30.0), (2, 1, 1.0), (3, 2, 5.0), (2, 0, 300.0), (4, 3, 2.0)]
)
def test_closed_form(dimension, order, steep):
    p = random_prototypes(dimension, 9, steep, seed=dimension, heads=2)
    centres = np.random.default_rng(0).normal(size=(len(WIDTHS), dimension))
    radii = np.repeat(WIDTHS[:, None], dimension, 1) / 2
    form, _ = assert_enclosed(enclose_prototypes(p, order), lambda x: prototype_values(p, x), centres, radii, points=4)
    assert (form.rem[:2] < 1e-3).all(), "a small box must be enclosed tightly"


def test_scores_of_1000_nats_apart():
    """A prototype 1,000 nats below the best at the centre is the best one elsewhere on the box."""
    zero = np.zeros(1)
    head = PrototypeHead(
        np.array([[0.0], [1000.0], [-3000.0]]), np.zeros(3), np.array([[0.0], [1.0], [5.0]]), zero, 0.0, zero
    )
    p = PrototypeAttention((head,), exact(np.zeros((1, 1))), exact(zero))
    for order in (1, 4):
        assert_enclosed(
            enclose_prototypes(p, order),
            lambda x: prototype_values(p, x),
            [[1.5], [1.0], [-0.7]],
            [[2.0], [0.99], [0.71]],
        )


@pytest.mark.parametrize(("dimension", "per_axis", "order"), [(1, 30, 5), (2, 6, 4), (3, 3, 2)])
def test_lists_with_a_proved_tail(dimension, per_axis, order):
    """Boxes of several sizes inside the cells, down to their corners; a generous tail so that it has to be charged."""
    model = voronoi_model(dimension, per_axis, 2.0 * per_axis**2)
    p = as_prototypes(model)
    assert p is not None
    cells = (4,) * dimension
    lists = prototype_lists(p, np.zeros(dimension), np.ones(dimension), cells, tail=1e-3)
    kept = (lists.heads[0].index >= 0).sum(1)
    assert (kept < len(p.heads[0].offsets)).any() and 0 < lists.heads[0].tail.max() < 1e-2
    rng = np.random.default_rng(0)
    corner = rng.integers(0, 4, (6, dimension)) / 4
    size = rng.choice([0.25, 0.125, 1e-3], (6, 1)) * np.ones(dimension)
    shift = np.floor(rng.uniform(0, 0.25 / size)) * size
    assert_enclosed(
        enclose_prototypes(p, order, lists),
        lambda x: model_values(model, x),
        corner + shift + size / 2,
        size / 2,
        points=2,
    )


def test_a_box_outside_its_cell_is_never_bounded():
    p = random_prototypes(2, 20, 5.0, seed=0)
    lists = prototype_lists(p, np.zeros(2), np.ones(2), (4, 4))
    centre = np.array([[0.25, 0.1], [0.1, 0.1], [1.2, 0.1], [-0.01, 0.1], [np.nan, 0.1]])
    radius = np.array([[0.01, 0.01], [0.13, 0.1], [0.01, 0.01], [0.05, 0.01], [0.01, 0.01]])
    whole = compiled(jax.vmap(lambda c, r: enclosed_range(enclose_prototypes(p, 2, lists)(c, r))))(centre, radius)
    assert not (np.isfinite(whole.lo) | np.isfinite(whole.hi)).any()


def test_the_boxes_of_a_split_tree_fit_into_cells():
    """Edges lo + (hi - lo) k / 2^m rounded to doubles, centre and radius rounded outward: still inside the cell."""
    p = random_prototypes(2, 20, 5.0, seed=0)
    low, high = np.array([-1.0, 0.0]), np.array([np.pi, 0.1])
    lists = prototype_lists(p, low, high, (8, 8))
    edges = low + (high - low) * np.arange(17)[:, None] / 16
    a, b = np.repeat(edges[:-1], 1, 0), edges[1:]
    centre = (a + b) / 2
    radius = np.maximum(b - centre, centre - a) * (1 + 1e-14)
    whole = compiled(jax.vmap(lambda c, r: enclosed_range(enclose_prototypes(p, 2, lists)(c, r))))(centre, radius)
    assert np.isfinite(whole.hi).all()


@pytest.mark.parametrize(
    "changes",
    [{}, {"readout": Readout("all")}, {"dtype": "float32"}],
)
def test_a_constructed_model_is_recognised(changes):
    model = voronoi_model(2, 3, 18.0, outputs=2, **changes)
    p = as_prototypes(model)
    assert p is not None and len(p.heads) == 1 and p.heads[0].slopes.shape == (10, 2)
    assert_enclosed(
        enclose_prototypes(p, 3),
        lambda x: model_values(model, x),
        [[0.3, 0.4], [0.9, 0.1]],
        [[0.05, 0.1], [1e-9, 1e-3]],
        points=3,
    )


def test_two_tokens_with_score_bias_and_mask():
    """Data tokens as keys with affine scores, a mask, a Toeplitz bias, head and output biases, mean read-out."""
    config = Config(
        Input("continuous", 2, 1),
        width=3,
        outputs=2,
        readout=Readout("mean"),
        registers=2,
        blocks=(Block(Attention((Heads(2, 2, 2),), bias=True, mask="causal", score_bias="toeplitz")),),
    )
    random = Transformer.random(config, seed=4)
    t = dict(random.tensors)
    t["embed.weight"] = np.array([[1.0, 0.0, 0.0]])
    name = "blocks.0.attention.groups.0"
    # Coordinate 0 carries x: read by the first query component and the second key component only, and by no value.
    for role, column in (("query", 1), ("key", 0)):
        t[f"{name}.{role}"] = t[f"{name}.{role}"].copy()
        t[f"{name}.{role}"][:, 0, column] = 0.0
    t[f"{name}.value"] = t[f"{name}.value"].copy()
    t[f"{name}.value"][:, 0] = 0.0
    model = Transformer(config, t)
    p = as_prototypes(model)
    assert p is not None and len(p.heads) == 4
    assert_enclosed(
        enclose_prototypes(p, 3),
        lambda x: model_values(model, x),
        [[0.3, -0.4], [2.0, 1.0]],
        [[0.1, 0.2], [0.5, 1.0]],
        points=4,
    )


def test_other_models_are_not_recognised():
    attention = Attention((Heads(1, 2, 2),))
    base = {"input": Input("continuous", 2, 1), "width": 2, "outputs": 1, "readout": Readout("mean")}
    for blocks, other in [
        ((Block(attention),), {}),  # a quadratic score
        ((Block(attention, FeedForward(2)),), {}),
        ((Block(attention, None, Norm("pre")),), {}),
        ((Block(attention), Block(attention)), {}),
        ((Block(attention),), {"loops": 2}),
        ((Block(Attention((Heads(1, 2, 2),), kind="hard")),), {}),
        ((), {}),
        ((Block(attention),), {"registers": 1, "readout": Readout("register", 0)}),  # not a data token's prototypes
    ]:
        assert as_prototypes(Transformer.random(Config(**{**base, "blocks": blocks, **other}), seed=1)) is None


def test_lists_refuse_a_bad_box():
    p = random_prototypes(2, 5, 1.0, seed=0)
    for low, high, cells in (
        [(0.0, 0.0), (1.0, 0.0), (2, 2)],
        [(0.0, 0.0), (1.0, np.inf), (2, 2)],
        [(0.0, 0.0), (1.0, 1.0), (2,)],
    ):
        with pytest.raises(BadInput, match="prototype lists"):
            prototype_lists(p, np.array(low), np.array(high), cells)
