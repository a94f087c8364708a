"""Dropout: rows of `down` are left out, a set of them for each sequence, and the mean stays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.errors import BadInput
from certiformer.train import Dropout, Optimiser, Problem, train
from certiformer.train.dropout import with_dropout

UNITS = 6
PARAMS = {"up": jnp.ones((1, UNITS), jnp.float32), "a.ffn.down": 2.0 ** jnp.arange(UNITS, dtype=jnp.float32)[:, None]}


def apply(params, x):
    return x @ params["up"] @ params["a.ffn.down"]


def test_every_sequence_loses_whole_units():
    noisy = with_dropout(apply, Dropout(0.25))
    x = jnp.ones((4000, 1), jnp.float32)
    out = np.asarray(noisy(PARAMS, x, jax.random.key(0)))[:, 0]
    # The weight of unit u is 2^u, so 0.75 times the output is the set of the units kept, in binary.
    kept = np.rint(0.75 * out).astype(int)
    assert np.allclose(kept / 0.75, out, rtol=1e-6)
    shares = [np.mean(kept >> unit & 1) for unit in range(UNITS)]
    # A share of 4,000 draws has standard deviation 0.007; six of them within five.
    assert np.allclose(shares, 0.75, atol=0.035) and len(set(kept)) > 30
    pairs = np.mean((kept & 1) * (kept >> 1 & 1))
    assert abs(pairs - 0.75**2) < 0.04  # units are left out independently


def test_the_rate_zero_changes_no_bit_and_another_does():
    def draw(key, member, shared):
        x = jax.random.normal(key, (4, 1), jnp.float32)
        return x, x

    problem = Problem(apply, draw)
    start = {name: value[None] for name, value in PARAMS.items()}

    def run(dropout):
        settings = {"seeds": np.zeros(1, int), "optimiser": Optimiser(rate=0.01), "steps": 20, "record": 20}
        return np.asarray(train(problem, start, dropout=dropout, **settings).params["up"])

    assert np.array_equal(run(Dropout(0.0)), run(None))
    assert not np.array_equal(run(Dropout(0.5)), run(None)) and np.array_equal(run(Dropout(0.5)), run(Dropout(0.5)))


def test_mistakes_get_one_sentence():
    with pytest.raises(BadInput, match="at least 0 and below 1, not 1.0"):
        Dropout(1.0)
    with pytest.raises(BadInput, match="the matrix 'downs', which these weights do not have"):
        Dropout(0.5, ("downs",)).names(PARAMS)
    with pytest.raises(BadInput, match="not a dictionary"):
        Dropout(0.5).names([1.0])
