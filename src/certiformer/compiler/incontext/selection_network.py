"""The transformer and the tokens of the choice among several strengths: six blocks, applied once for every step.

The weights, the theorem and its proof are in `axioms.in_context_selection`, the algorithm in `meanings.selection`. With n
training and m validation rows, a training row is the token (x_j | x_j / n | 0 | y_j | 0 | 0), a validation row (x_j | 0 |
x_j / m | y_j | y_j / m | 0), the query, which comes last, (x | 0 | 0 | 0 | 0 | 1), an unused row all zero.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.axioms.in_context_selection import construction
from certiformer.compiler.tensors import dense
from certiformer.kernel.meanings.selection import Selection
from certiformer.model.config import Config


def selection_network(learner: Selection) -> tuple[Config, dict[str, np.ndarray]]:
    """The transformer that learns with every strength, validates, and predicts with the best."""
    return dense(construction(learner), "take fewer --features or strengths")


def selection_points(
    learner: Selection,
    x: Float[np.ndarray, "rows features"],
    y: Float[np.ndarray, " rows"],
    queries: Float[np.ndarray, "queries features"],
) -> Float[np.ndarray, "queries numbers"]:
    """The inputs of the transformer, one for each query."""
    (rows, d), m = x.shape, learner.validation
    n = rows - m
    tokens = np.zeros((len(queries), learner.rows + 1, 3 * d + 3))
    tokens[:, :rows, :d] = x
    tokens[:, :n, d : 2 * d] = x[:n] / n
    tokens[:, n:rows, 2 * d : 3 * d] = x[n:] / m
    tokens[:, :rows, 3 * d] = y
    tokens[:, n:rows, 3 * d + 1] = y[n:] / m
    tokens[:, -1, :d] = queries
    tokens[:, -1, -1] = 1.0
    return tokens.reshape(len(queries), -1)
