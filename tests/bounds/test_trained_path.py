"""A model trained on one Markov path: its measured gap stays below the mixing bound, with the complexity of its class.

The class was fixed before the path: a transformer that reads one state of two and gives the logits of the next, logits = E_x
W + b, all ten weights in [-1, 1]. Cross entropy is 2-Lipschitz in the largest change of a logit, which is at most
|dE| |W| + |E| |dW| + |db| <= sqrt(2 + 2 + 1) |dt|_2, columns and rows having norm at most sqrt 2. Logits are at most 3, so
losses lie in [0, log(1 + e^6)].
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax

from certiformer.bounds.mixing_path import best_blocks
from certiformer.bounds.numbers import above
from certiformer.bounds.parameter_count import complexity
from certiformer.model import Config, Input, Readout, Transformer

CONFIG = Config(Input("ids", tokens=1, vocabulary=2), width=2, outputs=2, readout=Readout("token", 0))
LARGEST = math.log1p(math.exp(6))
WEIGHTS, RADIUS, LIPSCHITZ = 10, math.sqrt(10), 2 * math.sqrt(5)


def path(rng: np.random.Generator, steps: int, stay: float) -> np.ndarray:
    """One more state than steps, from the stationary law: both states equally likely."""
    return np.concatenate(([int(rng.integers(2))], rng.uniform(size=steps) > stay)).cumsum() % 2


def pair_losses(model: Transformer) -> jax.Array:
    """[x, y]: the loss when state y follows state x."""
    return -jax.nn.log_softmax(jnp.stack([model(jnp.array([x])) for x in (0, 1)]))


def trained(shares: np.ndarray) -> Transformer:
    """The minimum of the mean loss on the path, by projected gradients; the path enters through its shares of pairs."""
    optimiser = optax.adam(0.05)
    start = jax.tree.map(jnp.asarray, Transformer.random(CONFIG, 0))

    def step(state, _):
        model, memory = state
        gradient = jax.grad(lambda m: (pair_losses(m) * shares).sum())(model)
        updates, memory = optimiser.update(gradient, memory)
        return (jax.tree.map(lambda w: jnp.clip(w, -1, 1), optax.apply_updates(model, updates)), memory), None

    return jax.lax.scan(step, (start, optimiser.init(start)), length=300)[0][0]


def test_the_measured_gap_of_a_trained_model_stays_below_the_bound():
    rng, stay, steps = np.random.default_rng(0), 0.8, 4_000_000
    found = best_blocks(steps, 2 * stay - 1, scale=0.5)  # the gap may be chosen by the last term alone
    margin = 2 * above(complexity(WEIGHTS, RADIUS, LIPSCHITZ, LARGEST, found.blocks)) + LARGEST * above(found.term)
    assert margin < LARGEST  # not vacuous
    train = jax.jit(trained)
    chances = np.array([[stay, 1 - stay], [1 - stay, stay]]) / 2
    for _ in range(3):
        states = path(rng, steps, stay)
        shares = np.bincount(2 * states[:-1] + states[1:], minlength=4).reshape(2, 2) / steps
        losses = np.asarray(pair_losses(train(shares)))
        assert losses.max() <= LARGEST
        mean, risk = (losses * shares).sum(), (losses * chances).sum()
        assert risk - mean <= margin
        assert mean < 0.55 < math.log(2)  # it learned: the entropy is 0.5004, the best in the class a little above


def test_independent_examples_would_promise_too_much():
    """The control: on a path that rarely moves, what holds for independent examples fails far more often than 5 %."""
    rng, stay, steps = np.random.default_rng(1), 0.999, 4000
    as_if = 2 * math.sqrt(2 * math.log(4) / steps) + 3 * math.sqrt(math.log(2 / 0.05) / (2 * steps))
    found = best_blocks(steps, 2 * stay - 1, scale=0.5)
    assert above(found.term) > 1  # the mixing bound says honestly that this path is too short
    wrong = 0
    for _ in range(200):
        states = path(rng, steps, stay)
        worst = max(0.5 - (states[1:] != guess).mean() for guess in (0, 1))  # always the same guess: the risk is 1/2
        wrong += worst > as_if
    assert wrong > 60
