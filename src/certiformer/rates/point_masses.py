"""Point masses in the unit square: what is asked of them, and the weights that physics gives to every pair.

A token is (x, y, mark). The mark is ln m for masses, and 0 or 1 for the two sets of the nearest-point task. Every target
is a weighted mean of the points or follows from one:

* `centre`: sum_s w_s p_s with w_s = m_s / sum m, the same at every point;
* `nearest`: for the points of the first half, the nearest one of the second half (Jiang & Li 2024, App. B.1: two sets of
  6 points in the plane); the weights are 0 and 1;
* `pull`: sum_s w_ts p_s - p_t with w_ts = k_ts / Z_t, k_ts = m_s (|p_s - p_t|^2 + SOFTENING^2)^(-3/2), Z_t = sum_s k_ts:
  where gravity pulls;
* `acceleration`: sum_s m_s (p_s - p_t) / (|p_s - p_t|^2 + SOFTENING^2)^(3/2) = Z_t * pull: how strongly.

A point exerts no force on itself, so s = t may stay in the sums (its weight is finite, thanks to the softening) and no
mask is needed. Z_t is what a softmax divides out; `gravity_models` says what follows.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.errors import BadInput

SOFTENING = 0.2  # in units of the side of the square: close encounters stay below 0.385 / 0.2^2 = 9.6 per unit of mass
TASKS = ("centre", "nearest", "pull", "acceleration")
SCALE_SAMPLES = 2048  # draws behind the unit of a task's errors

Tokens = Float[Array, "points 3"]


def draw_tokens(task: str, points: int, key: Array, count: int) -> Float[Array, "count points 3"]:
    """Points uniform in the square; ln m uniform in [-1, 1], or the marks of the two sets."""
    places, masses = jax.random.split(key)
    at = jax.random.uniform(places, (count, points, 2), jnp.float32)
    if task == "nearest":
        marks = jnp.broadcast_to((jnp.arange(points) >= points // 2).astype(jnp.float32), (count, points))
    else:
        marks = jax.random.uniform(masses, (count, points), jnp.float32, -1.0, 1.0)
    return jnp.concatenate([at, marks[..., None]], axis=-1)


def queries(task: str, points: int) -> int:
    """How many of the points, from the first, are asked."""
    return points // 2 if task == "nearest" else points


def squared_distances(at: Float[Array, "points 2"]) -> Float[Array, "points points"]:
    """|p_t - p_s|^2, from differences, so that close points lose no digits."""
    return jnp.sum((at[:, None] - at[None]) ** 2, axis=-1)


def attraction(tokens: Tokens) -> Float[Array, "points points"]:
    """k_ts."""
    return jnp.exp(tokens[None, :, 2]) * (squared_distances(tokens[:, :2]) + SOFTENING**2) ** -1.5


def physical_weights(task: str, tokens: Tokens) -> Float[Array, "points points"]:
    """Row t: the weight of every point in what is asked at point t; rows sum to 1."""
    if task == "centre":
        return jnp.broadcast_to(jax.nn.softmax(tokens[:, 2]), (len(tokens), len(tokens)))
    if task == "nearest":
        far = squared_distances(tokens[:, :2]) + jnp.where(tokens[None, :, 2] > 0.5, 0.0, jnp.inf)
        return jax.nn.one_hot(jnp.argmin(far, axis=1), len(tokens), dtype=tokens.dtype)
    if task in ("pull", "acceleration"):
        strength = attraction(tokens)
        return strength / jnp.sum(strength, axis=1, keepdims=True)
    raise BadInput(f"there is no task {task!r}; the tasks are {', '.join(TASKS)}")


def wanted(task: str, tokens: Tokens) -> Float[Array, "points 2"]:
    """What is asked at every point, in the units of the square."""
    mean = jnp.matmul(physical_weights(task, tokens), tokens[:, :2], precision="highest")
    if task in ("centre", "nearest"):
        return mean
    pull = mean - tokens[:, :2]
    return pull if task == "pull" else pull * jnp.sum(attraction(tokens), axis=1, keepdims=True)


@partial(jax.jit, static_argnames=("task", "points", "count"))
def sample(
    task: str, points: int, key: Array, count: int
) -> tuple[Float[Array, "count points 3"], Float[Array, "count asked 2"]]:
    """Draws, and what is asked at the points that are asked."""
    tokens = draw_tokens(task, points, key, count)
    return tokens, jax.vmap(partial(wanted, task))(tokens)[:, : queries(task, points)]


@partial(jax.jit, static_argnames=("task", "points"))
def unit(task: str, points: int) -> Float[Array, ""]:
    """The standard deviation of what is asked, over fixed draws: errors are in this unit."""
    _, asked = sample(task, points, jax.random.key(0), SCALE_SAMPLES)
    return jnp.sqrt(jnp.mean((asked - jnp.mean(asked, axis=(0, 1))) ** 2)).astype(jnp.float32)
