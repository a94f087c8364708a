"""The start-up checks pass here, and each one fails when its assumption is broken."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.interval import canaries, rigorous, rigorous_jit, run_canaries


@pytest.fixture(autouse=True)
def _fresh():
    run_canaries.cache_clear()
    yield
    run_canaries.cache_clear()


def test_all_pass_here():
    result = run_canaries(64)
    assert result.sound and result.failures == ()


def test_a_broken_version_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(jax, "__version__", "0.10.2")
    result = run_canaries(64)
    assert not result.sound and "0.10.2" in result.failures[0]


def test_the_simplifier_left_on_is_noticed(monkeypatch):
    monkeypatch.setattr(canaries, "rigorous_jit", lambda f, optimise=True: jax.jit(f))
    assert any("division" in f for f in run_canaries(64).failures)


@pytest.mark.parametrize("optimise", [True, False])
def test_the_simplifier_is_off_in_rigorous_jit(optimise):
    x = np.random.default_rng(0).normal(size=1000)
    assert (np.asarray(rigorous_jit(lambda v: v / 3, optimise)(x)) == x / 3).all()
    assert not (np.asarray(jax.jit(lambda v: v / 3)(x)) == x / 3).all(), "the control: by default x/3 is rewritten"


@pytest.mark.parametrize("name", list(canaries.FUNCTIONS))
def test_a_wrong_elementary_function_is_noticed(monkeypatch, name):
    right = canaries.FUNCTIONS[name]
    off = 1 + 40 * 2.0**-52 if name not in ("cos", "tanh") else 1 + 80 * 2.0**-52
    monkeypatch.setitem(canaries.FUNCTIONS, name, lambda x: right(x) * off)
    assert any(f.startswith(name) for f in canaries._arithmetic(optimise=False))


def test_a_wrong_row_is_noticed(monkeypatch):
    def wrong(function):
        fine = jax.jit(function)
        return lambda x: fine(x).at[-1].add(1.0)

    monkeypatch.setattr(canaries, "rigorous_jit", wrong)
    assert len(canaries._batches(64)) == 2


def test_narrow_floats_are_noticed():
    with jax.enable_x64(False):
        assert any("64-bit" in f for f in run_canaries(64).failures)


def test_an_unknown_preferred_option_is_left_out(monkeypatch):
    monkeypatch.setattr(rigorous, "PREFERRED_OPTIONS", {"xla_no_such_option": True})
    rigorous.compiler_options.cache_clear()
    assert rigorous.compiler_options() == rigorous.REQUIRED_OPTIONS
    rigorous.compiler_options.cache_clear()


def test_a_call_boundary_changes_nothing():
    def plain(x):
        return jnp.sin(x) * x

    x = np.linspace(0, 3, 17)
    boxed = rigorous_jit(jax.vmap(lambda v: rigorous.apart(plain, v)))(x)
    assert (np.asarray(boxed) == np.asarray(rigorous_jit(jax.vmap(plain))(x))).all()
