"""Affine recurrences as regression: the terms of a sequence become rows of a context.

If x_(t+1) = a_1 x_t + ... + a_p x_(t-p+1) + b, then the rows (x_t, ..., x_(t-p+1), 1) with the answers x_(t+1) lie on
one hyperplane, and a least-squares learner with p + 1 features continues the sequence. On exact data ridge regression
of strength s misses by a known amount: w* = A^-1 (A - s) w, so its prediction for a query q is off by s |q . A^-1 w|,
at most s |q| |w| / (least eigenvalue of A), where A = mean x x^T + s.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.compiler.incontext.compiled import ContextLearner
from certiformer.errors import BadInput


def rows_of_sequence(
    terms: Float[np.ndarray, " terms"], order: int = 1
) -> tuple[Float[np.ndarray, "rows features"], Float[np.ndarray, " rows"], Float[np.ndarray, " features"]]:
    """The context of a sequence, its answers, and the query for the next term.

    >>> x, y, query = rows_of_sequence(np.array([1.0, 3.0, 7.0]))
    >>> x.tolist(), y.tolist(), query.tolist()
    ([[1.0, 1.0], [3.0, 1.0]], [3.0, 7.0], [7.0, 1.0])
    """
    terms = np.asarray(terms, float)
    if terms.ndim != 1 or type(order) is not int or order < 1 or len(terms) <= order:
        raise BadInput(f"a recurrence of order {order!r} needs a sequence of more than {order!r} terms")
    windows = np.lib.stride_tricks.sliding_window_view(terms, order)[:, ::-1]
    features = np.concatenate([windows, np.ones((len(windows), 1))], axis=1)
    return features[:-1], terms[order:], features[-1]


def predict_next(compiled: ContextLearner, terms: Float[np.ndarray, " terms"], count: int = 1) -> list[float]:
    """The next `count` terms as the learner predicts them, each from the given terms and those predicted before it.

    The order is one less than the number of features, which the constant 1 takes.
    """
    found = np.asarray(terms, float)
    for _ in range(count):
        x, y, query = rows_of_sequence(found, compiled.learner.features - 1)
        rows = compiled.learner.rows
        found = np.append(found, compiled.predict(x[-rows:], y[-rows:], query)[0])
    return found[len(terms) :].tolist()
