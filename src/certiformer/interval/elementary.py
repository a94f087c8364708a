"""Elementary functions of intervals: exact range rules, then the measured allowance of `padding.ULPS`.

Monotone functions take their ends from the ends of the argument. A value computed by XLA may be off by the allowance,
which the padding covers; that the *computed* function need not be monotone does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from certiformer.interval.arithmetic import Interval
from certiformer.interval.padding import TRIGONOMETRIC_LIMIT, lower, relative, upper

PERIOD_TOLERANCE = 1e-9
"""Half periods are counted up to this. For |x| <= 1e5 the computed x/pi is off by less than 1e-10; a spurious extreme
point is at most pi * 1e-9 outside the argument, where sin differs from its extreme value by less than 5e-18."""


def _increasing(name: str, function: Callable, a: Interval) -> Interval:
    return Interval(lower(function(a.lo), relative(name)), upper(function(a.hi), relative(name)))


def exp(a: Interval) -> Interval:
    y = _increasing("exp", jnp.exp, a)
    return Interval(jnp.maximum(y.lo, 0.0), y.hi)


def log(a: Interval) -> Interval:
    """NaN where the argument may be <= 0."""
    y = _increasing("log", jnp.log, a)
    bad = ~(a.lo > 0)
    return Interval(jnp.where(bad, jnp.nan, y.lo), jnp.where(bad, jnp.nan, y.hi))


def sqrt(a: Interval) -> Interval:
    """sqrt(max(a, 0)): the continuous extension; NaN only where the whole argument is negative.

    Level 1 cannot see whether an argument such as 1 - x1**2 at x1 = 1 is zero or a rounding below it. The
    checker decides the domain exactly.
    """
    y = _increasing("sqrt", jnp.sqrt, Interval(jnp.maximum(a.lo, 0.0), jnp.maximum(a.hi, 0.0)))
    bad = ~(a.hi >= 0)
    return Interval(jnp.where(bad, jnp.nan, jnp.maximum(y.lo, 0.0)), jnp.where(bad, jnp.nan, y.hi))


def tanh(a: Interval) -> Interval:
    return _clip(_increasing("tanh", jnp.tanh, a))


def erf(a: Interval) -> Interval:
    return _clip(_increasing("erf", jax.scipy.special.erf, a))


def atan(a: Interval) -> Interval:
    return _increasing("atan", jnp.arctan, a)


def sin(a: Interval) -> Interval:
    return _wave("sin", jnp.sin, a, maximum_at=0.5)


def cos(a: Interval) -> Interval:
    return _wave("cos", jnp.cos, a, maximum_at=0.0)


def tan(a: Interval) -> Interval:
    """Increasing between two poles pi/2 + m pi; NaN where a pole may be touched or the argument is out of range."""
    defined = ~_contains(a, 1.0, 0.5) & (a.magnitude <= TRIGONOMETRIC_LIMIT)
    y = _increasing("tan", jnp.tan, a)
    return Interval(jnp.where(defined, y.lo, jnp.nan), jnp.where(defined, y.hi, jnp.nan))


def _wave(name: str, function: Callable, a: Interval, maximum_at: float) -> Interval:
    """sin or cos, whose maxima are at pi * (maximum_at + 2 m): the ends, or +-1 where an extreme point is inside."""
    at_lo, at_hi = function(a.lo), function(a.hi)
    low = jnp.where(_contains(a, 2.0, maximum_at + 1.0), -1.0, jnp.minimum(at_lo, at_hi))
    high = jnp.where(_contains(a, 2.0, maximum_at), 1.0, jnp.maximum(at_lo, at_hi))
    y = _clip(Interval(lower(low, relative(name)), upper(high, relative(name))))
    far = a.magnitude > TRIGONOMETRIC_LIMIT
    return Interval(jnp.where(far, -1.0, y.lo), jnp.where(far, 1.0, y.hi))


def _contains(a: Interval, period: float, offset: float) -> Bool[Array, "*_"]:
    """Whether a may contain pi * (offset + period * m) for an integer m."""
    first = jnp.ceil((a.lo / math.pi - offset) / period - PERIOD_TOLERANCE)
    last = jnp.floor((a.hi / math.pi - offset) / period + PERIOD_TOLERANCE)
    return first <= last


def _clip(y: Interval, bound: float = 1.0) -> Interval:
    return Interval(jnp.clip(y.lo, -bound, bound), jnp.clip(y.hi, -bound, bound))


def range_of(name: str) -> Callable[[Interval], Interval]:
    """The interval rule of an elementary function by its name in a target program."""
    return {
        "exp": exp,
        "log": log,
        "sqrt": sqrt,
        "sin": sin,
        "cos": cos,
        "tan": tan,
        "tanh": tanh,
        "atan": atan,
        "erf": erf,
    }[name]


__all__ = ["atan", "cos", "erf", "exp", "log", "range_of", "sin", "sqrt", "tan", "tanh"]
