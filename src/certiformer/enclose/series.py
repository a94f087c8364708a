"""Taylor coefficients phi^(i)(x)/i! of elementary functions, as intervals, at points and over ranges alike.

Each rule is a recursion or a closed form that is an identity of real numbers at every x of the argument, so running it
in interval arithmetic encloses the coefficient at every point of a range. By Taylor's theorem with Lagrange's remainder,

    phi(x) = sum_{i <= k} t_i(x0) (x - x0)^i + t_{k+1}(z) (x - x0)^{k+1}     for some z between x0 and x.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import jax.numpy as jnp

from certiformer.interval import Interval, arithmetic, elementary
from certiformer.interval.constants import enclose_constant
from certiformer.interval.padding import lower, upper

Series = list[Interval]


def series(name: str, x: Interval, terms: int) -> Series:
    """The first `terms` Taylor coefficients (i = 0 .. terms - 1) of the elementary function `name` at x."""
    return SERIES[name](x, terms)


def exp_series(x: Interval, terms: int) -> Series:
    y = elementary.exp(x)
    return [_times(y, Fraction(1, math.factorial(i))) for i in range(terms)]


def log_series(x: Interval, terms: int) -> Series:
    """t_i = (-1)^(i+1) / (i x^i)."""
    y = arithmetic.reciprocal(Interval(jnp.where(x.lo > 0, x.lo, jnp.nan), x.hi))
    out, running = [elementary.log(x)], y
    for i in range(1, terms):
        out.append(_times(running, Fraction((-1) ** (i + 1), i)))
        running = running * y
    return out


def root_series(x: Interval, terms: int, exponent: Fraction) -> Series:
    """t_i = binomial(p, i) x^(p-i) for p = 1/2 or -1/2 on x > 0."""
    root = elementary.sqrt(x)
    inverse = arithmetic.reciprocal(Interval(jnp.where(x.lo > 0, x.lo, jnp.nan), x.hi))
    running = root if exponent > 0 else arithmetic.reciprocal(root)
    out, binomial = [], Fraction(1)
    for i in range(terms):
        out.append(_times(running, binomial))
        binomial = binomial * (exponent - i) / (i + 1)
        running = running * inverse
    return out


def sine_series(x: Interval, terms: int, phase: int) -> Series:
    """sin (phase 0) or cos (phase 1): derivatives cycle through sin, cos, -sin, -cos."""
    s, c = elementary.sin(x), elementary.cos(x)
    cycle = (s, c, -s, -c)
    return [_times(cycle[(i + phase) % 4], Fraction(1, math.factorial(i))) for i in range(terms)]


def tangent_series(x: Interval, terms: int, sign: int) -> Series:
    """tan (sign +1) and tanh (sign -1): y' = 1 + sign y^2, so a_{i+1} = ([i = 0] + sign sum_l a_l a_{i-l}) / (i + 1)."""
    a = [elementary.tan(x) if sign > 0 else elementary.tanh(x)]
    for i in range(terms - 1):
        total = _convolution(a, i)
        step = (total if sign > 0 else -total) + 1.0 if i == 0 else (total if sign > 0 else -total)
        a.append(_times(step, Fraction(1, i + 1)))
    return a


def atan_series(x: Interval, terms: int) -> Series:
    """g = 1/(1 + x^2) has g_i = -(2 x g_{i-1} + g_{i-2}) / (1 + x^2); a_{i+1} = g_i / (i + 1)."""
    inverse = arithmetic.reciprocal(arithmetic.square(x) + 1.0)
    g = [inverse]
    for i in range(1, terms - 1):
        step = _times(x, Fraction(2)) * g[i - 1]
        g.append(-((step + g[i - 2] if i > 1 else step) * inverse))
    return [elementary.atan(x)] + [_times(g[i], Fraction(1, i + 1)) for i in range(terms - 1)]


def erf_series(x: Interval, terms: int) -> Series:
    """g = 2/sqrt(pi) e^(-x^2) has g_i = -2 (x g_{i-1} + g_{i-2}) / i; a_{i+1} = g_i / (i + 1)."""
    front = arithmetic.div(arithmetic.point(2.0), elementary.sqrt(enclose_constant("pi")))
    g = [elementary.exp(-arithmetic.square(x)) * front]
    for i in range(1, terms - 1):
        step = x * g[i - 1]
        g.append(_times(step + g[i - 2] if i > 1 else step, Fraction(-2, i)))
    return [elementary.erf(x)] + [_times(g[i], Fraction(1, i + 1)) for i in range(terms - 1)]


def power_series(x: Interval, terms: int, exponent: int) -> Series:
    """x^n for an integer n >= 0: t_i = binomial(n, i) x^(n-i), and 0 for i > n."""
    zero = Interval(0 * x.lo, 0 * x.hi)
    return [
        _times(arithmetic.power(x, exponent - i), Fraction(math.comb(exponent, i))) if i <= exponent else zero
        for i in range(terms)
    ]


def gelu_series(x: Interval, terms: int) -> Series:
    """x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2: t_i = x Phi_i + Phi_{i-1}."""
    scale = arithmetic.div(arithmetic.point(1.0), elementary.sqrt(arithmetic.point(2.0)))
    inner = erf_series(x * scale, terms)
    cumulative, factor = [_times(inner[0] + 1.0, Fraction(1, 2))], scale
    for term in inner[1:]:
        cumulative.append(_times(term * factor, Fraction(1, 2)))
        factor = factor * scale
    out = [gelu_range(x)]
    return out + [x * cumulative[i] + cumulative[i - 1] for i in range(1, terms)]


def gelu_range(x: Interval) -> Interval:
    """Range of x Phi(x): decreasing up to m = -0.7517916..., increasing after it, minimum -0.16997120747...

    Proof: with the density phi, the derivative is Phi + x phi and the second derivative phi (2 - x^2). So the derivative
    falls from 0 on (-inf, -sqrt 2), rises on [-sqrt 2, sqrt 2] from a negative to a positive value (one zero, m), and
    falls to its limit 1 afterwards, staying positive.
    """

    def at(z: Interval) -> Interval:
        scale = arithmetic.div(arithmetic.point(1.0), elementary.sqrt(arithmetic.point(2.0)))
        return z * _times(elementary.erf(z * scale) + 1.0, Fraction(1, 2))

    left, right = at(Interval(x.lo, x.lo)), at(Interval(x.hi, x.hi))
    turning = (x.lo < -0.7517) & (x.hi > -0.7518)
    low = jnp.where(turning, -0.16997120748, jnp.minimum(left.lo, right.lo))
    return Interval(low, jnp.maximum(left.hi, right.hi))


def _times(x: Interval, factor: Fraction) -> Interval:
    """x times an exact rational: the rounding of the factor and of the product is a quarter of the padding."""
    if factor == 1:
        return x
    scaled = Interval(x.lo * abs(float(factor)), x.hi * abs(float(factor)))
    padded = Interval(lower(scaled.lo), upper(scaled.hi))
    return padded if factor > 0 else -padded


def _convolution(a: Series, i: int) -> Interval:
    """sum_{l=0}^{i} a_l a_{i-l}, with equal pairs taken once (twice the product) and the middle one as a square."""
    parts = [_times(a[ell] * a[i - ell], Fraction(2)) for ell in range((i + 1) // 2)]
    if i % 2 == 0:
        parts.append(arithmetic.square(a[i // 2]))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


SERIES: dict[str, Callable[[Interval, int], Series]] = {
    "exp": exp_series,
    "log": log_series,
    "sqrt": lambda x, terms: root_series(x, terms, Fraction(1, 2)),
    "rsqrt": lambda x, terms: root_series(x, terms, Fraction(-1, 2)),
    "sin": lambda x, terms: sine_series(x, terms, 0),
    "cos": lambda x, terms: sine_series(x, terms, 1),
    "tan": lambda x, terms: tangent_series(x, terms, 1),
    "tanh": lambda x, terms: tangent_series(x, terms, -1),
    "atan": atan_series,
    "erf": erf_series,
    "gelu": gelu_series,
}
