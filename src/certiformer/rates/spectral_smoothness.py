"""Smoothness of a sampled periodic function by FFT: dyadic block norms, an exponent along each axis, and a_dagger.

delta_s f keeps the frequencies l with floor(2^(s_i - 1)) <= |l_i| < 2^(s_i) on every axis i (block 0: l_i = 0; block 1: 1;
block 2: 2, 3; ...). With gamma(s) = sum_i a_i s_i (mixed) or max_i a_i s_i (anisotropic), f is gamma-smooth with p = 2 and
theta = infinity when 2^gamma(s) ||delta_s f||_2 is bounded (Okumoto & Suzuki 2022; Takakura & Suzuki 2023, arXiv
2305.18699). Keeping the blocks with gamma(s) < T leaves an L2 error of order 2^-T, up to the root of the number of blocks
at one level, and costs G(T) = sum over those blocks of 2^(sum s) terms: 2^(T sum_i 1/a_i) (anisotropic) or
2^(T / a_1) (mixed, one smallest a_1). So the error falls like G^-a_dagger, with

    a_dagger = 1 / sum_i (1/a_i)  (anisotropic),     a_dagger = min_i a_i  (mixed).

The exponent of axis i is minus the slope of log ||delta_s f|| against log 2^(s_i) over the blocks on that axis alone. The
sample has frequencies up to half its points per axis only; the last two blocks (the highest frequency, and the octave below
it) are left out of the fits, since aliased energy lands there first, and so are blocks below a floor, which are rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from certiformer.errors import BadInput
from certiformer.rates.slopes import Slope, fit_slope

ALIASED = 2  # blocks at the end of an axis
FLOOR = 1e-12  # of the largest block: an FFT in float64 has errors of 1e-16 times a logarithm
Sample = Float[np.ndarray, "*grid"]


@dataclass(frozen=True)
class Smoothness:
    """`a[i]`: exponent of axis i with its interval; both a_dagger with intervals; `kind`: which gamma the blocks off the
    axes follow more closely, with the variance of log2 norms plus gamma for both, or "both" without such blocks."""

    a: list[float]
    intervals: list[tuple[float, float]]
    mixed: float
    mixed_interval: tuple[float, float]
    anisotropic: float
    anisotropic_interval: tuple[float, float]
    kind: str
    misfit_mixed: float | None
    misfit_anisotropic: float | None

    @property
    def dagger(self) -> float:
        """a_dagger of the kind found; without blocks off the axes both hold, and the anisotropic one is the smaller."""
        return self.mixed if self.kind == "mixed" else self.anisotropic


def dyadic(frequencies: Int[np.ndarray, "*shape"]) -> Int[np.ndarray, "*shape"]:
    """The block of every frequency: the number of binary digits of |l|.

    >>> dyadic(np.array([0, 1, -1, 2, 3, -4, 7, 8])).tolist()
    [0, 1, 1, 2, 2, 3, 3, 4]
    """
    sizes = np.abs(frequencies)
    return np.where(sizes == 0, 0, np.frexp(sizes.astype(np.float64))[1])


def axis_blocks(points: int) -> Int[np.ndarray, " points"]:
    """The block of each FFT coefficient of one axis, in the order of the FFT."""
    return dyadic(np.rint(np.fft.fftfreq(points) * points).astype(int))


def block_norms(values: Sample) -> Float[np.ndarray, "*blocks"]:
    """||delta_s f||_2 for every s, from samples of f at l/N per axis (Parseval: the mean of f^2 is the sum of squares).

    >>> x = np.arange(16) / 16
    >>> block_norms(np.sqrt(2) * np.cos(2 * np.pi * 3 * x)).round(12).tolist()
    [0.0, 0.0, 1.0, 0.0, 0.0]
    """
    values = np.asarray(values, np.float64)
    if values.ndim == 0 or min(values.shape) < 8 or any(size & (size - 1) for size in values.shape):
        raise BadInput(f"a sample needs a power of two, 8 or more, of points per axis, not {values.shape}")
    if not np.isfinite(values).all():
        raise BadInput("the sample holds a number that is not finite")
    energy = np.abs(np.fft.fftn(values) / values.size) ** 2
    for axis, points in enumerate(values.shape):
        blocks = axis_blocks(points)
        chosen = (blocks[None] == np.arange(blocks.max() + 1)[:, None]).astype(np.float64)
        energy = np.moveaxis(np.tensordot(chosen, energy, axes=(1, axis)), 0, axis)
    return np.sqrt(energy)


def axis_exponent(norms: Float[np.ndarray, "*blocks"], axis: int) -> Slope:
    """The slope of the norms of the blocks 1, 2, ... on one axis; a is minus its value."""
    line = np.moveaxis(norms, axis, 0)[(slice(1, -ALIASED), *(0,) * (norms.ndim - 1))]
    block = np.arange(1, len(line) + 1)
    kept = line > FLOOR * norms.max(initial=0.0)
    try:
        return fit_slope(2.0 ** block[kept], line[kept])
    except BadInput as refused:
        raise BadInput(f"the exponent of axis {axis + 1} cannot be fitted: {refused}") from None


def smoothness(values: Sample) -> Smoothness:
    """Everything above from one sample."""
    norms = block_norms(values)
    fits = [axis_exponent(norms, axis) for axis in range(norms.ndim)]
    a = [-fit.value for fit in fits]
    intervals = [(-fit.interval[1], -fit.interval[0]) for fit in fits]
    lows, highs = [low for low, _ in intervals], [high for _, high in intervals]
    mixed, anisotropic = _misfits(norms, a)
    kind = "both" if mixed is None or anisotropic is None else "mixed" if mixed < anisotropic else "anisotropic"
    return Smoothness(
        a,
        intervals,
        min(a),
        (min(lows), min(highs)),
        harmonic(a),
        (harmonic(lows), harmonic(highs)),
        kind,
        mixed,
        anisotropic,
    )


def harmonic(a: Sequence[float]) -> float:
    """1 / sum 1/a_i; 0 when some a_i is not positive.

    >>> round(harmonic([1.0, 2.0]), 6)
    0.666667
    """
    return 1.0 / sum(1.0 / each for each in a) if min(a) > 0 else 0.0


def _misfits(norms: np.ndarray, a: Sequence[float]) -> tuple[float | None, float | None]:
    """How far log2 norms off the axes are from a constant minus gamma(s), for both gammas."""
    index = np.stack(np.meshgrid(*(np.arange(size) for size in norms.shape), indexing="ij"))
    inside = np.all([axis < size - ALIASED for axis, size in zip(index, norms.shape, strict=True)], axis=0)
    off = (index > 0).sum(axis=0) >= 2
    chosen = inside & off & (norms > FLOOR * norms.max(initial=0.0))
    if chosen.sum() < 2:
        return None, None
    scaled = np.asarray(a).reshape(-1, *(1,) * norms.ndim) * index
    logs = np.log2(norms[chosen])
    misfits = [float(np.var(logs + gamma[chosen])) for gamma in (scaled.sum(axis=0), scaled.max(axis=0))]
    return misfits[0], misfits[1]


def truncation_errors(
    values: Sample, a: Sequence[float], levels: Sequence[float], kind: str
) -> tuple[Int[np.ndarray, " levels"], Float[np.ndarray, " levels"], Float[np.ndarray, " levels"]]:
    """For every level T: how many basis functions the blocks with gamma(s) < T hold, and the mean squared and mean absolute
    errors of keeping them. `kind`: mixed or anisotropic."""
    values = np.asarray(values, np.float64)
    if kind not in ("mixed", "anisotropic"):
        raise BadInput(f"smoothness is mixed or anisotropic, not {kind!r}")
    blocks = [axis_blocks(points) for points in values.shape]
    grid = np.stack(np.meshgrid(*(each * b for each, b in zip(a, blocks, strict=True)), indexing="ij"))
    gamma = grid.sum(axis=0) if kind == "mixed" else grid.max(axis=0)
    coefficients = np.fft.fftn(values)
    counts, mse, l1 = [], [], []
    for level in levels:
        kept = gamma < level
        error = np.fft.ifftn(np.where(kept, 0.0, coefficients)).real
        counts.append(int(kept.sum()))
        mse.append(float(np.mean(error**2)))
        l1.append(float(np.mean(np.abs(error))))
    return np.array(counts), np.array(mse), np.array(l1)
