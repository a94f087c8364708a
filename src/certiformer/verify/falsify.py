"""The lower end of the bracket: a point where the error is large, found by ascent, proved in balls.

Random points, corners and the centres of hard boxes start a projected gradient ascent on |T - f|; the best point is an
exact float64 point inside the domain, hence an exact rational, and the checker's ball arithmetic encloses the error there.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.kernel.certificate import Witness
from certiformer.verify.bounder import FloatDomain

SAMPLES = 2048
STARTS = 32
STEPS = 60

ErrorFunction = Callable[[Float[Array, "n D"]], Float[Array, "n outputs"]]


class Falsifier:
    """Searches for large errors of `error` (T - f on rows of points) on a domain, `at_once` points at a time."""

    def __init__(self, error: ErrorFunction, domain: FloatDomain, seed: int = 0, at_once: int = SAMPLES):
        self.domain, self._at_once = domain, at_once
        self._random = np.random.default_rng(seed)
        low, high = jnp.asarray(domain.inner_low), jnp.asarray(domain.inner_high)

        def worst(x: Float[Array, " D"]) -> Float[Array, ""]:
            return jnp.max(jnp.abs(error(x[None])[0]))

        def climb(x: Float[Array, " D"]) -> Float[Array, " D"]:
            """Sign steps that grow after success and shrink after failure: robust where the gradient has no scale."""

            def step(state, _):
                x, value, size = state
                gradient = jax.grad(worst)(x) * (high - low)
                scale = jnp.max(jnp.abs(gradient))
                move = size * (high - low) * gradient / jnp.where(scale > 0, scale, 1.0)
                trial = jnp.clip(x + move, low, high)
                new = worst(trial)
                better = new > value
                state = jnp.where(better, trial, x), jnp.where(better, new, value), jnp.where(better, 1.5, 0.5) * size
                return state, None

            (x, _, _), _ = jax.lax.scan(step, (x, worst(x), 0.02), None, length=STEPS)
            return x

        self._rows = jax.jit(lambda points: jnp.max(jnp.abs(error(points)), axis=1))
        self._which = jax.jit(lambda point: jnp.argmax(jnp.abs(error(point[None])[0])))
        # A step of an ascent keeps what its gradient needs: about three times the memory of the error itself.
        together = max(1, at_once // 3)
        self._climb = jax.jit(
            jax.vmap(climb) if together >= STARTS else lambda rows: jax.lax.map(climb, rows, batch_size=together)
        )

    def start_points(self) -> Float[np.ndarray, "n D"]:
        """Uniform points and, in low dimension, the corners."""
        d = self.domain
        points = self._random.uniform(d.inner_low, d.inner_high, (SAMPLES, d.dimension))
        if d.dimension <= 8:
            corners = np.array(list(product(*zip(d.inner_low, d.inner_high, strict=True))))
            points[: len(corners)] = corners
        return np.clip(points, d.inner_low, d.inner_high)

    def search(self, extra: Float[np.ndarray, "n D"] | None = None) -> tuple[Float[np.ndarray, " D"], float]:
        """The point with the largest error found, and that error in float64 (not yet proved)."""
        points = self.start_points()
        if extra is not None and len(extra):
            points[-min(len(extra), SAMPLES // 2) :] = np.clip(extra, self.domain.inner_low, self.domain.inner_high)[
                : SAMPLES // 2
            ]
        values = np.nan_to_num(np.asarray(self._values(points)), nan=-1.0)
        best = points[np.argsort(-values)[:STARTS]]
        climbed = np.clip(np.asarray(self._climb(best)), self.domain.inner_low, self.domain.inner_high)
        climbed = np.where(np.isfinite(climbed), climbed, best)
        final = np.concatenate([climbed, best])
        errors = np.nan_to_num(np.asarray(self._values(np.resize(final, points.shape)))[: len(final)], nan=-1.0)
        return final[np.argmax(errors)], float(errors.max())

    def _values(self, points: Float[np.ndarray, "n D"]) -> Float[np.ndarray, " n"]:
        size = min(self._at_once, len(points))
        starts = range(0, len(points), size)  # the last part takes up to `size` points again: one compilation for all
        parts = [np.asarray(self._rows(points[min(start, len(points) - size) :][:size])) for start in starts]
        return np.concatenate([*parts[:-1], parts[-1][len(starts) * size - len(points) :]])

    def witness(self, point: Float[np.ndarray, " D"]) -> Witness:
        """The point as exact rationals, with the output that is worst there; its error is still to be proved."""
        texts = tuple(str(Fraction(float(x))) for x in point)
        return Witness(texts, int(self._which(point)), "0")
