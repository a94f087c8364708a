"""Counting against covering by norms: covers that cover, the growth with depth and rank, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from certiformer.bounds import normed_stack
from certiformer.bounds.normed_stack import pieces
from certiformer.bounds.numbers import above, ball
from certiformer.bounds.stack_by_count import complexity, entries, log_cover
from certiformer.errors import BadInput
from theorems.stack_model import Layout


def norms(layers: int = 2, epsilon: float = 1e-5, place: str = "pre"):
    layout = Layout(place, epsilon=epsilon)
    layout.layers = layers
    return layout, layout.norms(layout.random(0))


def test_it_counts_every_weight():
    layout, model = norms()
    assert entries(pieces(model), "count") == sum(w.size for w in layout.random(0).values())
    assert entries(pieces(model), "ranks") <= entries(pieces(model), "count")


def test_a_grid_of_the_claimed_size_covers_one_piece():
    """In one dimension the cover can be counted: points of an interval, errors added up over the pieces."""
    _, model = norms()
    for piece in pieces(model)[:5]:
        eps = 0.1
        claimed = above(log_cover([piece], ball(eps), "count"))
        # Each entry by itself: an interval of half width `reach`, a grid of step 2 eps / (factor root entries).
        step = 2 * eps / (above(piece.factor) * math.sqrt(piece.entries))
        one_by_one = piece.entries * math.log(math.ceil(2 * above(piece.reach) / step))
        assert claimed <= one_by_one + piece.entries * math.log(3)
        assert claimed >= piece.entries * math.log(max(1.0, above(piece.reach) * above(piece.factor) / eps)) * (
            1 - 1e-9
        )


def test_depth_enters_by_its_logarithm():
    by_norms, by_count = [], []
    for layers in (1, 2, 4):
        _, model = norms(layers)
        by_norms.append(math.log10(above(normed_stack.complexity(model, 1.0, 10**6))))
        by_count.append(above(complexity(model, 1.0, 10**6, "count")))
    assert by_norms[2] - by_norms[1] > 5  # powers of 10
    assert by_count[2] / by_count[1] < 4  # the root of twice the entries and of twice the logarithm, and a little


def test_ranks_count_less_where_they_are_low():
    layout, model = norms(1)
    layer = model.layers[0]
    heads = tuple(
        replace(h, value=replace(h.value, rank=1), scores=None if h.scores is None else replace(h.scores, rank=1))
        for h in layer.attention.heads
    )
    low = replace(model, layers=(replace(layer, attention=replace(layer.attention, heads=heads)),))
    assert entries(pieces(low), "ranks") < entries(pieces(low), "count") == entries(pieces(model), "count")
    assert above(complexity(low, 1.0, 10**8, "ranks")) < above(complexity(low, 1.0, 10**8, "count"))
    assert layout.place == "pre"


def test_one_over_the_root_of_the_sample():
    _, model = norms(1)
    few, many = (above(complexity(model, 1.0, m, "count")) for m in (10**14, 10**16))
    assert 9.9 < few / many < 10.001
    assert np.isfinite(few)


def test_what_it_refuses():
    _, model = norms(1)
    with pytest.raises(BadInput, match="count or ranks"):
        complexity(model, 1.0, 10, "norms")
