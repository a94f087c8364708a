"""Targets with prescribed singular values, and the softmax attention they are made of (Jiang and Li 2024, appendix B.2).

    rho(u, v) = sum_{k <= R} k^(-alpha) 2 sin(2 pi k u) sin(2 pi k v)        (sqrt 2 sin(2 pi k .) is orthonormal on [0, 1])
    H_t(x)    = sum_s softmax_s[ rho(x_t, x_s) ] x_s,   x_1, ..., x_tau independent and uniform on [0, 1]

so the POD of rho is known: sigma_k = k^(-alpha) up to k = R and 0 beyond. `rank` None is the "infinite" target, which is
cut off at R = 128 (the paper does not say where it cuts): for alpha <= 1 the sum over all k is no continuous kernel,
and the slopes of an error depend on R. `masked` leaves s = t out of the softmax. The mean over k >= 1 of 2 sin(2 pi k v)
over v is zero, so the kernel is centred already and its gauge-free values are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput

CUT = 128  # where the infinite sum is cut off
LENGTH = 16
Tokens = Float[np.ndarray, "inputs tokens"]


@dataclass(frozen=True)
class SineTarget:
    """The target above; `cut` is R of the infinite sum."""

    alpha: float
    rank: int | None = None
    masked: bool = True
    length: int = LENGTH
    cut: int = CUT

    def __post_init__(self) -> None:
        if not np.isfinite(self.alpha) or self.terms < 1 or self.length < 2:
            raise BadInput("a sine target has a finite alpha, one term or more, and two tokens or more")

    @property
    def terms(self) -> int:
        """R, the number of terms."""
        return self.cut if self.rank is None else self.rank

    @property
    def values(self) -> Float[np.ndarray, " terms"]:
        """The singular values.

        >>> SineTarget(1.0, rank=4).values.round(4).tolist()
        [1.0, 0.5, 0.3333, 0.25]
        """
        return np.arange(1, self.terms + 1, dtype=np.float64) ** -self.alpha

    def tail(self, kept: int) -> float:
        """The sum of the squares of the singular values beyond the first `kept`: the L2 error of the best kernel."""
        return float((self.values[kept:] ** 2).sum())

    def kernel(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """rho(u, v), for `pod_of_kernel`."""
        return np.einsum("...k,...k->...", sines(u, 1, self.terms) * self.values, sines(v, 1, self.terms))

    def draw(self, generator: np.random.Generator, count: int) -> Tokens:
        """Inputs."""
        return generator.uniform(size=(count, self.length))

    def outputs(self, x: Tokens) -> Tokens:
        """H_t(x) for every t, in float64.

        >>> SineTarget(1.0, rank=1, masked=False, length=2).outputs(np.array([[0.25, 0.75]])).round(6).tolist()
        [[0.258993, 0.741007]]
        """
        return attend(self.scores(x, 1, self.terms), x, self.masked)

    def scores(self, x: Tokens, first: int, last: int) -> Float[np.ndarray, "inputs tokens tokens"]:
        """The terms `first` to `last` (from 1, both in) of rho(x_t, x_s)."""
        features = sines(x, first, last)
        return np.matmul(features * self.values[first - 1 : last], np.swapaxes(features, 1, 2))


def sines(x: Float[np.ndarray, "*shape"], first: int, last: int) -> Float[np.ndarray, "*shape terms"]:
    """sqrt 2 sin(2 pi k x) for k = first, ..., last."""
    return np.sqrt(2) * np.sin(2 * np.pi * np.arange(first, last + 1) * np.asarray(x)[..., None])


def attend(scores: Float[np.ndarray, "inputs tokens tokens"], values: Tokens, masked: bool) -> Tokens:
    """The means of `values` with the softmax of the scores as weights, with or without each token itself."""
    if masked:
        scores = np.where(np.eye(scores.shape[-1], dtype=bool), -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.einsum("its,is->it", weights, values) / weights.sum(axis=-1)
