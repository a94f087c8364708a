"""The two targets of the studies of size, with their samples.

`sines` is the example of Gumaan (2025, arXiv 2507.10581): sin(x1) + sin(x2) on [0, 2 pi]^2, one number a token, read
off the first token. `graph` has the form of Jiang and Li (2024, arXiv 2305.18475): every token t answers

    H_t(x) = sum_s softmax_s(rho(x_t, x_s)) x_s,   rho(u, v) = sum_{k <= rank} sigma_k phi_k(u) phi_k(v)

for x uniform on [0, 1], with F = f = identity, the diagonal s = t taking part, sigma_k = k^-alpha and
phi_k(u) = sqrt(2) cos(pi k u), orthonormal on [0, 1]. The published experiment has sqrt(2) sin(2 pi k u) in their place:
the same singular values at twice the frequency, which narrow feed-forward layers cannot follow; here the width of that
layer is what is varied.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput

TargetName = Literal["sines", "graph"]
FORMULA, BOX = "sin(x1)+sin(x2)", "[0,2*pi]^2"
SUP_SIDE = 201  # of the grid on which the largest error for two variables is looked for


@dataclass(frozen=True)
class SizeTarget:
    """A target by name; `tokens`, `rank` and `alpha` speak of `graph` only, `sines` has two tokens."""

    name: str
    tokens: int = 8
    rank: int = 2
    alpha: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in ("sines", "graph"):
            raise BadInput(f"a target of the studies of size is sines or graph, not {self.name!r}")
        if self.name == "sines":
            object.__setattr__(self, "tokens", 2)

    @property
    def high(self) -> float:
        """Every input lies between 0 and this."""
        return 2 * math.pi if self.name == "sines" else 1.0

    @property
    def sigma(self) -> Float[np.ndarray, " rank"]:
        """The singular values of rho."""
        return np.arange(1, self.rank + 1) ** -self.alpha

    def values(self, x: Float[np.ndarray, "points tokens"]) -> Float[np.ndarray, "points outputs"]:
        """The outputs in float64.

        >>> SizeTarget("sines").values(np.array([[0.0, math.pi / 2]]))
        array([[1.]])
        """
        if self.name == "sines":
            return np.sin(x).sum(axis=1, keepdims=True)
        features = self.features(x)
        weights = softmax(np.einsum("k,ptk,psk->pts", self.sigma, features, features))
        return np.einsum("pts,ps->pt", weights, x)

    def features(self, x: Float[np.ndarray, "*points"]) -> Float[np.ndarray, "*points rank"]:
        """phi_1, ..., phi_rank at every number."""
        return math.sqrt(2) * np.cos(math.pi * np.arange(1, self.rank + 1) * np.asarray(x)[..., None])

    def sample(self, count: int, seed: int) -> tuple[Float[np.ndarray, "count tokens"], Float[np.ndarray, "count _"]]:
        """Uniform points and their values."""
        x = np.random.default_rng(seed).uniform(0.0, self.high, (count, self.tokens))
        return x, self.values(x)

    def fine(self, seed: int) -> tuple[Float[np.ndarray, "points tokens"], Float[np.ndarray, "points _"]]:
        """Where the largest error is looked for: a grid with the corners for two tokens, many random points for more."""
        if self.tokens > 2:
            return self.sample(SUP_SIDE**2 // 8, seed)
        side = np.linspace(0.0, self.high, SUP_SIDE)
        x = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
        return x, self.values(x)


def softmax(scores: Float[np.ndarray, "*rows keys"]) -> Float[np.ndarray, "*rows keys"]:
    """Along the last axis."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)
