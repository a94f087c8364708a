"""Figures of one map: its norms, ranks and decay, raw and with the gain of the norm that feeds it, beside its controls.

Up to a shorter side of `MANY_VALUES` by all singular values. Of larger maps the norms are measured, the spectral one by
Lanczos steps, and no ranks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from certiformer.audit.controls import COMPARED, gaussian_norm, shuffled_norm
from certiformer.audit.form import Weight
from certiformer.errors import BadInput
from certiformer.spectrum import (
    Decay,
    Norms,
    Ranks,
    Sums,
    by_gram,
    decay_exponent,
    decomposed,
    largest_by_lanczos,
    largest_eigenvalue,
    norms_of,
    ranks,
    sums,
)

MANY_VALUES = 2048  # matrices with a shorter side above this have their norms measured, not their ranks
FEW_STEPS = 24  # of Lanczos, for comparisons: within 0.2 % on Gaussian matrices of 11,008 x 4,096
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


def matrix_figures(weight: Weight, gain: np.ndarray | None, rng: np.random.Generator, bad: list[str]) -> MatrixFigures:
    """The figures of one map; NaN where it has entries that are not finite, and its tensor is then named in `bad`."""
    array, shape = weight.load(), (weight.shape[0], weight.shape[1])
    large = min(shape) > MANY_VALUES
    found = sums(array, by_gram(shape) and not large)
    if not math.isfinite(found.largest):
        bad.append(weight.source.tensor)
        nothing = Norms(*[math.nan] * 9)
        return MatrixFigures(weight.source.tensor, shape, nothing, None, None, None, math.nan, math.nan)
    gaussian = gaussian_norm(found.frobenius, shape)
    if large:
        # float32 holds what float16, bfloat16 and float32 files hold exactly, and halves what has to be moved.
        single = np.asarray(array, np.float32)
        value, bar = largest_by_lanczos(single)
        measured = norms_of(found, value, bar)
        folded = None if gain is None else largest_by_lanczos(single * gain.astype(np.float32), FEW_STEPS)[0]
        shuffled = shuffled_norm(single, rng, lambda copy: largest_by_lanczos(copy, FEW_STEPS)[0])
        return MatrixFigures(weight.source.tensor, shape, measured, None, None, folded, gaussian, shuffled)
    measured, values = decomposed(array, found)
    folded = None if gain is None else folded_norm(array, found, gain)
    shuffled = shuffled_norm(array, rng, largest_of_few_digits)
    used, decay = ranks(values, max(shape)), decay_or_none(values)
    return MatrixFigures(weight.source.tensor, shape, measured, used, decay, folded, gaussian, shuffled)


def folded_norm(array: Float[np.ndarray, "rows columns"], found: Sums, gain: Float[np.ndarray, " columns"]) -> float:
    """The spectral norm of W diag(g), whose Gram matrix is diag(g) W^T W diag(g).

    >>> w = np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 0.0]])
    >>> folded_norm(w, sums(w), np.array([2.0, 1.0]))
    6.0
    """
    if len(found.gram) == array.shape[1]:
        folded = found.gram * np.outer(gain, gain)
    else:
        scaled = np.asarray(array, np.float64) * gain
        folded = scaled @ scaled.T if array.shape[0] <= array.shape[1] else scaled.T @ scaled
    return math.sqrt(max(largest_eigenvalue(folded, FOLDED), 0.0))


def largest_of_few_digits(array: Float[np.ndarray, "rows columns"]) -> float:
    """The spectral norm to a few digits, for comparisons."""
    single = np.asarray(array, np.float32)
    gram = single @ single.T if len(single) <= single.shape[1] else single.T @ single
    return math.sqrt(max(largest_eigenvalue(gram, COMPARED), 0.0))


def decay_or_none(values: Float[np.ndarray, " values"]) -> Decay | None:
    """The decay exponent; none where too few values are above rounding."""
    try:
        return decay_exponent(values)
    except BadInput:
        return None
