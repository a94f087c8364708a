"""The class around the forward pass: evaluation in chunks, counts, precision, refusals."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer, tensor_specs, transformer
from model import oracle
from model.cases import AGREEMENT, OPTIONS, inputs_of, model_of


def test_chunks_do_not_change_the_result(monkeypatch):
    model = model_of(**OPTIONS["registers"])
    points = np.random.default_rng(0).standard_normal((11, 6))
    whole = model.evaluate(points)
    monkeypatch.setattr(transformer, "CHUNK_POINTS", 4)
    # Another batch size may sum in another order.
    np.testing.assert_allclose(model.evaluate(points), whole, rtol=AGREEMENT, atol=AGREEMENT)
    assert model.evaluate(points[:0]).shape == (0, 6)


def test_no_chunk_is_larger_than_the_memory_allows():
    """One score row of 10,000 registers is 80 kB; a hundred thousand of them at once would be 8 GB."""
    readout, blocks = Readout("token", 0), (Block(Attention((Heads(1, 3, 1),))),)
    config = Config(Input("continuous", 1, width=2), 4, 1, readout, blocks, registers=10_000)
    model = Transformer.random(config, 0)
    points = np.random.default_rng(0).random((1000, 2))
    floats = transformer._floats_per_point(config)
    assert 10_000 < floats < 100_000
    w = {name.removeprefix("blocks.0.attention.groups.0."): tensor for name, tensor in model.tensors.items()}
    data = points @ w["embed.weight"] + w["embed.bias"]
    for row in (0, 517, 999):
        tokens = np.concatenate([w["registers"], data[row : row + 1]])
        scores = tokens @ w["key"][0] @ (data[row] @ w["query"][0]) / np.sqrt(3)
        mixed = np.exp(scores) @ tokens @ w["value"][0] / np.exp(scores).sum()
        expected = (data[row] + mixed @ w["output"][0]) @ w["readout.weight"] + w["readout.bias"]
        # Sums of 10,000 terms: at most 10,000 roundings of 1.1e-16 of numbers of size one.
        np.testing.assert_allclose(model.evaluate(points)[row], expected, atol=1e-11, rtol=1e-11)


def test_only_what_is_read_is_computed_in_the_last_block():
    """The scores of a single read token are one row, not a square."""
    readout, blocks = Readout("token", 1), (Block(Attention((Heads(1, 3, 1),))),)
    config = Config(Input("continuous", 2, width=2), 4, 1, readout, blocks, registers=50)
    jaxpr = jax.make_jaxpr(Transformer.random(config, 0).__call__)(np.zeros((2, 2)))
    sizes = [v.aval.size for equation in jaxpr.eqns for v in equation.outvars]
    assert max(sizes) < 52 * 52


def test_counts():
    model = model_of(**OPTIONS["mask table"])
    sizes = [np.prod(spec.shape) for name, spec in tensor_specs(model.config).items() if not name.endswith("mask")]
    assert model.parameter_count() == sum(sizes)
    registers = model.tensors["registers"].copy()
    registers[0, :2] = 0.0
    sparse = Transformer(model.config, {**model.tensors, "registers": registers})
    assert sparse.nonzero_count() == model.parameter_count() - 2


def test_precision_follows_the_request():
    model = model_of(dtype="bfloat16")
    points = np.random.default_rng(3).standard_normal((2, 6))
    assert model.evaluate(points, dtype="float32").dtype == np.float32
    exact = model.evaluate(points)
    np.testing.assert_allclose(exact[0], oracle.run(model, points[0].reshape(3, 2).tolist()), atol=AGREEMENT, rtol=0)
    rough = model.evaluate(points, dtype="float32")
    assert 0 < np.abs(rough - exact).max() < 1e-5  # float32 keeps seven digits of numbers of size ten


def test_points_of_the_wrong_shape_are_refused():
    model = model_of()
    for bad in (np.zeros(6), np.zeros((2, 5)), np.zeros((2, 3, 2))):
        with pytest.raises(BadInput, match="points are rows of 6 numbers"):
            model.evaluate(bad)
    with pytest.raises(BadInput, match="rows of 1 to 4 ids"):
        model_of(**OPTIONS["ids"]).evaluate(np.zeros((1, 5), int))


def test_random_models_depend_on_the_seed_only():
    config = model_of(**OPTIONS["pre-norm"]).config
    first, again, other = (Transformer.random(config, seed) for seed in (5, 5, 6))
    assert all(np.array_equal(first.tensors[n], again.tensors[n]) for n in first.tensors)
    assert all(not np.array_equal(first.tensors[n], other.tensors[n]) for n in first.tensors)
    assert np.isfinite(first.evaluate(inputs_of(config).reshape(1, -1))).all()


def test_repr_says_what_it_is():
    assert repr(model_of(**OPTIONS["loops"])) == (
        "Transformer(3 tokens of width 2 -> 2 outputs, width 5, 1 register, 1 block applied 3 times, 231 parameters)"
    )
    assert "4 tokens of 7 ids -> 8 outputs" in repr(model_of(**OPTIONS["ids"]))
