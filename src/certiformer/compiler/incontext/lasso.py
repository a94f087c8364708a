"""The Lasso by proximal gradient steps (ISTA): ReLU attention makes the step, hidden units shrink the weights.

See `relu_network` for the weights; fewer rows than features are what the Lasso is for, so they are not refused.
"""

from __future__ import annotations

import numpy as np

from certiformer.compiler.incontext.determined import require_box, require_determined, require_spectrum
from certiformer.compiler.incontext.relu_least_squares import FOREIGN, facts, one_strength, remarks
from certiformer.compiler.incontext.relu_steps import relu_learner
from certiformer.compiler.incontext.relu_steps import relu_network as build
from certiformer.compiler.incontext.relu_steps import relu_points as points
from certiformer.compiler.incontext.request import Request
from certiformer.kernel.meanings.relu_learner import ReluLearner

__all__ = ["build", "describe", "facts", "points", "refuse", "remarks"]


def describe(request: Request) -> ReluLearner:
    """The description that the flags ask for; --strength is the factor of the sum of absolute weights.

    >>> describe(Request(learner="lasso", features=2, rows=8, strength="0.25", layers=9)).algorithm
    'proximal gradient steps of size 0.5 for the Lasso of strength 0.25'
    """
    request.refuse(*FOREIGN)
    return relu_learner(request, "relu-lasso", penalty=one_strength(request, needed=True))


def refuse(learner: ReluLearner, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> None:
    """One sentence where the context cannot be learned from, or where the bounds of the claim do not hold."""
    require_box(learner, x, y, queries)
    require_determined(x, learner.threshold)
    require_spectrum(learner.spectrum, learner.everywhere, x)
