"""The forward pass against the naive oracle, for every option."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer
from model import oracle
from model.cases import AGREEMENT, OPTIONS, attention, configs, inputs_of, model_of


def assert_agrees(model, x):
    expected = np.array(oracle.run(model, np.asarray(x).tolist()))
    np.testing.assert_allclose(model.evaluate(np.reshape(x, (1, -1)))[0], expected, rtol=AGREEMENT, atol=AGREEMENT)


@pytest.mark.parametrize("name", OPTIONS)
def test_agrees_with_the_naive_loops(name):
    model = model_of(**OPTIONS[name])
    assert_agrees(model, inputs_of(model.config))


@settings(max_examples=8, deadline=None, derandomize=True)
@given(configs, st.integers(0, 99))
def test_agrees_with_the_naive_loops_whatever_is_combined(config, seed):
    model = model_of(seed, **{name: getattr(config, name) for name in config.__dataclass_fields__})
    assert_agrees(model, inputs_of(config, seed))


def test_the_oracle_notices_a_changed_weight():
    model = model_of(registers=1)
    x = inputs_of(model.config)
    expected = oracle.run(model, x.tolist())
    for name in model.tensors:
        changed = Transformer(model.config, {**model.tensors, name: model.tensors[name] * 1.5 + 0.1})
        assert np.abs(changed.evaluate(x.reshape(1, -1))[0] - expected).max() > 1e-6, name


def test_one_input_at_a_time_gives_the_same():
    model = model_of(registers=1)
    x = inputs_of(model.config)
    expected = model.evaluate(x.reshape(1, -1))[0]
    np.testing.assert_allclose(model(x), expected, rtol=AGREEMENT, atol=AGREEMENT)
    with pytest.raises(BadInput, match=r"shape \(3, 2\), not \(2, 3\)"):
        model(x.T)


def test_ties_of_hard_attention_are_averaged():
    config = Config(
        Input("continuous", 4, width=1),
        1,
        1,
        Readout("token", 0),
        blocks=(Block(Attention((Heads(1, 1, 1),), "hard", scale="unit", score_bias="table", residual=False)),),
    )
    tensors = {n: np.zeros_like(t) for n, t in Transformer.random(config, 0).tensors.items()}
    for name in ("embed.weight", "blocks.0.attention.groups.0.value", "blocks.0.attention.groups.0.output"):
        tensors[name] = np.ones_like(tensors[name])
    tensors["readout.weight"] = np.ones((1, 1))
    table = np.zeros((1, 4, 4))
    table[0, 0] = [2.0, 1.0, 2.0, 0.0]
    model = Transformer(config, {**tensors, "blocks.0.attention.groups.0.score_bias": table})
    assert model.evaluate([[1.0, 100.0, 4.0, 1000.0]]).item() == 2.5


def test_scores_of_700_do_not_overflow():
    model = model_of(blocks=attention(score_bias="table"))
    name = "blocks.0.attention.groups.0.score_bias"
    table = np.where(np.eye(3) > 0, 700.0, -700.0) * np.ones((2, 1, 1))
    assert_agrees(Transformer(model.config, {**model.tensors, name: table}), inputs_of(model.config))


def test_shorter_sequences_of_ids():
    model = model_of(
        input=Input("ids", 5, vocabulary=6), registers=1, blocks=attention(score_bias="toeplitz", mask="table")
    )
    assert_agrees(model, np.array([5, 0, 3]))
    with pytest.raises(BadInput, match="1 to 5 ids"):
        model(np.zeros(6, int))


def test_attention_weights_are_rows_that_sum_to_one():
    model = model_of(registers=2, loops=2, blocks=attention(mask="causal"))
    weights = model.attention_weights(inputs_of(model.config))
    assert [[g.shape for g in groups] for groups in weights] == 2 * [[(2, 5, 5), (1, 5, 5)]]
    np.testing.assert_allclose(weights[1][0].sum(-1), 1.0, rtol=1e-14)  # five weights, each rounded once
    assert np.all(np.triu(weights[0][0], 1) == 0)


def test_gradients_are_finite_behind_masked_rows():
    model = model_of(blocks=attention(mask="table"), registers=1)
    x = inputs_of(model.config)
    trainable, fixed = eqx.partition(model, eqx.is_inexact_array)
    gradients = jax.jit(jax.grad(lambda part: jnp.sum(eqx.combine(part, fixed)(x) ** 2)))(trainable)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradients))
    assert np.abs(gradients.tensors["blocks.0.attention.groups.0.query"]).max() > 0


@pytest.mark.parametrize("kind", ["softmax", "hard", "nearest", "linear", "relu"])
@pytest.mark.parametrize("mask", ["none", "causal"])
def test_nan_is_never_swallowed(kind, mask):
    model = model_of(blocks=attention(kind=kind, mask=mask), readout=Readout("token", 2))
    x = inputs_of(model.config)
    x[1, 0] = np.nan
    assert np.isnan(model.evaluate(x.reshape(1, -1))).all()


def test_ids_outside_the_vocabulary():
    model = model_of(input=Input("ids", 2, vocabulary=3))
    for bad in ([0, 3], [-1, 0], [0.5, 1.0]):
        with pytest.raises(BadInput, match="integers from 0 to 2"):
            model(np.array(bad))
        with pytest.raises(BadInput, match="integers from 0 to 2"):
            model.evaluate([bad])
    # Inside jit nothing can be raised: NaN, and no row of another token.
    assert np.isnan(jax.jit(lambda ids: model(ids))(jnp.array([-1, 0]))).any()


@pytest.mark.parametrize("name", list(OPTIONS)[::7])
def test_the_last_state_is_what_the_read_out_sees(name):
    model = model_of(**OPTIONS[name])
    config, x = model.config, inputs_of(model.config)
    states = model.states(x)
    sublayers = sum((block.attention is not None) + (block.ffn is not None) for block in config.blocks)
    assert len(states) == 1 + config.loops * sublayers and {s.shape for s in states} == {(config.length, config.width)}
    everything = states[-1] @ model.tensors["readout.weight"] + model.tensors["readout.bias"]
    data = everything[config.registers :]
    read = {
        "mean": data.mean(axis=0),
        "sum": states[-1][config.registers :].sum(axis=0) @ model.tensors["readout.weight"],
    }
    read["sum"] = read["sum"] + model.tensors["readout.bias"]
    place = config.readout.token or 0
    read |= {"token": data[min(place, len(data) - 1)], "register": everything[place], "all": data.reshape(-1)}
    expected = model.evaluate(np.reshape(x, (1, -1)))[0]
    np.testing.assert_allclose(read[config.readout.kind], expected, rtol=AGREEMENT, atol=AGREEMENT)
