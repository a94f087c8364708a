"""Constraints in training: projections against NumPy, proofs against exact norms, and runs that keep what was asked."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Norm, Readout, Transformer
from certiformer.train import Optimiser, Problem, stack, train, transformer_outputs
from certiformer.train.constraints import (
    Constraint,
    parse_constraint,
    parts_of,
    product_bound,
    projected,
    spectral_bound,
)
from certiformer.train.settle import product_above, proved_bounds, settle, spectral_above

BLOCK = Block(Attention((Heads(2, 3, 3),)), FeedForward(6, "gelu"), Norm("pre"))
CONFIG = Config(Input("continuous", 4, width=2), 8, 1, Readout("mean"), (BLOCK,), dtype="float32")
ALL = tuple(parse_constraint(text) for text in ("qk<=0.5", "ov<=0.5", "ffn<=0.7", "gain<=0.9", "rows<=0.6"))


def norms(constraint: Constraint, weights) -> list[float]:
    """What is bounded, by NumPy."""
    found = []
    for part in parts_of(constraint, weights):
        tensors = [np.asarray(weights[name], np.float64) for name in part.names]
        if constraint.kind == "qk":
            found += [np.linalg.norm(q @ k.T, 2) / 3**0.5 for q, k in zip(*tensors, strict=True)]
        elif constraint.kind == "ov":
            found += [np.linalg.norm(v @ o, 2) for v, o in zip(*tensors, strict=True)]
        elif constraint.kind == "ffn":
            found.append(np.linalg.norm(tensors[0], 2) * np.linalg.norm(tensors[1], 2))
        elif constraint.kind == "gain":
            found.append(abs(tensors[0]).max())
        elif constraint.kind == "rows":
            found.append(np.linalg.norm(tensors[0], axis=-1).max())
        elif constraint.kind == "frobenius":
            found += np.sqrt((tensors[0] ** 2).sum((-1, -2))).reshape(-1).tolist()
        elif constraint.kind == "l21":
            found += np.sqrt((tensors[0] ** 2).sum(-1)).sum(-1).reshape(-1).tolist()
        else:
            second = tensors[1].swapaxes(1, 2) if part.names[1].endswith("key") else tensors[1]
            found += [np.linalg.matrix_rank(a @ b) for a, b in zip(tensors[0], second, strict=True)]
    return [float(each) for each in found]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(1, 4), st.integers(0, 99), st.floats(1e-3, 1e3))
@example(1, 1, 4, 11, 1.0)  # a product that nearly vanishes
def test_a_proved_bound_is_above_the_norm_and_near_it(n, m, e, seed, size):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(n, e)) * size, rng.normal(size=(e, m))
    true, proved = np.linalg.norm(a @ b, 2), product_above(a, b)
    assert true * (1 - 1e-14) <= proved <= true * 1.001  # the first factor is the rounding of NumPy
    assert np.linalg.norm(a, 2) * (1 - 1e-14) <= spectral_above(a) <= np.linalg.norm(a, 2) * 1.001
    fast = float(product_bound(jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)))
    rounding = 1e-6 * np.linalg.norm(a, 2) * np.linalg.norm(b, 2)  # of float32, also where the product nearly vanishes
    assert true * (1 - 1e-3) - rounding <= fast <= true * 1.06 + rounding
    assert np.linalg.norm(a, 2) * (1 - 1e-3) <= float(spectral_bound(jnp.asarray(a, jnp.float32))) * (1 + 1e-3)


def test_the_proof_is_exact_where_the_norm_is_known():
    assert 5.0 <= spectral_above(np.array([[3.0, 0.0], [4.0, 0.0]])) <= 5.0 * (1 + 2**-14)
    assert product_above(np.zeros((3, 2)), np.ones((2, 3))) == 0.0
    # Orthogonal factors whose product vanishes, though neither does.
    assert product_above(np.array([[0.1, 0.3]]), np.array([[0.3], [-0.1]])) < 1e-16


@pytest.mark.parametrize(
    "text", ["qk<=0.5", "ov<=0.5", "ffn<=0.7", "frobenius<=1", "l21<=2", "rows<=0.6", "rank<=2", "gain<=0.9"]
)
def test_projections_keep_what_they_should(text):
    constraint = parse_constraint(text)
    weights = {name: jnp.asarray(w) for name, w in Transformer.random(CONFIG, 0).tensors.items()}
    assert max(norms(constraint, weights)) > constraint.largest
    inside = projected((constraint,), weights)
    assert max(norms(constraint, inside)) <= constraint.largest * (1 + 1e-5)
    again = projected((constraint,), inside)
    for name in weights:
        assert np.allclose(again[name], inside[name], rtol=0.05, atol=1e-6)
        assert again[name].dtype == weights[name].dtype
    small = {name: w * 1e-3 for name, w in weights.items()}
    if constraint.kind != "rank":
        assert all((projected((constraint,), small)[name] == small[name]).all() for name in small)
    settled, kept = settle((constraint,), inside)
    assert all(each.proved <= each.largest for each in kept)
    assert max(norms(constraint, settled)) <= constraint.largest * (1 + 1e-12)


def test_the_nearest_point_of_the_21_ball():
    """No matrix of the ball is nearer, among many."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(5, 3))
    constraint = Constraint("l21", 2.0, ("w",))
    found = np.asarray(projected((constraint,), {"w": jnp.asarray(w)})["w"], np.float64)
    assert abs(np.linalg.norm(found, axis=1).sum() - 2.0) < 1e-5
    for _ in range(500):
        other = found + 0.1 * rng.normal(size=w.shape)
        other *= min(1.0, 2.0 / np.linalg.norm(other, axis=1).sum())
        assert np.linalg.norm(other - w) >= np.linalg.norm(found - w) - 1e-5


def test_training_keeps_its_constraints_and_proves_them():
    def draw(key, member, shared):
        import jax

        x = jax.random.uniform(key, (8, 4, 2), jnp.float32)
        return x, 5 * jnp.max(x[:, :, 0], axis=1, keepdims=True)

    problem = Problem(transformer_outputs(CONFIG), draw)
    start = stack([Transformer.random(CONFIG, seed).tensors for seed in range(2)])
    run = {"seeds": np.arange(2), "optimiser": Optimiser(rate=0.05), "steps": 20, "record": 10}
    free = train(problem, start, **run)
    kept = train(problem, start, constraints=ALL, **run)
    assert free.kept == () and len(kept.kept) == 2
    for member, proofs in enumerate(kept.kept):
        weights = {name: w[member] for name, w in kept.params.items()}
        for constraint in ALL:
            assert max(norms(constraint, weights)) <= constraint.largest
            assert all(each.proved <= each.largest for each in proved_bounds(constraint, weights))
            # The negative control: without the constraint the same run leaves it.
            assert max(norms(constraint, {name: w[member] for name, w in free.params.items()})) > constraint.largest
        assert all(each.proved <= each.largest for each in proofs)


def test_what_is_refused():
    weights = dict(Transformer.random(CONFIG, 0).tensors)
    for text, match in (
        ("qk", "KIND<=NUMBER"),
        ("size<=1", "no constraint 'size'"),
        ("qk<=-1", "positive number"),
        ("qk:embed.weight<=1", "knows its tensors"),
        ("rank<=1.5", "whole number"),
    ):
        with pytest.raises(BadInput, match=match):
            parse_constraint(text)
    with pytest.raises(BadInput, match="do not have"):
        projected((parse_constraint("frobenius:nothing<=1"),), weights)
    with pytest.raises(BadInput, match="nothing that the constraint gain"):
        projected((parse_constraint("gain<=1"),), {"w": weights["embed.weight"]})
    with pytest.raises(BadInput, match="not a dictionary"):
        projected((parse_constraint("gain<=1"),), [1.0])
    with pytest.raises(BadInput, match="rank allows"):
        settle((parse_constraint("rank<=1"),), weights)


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "bfloat16"])
def test_gains_are_brought_below_a_bound_that_the_type_rounds_up(kind):
    gains = np.ones(3).astype(jnp.dtype(kind))
    settled, (kept,) = settle((parse_constraint("gain<=0.1"),), {"a.norm.ffn.scale": gains})
    assert 0.09 < kept.proved <= 0.1 and float(settled["a.norm.ffn.scale"].max()) == kept.proved
    assert settled["a.norm.ffn.scale"].dtype == gains.dtype


def test_gains_that_are_no_numbers_are_not_proved():
    with pytest.raises(BadInput, match="is inf and could not"):
        settle((parse_constraint("gain<=2"),), {"a.norm.ffn.scale": np.array([1.0, np.nan])})
