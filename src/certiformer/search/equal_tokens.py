"""Sequences of equal tokens: where an architecture that cannot tell them apart must fail.

If equal tokens keep equal rows whatever the weights are (`expressivity.relative_bias_not_universal`), these inputs are
tried as counterexamples, and half the spread of the target's rows there bounds the error of *every* model of the
architecture from below. The spread is enclosed in balls.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import arb
from jaxtyping import Float

from certiformer.expressivity.relative_bias_not_universal import equal_tokens_stay_equal
from certiformer.kernel.balls import ZERO, Box, ball, decimal, larger
from certiformer.kernel.taylor import value_ball
from certiformer.search.case import Case

SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)  # of the way through the box


def equal_token_points(case: Case) -> Float[np.ndarray, "points inputs"] | None:
    """A few sequences of equal tokens in the domain; None if there are none, or if the architecture sees positions."""
    config, width = case.model.config, case.model.config.input.width or 1
    if config.readout.kind != "all" or config.tokens < 2:
        return None
    if not equal_tokens_stay_equal(config, case.model.tensors).holds:
        return None
    # The part of the box that all tokens share.
    low = case.domain.inner_low.reshape(config.tokens, width).max(axis=0)
    high = case.domain.inner_high.reshape(config.tokens, width).min(axis=0)
    if (low > high).any():
        return None
    tokens = [np.clip(low + share * (high - low), low, high) for share in SHARES]
    return np.array([np.tile(token, config.tokens) for token in tokens])


def architecture_limit(case: Case, points: Float[np.ndarray, "points inputs"] | None) -> str:
    """What no choice of weights can repair, in words; nothing unless it is more than epsilon."""
    if points is None:
        return ""
    limit = ZERO
    for point in points:
        limit = larger(limit, _half_spread(case, point))
    text = decimal(limit, up=False)
    if not Fraction(text) > case.epsilon:
        return ""
    return (
        f"no other weights of this architecture would do: equal tokens keep equal rows, so every model of it has an error"
        f" of at least {text} (certiformer theorem relative_bias_not_universal)"
    )


def _half_spread(case: Case, point: Float[np.ndarray, " inputs"]) -> arb:
    """A lower bound of half the largest difference of two rows of the target at a point."""
    box = Box(tuple(ball(Fraction(float(x))) for x in point), (ZERO,) * len(point))
    forms = case.problem.right.forms(box, 0)
    width, best = case.model.config.outputs, ZERO
    for column in range(width):
        values = [value_ball(form) for form in forms[column::width]]
        gaps = [(a - b).lower() / 2 for a in values for b in values]
        for gap in gaps:
            best = larger(best, gap.lower()) if gap.is_finite() else best
    return best
