"""Local Lipschitz constants: above every sampled slope, below the product of global constants, and better with more boxes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from certiformer.audit import local_lipschitz as module
from certiformer.audit.local_lipschitz import _Region, ball_lipschitz, local_lipschitz, matrix_size
from certiformer.bounds.attention_lipschitz import sequence_lipschitz
from certiformer.bounds.numbers import above
from certiformer.errors import BadInput
from certiformer.model import Block, Config, FeedForward, Input, Readout, Transformer, load

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "models" / "trained-sine-sum"
LOW, HIGH = np.array([1.0, 2.0]), np.array([1.5, 2.5])


def global_constant(model: Transformer) -> float:
    """Embedding, then 1 + attention, then 1 + hidden units, then the mean, all in the Euclidean norm of all entries."""
    t = {name: np.asarray(tensor) for name, tensor in model.tensors.items()}
    tokens = model.config.tokens
    ends = np.stack(np.meshgrid(*np.stack([LOW, HIGH], 1), indexing="ij"), -1).reshape(-1, tokens, 1)
    rows = ends @ t["embed.weight"] + t["embed.bias"] + t["code.table"]
    radius = float(np.linalg.norm(rows, axis=-1).max())  # a token is affine in its number: largest at an end
    name = "blocks.0.attention.groups.0"
    scores = t[f"{name}.query"][0] @ t[f"{name}.key"][0].T / np.sqrt(t[f"{name}.query"].shape[-1])
    value = t[f"{name}.value"][0] @ t[f"{name}.output"][0]

    def spectral(a):
        return float(np.linalg.norm(a, 2))

    attention = min(above(each) for each in sequence_lipschitz(spectral(value), spectral(scores), radius, tokens))
    hidden = spectral(t["blocks.0.ffn.up"]) * spectral(t["blocks.0.ffn.down"])
    return (
        spectral(t["embed.weight"]) * (1 + attention) * (1 + hidden) * spectral(t["readout.weight"]) / np.sqrt(tokens)
    )


def test_between_sampled_slopes_and_the_global_constant():
    model, rng = load(FOLDER), np.random.default_rng(0)
    found = local_lipschitz(model, LOW, HIGH, boxes=128, order=1)
    x = rng.uniform(LOW, HIGH, size=(2000, 2))
    y = np.where(
        rng.uniform(size=(2000, 1)) < 0.5,
        rng.uniform(LOW, HIGH, size=x.shape),
        np.clip(x + 1e-3 * rng.normal(size=x.shape), LOW, HIGH),
    )
    slopes = np.abs(model.evaluate(x) - model.evaluate(y))[:, 0] / np.linalg.norm(x - y, axis=1)
    # Slopes over steps of 1e-3 are rounded at 1e-12 of their size.
    assert slopes.max() <= found.upper and found.lower <= found.upper * (1 + 1e-12)
    assert found.upper < 0.02 * global_constant(model)
    # sin(x1) + sin(x2) itself has |(cos 1.0, cos 2.5)| = 0.966 there, at a corner; the model is near it.
    assert 0.8 < found.lower < found.upper < 1.6


def test_more_boxes_never_make_it_worse():
    """A linear model: one box is enough, and the constant is the spectral norm."""
    config = Config(Input("continuous", tokens=2, width=1), 3, 2, Readout("sum"))
    model = Transformer.random(config, 1)
    weight = np.asarray(model.tensors["embed.weight"]) @ np.asarray(model.tensors["readout.weight"])
    true = np.linalg.norm(np.repeat(weight, 2, axis=0), 2)
    few, many = (local_lipschitz(model, [0.0, 0.0], [1.0, 1.0], boxes=boxes, order=1) for boxes in (1, 40))
    assert true <= many.upper <= few.upper <= true * (1 + 1e-9)
    assert few.lower == pytest.approx(true)


def test_a_ball_is_better_than_the_box_around_it():
    """gelu(x1) + gelu(x2) is steepest at a corner of the box (1.597), which the ball does not reach (1.529)."""
    units = Block(ffn=FeedForward(1, "gelu", residual=False))
    config = Config(Input("continuous", tokens=2, width=1), 1, 1, Readout("sum"), (units,))
    tensors = {name: np.zeros_like(tensor) for name, tensor in Transformer.random(config, 0).tensors.items()}
    tensors |= {
        name: np.ones((1, 1)) for name in ("embed.weight", "blocks.0.ffn.up", "blocks.0.ffn.down", "readout.weight")
    }
    model, seen = Transformer(config, tensors), []
    ball = ball_lipschitz(model, [0.0, 0.0], 1.4, 1024, 1, progress=lambda *done: seen.append(done))
    box = local_lipschitz(model, [-1.4, -1.4], [1.4, 1.4], 1024, 1)
    assert 1.52 < ball.lower <= ball.upper < 1.56 < 1.59 < box.lower <= box.upper
    assert seen[-1] == (ball.boxes, 1024) and seen == sorted(seen)
    cut = ball_lipschitz(model, [0.0, 0.0], 1.4, 1, 1)
    assert cut.boxes == 1 and cut.upper >= ball.upper


def test_no_part_of_a_ball_is_dropped():
    """Every box that holds a point of the ball is kept; some boxes in the corners are not."""
    rng = np.random.default_rng(0)
    centre, radius = np.array([0.3, -1e3, 7.0]), 0.7
    region = _Region(centre - radius, centre + radius, centre, radius)
    x = rng.normal(size=(5000, 3))
    x = centre + x * radius * rng.uniform(size=(5000, 1)) ** 0.1 / np.linalg.norm(x, axis=1, keepdims=True)
    size = 2.0 ** -rng.integers(1, 12, size=(5000, 1))
    low = x - size * rng.uniform(size=x.shape)
    # A point that rounding has put a hair outside of the ball need not be held.
    inside = np.linalg.norm(x - centre, axis=1) <= radius
    assert region.meets(low, low + size)[inside].all() and inside.sum() > 4900
    corner = centre + radius * np.array([[0.9, 0.9, 0.9]])
    assert not region.meets(corner, corner + 0.1 * radius).any()
    assert np.linalg.norm(region.nearest(corner) - centre) == pytest.approx(radius)


def test_the_size_of_a_matrix_is_not_below_its_norm():
    rng = np.random.default_rng(0)
    a = np.abs(rng.normal(size=(200, 3, 4)))
    signs = rng.choice([-1.0, 1.0], size=a.shape)
    assert (np.linalg.norm(a * signs, 2, axis=(1, 2)) <= matrix_size(a)).all()
    assert np.isnan(matrix_size(np.full((1, 2, 2), np.nan))).all()  # which the search takes for infinity


def test_nonsense_is_refused():
    model = load(FOLDER)
    for low, high, sentence in (
        ([0.0], [1.0], "each of the 2 inputs"),
        ([0.0, 0.0], [1.0, 0.0], "to a larger one"),
        ([0.0, -np.inf], [1.0, 1.0], "finite number"),
    ):
        with pytest.raises(BadInput, match=sentence):
            local_lipschitz(model, low, high)


def test_what_would_fill_the_memory_is_done_in_smaller_steps_or_refused(monkeypatch):
    model = load(FOLDER)
    whole, tried = local_lipschitz(model, LOW, HIGH, boxes=16, order=1), []
    sizes = module._sizes
    monkeypatch.setattr(module, "_sizes", lambda *arguments: tried.append(arguments[-1]) or sizes(*arguments))
    monkeypatch.setattr(module, "MEMORY", 2**17)
    # The same boxes are bisected as long as a step has no more of them than a batch.
    found = local_lipschitz(model, LOW, HIGH, boxes=16, order=1)
    assert 1 <= max(tried) < module.BATCH and whole.lower <= found.upper
    monkeypatch.setattr(module, "MEMORY", 2**10)
    with pytest.raises(BadInput, match="the derivatives by 2 inputs take"):
        local_lipschitz(model, LOW, HIGH, boxes=16, order=1)
