"""Periodic functions on the unit cube whose dyadic blocks have prescribed norms, and the estimator that theory speaks of.

* `axis_sum`: sum_i sum_{j<=J} 2^(-a_i j) sqrt 2 sin(2 pi 2^j x_i). The block s_i = j + 1 on axis i has norm 2^(-a_i j); no
  block off the axes is filled. It is both anisotropic and mixed smooth with the same a.
* `filled_sample`: random numbers whose block s has norm 2^-gamma(s) exactly, for every s: nothing is left to sparsity.
* `least_squares_errors`: from n noisy values, least squares on the basis functions of the blocks with gamma(s) < T. Its
  risk is 2^(-2T) + sigma^2 G(T) / n up to constants; with G = 2^(T / a) the best T gives n^(-2a / (2a + 1)).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.rates.spectral_smoothness import axis_blocks, block_norms, dyadic

SAMPLES_PER_TERM = 4  # with fewer, least squares is not tried: it would fit the noise


def axis_sum(x: Any, a: Sequence[float], levels: int) -> Any:
    """The function at points `(*samples, axes)`, in their precision: JAX arrays give JAX arrays, NumPy's give NumPy's."""
    sine: Any = jnp.sin if isinstance(x, jax.Array) else np.sin
    octaves = 2.0 ** np.arange(levels + 1)
    total = 0.0
    for axis, exponent in enumerate(a):
        sizes = (np.sqrt(2.0) * octaves ** (-float(exponent))).astype(x.dtype)
        total = total + (sine(x[..., axis, None] * (2.0 * np.pi * octaves).astype(x.dtype)) * sizes).sum(axis=-1)
    return total


def grid_sample(a: Sequence[float], levels: int, points: int) -> Float[np.ndarray, "*grid"]:
    """`axis_sum` at l / points on every axis."""
    axis = np.arange(points) / points
    return axis_sum(np.stack(np.meshgrid(*[axis] * len(a), indexing="ij"), axis=-1), a, levels)


def gamma_of(blocks: np.ndarray, a: Sequence[float], kind: str) -> np.ndarray:
    """gamma(s) for blocks along the last axis."""
    scaled = blocks * np.asarray(a, np.float64)
    return scaled.sum(axis=-1) if kind == "mixed" else scaled.max(axis=-1)


def filled_sample(a: Sequence[float], kind: str, points: int, seed: int) -> Float[np.ndarray, "*grid"]:
    """White noise with every block scaled to the norm 2^-gamma(s)."""
    noise = np.random.default_rng(seed).standard_normal((points,) * len(a))
    norms = block_norms(noise)
    blocks = np.stack(np.meshgrid(*[axis_blocks(points)] * len(a), indexing="ij"), axis=-1)
    factor = 2.0 ** -gamma_of(blocks, a, kind) / norms[tuple(np.moveaxis(blocks, -1, 0))]
    return np.fft.ifftn(np.fft.fftn(noise) * factor).real


def kept_frequencies(a: Sequence[float], level: float, kind: str) -> list[tuple[int, ...]]:
    """The frequencies l (negative: cosine, positive: sine) of the blocks with gamma(s) < level.

    >>> kept_frequencies([1.0], 1.5, "mixed")
    [(-1,), (0,), (1,)]
    """
    reach = [2 ** max(0, int(np.ceil(level / each)) - 1) for each in a]
    every = np.array(list(product(*(range(-top + 1, top) for top in reach)))).reshape(-1, len(a))
    kept = gamma_of(dyadic(every), a, kind) < level
    return [tuple(int(each) for each in row) for row in every[kept]]


def basis(
    frequencies: Sequence[tuple[int, ...]], x: Float[np.ndarray, "samples axes"]
) -> Float[np.ndarray, "samples _"]:
    """psi_l at points: products of 1, sqrt 2 cos(2 pi |l| x) (l < 0) and sqrt 2 sin(2 pi l x) (l > 0)."""
    table = np.asarray(frequencies).reshape(len(frequencies), -1)
    columns = np.ones((len(x), len(table)))
    for axis in range(table.shape[1]):
        values, place = np.unique(table[:, axis], return_inverse=True)
        angle = 2.0 * np.pi * np.abs(values) * x[:, axis, None]
        waves = np.where(values == 0, 1.0, np.sqrt(2.0) * np.where(values < 0, np.cos(angle), np.sin(angle)))
        columns *= waves[:, place]
    return columns


def least_squares_errors(
    x: Float[np.ndarray, "samples axes"],
    y: Float[np.ndarray, " samples"],
    test: tuple[np.ndarray, np.ndarray],
    a: Sequence[float],
    kind: str,
    levels: Sequence[float],
) -> tuple[float, float, int]:
    """The smallest test error over the levels T (mean squared; mean absolute; number of terms): the oracle's choice.

    Ascending levels are tried until the error is twice the best. With SAMPLES_PER_TERM or more samples per orthonormal
    function the normal equations are well conditioned."""
    found: list[tuple[float, float, int]] = []
    for level in levels:
        frequencies = kept_frequencies(a, level, kind)
        if SAMPLES_PER_TERM * len(frequencies) > len(x) or (found and found[-1][0] > 2.0 * min(found)[0]):
            break
        columns = basis(frequencies, x)
        solution = np.linalg.solve(columns.T @ columns, columns.T @ y)
        error = basis(frequencies, test[0]) @ solution - test[1]
        found.append((float(np.mean(error**2)), float(np.mean(np.abs(error))), len(frequencies)))
    if not found:
        raise BadInput(f"{len(x)} samples are too few for {SAMPLES_PER_TERM} per term at the first level")
    return min(found)
