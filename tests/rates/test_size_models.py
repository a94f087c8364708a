"""Small models in the shape of large ones, built models and their bounds, and training that leaves the padding alone."""

from __future__ import annotations

import math
from dataclasses import replace

import jax
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model.transformer import Transformer
from certiformer.rates.size_built import built_graph_in, built_sines_in, built_sink_in
from certiformer.rates.size_models import padded, parameter_count, sink_config, size_config, start
from certiformer.rates.size_rows import run_members
from certiformer.rates.size_targets import SizeTarget
from certiformer.rates.size_training import Schedule, built_errors, train_members

GRAPH, SINES = SizeTarget("graph", tokens=3), SizeTarget("sines")
SMALL = size_config(GRAPH, units=3, heads=1, key=2, value=1)
LARGE = size_config(GRAPH, units=5, heads=2, key=4, value=2)


def double(config):
    return replace(config, dtype="float64")


def test_padding_is_exact_and_a_wrong_corner_is_not():
    tensors = start(SMALL, 0, GRAPH.high)
    x, _ = GRAPH.sample(16, 0)
    wanted = Transformer(double(SMALL), tensors).evaluate(x)
    filled, free = padded(double(SMALL), tensors, double(LARGE))
    # Sums of at most 8 terms of size one, in another order: 1e-13 is hundreds of roundings of float64.
    np.testing.assert_allclose(Transformer(double(LARGE), filled).evaluate(x), wanted, rtol=0, atol=1e-13)
    assert sum(int(f.sum()) for f in free.values()) == parameter_count(SMALL)
    moved = {n: t.copy() for n, t in filled.items()}
    for role in ("query", "key"):
        moved[f"blocks.1.attention.groups.0.{role}"][0, :, 3] = 1.0
    assert np.abs(Transformer(double(LARGE), moved).evaluate(x) - wanted).max() > 1e-3


@pytest.mark.parametrize(
    ("small", "large", "reason"),
    [
        (LARGE, SMALL, "does not fit"),
        (size_config(GRAPH, units=3, heads=1, key=2, norm="pre", width=6), size_config(GRAPH, units=3, heads=1, key=2, norm="pre"), "normalisation"),
        (SMALL, size_config(SINES, units=3, heads=1, key=2), "inputs, codes"),
        (
            size_config(SINES, units=3, heads=1, key=2, depth=1, norm="post"),
            size_config(SINES, units=3, heads=1, key=2, depth=2, norm="post"),
            "additional block",
        ),
    ],
)  # fmt: skip
def test_padding_that_would_change_the_model_is_refused(small, large, reason):
    with pytest.raises(BadInput, match=reason):
        padded(small, start(small, 0, 1.0), large)


def test_padding_keys_under_a_scale_that_depends_on_their_size_is_refused():
    def scaled(config):
        (block,) = config.blocks
        return replace(config, blocks=(replace(block, attention=replace(block.attention, scale="inverse-sqrt")),))

    small, large = scaled(sink_config(2, 1)), scaled(sink_config(2, 2))
    with pytest.raises(BadInput, match="unit"):
        padded(small, start(small, 0, 1.0), large)


def test_built_graph_keeps_its_bound_and_a_broken_one_does_not():
    config = double(size_config(GRAPH, units=15, heads=1, key=2))
    tensors, bound = built_graph_in(GRAPH, config)
    assert bound is not None and 0 < built_errors(GRAPH, config, tensors, 8)["test_sup"] <= bound
    broken = {**tensors, "embed.weight": 1.1 * tensors["embed.weight"]}
    assert built_errors(GRAPH, config, broken, 8)["test_sup"] > bound


@pytest.mark.slow
def test_built_graph_falls_like_interpolation():
    found = []
    for units in (15, 31):
        config = double(size_config(GRAPH, units=units, heads=1, key=2))
        found.append(built_errors(GRAPH, config, built_graph_in(GRAPH, config)[0], 8)["test_mse"])
    # Pieces double from 16 to 32: the square of an error of second order falls by 16, in its asymptotic range.
    assert 13 < found[0] / found[1] < 17


def test_built_graph_truncates_and_splits():
    def largest(split: bool) -> tuple[float, float | None]:
        config = double(size_config(GRAPH, units=40, heads=3, key=1, value=1))
        tensors, bound = built_graph_in(GRAPH, config, split)
        return built_errors(GRAPH, config, tensors, 8)["test_mse"], bound

    (truncated, bound), (split, none) = largest(False), largest(True)
    # The second term is left out: at most tanh(sigma_2 + interpolation), the derivation of the module.
    assert bound is not None and none is None and math.tanh(0.5) < bound < math.tanh(0.52)
    assert 0 < split < truncated  # first order is better than leaving the term out, at these sizes


def trained(x64: bool):
    # Attention alone is the smallest graph to compile.
    small, large = sink_config(1, 1), sink_config(2, 2)
    tensors, free = padded(small, start(small, 0, SINES.high), large)
    with jax.enable_x64(x64):
        (found,), _ = train_members(SINES, large, [tensors], [free], [7], Schedule(steps=20, samples=32))
    return tensors, free, found


@pytest.mark.slow
def test_training_moves_free_weights_only():
    tensors, free, found = trained(True)
    moved = {n: found[n] != tensors[n] for n in tensors}
    assert all(not (moved[n] & (free[n] == 0)).any() for n in tensors)
    assert moved["blocks.0.attention.groups.0.query"][0, :, 0].any()


@pytest.mark.slow
def test_training_does_not_depend_on_the_precision_of_jax():
    (_, _, first), (_, _, second) = trained(True), trained(False)
    assert all(np.array_equal(first[n], second[n]) for n in first)


@pytest.mark.slow
def test_certified_constructions_of_sines():
    for depth in (1, 2):
        config = double(size_config(SINES, units=8, heads=2, key=2, depth=depth))
        tensors, bound = built_sines_in(config)
        errors = built_errors(SINES, config, tensors, 64)
        assert 0 < errors["test_sup"] <= bound < 0.1 / depth
    config = double(sink_config(16, 2))
    tensors, bound = built_sink_in(config)
    assert 0 < built_errors(SINES, config, tensors, 64)["test_sup"] <= bound < 0.3


@pytest.mark.slow
def test_adam_continues_from_built_weights():
    member = {"group": "", "x": 8, "seed": 0, "units": 8, "heads": 1, "key": 2, "value": 1, "layout": "paper"}
    config = {"kind": "built", "target": "graph", "members": [member], "rank": 2, "steps": 200, "samples": 512}
    config |= {"batch": 32, "rate": 1e-3}
    (built,) = run_members(config)
    (further,) = run_members({**config, "kind": "continued"})
    (random,) = run_members({**config, "kind": "trained"})
    assert further["test_mse"] < built["test_mse"] < random["test_mse"]
