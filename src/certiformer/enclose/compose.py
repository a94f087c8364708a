"""Elementary functions of Taylor forms.

phi(X) with X = x0 + u, x0 the constant coefficient of X: with Taylor coefficients t_i and rho = max |X - x0|,

    phi(X) = sum_{i <= k} t_i(x0) u^i + t_{k+1}(z) u^{k+1},    z in the range of X,

so the polynomial is the sum, and the remainder is that of the sum plus the last term. For odd k the power u^{k+1} lies
in [0, rho^{k+1}], so the last term lies in [min(0, t), max(0, t)] rho^{k+1}; its middle moves into the constant, which
halves the remainder of a convex function (at order 1 this is the chord form).
Where the result is not finite, or worse than the interval rule, the constant form of the interval rule replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.enclose.series import SERIES, power_series, series
from certiformer.enclose.space import Space, multinomials, total_degrees
from certiformer.enclose.taylor import Form, constant, enclosed_range, multiply, pad_rows, raise_constant
from certiformer.interval import Interval, apart, arithmetic
from certiformer.interval.padding import TINY, UNIT, slack


def elementary(name: str, x: Form) -> Form:
    """phi(x) for phi = exp, log, sqrt, rsqrt, sin, cos, tan, tanh, atan, erf or gelu."""
    if name not in SERIES:
        raise ValueError(f"no enclosure is known for the function {name!r}")
    return compose(x, lambda argument, terms: series(name, argument, terms))


def power(x: Form, exponent: int) -> Form:
    """x**exponent for an integer exponent >= 0."""
    if exponent == 0:
        return constant(x.space, arithmetic.power(enclosed_range(x), 0))
    if exponent == 1:
        return x
    return compose(x, lambda argument, terms: power_series(argument, terms, exponent))


def compose(x: Form, coefficients: Callable[[Interval, int], Interval]) -> Form:
    """phi(x), where `coefficients(argument, terms)` encloses the Taylor coefficients of phi."""
    k = x.space.order
    over = apart(enclosed_range, x)
    # Cutting the range by the interval part may leave the constant coefficient outside; the offset becomes remainder.
    x0 = jnp.clip(x.coef[0], over.lo, over.hi)
    rem_x = x.rem + jnp.abs(x.coef[0] - x0) * (1 + UNIT)
    # One run of the recursion serves the point x0, at index 0, and the whole range, at index 1.
    argument = Interval(jnp.stack([x0, over.lo]), jnp.stack([x0, over.hi]))
    taylor = apart(lambda z: coefficients(z, k + 2), argument)
    powers = apart(lambda z, o: _powers(jnp.maximum(o.hi - z, z - o.lo) * (1 + UNIT) + TINY, k + 1), x0, over)
    t, t_rad = arithmetic.centre_radius(taylor.lo[:-1, 0], taylor.hi[:-1, 0])
    tail_mid, tail = _last_term(Interval(taylor.lo[-1, 1], taylor.hi[-1, 1]), powers[-1], k + 1)
    expand = _expand_linear if x.degree <= 1 else _expand
    coef, rem = apart(partial(expand, x.space), x.coef[1:], rem_x, t, powers)
    coef = raise_constant(coef, tail_mid)
    # (2k + 8) roundings of powers of rho and of sums, each relative to what is summed.
    rem = rem + ((t_rad * powers[:-1]).sum(0) + tail) * (1 + (2 * k + 8) * UNIT)
    rem = rem + slack(2, jnp.abs(coef[0]) + jnp.abs(tail_mid))
    return or_interval(x.space, coef, rem, Interval(taylor.lo[0, 1], taylor.hi[0, 1]))


def _powers(rho: Float[Array, "*_"], largest: int) -> Float[Array, "powers ..."]:
    """rho^0 .. rho^largest along a new first axis."""
    rows = [jnp.ones_like(rho)]
    for _ in range(largest):
        rows.append(rows[-1] * rho)
    return jnp.stack(rows)


def _last_term(t: Interval, size: Float[Array, "*_"], exponent: int) -> tuple[Array, Array]:
    """Middle and radius of t u^exponent for |u|^exponent <= size."""
    if exponent % 2:
        return jnp.zeros_like(size), t.magnitude * size
    low, high = jnp.minimum(t.lo, 0.0), jnp.maximum(t.hi, 0.0)
    return 0.5 * (low + high) * size, 0.5 * (high - low) * size


def _expand_linear(
    space: Space, moving: Array, rem: Array, t: Float[Array, "orders ..."], powers: Array
) -> tuple[Float[Array, "rows ..."], Float[Array, "*_"]]:
    """sum_i t_i u^i for u = g.e + d, |d| <= rem, in closed form: coefficient a is t_|a| (|a|! / a!) g^a.

    |(L + d)^i - L^i| <= i reach^(i-1) |d| when |L| and |L + d| are at most reach = rho + rem, which always holds.
    Flushed powers are below 2.3e-308 before at most k factors of size <= 1 + reach, a multinomial (at most 5,000 terms of
    at most 16! < 3e13) and t multiply them: 1e10 TINY covers that.
    """
    k, dimension = t.shape[0] - 1, moving.shape[0]
    column = (slice(None),) + (None,) * (t.ndim - 1)
    reach = _powers(powers[1] + rem, k)
    slope = (jnp.abs(t[1:]) * reach[:-1] * np.arange(1.0, k + 1)[column]).sum(0)
    flushed = 1e10 * TINY * jnp.abs(t).sum(0) * (1 + reach[-1]) * 2.0**k
    inherited = slope * rem * (1 + (2 * k + 8) * UNIT) + flushed
    if dimension == 0 or k == 0:
        return t[:1], inherited + slack(1, jnp.abs(t[0]))
    table, exponents = _powers(moving, k), space.exponents(k)
    monomials = multinomials(dimension, k).reshape((-1,) + (1,) * (moving.ndim - 1)) * table[exponents[:, 0], 0]
    for axis in range(1, dimension):
        monomials = monomials * table[exponents[:, axis], axis]
    coef = t[total_degrees(dimension, k)] * monomials
    return coef, inherited + slack(2 * k, jnp.abs(coef).sum(0))


def _expand(
    space: Space, moving: Array, rem: Array, t: Float[Array, "orders ..."], powers: Array
) -> tuple[Float[Array, "rows ..."], Float[Array, "*_"]]:
    """sum_i t_i u^i by Horner's rule in polynomials with remainder."""
    u = jnp.concatenate([jnp.zeros_like(moving[:1]), moving])
    acc, acc_rem = t[-1:], jnp.zeros_like(rem)
    for i in reversed(range(t.shape[0] - 1)):
        acc, acc_rem = apart(partial(multiply, space), acc, acc_rem, u, rem)
        acc = raise_constant(acc, t[i])
        acc_rem = acc_rem + slack(1, jnp.abs(acc[0]) + jnp.abs(t[i]))
    return acc, acc_rem


def or_interval(space: Space, coef: Array, rem: Array, interval: Interval) -> Form:
    """The polynomial form, or the constant form of the interval where that has the smaller radius."""
    mid, rad = arithmetic.centre_radius(interval.lo, interval.hi)
    keep = rem <= rad
    coef = jnp.where(keep, coef, pad_rows(mid[None], coef.shape[0]))
    return Form(coef, jnp.where(keep, rem, rad), interval, space)
