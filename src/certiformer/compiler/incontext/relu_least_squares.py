"""Least squares and ridge regression by gradient descent with ReLU attention (Bai et al. 2023, arXiv 2306.04637).

A step is two heads, as s - y = max(s - y, 0) - max(y - s, 0); with a ridge three. See `relu_network` for the weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from certiformer.compiler.incontext.determined import require_box, require_determined, require_spectrum
from certiformer.compiler.incontext.relu_steps import relu_learner, stored
from certiformer.compiler.incontext.relu_steps import relu_network as build
from certiformer.compiler.incontext.relu_steps import relu_points as points
from certiformer.compiler.incontext.request import Request
from certiformer.errors import BadInput
from certiformer.kernel.meanings.relu_learner import ReluLearner
from certiformer.kernel.meanings.selection import Selection

__all__ = ["build", "describe", "facts", "points", "refuse", "remarks"]
FOREIGN = ("schedule", "attention", "looped", "error", "margin", "validation")


def describe(request: Request) -> ReluLearner:
    """The description that the flags ask for; without --strength there is no penalty.

    >>> describe(Request(learner="relu", features=2, rows=8, strength="0.5", layers=9, step=0.5)).algorithm
    'gradient steps of size 0.5 for least squares with a ridge of strength 0.5'
    """
    request.refuse(*FOREIGN)
    return relu_learner(request, "relu-least-squares", strength=one_strength(request, needed=False))


def one_strength(request: Request, needed: bool) -> float:
    """The one number of --strength; 0 where it is not given and not needed."""
    if request.strength is None and not needed:
        return 0.0
    strength, *more = request.strengths()
    if more:
        raise BadInput(
            f"the learner {request.learner} has one --strength, not {1 + len(more)}; select chooses among several"
        )
    return strength


def refuse(learner: ReluLearner, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> None:
    """One sentence where the context cannot be learned from, or where the bounds of the claim do not hold."""
    require_box(learner, x, y, queries)
    require_determined(x, learner.decay)
    require_spectrum(learner.spectrum, learner.everywhere, x)


def remarks(learner: ReluLearner | Selection, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> list[str]:
    """A context outside the box is refused; what is left are numbers that the stored type does not have."""
    if all((stored(v, learner.dtype) == v) for part in (x, y, queries) for v in part.ravel()):
        return []
    return [f"the data are rounded to {learner.dtype}, and the bound of the certificate speaks of the rounded ones"]


def facts(learner: ReluLearner, x: np.ndarray, y: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
    """The weights that were learned."""
    return {"weights": [float(w) for w in outputs[0, -learner.features :]]}
