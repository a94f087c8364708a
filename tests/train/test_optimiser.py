"""The three rules against updates written by hand and against optax; schedules against their formulas."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from certiformer.errors import BadInput
from certiformer.train import LOSSES, Optimiser, Problem, train
from certiformer.train.optimiser import schedule

STEPS = 12
MATRIX = np.diag([1.0, 3.0, 0.2])
WANTED = np.array([1.0, -2.0, 0.5])
START = np.array([0.3, 0.7, -1.1])


def slope(p):
    """The gradient of the mean square of MATRIX p - WANTED."""
    return 2 / 3 * MATRIX.T @ (MATRIX @ p - WANTED)


def by_hand(optimiser: Optimiser) -> np.ndarray:
    p, m, s = START.copy(), np.zeros(3), np.zeros(3)
    for t, rate in enumerate(optimiser.rates(STEPS), start=1):
        g = slope(p)
        if optimiser.kind == "sgd":
            direction = g
        elif optimiser.kind == "momentum":
            m = optimiser.momentum * m + g
            direction = m
        else:
            m = optimiser.b1 * m + (1 - optimiser.b1) * g
            s = optimiser.b2 * s + (1 - optimiser.b2) * g**2
            direction = (m / (1 - optimiser.b1**t)) / (np.sqrt(s / (1 - optimiser.b2**t)) + optimiser.epsilon)
        p = p - rate * (direction + optimiser.weight_decay * p)
    return p


def by_loop(optimiser: Optimiser) -> np.ndarray:
    problem = Problem(lambda p, x: x @ p, lambda key, member, shared: (jnp.asarray(MATRIX), jnp.asarray(WANTED)))
    trained = train(problem, START[None], seeds=np.zeros(1, int), optimiser=optimiser, steps=STEPS, record=STEPS)
    return np.asarray(trained.params[0])


def by_optax(optimiser: Optimiser) -> np.ndarray:
    kinds = {
        "sgd": optax.identity(),
        "momentum": optax.trace(optimiser.momentum),
        "adam": optax.scale_by_adam(optimiser.b1, optimiser.b2, optimiser.epsilon),
    }
    decay = optax.add_decayed_weights(optimiser.weight_decay)
    rule = optax.chain(kinds[optimiser.kind], decay, optax.scale_by_learning_rate(schedule(optimiser, STEPS)))
    p = jnp.asarray(START)
    memory = rule.init(p)
    for _ in range(STEPS):
        change, memory = rule.update(jnp.asarray(slope(np.asarray(p))), memory, p)
        p = optax.apply_updates(p, change)
    return np.asarray(p)


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["sgd", "momentum", "adam"])
def test_the_rule_is_the_one_written_by_hand(kind, decay):
    optimiser = Optimiser(kind, rate=0.1, schedule="cosine", weight_decay=decay)
    expected = by_hand(optimiser)
    # Float64 throughout: 12 steps of a few roundings of 1e-16 each.
    assert np.allclose(by_loop(optimiser), expected, rtol=1e-13, atol=1e-13)
    # optax rounds the rate of a schedule and powers of b1 in its own way.
    assert np.allclose(by_optax(optimiser), expected, rtol=1e-6)
    assert not np.allclose(by_hand(Optimiser(kind, rate=0.1, weight_decay=decay)), expected, rtol=1e-3)


def test_schedules_are_what_they_say():
    t = np.arange(STEPS)
    expected = {
        "constant": np.ones(STEPS),
        "linear": 1 - t / STEPS,
        "cosine": (1 + np.cos(math.pi * t / STEPS)) / 2,
        "warmup-cosine": np.where(t < 1, t, (1 + np.cos(math.pi * (t - 1) / (STEPS - 1))) / 2),
        "exponential": 0.01 ** (t / STEPS),
    }
    for name, rates in expected.items():
        assert np.allclose(Optimiser(rate=0.3, schedule=name).rates(STEPS), 0.3 * rates, rtol=1e-12, atol=1e-17), name


def test_mistakes_get_one_sentence():
    for wrong, sentence in [
        ({"kind": "lion"}, "no optimiser 'lion'"),
        ({"schedule": "step"}, "no schedule 'step'; there are constant, linear"),
        ({"rate": float("nan")}, "rate is a finite number of at least 0"),
        ({"rate": -1.0}, "rate is a finite number of at least 0"),
        ({"b2": 1.0}, "b2 is at least 0 and below 1"),
    ]:
        with pytest.raises(BadInput, match=sentence):
            Optimiser(**wrong)


def test_losses_are_what_they_say():
    outputs, wanted = np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([[0.0, -1.0], [0.5, 1.0]])
    assert LOSSES["squared"](outputs, wanted) == np.mean((outputs - wanted) ** 2) == 1.5
    assert LOSSES["sup"](outputs, wanted) == 2.0
    shares = np.exp(outputs) / np.exp(outputs).sum(axis=1, keepdims=True)
    expected = -np.mean(np.log(shares[[0, 1], [1, 0]]))
    assert np.isclose(LOSSES["cross-entropy"](jnp.asarray(outputs), jnp.array([1, 0])), expected, rtol=1e-14)
    assert LOSSES["value"](jnp.array([1.0, 4.0]), jnp.array(7.0)) == 2.5
