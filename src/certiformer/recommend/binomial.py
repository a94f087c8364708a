"""The largest lower bounds that the axiom `binomial_tail` confirms, as decimals, and what a simulation says about them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from jaxtyping import Float, Int

from certiformer.axioms.binomial_tail import holds

DIGITS = 5


def lower_bound(users: int, hits: int, share: Fraction) -> Fraction:
    """The largest decimal of five digits at which the tail is at most `share`; 0 where there is none.

    >>> lower_bound(433, 95, Fraction(1, 20)), lower_bound(10, 0, Fraction(1, 20))
    (Fraction(18703, 100000), Fraction(0, 1))
    """
    low, high = 0, min(int(hits / max(users, 1) * 10**DIGITS) + 1, 10**DIGITS)  # holds at low, not at high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(users, hits, Fraction(middle, 10**DIGITS), share) else (low, middle)
    return Fraction(low, 10**DIGITS)


def clopper_pearson(users: int, hits: Int[np.ndarray, " runs"], share: float) -> Float[np.ndarray, " runs"]:
    """The same bounds for many runs at once, by the quantile of a beta distribution, for simulations."""
    from scipy.stats import beta

    return np.where(hits > 0, beta.ppf(share, hits, users - hits + 1), 0.0)


def text(value: Fraction) -> str:
    """A bound as decimal text.

    >>> text(Fraction(18703, 100000))
    '0.18703'
    """
    return f"{int(value * 10**DIGITS) / 10**DIGITS:.{DIGITS}f}"
