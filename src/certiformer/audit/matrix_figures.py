"""Figures of maps: their norms, ranks and decay, raw and with the gain of the norm that feeds them, beside controls.

Up to a shorter side of `MANY_VALUES` by all singular values. Of larger maps the norms are measured, the spectral one by
Lanczos steps, and no ranks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.audit.controls import gaussian_norm, shuffled_norm, spectral_to_compare
from certiformer.audit.form import Weight
from certiformer.spectrum import (
    Decay,
    Norms,
    Ranks,
    Sums,
    by_gram,
    decay_exponents,
    decomposed,
    largest_by_lanczos,
    largest_eigenvalue,
    norms_of,
    ranks,
    sums,
)

MANY_VALUES = 2048  # matrices with a shorter side above this have their norms measured, not their ranks
FOLDED = 1e-9  # of the square of a folded norm: what Lanczos steps may leave


@dataclass(frozen=True)
class MatrixFigures:
    """One map: where it is from, its norms, ranks and decay, and the controls' spectral norms."""

    tensor: str
    shape: tuple[int, int]
    norms: Norms
    ranks: Ranks | None
    decay: Decay | None
    folded_spectral: float | None
    gaussian_spectral: float
    shuffled_spectral: float


@dataclass(frozen=True, eq=False)
class _Loaded:
    """A map in memory, its sums, and the gain that is folded into it."""

    tensor: str
    array: Float[np.ndarray, "rows columns"]
    found: Sums
    gain: Float[np.ndarray, " columns"] | None


def matrix_figures(
    maps: Sequence[tuple[Weight, np.ndarray | None]], rng: np.random.Generator, bad: list[str]
) -> list[MatrixFigures]:
    """The figures of several maps, each with the gain that is folded into it or None; NaN where a map has entries that are
    not finite, and its tensor is then named in `bad`. Large maps are measured one after the other, others together."""
    figures: list[MatrixFigures | _Loaded] = []
    for weight, gain in maps:
        large = min(weight.shape) > MANY_VALUES
        array = weight.load()
        loaded = _Loaded(weight.source.tensor, array, sums(array, by_gram(weight.shape) and not large), gain)
        if not math.isfinite(loaded.found.largest):
            bad.append(loaded.tensor)
            nothing, shape = Norms(*[math.nan] * 9), (weight.shape[0], weight.shape[1])
            figures.append(MatrixFigures(loaded.tensor, shape, nothing, None, None, None, math.nan, math.nan))
        else:
            figures.append(_large(loaded, rng) if large else loaded)
    waiting = [each for each in figures if isinstance(each, _Loaded)]
    known = iter(decomposed([(each.array, each.found) for each in waiting]))
    return [_small(each, *next(known), rng) if isinstance(each, _Loaded) else each for each in figures]


def _small(
    loaded: _Loaded, measured: Norms, values: Float[np.ndarray, " values"], rng: np.random.Generator
) -> MatrixFigures:
    """With ranks and decay, by all singular values."""
    shape, gain = loaded.array.shape, loaded.gain
    return MatrixFigures(
        loaded.tensor,
        shape,
        measured,
        ranks(values, max(shape)),
        decay_exponents(values[None])[0],
        None if gain is None else folded_norm(loaded.array, loaded.found, gain),
        gaussian_norm(loaded.found.frobenius, shape),
        shuffled_norm(loaded.array, rng),
    )


def _large(loaded: _Loaded, rng: np.random.Generator) -> MatrixFigures:
    """Without ranks and decay; the spectral norm by Lanczos steps, a few of them for the comparisons."""
    # float32 holds what float16, bfloat16 and float32 files hold exactly, and halves what has to be moved.
    single, gain = np.asarray(loaded.array, np.float32), loaded.gain
    return MatrixFigures(
        loaded.tensor,
        single.shape,
        norms_of(loaded.found, *largest_by_lanczos(single)),
        None,
        None,
        None if gain is None else spectral_to_compare(single * gain.astype(np.float32)),
        gaussian_norm(loaded.found.frobenius, single.shape),
        shuffled_norm(single, rng),
    )


def folded_norm(array: Float[np.ndarray, "rows columns"], found: Sums, gain: Float[np.ndarray, " columns"]) -> float:
    """The spectral norm of W diag(g), whose Gram matrix is diag(g) W^T W diag(g).

    >>> w = np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    >>> round(folded_norm(w, sums(w), np.array([2.0, 1.0])), 9)
    6.0
    """
    if len(found.gram) == array.shape[1]:
        folded = found.gram * np.outer(gain, gain)
    else:
        scaled = np.asarray(array, np.float64) * gain
        folded = scaled @ scaled.T if array.shape[0] <= array.shape[1] else scaled.T @ scaled
    return math.sqrt(max(largest_eigenvalue(folded, FOLDED), 0.0))
