"""Rewritten products compute what they replace, and are rewritten."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout, Transformer
from certiformer.train import products
from certiformer.train.problem import transformer_outputs
from certiformer.train.products import with_fast_products

PATTERNS = [
    "bnd,df->bnf",
    "bnd,hdk->bhnk",
    "hdk,bnd->hkbn",
    "bhik,bhjk->bhij",
    "bhij,bhjv->bhiv",
    "bhiv,hvd->bid",
    "i,j->ij",
]
SIZES = {"b": 3, "n": 4, "d": 5, "f": 6, "h": 2, "k": 4, "i": 4, "j": 4, "v": 3}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_products_are_the_same(pattern):
    generator = np.random.default_rng(1)
    factors = [
        jnp.asarray(generator.normal(size=[SIZES[axis] for axis in side]))
        for side in pattern.partition("->")[0].split(",")
    ]

    def plain(*factors):
        return jnp.einsum(pattern, *factors, precision="highest")

    def weighed(function):
        return lambda *factors: jnp.sum(jnp.sin(function(*factors)))

    # Float64 sums of at most 30 terms.
    fast = jax.jit(with_fast_products(plain))
    assert np.allclose(fast(*factors), plain(*factors), rtol=1e-13, atol=1e-14)
    ours, theirs = (jax.jit(jax.grad(weighed(f), argnums=(0, 1)))(*factors) for f in (with_fast_products(plain), plain))
    assert all(np.allclose(a, b, rtol=1e-12, atol=1e-13) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.slow
def test_a_whole_transformer_is_the_same_function():
    groups = (Heads(2, 3, 2), Heads(1, 2, 4))
    attention = Attention(groups, bias=True, mask="causal", score_bias="toeplitz")
    blocks = (Block(attention, FeedForward(7, "gelu"), Norm("pre")),)
    config = Config(Input("continuous", 4, 2), 6, 2, Readout("all"), blocks, registers=2, code=Code("table"), loops=2)
    model = Transformer.random(config, 0)
    points = np.random.default_rng(2).normal(size=(5, 8))
    found = jax.jit(transformer_outputs(config))(model.tensors, jnp.asarray(points.reshape(5, 4, 2)))
    assert np.allclose(found, model.evaluate(points), rtol=1e-11, atol=1e-12)
    assert transformer_outputs(config) is transformer_outputs(config)


def test_products_are_really_rewritten(monkeypatch):
    def attention(q, k, w):
        return jax.nn.relu(jnp.einsum("bik,bjk->bij", q, k)) @ w

    shapes = jnp.ones((3, 4, 5)), jnp.ones((3, 4, 5)), jnp.ones((4, 2))

    def found():
        """The dimension numbers of all products that are left."""
        text = str(jax.make_jaxpr(with_fast_products(attention))(*shapes))
        return text.count("dot_general["), text.count("([0], [0]))")

    assert found() == (1, 0)
    monkeypatch.setattr(products, "SMALL", 0)
    assert found() == (2, 1)
