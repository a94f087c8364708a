"""Affine recurrences as regression: the terms of a sequence become rows of a context.

If x_(t+1) = a_1 x_t + ... + a_p x_(t-p+1) + b, then the rows (x_t, ..., x_(t-p+1), 1) with the answers x_(t+1) lie on
one hyperplane, and a least-squares learner with p + 1 features continues the sequence. Where the terms are vectors of
size m, the a_k are matrices, a row has p m + 1 features, and every coordinate of the next term is a regression of its own
on the same rows: one learner answers all of them, and what is proved of it holds for each coordinate.

On exact data ridge regression of strength s misses by a known amount: w* = A^-1 (A - s) w, so its prediction for a query q
is off by s |q . A^-1 w|, at most s |q| |w| / (least eigenvalue of A), where A = mean x x^T + s.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.errors import BadInput


def rows_of_sequence(
    terms: Float[np.ndarray, "*terms"], order: int = 1
) -> tuple[Float[np.ndarray, "rows features"], Float[np.ndarray, "*rows"], Float[np.ndarray, " features"]]:
    """The context of a sequence of numbers or vectors, its answers, and the query for the next term.

    >>> x, y, query = rows_of_sequence(np.array([1.0, 3.0, 7.0]))
    >>> x.tolist(), y.tolist(), query.tolist()
    ([[1.0, 1.0], [3.0, 1.0]], [3.0, 7.0], [7.0, 1.0])
    >>> x, y, query = rows_of_sequence(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]))
    >>> x.tolist(), y.tolist(), query.tolist()
    ([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]], [[0.0, 1.0], [-1.0, 0.0]], [-1.0, 0.0, 1.0])
    """
    terms = np.asarray(terms, float)
    if terms.ndim not in (1, 2) or type(order) is not int or order < 1 or len(terms) <= order:
        raise BadInput(f"a recurrence of order {order!r} needs a sequence of more than {order!r} terms")
    starts = range(len(terms) - order + 1)
    # The newest term of a window comes first.
    windows = np.stack([np.ravel(terms[start : start + order][::-1]) for start in starts])
    features = np.concatenate([windows, np.ones((len(windows), 1))], axis=1)
    return features[:-1], terms[order:], features[-1]


def predict_next(
    compiled: ContextLearner, terms: Float[np.ndarray, "*terms"], count: int = 1
) -> list[float] | list[list[float]]:
    """The next `count` terms as the learner predicts them, each from the given terms and those predicted before it.

    The order is the number of features without the constant 1, over the size of a term.
    """
    found = np.asarray(terms, float)
    size = 1 if found.ndim == 1 else found.shape[-1]
    order, left = divmod(compiled.learner.features - 1, size)
    if left or order < 1:
        raise BadInput(
            f"a learner of {compiled.learner.features} features has no whole number of terms of size {size} beside the 1"
        )
    for _ in range(count):
        x, y, query = rows_of_sequence(found, order)
        rows = compiled.learner.rows
        answers = y[-rows:].reshape(-1, size)
        after = [compiled.predict(x[-rows:], answers[:, place], query)[0] for place in range(size)]
        found = np.concatenate([found, np.reshape(after, (1, *found.shape[1:]))])
    return found[len(terms) :].tolist()
