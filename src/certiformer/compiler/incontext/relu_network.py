"""The transformer and the tokens of the learners with ReLU attention: two blocks, applied once for every step.

The weights, the theorem and its proof are in `axioms.in_context_relu`, the algorithms in `meanings.relu_learner`. A row
is the token (x_j | x_j / n | y_j | 0), the query, which comes last, (x | 0 | 0 | 1), an unused row all zero.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.axioms.in_context_relu import construction
from certiformer.compiler.dense import dense
from certiformer.kernel.meanings.relu_learner import ReluLearner
from certiformer.model.config import Config


def relu_network(learner: ReluLearner) -> tuple[Config, dict[str, np.ndarray]]:
    """The transformer that makes the steps of the learner and predicts."""
    return dense(construction(learner), "take fewer --features")


def relu_points(
    learner: ReluLearner,
    x: Float[np.ndarray, "rows features"],
    y: Float[np.ndarray, " rows"],
    queries: Float[np.ndarray, "queries features"],
) -> Float[np.ndarray, "queries numbers"]:
    """The inputs of the transformer, one for each query."""
    n, d = x.shape
    tokens = np.zeros((len(queries), learner.rows + 1, 2 * d + 2))
    tokens[:, :n, :d] = x
    tokens[:, :n, d : 2 * d] = x / n
    tokens[:, :n, 2 * d] = y
    tokens[:, -1, :d] = queries
    tokens[:, -1, -1] = 1.0
    return tokens.reshape(len(queries), -1)
