"""Piecewise operations on Taylor forms: positive part, maximum, minimum, absolute value, selection by a comparison."""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Bool

from certiformer.enclose.taylor import (
    Form,
    add,
    aligned,
    enclosed_range,
    magnitude,
    pad_rows,
    raise_constant,
    scale,
    sub,
)
from certiformer.interval import Interval, arithmetic
from certiformer.interval.padding import UNIT, slack

Decision = tuple[Bool[Array, "*_"], Bool[Array, "*_"]]
"""Where a comparison certainly holds, and where it certainly does not."""


def relu(x: Form) -> Form:
    """max(x, 0): x or 0 where the sign is decided, else the band around a chord.

    With range [l, u], l < 0 < u, and any slope 0 <= a <= 1 the difference relu(X) - a X is 0 at X = 0 and linear on both
    sides, so it lies in [0, max(-a l, (1 - a) u)]; a = u / (u - l) makes the two ends equal. With h half that maximum,
    relu(X) = a X + h +- h.
    """
    r = enclosed_range(x)
    passing, blocked = r.lo >= 0, r.hi <= 0
    slope = jnp.where(passing, 1.0, jnp.where(blocked, 0.0, r.hi / (r.hi - r.lo)))
    band = 0.5 * jnp.maximum(-slope * r.lo, (1 - slope) * r.hi) * (1 + 8 * UNIT)
    # NaN ranges decide nothing and reach `band` and `slope` by the quotient.
    band = jnp.where(passing | blocked, 0.0, band)
    coef = raise_constant(slope * x.coef, band)
    rem = slope * x.rem + band + slack(2, slope * magnitude(x) + band)
    rem = jnp.where(blocked, 0.0, rem)
    return Form(coef, rem, Interval(jnp.maximum(r.lo, 0.0), jnp.maximum(r.hi, 0.0)), x.space)


def maximum(x: Form, y: Form) -> Form:
    """max(x, y) = y + relu(x - y)."""
    return _within(add(y, relu(sub(x, y))), arithmetic.maximum(enclosed_range(x), enclosed_range(y)))


def minimum(x: Form, y: Form) -> Form:
    """min(x, y) = x - relu(x - y)."""
    return _within(sub(x, relu(sub(x, y))), arithmetic.minimum(enclosed_range(x), enclosed_range(y)))


def absolute(x: Form) -> Form:
    """|x| = 2 relu(x) - x."""
    return _within(sub(scale(relu(x), jnp.float64(2.0)), x), arithmetic.absolute(enclosed_range(x)))


def hull(x: Form, y: Form) -> Form:
    """A form of anything that equals x or y at each point: (x + y)/2 +- max |x - y| / 2."""
    half = scale(add(x, y), jnp.float64(0.5))
    gap = 0.5 * enclosed_range(sub(x, y)).magnitude * (1 + 4 * UNIT)
    return Form(half.coef, half.rem + gap, arithmetic.hull(enclosed_range(x), enclosed_range(y)), x.space)


def compare(comparison: str, a: Form, b: Form) -> Decision:
    """Where a < b ("lt") or a <= b ("le") on the whole box, and where it is so nowhere on it."""
    gap = enclosed_range(sub(a, b))
    if comparison == "lt":
        return gap.hi < 0, gap.lo >= 0
    if comparison == "le":
        return gap.hi <= 0, gap.lo > 0
    raise ValueError(f"{comparison!r} is not a comparison of the target language")


def where(condition: Decision, x: Form, y: Form) -> Form:
    """x where the condition holds on the box, y where it holds nowhere on it, the hull of both where it is not decided."""
    true, false = condition
    return choose(true, x, choose(false, y, hull(x, y)))


def choose(condition: Bool[Array, "*_"], x: Form, y: Form) -> Form:
    """x where the (decided) condition holds, else y."""
    x, y = aligned(x, y)
    rows = max(x.coef.shape[0], y.coef.shape[0])
    a, b = enclosed_range(x), enclosed_range(y)
    return Form(
        jnp.where(condition, pad_rows(x.coef, rows), pad_rows(y.coef, rows)),
        jnp.where(condition, x.rem, y.rem),
        Interval(jnp.where(condition, a.lo, b.lo), jnp.where(condition, a.hi, b.hi)),
        x.space,
    )


def _within(x: Form, interval: Interval) -> Form:
    """x with a second, independent enclosure of its range."""
    return Form(x.coef, x.rem, interval, x.space)
