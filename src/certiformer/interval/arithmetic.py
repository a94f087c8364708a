"""Intervals of real numbers as pairs of float64 arrays, rounded outward.

`Interval(lo, hi)` asserts lo <= x <= hi for the real numbers x it stands for, elementwise. Each operation returns an
interval that contains every result for arguments inside its operands. NaN in an end means "perhaps undefined": it
survives every operation and is never a bound. An infinite end means "unbounded on that side". Ends are zero or normal
numbers (compiled code reads a denormal as zero): arithmetic and `enclose_constant` produce no others.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.interval.padding import TINY, UNIT, lower, upper


class Interval(NamedTuple):
    """The real numbers between `lo` and `hi`, elementwise; arithmetic rounds outward.

    >>> third = point(1.0) / point(3.0)
    >>> bool(third.lo < 1 / 3 < third.hi), bool(third.hi - third.lo < 1e-14)
    (True, True)
    """

    lo: Float[Array, "*_"]
    hi: Float[Array, "*_"]

    # A NamedTuple is a pytree at once; the operators below replace those of tuples (concatenation, repetition).
    def __add__(self, other: Any) -> Interval:  # type: ignore[override]
        return add(self, _interval(other))

    def __sub__(self, other: Any) -> Interval:
        return sub(self, _interval(other))

    def __mul__(self, other: Any) -> Interval:  # type: ignore[override]
        return mul(self, _interval(other))

    def __truediv__(self, other: Any) -> Interval:
        return div(self, _interval(other))

    def __neg__(self) -> Interval:
        return Interval(-self.hi, -self.lo)

    def __radd__(self, other: Any) -> Interval:
        return add(_interval(other), self)

    def __rmul__(self, other: Any) -> Interval:  # type: ignore[override]
        return mul(_interval(other), self)

    def __rsub__(self, other: Any) -> Interval:
        return sub(_interval(other), self)

    @property
    def magnitude(self) -> Float[Array, "*_"]:
        """The largest |x|."""
        return jnp.maximum(jnp.abs(self.lo), jnp.abs(self.hi))


def point(value: Any) -> Interval:
    """The interval of one float64 number (or array of them)."""
    array = jnp.asarray(value, dtype=jnp.float64)
    if array.dtype != jnp.float64:
        raise RuntimeError("intervals need 64-bit floats: set jax_enable_x64 before any array is made")
    return Interval(array, array)


def _interval(value: Any) -> Interval:
    return value if isinstance(value, Interval) else point(value)


def add(a: Interval, b: Interval) -> Interval:
    return Interval(lower(a.lo + b.lo), upper(a.hi + b.hi))


def sub(a: Interval, b: Interval) -> Interval:
    return Interval(lower(a.lo - b.hi), upper(a.hi - b.lo))


def mul(a: Interval, b: Interval) -> Interval:
    """Product: the extreme values lie among the four products of ends (bilinear in the two arguments)."""
    ends = (a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi)
    low = jnp.minimum(jnp.minimum(ends[0], ends[1]), jnp.minimum(ends[2], ends[3]))
    high = jnp.maximum(jnp.maximum(ends[0], ends[1]), jnp.maximum(ends[2], ends[3]))
    return Interval(lower(low), upper(high))


def div(a: Interval, b: Interval) -> Interval:
    """Quotient; NaN where the divisor may be zero."""
    return mul(a, reciprocal(b))


def reciprocal(b: Interval) -> Interval:
    """1/b, decreasing on each side of zero; NaN where b may be zero."""
    defined = (b.lo > 0) | (b.hi < 0)
    return _where_defined(defined, Interval(lower(1 / b.hi), upper(1 / b.lo)))


def absolute(a: Interval) -> Interval:
    crossing = (a.lo < 0) & (a.hi > 0)
    low = jnp.where(crossing, 0.0, jnp.minimum(jnp.abs(a.lo), jnp.abs(a.hi)))
    return Interval(low, a.magnitude)


def square(a: Interval) -> Interval:
    b = absolute(a)
    return Interval(jnp.maximum(lower(b.lo * b.lo), 0.0), upper(b.hi * b.hi))


def power(a: Interval, exponent: int) -> Interval:
    """a**exponent for an integer exponent >= 0.

    A product tree of n equal factors has relative error at most about n 2^-53, so 4 n 2^-53 plus one unit is allowed.
    Intermediate results can only be flushed when |a| < 1, and then the final result is below the flushed one.
    """
    if exponent == 0:
        return Interval(jnp.ones_like(a.lo) + 0 * a.lo, jnp.ones_like(a.hi) + 0 * a.hi)
    factor = exponent * 2.0**-51 + UNIT
    if exponent % 2:
        return Interval(
            lower(jax.lax.integer_pow(a.lo, exponent), factor), upper(jax.lax.integer_pow(a.hi, exponent), factor)
        )
    b = absolute(a)
    low = jnp.maximum(lower(jax.lax.integer_pow(b.lo, exponent), factor), 0.0)
    return Interval(low, upper(jax.lax.integer_pow(b.hi, exponent), factor))


def minimum(a: Interval, b: Interval) -> Interval:
    return Interval(jnp.minimum(a.lo, b.lo), jnp.minimum(a.hi, b.hi))


def maximum(a: Interval, b: Interval) -> Interval:
    return Interval(jnp.maximum(a.lo, b.lo), jnp.maximum(a.hi, b.hi))


def hull(a: Interval, b: Interval) -> Interval:
    """The smallest interval that contains both."""
    return Interval(jnp.minimum(a.lo, b.lo), jnp.maximum(a.hi, b.hi))


def intersect(a: Interval, b: Interval) -> Interval:
    """The common part of two enclosures of the same number; an unknown (NaN) end on either side is kept as NaN."""
    return Interval(jnp.maximum(a.lo, b.lo), jnp.minimum(a.hi, b.hi))


def centre_radius(lo: Float[Array, "*_"], hi: Float[Array, "*_"]) -> tuple[Float[Array, "*_"], Float[Array, "*_"]]:
    """A float64 centre and radius with [lo, hi] inside [centre - radius, centre + radius] in real arithmetic."""
    centre = 0.5 * lo + 0.5 * hi
    radius = jnp.maximum(hi - centre, centre - lo)
    return centre, radius * (1 + UNIT) + (jnp.abs(lo) + jnp.abs(hi)) * 2.0**-104 + TINY


def _where_defined(defined: Array, value: Interval) -> Interval:
    return Interval(jnp.where(defined, value.lo, jnp.nan), jnp.where(defined, value.hi, jnp.nan))
