"""Elementary functions of Taylor forms.

phi(X) with X = x0 + u, x0 the constant coefficient of X: with Taylor coefficients t_i and rho = max |X - x0|,

    phi(X) = sum_{i <= k} t_i(x0) u^i + t_{k+1}(z) u^{k+1},    z in the range of X,

so the polynomial is the sum, and the remainder is that of the sum plus the last term. For odd k the power u^{k+1} lies in
[0, rho^{k+1}], so the last term lies in [min(0, t), max(0, t)] rho^{k+1}; its middle moves into the constant, which halves the
remainder of a convex function (at order 1 this is the chord form).
Where the result is not finite, or worse than the interval rule, the constant form of the interval rule replaces it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.enclose.series import SERIES, Series, power_series, series
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


def compose(x: Form, coefficients: Callable[[Interval, int], Series]) -> Form:
    """phi(x), where `coefficients(argument, terms)` encloses the Taylor coefficients of phi."""
    k = x.space.order
    over = apart(enclosed_range, x)
    # Cutting the range by the interval part may leave the constant coefficient outside; the offset becomes remainder.
    x0 = jnp.clip(x.coef[0], over.lo, over.hi)
    rem_x = x.rem + jnp.abs(x.coef[0] - x0) * (1 + UNIT)
    rho = jnp.maximum(over.hi - x0, x0 - over.lo) * (1 + UNIT) + TINY
    # One run of the recursion serves the point x0, at index 0, and the whole range, at index 1.
    argument = Interval(jnp.stack([x0, over.lo]), jnp.stack([x0, over.hi]))
    taylor = apart(lambda z: coefficients(z, k + 2), argument)
    middles = [arithmetic.centre_radius(t.lo[0], t.hi[0]) for t in taylor[:-1]]
    t = [mid for mid, _ in middles]
    uncertain = sum((rad * rho**i for i, (_, rad) in enumerate(middles)), jnp.zeros(()))
    tail_mid, tail = _last_term(Interval(taylor[-1].lo[1], taylor[-1].hi[1]), rho, k + 1)
    expand = _expand_linear if x.degree <= 1 else _expand
    coef, rem = apart(partial(expand, x.space), x.coef[1:], rem_x, t, rho)
    coef = raise_constant(coef, tail_mid)
    # (2k + 8) roundings of powers of rho and of sums, each relative to what is summed.
    rem = rem + (uncertain + tail) * (1 + (2 * k + 8) * UNIT) + slack(2, jnp.abs(coef[0]) + jnp.abs(tail_mid))
    return or_interval(x.space, coef, rem, Interval(taylor[0].lo[1], taylor[0].hi[1]))


def _last_term(t: Interval, rho: Float[Array, "*_"], exponent: int) -> tuple[Array, Array]:
    """Middle and radius of t u^exponent for |u| <= rho."""
    size = rho**exponent
    if exponent % 2:
        return jnp.zeros_like(size), t.magnitude * size
    low, high = jnp.minimum(t.lo, 0.0), jnp.maximum(t.hi, 0.0)
    return 0.5 * (low + high) * size, 0.5 * (high - low) * size


def _expand_linear(
    space: Space, moving: Array, rem: Array, t: list[Array], rho: Array
) -> tuple[Float[Array, "rows ..."], Float[Array, "*_"]]:
    """sum_i t_i u^i for u = g.e + d, |d| <= rem, in closed form: coefficient a is t_|a| (|a|! / a!) g^a.

    |(L + d)^i - L^i| <= i rho^(i-1) |d| when |L| and |L + d| are at most rho; |L| <= rho + rem always holds.
    Flushed powers are below 2.3e-308 before at most k factors of size <= 1 + rho and t multiply them.
    """
    k, dimension = len(t) - 1, moving.shape[0]
    reach = rho + rem
    inherited = sum((i * jnp.abs(t[i]) * reach ** (i - 1) for i in range(1, k + 1)), jnp.zeros(())) * rem
    flushed = TINY * sum(jnp.abs(ti) for ti in t) * (1 + reach) ** k
    if dimension == 0 or k == 0:
        return t[0][None], inherited * (1 + (2 * k + 8) * UNIT) + flushed + slack(1, jnp.abs(t[0]))
    powers = [jnp.ones_like(moving), moving]
    for _ in range(k - 1):
        powers.append(powers[-1] * moving)
    table, exponents = jnp.stack(powers), space.exponents(k)
    monomials = table[exponents[:, 0], 0]
    for axis in range(1, dimension):
        monomials = monomials * table[exponents[:, axis], axis]
    count = multinomials(dimension, k).reshape((-1,) + (1,) * (moving.ndim - 1))
    coef = jnp.stack(t)[total_degrees(dimension, k)] * (monomials * count)
    rem = inherited * (1 + (2 * k + 8) * UNIT) + flushed
    return coef, rem + slack(2 * k, jnp.abs(coef).sum(0))


def _expand(
    space: Space, moving: Array, rem: Array, t: list[Array], rho: Array
) -> tuple[Float[Array, "rows ..."], Float[Array, "*_"]]:
    """sum_i t_i u^i by Horner's rule in polynomials with remainder; the last factor is t_k itself."""
    u = jnp.concatenate([jnp.zeros_like(moving[:1]), moving])
    acc, acc_rem = t[-1][None], jnp.zeros_like(rem)
    for ti in reversed(t[:-1]):
        acc, acc_rem = multiply(space, acc, acc_rem, u, rem)
        acc = raise_constant(acc, ti)
        acc_rem = acc_rem + slack(1, jnp.abs(acc[0]) + jnp.abs(ti))
    return acc, acc_rem


def or_interval(space: Space, coef: Array, rem: Array, interval: Interval) -> Form:
    """The polynomial form, or the constant form of the interval where that has the smaller radius."""
    mid, rad = arithmetic.centre_radius(interval.lo, interval.hi)
    keep = rem <= rad
    coef = jnp.where(keep, coef, pad_rows(mid[None], coef.shape[0]))
    return Form(coef, jnp.where(keep, rem, rad), interval, space)
