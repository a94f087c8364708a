"""Scores that rank checkpoints by their spectra. They are no bounds: no sample size enters, and no theorem is claimed.

Two scores for layers of heads with score matrices Q_h, value-output products V_h and hidden maps M_in, M_out:

    later_l   = prod_(k > l) S |M_in^k| |M_out^k| sum_h |V_h^k| (1 + 4 |Q_h^k|)
    weight(Q) = 2 |V| |M_out| |M_in|,  weight(V) = |M_out| |M_in|,  weight(M_in) = |M_out|,  weight(M_out) = 1
    part(W,p) = (sum_i sigma_i^p)^(1/(p+2)) (weight later_l L)^(p/(p+2)) N^((p+1)/(p+2)),   p = 0: sqrt(rank N)
    adaptive  = sqrt L + sum over all W of min over p in {0, 1/m, ..., 2} of part(W, p),   m = ceil(L + log N)
    plain     = (1 + sum_l later_l^(2/3) x_l)^(3/2),
    x_l       = sum_h (|M_out| |M_in| |V_h| q_h)^(2/3) + (|M_out| |M_in| v_h)^(2/3) + (|M_out| u)^(2/3) + o^(2/3)

with |.| spectral norms, q, v, u, o the sums of the l2 norms of the columns of Q, V, M_in, M_out, N the width, L the number
of layers. The formulas are those of the published code beside Sakai and Imaizumi 2026 (arXiv 2605.07297,
manasakai/spectrum-adaptive-transformers), which calls them proxies; the theorem of that paper could not be read, so
nothing here is printed under its name. The rank counts sigma_i > 1e-10 len(sigma) max(sigma_1, 1), as that code does.

Reading. p = 0 caps every matrix by sqrt(rank N), which counts parameters; for norms above 1 and four layers or more it
wins almost everywhere, and the adaptive score is then about (2 heads + 2) L sqrt(rank N): it grows linearly with depth
where the plain one explodes, and says little about the weights. `exponents` shows where p = 0 won.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.spectrum.values import singular_values

LIPSCHITZ = 1.13  # of gelu, as the published code rounds it
RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Map:
    """What the scores need of a matrix: its singular values and the sum of the l2 norms of its columns."""

    values: Float[np.ndarray, " values"]
    columns: float

    @staticmethod
    def of(matrix: Float[np.ndarray, "rows columns"]) -> Map:
        return Map(singular_values(matrix), float(np.linalg.norm(matrix, axis=0).sum()))

    @property
    def spectral(self) -> float:
        return float(self.values.max(initial=0.0))

    @property
    def rank(self) -> int:
        return int((self.values > RANK_TOLERANCE * len(self.values) * max(self.spectral, 1.0)).sum())


@dataclass(frozen=True)
class ScoredLayer:
    """One layer: (Q_h, V_h) of every head, M_in and M_out."""

    heads: tuple[tuple[Map, Map], ...]
    up: Map
    down: Map


@dataclass(frozen=True)
class Scores:
    """The two scores; the p that won for every matrix, layer by layer (heads' Q and V, then M_in, M_out); later_1."""

    adaptive: float
    plain: float
    exponents: tuple[tuple[float, ...], ...]
    first_factor: float


def spectrum_scores(layers: Sequence[ScoredLayer], width: int, lipschitz: float = LIPSCHITZ) -> Scores:
    """Both scores of a model; smaller ranks better, among models of the same task. Infinite where a factor overflows."""
    if not layers or width < 1:
        raise BadInput("a score needs at least one layer and a positive width")
    depth = len(layers)
    steps = math.ceil(depth + math.log(width))
    grid = [p / steps for p in range(2 * steps + 1)]
    later, adaptive, plain, exponents = 1.0, math.sqrt(depth), 1.0, []
    for layer in reversed(layers):
        up, down = layer.up.spectral, layer.down.spectral
        parts = [(layer.up, down), (layer.down, 1.0)]
        norm_sum = (down * layer.up.columns) ** (2 / 3) + layer.down.columns ** (2 / 3)
        stretch = 0.0
        for scores, value in reversed(layer.heads):
            parts[:0] = [(scores, 2 * value.spectral * down * up), (value, down * up)]
            norm_sum += (down * up * value.spectral * scores.columns) ** (2 / 3) + (down * up * value.columns) ** (
                2 / 3
            )
            stretch += value.spectral * (1 + 4 * scores.spectral)
        found = [min((_part(each, p, weight * later * depth, width), p) for p in grid) for each, weight in parts]
        adaptive += sum(value for value, _ in found)
        exponents.append(tuple(p for _, p in found))
        plain += later ** (2 / 3) * norm_sum
        first, later = later, later * lipschitz * up * down * stretch
    whole = plain**1.5 if plain < 1e200 else math.inf  # a power that overflows is an error in Python
    return Scores(adaptive, whole, tuple(reversed(exponents)), first)


def _part(each: Map, p: float, factor: float, width: int) -> float:
    if p == 0:
        return math.sqrt(each.rank * width)
    if not math.isfinite(factor):
        return math.inf
    schatten = float((each.values**p).sum())
    return schatten ** (1 / (p + 2)) * factor ** (p / (p + 2)) * width ** ((p + 1) / (p + 2))
