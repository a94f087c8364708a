"""Constants for scores that depend on positions: against exact Jacobians of rotary, biased, capped and normed heads.

What is compared is never above the true constant: the spectral norm of the Jacobian at one point, and what one movement of
the tokens does to one of them. So a single excess refutes the bound, and the planted wrong bounds must show one."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.bounds import attention_lipschitz as one_matrix
from certiformer.bounds.numbers import above
from certiformer.bounds.pairwise_attention_lipschitz import Side, Slopes, sequence_lipschitz, token_lipschitz
from certiformer.errors import BadInput

Weights = dict[str, Any]
EPSILON = 0.05  # of the norms of queries and keys; small ones make the bound useless, not wrong
CAP = 0.7


def turned(z, angles):
    """Rotary positions on the first 2 m of the coordinates, m the number of angles; the others stay."""
    turns, m = jnp.arange(len(z))[:, None] * angles, len(angles)
    first, second, rest = z[:, :m], z[:, m : 2 * m], z[:, 2 * m :]
    cosine, sine = jnp.cos(turns), jnp.sin(turns)
    return jnp.concatenate([first * cosine - second * sine, first * sine + second * cosine, rest], 1)


def normed(z):
    return z / jnp.sqrt((z**2).mean(1, keepdims=True) + EPSILON)


def head(p: Weights, kind: str, causal: bool, x):
    """Tokens are rows; written from the docstring of the theorem."""
    q, k = x @ p["query"].T + p["query_bias"], x @ p["key"].T + p["key_bias"]
    if kind == "normed":
        q, k = normed(q), normed(k)
    scores = q @ k.T if kind == "biased" else turned(q, p["angles"]) @ turned(k, p["angles"]).T
    if kind == "capped":
        scores = CAP * jnp.tanh(scores / CAP)
    scores = scores + p["score_bias"]
    if causal:
        scores = jnp.where(jnp.tri(len(x), dtype=bool), scores, -jnp.inf)
    return jax.nn.softmax(scores, axis=1) @ x @ p["value"].T


def found(p: Weights, kind: str, causal: bool, x, rounds: int = 12):
    """Lower bounds of both constants: |J|, and the best movement of all tokens by at most one, found by turns."""
    n, d = x.shape
    jacobian = jax.jacfwd(lambda tokens: head(p, kind, causal, tokens))(x)
    blocks = jacobian.transpose(0, 2, 1, 3)  # (to token, from token, out, in)
    y = jnp.ones((n, d)) / math.sqrt(d)
    far = jnp.zeros(n)
    for _ in range(rounds):
        move = jnp.einsum("ijab,ia->ijb", blocks, y)
        move = move / jnp.maximum(jnp.linalg.norm(move, axis=2, keepdims=True), 1e-30)
        y = jnp.einsum("ijab,ijb->ia", blocks, move)
        far = jnp.linalg.norm(y, axis=1)
        y = y / jnp.maximum(far[:, None], 1e-30)
    return jnp.linalg.norm(jacobian.reshape(n * d, n * d), 2), far.max()


def norm(a) -> float:
    return float(np.linalg.norm(a, 2))


def slopes(p: Weights, kind: str, radius: float) -> Slopes:
    """The numbers of the theorem, from NumPy's norms."""
    query, key, value = p["query"], p["key"], norm(p["value"])
    if kind == "biased":
        shift = norm(key.T @ p["query_bias"])
        return Slopes.of_matrices(value, value * radius, norm(query.T @ key), radius, radius, shift)
    steep, long = 1.0, [norm(p[f"{name}_bias"]) + norm(p[name]) * radius for name in ("query", "key")]
    if kind == "normed":
        steep, long = EPSILON**-0.5, [math.sqrt(len(query))] * 2
    sides = [Side(norm(p[name]) * steep, length) for name, length in zip(("query", "key"), long, strict=True)]
    return Slopes.of_rotary(value, value * radius, 1.0, *sides)


def drawn(rng: np.random.Generator, count: int, d: int, n: int, angles: int) -> Weights:
    sizes = 2.0 ** rng.uniform(-3, 3, size=(count, 1, 1))
    return {
        "query": rng.normal(size=(count, d, d)) * sizes,
        "key": rng.normal(size=(count, d, d)),
        "value": rng.normal(size=(count, d, d)),
        "query_bias": rng.normal(size=(count, d)) * rng.integers(0, 2, size=(count, 1)),
        "key_bias": rng.normal(size=(count, d)) * rng.integers(0, 2, size=(count, 1)),
        "angles": rng.uniform(0, math.pi, size=(count, angles)),
        "score_bias": rng.normal(size=(count, n, n)) * rng.integers(0, 3, size=(count, 1, 1)),
    }


def chosen(p: Weights, place: int) -> Weights:
    return {name: np.asarray(array[place]) for name, array in p.items()}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("kind", "angles"), [("rotary", 2), ("rotary", 1), ("biased", 0), ("capped", 2), ("normed", 2)]
)
def test_no_jacobian_exceeds_them(kind, angles, causal):
    """400 heads of each kind, with and without biases, on tokens inside the ball and on its surface."""
    count, d, n, radius = 400, 4, 5, 1.5
    rng = np.random.default_rng([angles, int(causal), len(kind)])
    p, x = drawn(rng, count, d, n, angles), rng.normal(size=(count, n, d))
    lengths = np.linalg.norm(x, axis=2, keepdims=True)
    x = x / lengths * np.where(rng.uniform(size=(count, 1, 1)) < 0.5, radius, radius * rng.uniform(size=(count, n, 1)))
    measured = jax.jit(jax.vmap(lambda p, x: jnp.array(found(p, kind, causal, x))))(p, x)
    constants = np.empty((count, 2))
    for place in range(count):
        numbers = slopes(chosen(p, place), kind, radius)
        constants[place] = above(sequence_lipschitz(numbers, n)), above(token_lipschitz(numbers))
    ratios = np.asarray(measured) / constants
    assert np.isfinite(ratios).all() and (ratios <= 1).all()
    assert ratios.max() > (0.02 if kind == "normed" else 0.2)  # the comparison is not one of zeros


def uphill(kind: str, steps: int = 80, count: int = 32) -> tuple[np.ndarray, np.ndarray, list[Slopes], int]:
    """Weights and tokens moved by gradients until both constants are nearly met; the product of spread and slopes stays
    ten times the value, where all terms matter. Returns lower bounds (sequence, token) and the numbers of the heads."""
    d, n, radius, share = 2, 4, 1.0, 10.0
    rng = np.random.default_rng(len(kind))
    start = {**drawn(rng, count, d, n, 1), "tokens": rng.normal(size=(count, n, d))}
    start["query"] /= np.linalg.norm(start["query"], axis=(1, 2), keepdims=True)

    def numbers(p):
        """(a, b) in units where the radius is 1, by differentiable norms."""

        def spectral(w):
            return jnp.linalg.norm(w, 2)

        if kind == "biased":
            scores = spectral(p["query"].T @ p["key"])
            return scores, scores + jnp.linalg.norm(p["key"].T @ p["query_bias"])
        q, k = spectral(p["query"]), spectral(p["key"])
        return q * (k + jnp.linalg.norm(p["key_bias"])), k * (q + jnp.linalg.norm(p["query_bias"]))

    def legal(p):
        """The same head with its slopes scaled to `share`, and its tokens moved into the ball."""
        factor = share / sum(numbers(p))
        x = p["tokens"] / jnp.maximum(jnp.linalg.norm(p["tokens"], axis=1, keepdims=True), 1.0)
        return {**p, "query": p["query"] * factor, "query_bias": p["query_bias"] * factor, "tokens": x}

    def height(p, wanted):
        p = legal(p)
        both = jnp.stack(found(p, kind, False, p["tokens"], 3)) / jnp.linalg.norm(p["value"], 2)
        # Among heads with one `share` the constant of sequences falls as the slope of the keys does.
        moved = numbers(p)[1]
        bound = share - moved + jnp.sqrt(n * (1 + moved) * (1 + 2 * moved) ** 2 / (8 * moved))
        return jnp.where(wanted, jnp.log(both[1] / (1 + share)), jnp.log(both[0] / bound))

    climb = jax.jit(jax.vmap(jax.grad(height)))
    wanted = jnp.arange(count) % 2 == 0
    p = jax.tree.map(jnp.asarray, start)
    mean = square = jax.tree.map(jnp.zeros_like, p)
    for step in range(1, steps + 1):
        slope = jax.tree.map(jnp.nan_to_num, climb(p, wanted))
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slope)
        square = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, square, slope)
        rates = 1 - 0.9**step, 1 - 0.99**step
        p = jax.tree.map(lambda a, m, v, r=rates: a + 0.1 * (m / r[0]) / (jnp.sqrt(v / r[1]) + 1e-9), p, mean, square)
    p = jax.vmap(legal)(p)
    measured = jax.jit(jax.vmap(lambda p: jnp.array(found(p, kind, False, p["tokens"]))))(p)
    # Tokens that rounding left a hair outside of the ball lie in the ball of this radius.
    radius = float(np.linalg.norm(np.asarray(p["tokens"]), axis=2).max())
    return np.asarray(measured), np.asarray(wanted), [slopes(chosen(p, i), kind, radius) for i in range(count)], n


@pytest.fixture(scope="module", params=["rotary", "biased"])
def climbed(request):
    return request.param, *uphill(request.param)


def test_no_head_found_by_gradients_exceeds_them_though_they_are_nearly_met(climbed):
    _, measured, wanted, heads, n = climbed
    ratios = measured / [[above(sequence_lipschitz(each, n)), above(token_lipschitz(each))] for each in heads]
    assert np.isfinite(ratios).all() and (ratios <= 1).all()
    assert ratios[wanted, 1].max() > 0.85 and ratios[~wanted, 0].max() > 0.8


@pytest.mark.parametrize(
    "planted", ["no key slope", "no query slope", "half the spread", "no sequence", "smaller column"]
)
def test_a_missing_factor_is_seen(climbed, planted):
    """Negative control: the same heads refute each wrong constant."""
    _, measured, _, heads, n = climbed

    def wrong(each: Slopes) -> tuple[float, float]:
        s, r, a, b = (float(each.value), float(each.spread), *map(above, (each.query_slope, each.key_slope)))
        token, root = s + r * (a + b), math.sqrt(n)
        column = (s + 2 * r * b) ** 2 / (8 * r * b)
        sequence = r * a + math.sqrt(n * (s + r * b) * column)
        return {
            "no key slope": (r * a + root * s, s + r * a),
            "no query slope": (math.sqrt(n * (s + r * b) * column), s + r * b),
            "half the spread": (math.inf, s + r * (a + b) / 2),
            "no sequence": (sequence - (root - 1) * math.sqrt((s + r * b) * column), token),
            "smaller column": (r * a + math.sqrt(n * (s + r * b) * column / 2), token),
        }[planted]

    assert (measured > [wrong(each) for each in heads]).any()


def test_one_matrix_for_all_pairs_is_never_worse_than_before():
    rng = np.random.default_rng(0)
    for _ in range(500):
        value, scores, radius = 2.0 ** rng.uniform(-4, 4, size=3)
        n = int(rng.integers(1, 3000))
        pairs = Slopes.of_matrices(value, value * radius, scores, radius, radius)
        before = one_matrix.sequence_lipschitz(value, scores, radius, n)
        assert all(sequence_lipschitz(pairs, n) < each * (1 + 1e-12) for each in before)  # balls of 53 bits
        assert above(token_lipschitz(pairs)) == pytest.approx(above(one_matrix.token_lipschitz(value, scores, radius)))


def test_a_window_counts_and_the_length_does_not():
    pairs = Slopes.of_matrices(1.0, 2.0, 0.5, 2.0, 2.0)
    short, long = (above(sequence_lipschitz(pairs, n)) for n in (16, 1600))
    rest = above(pairs.spread * pairs.query_slope)
    assert (long - rest) / (short - rest) == pytest.approx(10)


def test_it_is_rounded_up_and_exact_where_nothing_rounds():
    exact = Slopes(1.0, 1.0, 1.0, 0.5)
    assert above(token_lipschitz(exact)) == 2.5 and above(sequence_lipschitz(exact, 6)) == 4.0
    third = Slopes(0.1, 0.1, 0.1, 0.1)
    assert 0.1 + 0.1 * (0.1 + 0.1) <= above(token_lipschitz(third)) < 0.12 + 1e-15


@pytest.mark.parametrize("odd", [math.nan, math.inf, -1.0])
@pytest.mark.parametrize("place", range(4))
def test_nothing_that_is_not_finite_is_a_proof(odd, place):
    numbers = [1.0] * 4
    numbers[place] = odd
    with pytest.raises(BadInput, match="of a head is a finite number that is not negative"):
        Slopes(*numbers)


def test_nonsense_is_refused():
    with pytest.raises(BadInput, match="number of tokens that see one is a positive number, not 0"):
        sequence_lipschitz(Slopes(1, 1, 1, 1), 0)
    with pytest.raises(BadInput, match="radius of the keys is a positive number, not 0"):
        Slopes.of_matrices(1, 1, 1, 1.0, 0.0)
    with pytest.raises(BadInput, match="key slope"):
        Slopes.of_rotary(1, 1, 1, Side(1.0, math.inf), Side(1.0, 1.0))
