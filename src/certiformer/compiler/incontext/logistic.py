"""Logistic regression by gradient descent with ReLU attention (Bai et al. 2023, arXiv 2306.04637, theorem 7).

The logistic function is replaced by a polygon (`logistic_polygon`), one head for each of its corners.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certiformer.compiler.incontext.determined import require_box, require_determined, require_spectrum
from certiformer.compiler.incontext.logistic_polygon import polygon
from certiformer.compiler.incontext.relu_least_squares import one_strength, remarks
from certiformer.compiler.incontext.relu_network import relu_network as build
from certiformer.compiler.incontext.relu_network import relu_points as points
from certiformer.compiler.incontext.relu_steps import relu_learner
from certiformer.compiler.incontext.request import Request
from certiformer.errors import BadInput
from certiformer.kernel.meanings.relu_learner import ReluLearner

__all__ = ["build", "describe", "facts", "points", "refuse", "remarks"]
ERROR = 1e-3  # of the polygon: 20 heads


def describe(request: Request) -> ReluLearner:
    """The description that the flags ask for; without --strength there is no penalty.

    >>> learner = describe(Request(learner="logistic", features=2, rows=8, strength="0.5", layers=9, step=1.0))
    >>> learner.algorithm, len(learner.knots)
    ('gradient steps of size 1 for logistic regression with a ridge of strength 0.5', 20)
    """
    request.refuse("schedule", "attention", "looped", "margin", "validation")
    knots, bends = polygon(ERROR if request.error is None else request.error, request.dtype)
    if request.label_bound != 1.0:
        raise BadInput("the labels of logistic regression are 0 and 1; leave out --label-bound")
    strength = one_strength(request, needed=False)
    return relu_learner(request, "relu-logistic", strength=strength, knots=knots, bends=bends)


def refuse(learner: ReluLearner, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> None:
    """One sentence where the context cannot be learned from, or where the bounds of the claim do not hold."""
    for row, label in enumerate(y, 1):
        if label not in (0.0, 1.0):
            raise BadInput(f"the labels of logistic regression are 0 and 1, but row {row} has {label:g}")
    require_box(learner, x, y, queries)
    require_determined(x, learner.decay)
    require_spectrum(learner.spectrum, learner.everywhere, x)


def facts(learner: ReluLearner, x: np.ndarray, y: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
    """The weights that were learned, and for every query its score and the likelier label."""
    scores = [float(s) for s in outputs[:, 1]]
    weights = [float(w) for w in outputs[0, -learner.features :]]
    return {"weights": weights, "scores": scores, "labels": [int(s > 0) for s in scores]}
