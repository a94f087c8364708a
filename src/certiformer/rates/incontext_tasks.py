"""Linear regression in a context: data, oracles, and what one layer of linear attention can reach, in closed form.

Rows are x_j ~ N(0, diag(spectrum)), y_j = w . x_j + noise, w ~ N(0, 1), for a query x of the same kind; the error is that
of w . x. A token is (x | y), the query (x | 0).

One layer predicts x . P (1/n) sum_j y_j x_j. With A = (1/n) sum_j x_j x_j^T, E A = Lambda, E A^2 = Lambda^2 (n + 1)/n +
Lambda tr(Lambda)/n (fourth moments of Gaussians), and noise of variance v the error for P = diag(p) is

    sum_i l_i (1 - 2 p_i l_i + p_i^2 l_i c_i),      c_i = l_i (n + 1)/n + (tr Lambda + v)/n,

least for p_i = 1/c_i: sum_i l_i (1 - l_i / c_i) (Ahn et al. 2023, arXiv 2306.00297, Theorem 1, for v = 0). With equal
eigenvalues 1 it is d (d + 1 + v)/(n + d + 1 + v): like 1/n, only later. One step of gradient descent has one number for
all p_i, best at sum l_i^2 / sum l_i^2 c_i.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float


@dataclass(frozen=True)
class Regression:
    """Contexts of `rows` rows; `spectrum` are the variances of the features, `noise` the deviation of the labels."""

    rows: int
    spectrum: tuple[float, ...]
    noise: float

    @property
    def features(self) -> int:
        return len(self.spectrum)

    def draw(self, key: Array, count: int) -> tuple[Float[Array, "count tokens width"], Float[Array, "count 1"]]:
        """Contexts with their query as tokens, and w . x of the query."""
        d = self.features
        keys = jax.random.split(key, 3)
        x = jax.random.normal(keys[0], (count, self.rows + 1, d), jnp.float32)
        x = x * jnp.sqrt(jnp.asarray(self.spectrum, jnp.float32))
        w = jax.random.normal(keys[1], (count, d), jnp.float32)
        clean = jnp.einsum("btd,bd->bt", x, w, precision="highest")
        noisy = clean + self.noise * jax.random.normal(keys[2], clean.shape, jnp.float32)
        labels = noisy.at[:, -1].set(0.0)
        return jnp.concatenate([x, labels[..., None]], axis=-1), clean[:, -1:]

    def steps(self) -> Float[np.ndarray, " features"]:
        """The best p of one layer."""
        return 1.0 / self._moments()

    def least_error(self) -> float:
        """The error of the best single layer."""
        spectrum = np.array(self.spectrum)
        return float((spectrum * (1 - spectrum / self._moments())).sum())

    def plain_step(self) -> float:
        """The best step of gradient descent, one number for all features."""
        spectrum = np.array(self.spectrum)
        return float((spectrum**2).sum() / (spectrum**2 * self._moments()).sum())

    def plain_error(self) -> float:
        """The error of that step."""
        spectrum, step = np.array(self.spectrum), self.plain_step()
        return float((spectrum * (1 - 2 * step * spectrum + step**2 * spectrum * self._moments())).sum())

    def _moments(self) -> np.ndarray:
        spectrum = np.array(self.spectrum)
        return spectrum * (self.rows + 1) / self.rows + (spectrum.sum() + self.noise**2) / self.rows


def ridge_predictions(tokens: Float[np.ndarray, "count tokens width"], noise: float) -> Float[np.ndarray, "count 1"]:
    """The mean of w . x given the context: ridge regression of strength noise^2; without noise the shortest least squares.

    No prediction from these rows has a smaller mean squared error.
    """
    tokens = np.asarray(tokens, np.float64)
    x, y, query = tokens[:, :-1, :-1], tokens[:, :-1, -1], tokens[:, -1, :-1]
    if noise == 0.0:
        return least_squares_predictions(tokens)
    matrix = np.einsum("bnd,bne->bde", x, x) + noise**2 * np.eye(x.shape[-1])
    weights = np.linalg.solve(matrix, np.einsum("bnd,bn->bd", x, y)[..., None])[..., 0]
    return (query * weights).sum(-1, keepdims=True)


def least_squares_predictions(tokens: Float[np.ndarray, "count tokens width"]) -> Float[np.ndarray, "count 1"]:
    """The shortest w with the least squares on the rows."""
    tokens = np.asarray(tokens, np.float64)
    x, y, query = tokens[:, :-1, :-1], tokens[:, :-1, -1], tokens[:, -1, :-1]
    weights = np.einsum("bdn,bn->bd", np.linalg.pinv(x), y)
    return (query * weights).sum(-1, keepdims=True)


@dataclass(frozen=True)
class Dynamics:
    """s_(t+1) = R s_t with a random rotation R in every sequence: the next token is learned from those before it.

    Tokens are (s_(t-1) | s_t | 0): what an earlier layer would have to gather (von Oswald et al. 2023, arXiv 2309.05858).
    """

    length: int
    features: int

    def draw(self, key: Array, count: int) -> tuple[Float[Array, "count tokens width"], Float[Array, "count outputs"]]:
        """Tokens 1..length and s_2..s_(length+1), one after the other."""
        d = self.features
        keys = jax.random.split(key, 2)
        turn, upper = jnp.linalg.qr(jax.random.normal(keys[0], (count, d, d), jnp.float32))
        # The signs make it uniform over all rotations and reflections (Mezzadri 2007).
        turn = turn * jnp.sign(jnp.diagonal(upper, axis1=-2, axis2=-1))[:, None, :]
        first = jax.random.normal(keys[1], (count, d), jnp.float32)

        def step(state: Array, _: None) -> tuple[Array, Array]:
            after = jnp.einsum("bde,be->bd", turn, state, precision="highest")
            return after, after

        _, later = jax.lax.scan(step, first, None, length=self.length)
        states = jnp.concatenate([jnp.zeros_like(first)[None], first[None], later]).swapaxes(0, 1)
        now = states[:, 1:-1]
        tokens = jnp.concatenate([states[:, :-2], now, jnp.zeros_like(now)], axis=-1)
        return tokens, states[:, 2:].reshape(count, -1)


def next_predictions(tokens: Float[np.ndarray, "count tokens width"]) -> Float[np.ndarray, "count tokens features"]:
    """At every place, the shortest least-squares matrix of the pairs so far, applied to the last state."""
    tokens = np.asarray(tokens, np.float64)
    d = tokens.shape[-1] // 3
    before, now = tokens[..., :d], tokens[..., d : 2 * d]
    predicted = np.zeros_like(now)
    for t in range(1, tokens.shape[1]):
        # Pairs (s_0, s_1) to (s_(t-1), s_t); the first token has no state before it and adds nothing.
        inverse = np.linalg.pinv(before[:, 1 : t + 1], rcond=1e-4)  # states are float32: directions below are rounding
        weights = np.einsum("bdn,bne->bde", inverse, now[:, 1 : t + 1])
        predicted[:, t] = np.einsum("bd,bde->be", now[:, t], weights)
    return predicted
