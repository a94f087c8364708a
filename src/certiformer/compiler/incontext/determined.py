"""Contexts that do not determine an answer, or that lie outside what a learner was compiled for: one sentence each."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.kernel.meanings.learner import Learner

Context = Float[np.ndarray, "rows features"]


def require_determined(x: Context, strength: float) -> None:
    """Refuse a context whose weights are not determined, and constant columns that are no intercept.

    >>> require_determined(np.array([[1.0, 2.0, 3.0]]), strength=0.0)
    Traceback (most recent call last):
    ...
    certiformer.errors.BadInput: the context has 1 row for 3 features, so the answer is not determined; give more rows or \
compile with --strength
    """
    rows, features = x.shape
    if rows < features and not strength:
        raise BadInput(
            f"the context has {rows} row{'s' if rows > 1 else ''} for {features} features, so the answer is not"
            " determined; give more rows or compile with --strength"
        )
    if rows > 1:
        _require_columns(x)
    if not strength and np.linalg.matrix_rank(x) < features:
        raise BadInput(
            "the columns of the context depend on each other, so the answer is not determined; leave one out or compile"
            " with --strength"
        )


def _require_columns(x: Context) -> None:
    ones = []
    for column in np.flatnonzero((x == x[0]).all(axis=0)):
        value = x[0, column]
        if value != 1.0:
            raise BadInput(
                f"feature {column + 1} is {value:g} in every row, so nothing can be learned about it; leave it out, or"
                " write 1 in every row for an intercept"
            )
        ones.append(column + 1)
    if len(ones) > 1:
        raise BadInput(f"features {ones[0]} and {ones[1]} are both 1 in every row; one intercept is enough")


def require_box(learner: Learner, x: Context, y: np.ndarray, queries: Context) -> None:
    """Refuse numbers outside the box that the learner was compiled for."""
    for what, numbers, bound, flag in (
        ("the features", x, learner.bound, "--bound"),
        ("the queries", queries, learner.bound, "--bound"),
        ("the answers", y, learner.label_bound, "--label-bound"),
    ):
        largest = float(np.abs(numbers).max())
        if not largest <= bound:
            raise BadInput(
                f"{what} reach {largest:g} in size, but this learner was compiled for {bound:g}; rescale them or compile"
                f" with {flag} {largest:.3g} or more"
            )


def require_spectrum(spectrum: float, everywhere: bool, x: Context) -> None:
    """Refuse a context on which the steps are too long; where all contexts of the box are fine, nothing is computed."""
    if everywhere:
        return
    # The eigenvalue of a symmetric matrix is found to within a few d 2^-53 of its size; a part in 1e12 covers d = 1000.
    largest = float(np.linalg.eigvalsh(x.T @ x / len(x))[-1])
    if not largest * (1 + 1e-12) <= spectrum:
        raise BadInput(
            f"the largest eigenvalue of the mean of x x^T is {largest:g}, but this learner was compiled for"
            f" {spectrum:g}; rescale the features or compile with --spectrum"
        )
