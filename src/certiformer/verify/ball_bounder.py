"""The checker's own arithmetic as a bounder: slow, but exactly what the checker will compute.

Used for the small problems that the sum rule produces, where a few hundred boxes settle everything and compiling a
float64 kernel would take longer than the search.
"""

from __future__ import annotations

import numpy as np
from flint import arb
from jaxtyping import Float

from certiformer.kernel.balls import Box
from certiformer.kernel.problem import Problem, error_upper
from certiformer.kernel.rules import axis_scores


class BallBounder:
    """Bounds of |left - right| on boxes by the checker's Taylor forms of the given order."""

    batch = 64

    def __init__(self, problem: Problem, order: int):
        self.problem, self.order = problem, order
        self.widths = np.array([float((high - low).mid()) for low, high in problem.domain.ends])

    @property
    def start_depth(self) -> tuple[int, ...]:
        return (0,) * self.problem.domain.dimension

    def __call__(
        self, centre: Float[np.ndarray, "n D"], radius: Float[np.ndarray, "n D"]
    ) -> tuple[Float[np.ndarray, " n"], Float[np.ndarray, "n D"]]:
        bounds, scores = np.full(len(centre), np.inf), np.zeros(centre.shape)
        for row, (c, r) in enumerate(zip(centre, radius, strict=True)):
            box = Box(tuple(arb(float(x)) for x in c), tuple(arb(float(x)) for x in r))
            upper, forms, _ = error_upper(self.problem.restrict(box), box, self.order)
            bounds[row] = float(upper) * (1 + 2.0**-50) if upper.is_finite() else np.inf
            scores[row] = axis_scores(forms, list(r / self.widths))
        return bounds, scores
