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
import numpy as np

from certiformer.interval import Interval, arithmetic, elementary
from certiformer.interval.constants import enclose_constant
from certiformer.interval.padding import lower, upper

GELU_TURN, GELU_MINIMUM = (-0.7518, -0.7517), -0.1699712075
"""Where x Phi(x) turns, and a lower bound of its values (checked in balls by the tests)."""


def series(name: str, x: Interval, terms: int) -> Interval:
    """The first `terms` Taylor coefficients (i = 0 .. terms - 1, along a new first axis) of the function `name` at x."""
    return SERIES[name](x, terms)


def exp_series(x: Interval, terms: int) -> Interval:
    """t_i = e^x / i!."""
    y = elementary.exp(x)
    return _scaled(Interval(y.lo[None], y.hi[None]), [Fraction(1, math.factorial(i)) for i in range(terms)])


def log_series(x: Interval, terms: int) -> Interval:
    """t_i = (-1)^(i+1) / (i x^i)."""
    first = elementary.log(x)
    y = arithmetic.reciprocal(Interval(jnp.where(x.lo > 0, x.lo, jnp.nan), x.hi))
    rest = _scaled(_powers(y, range(1, terms)), [Fraction((-1) ** (i + 1), i) for i in range(1, terms)])
    return _joined([_stacked([first]), rest])


def root_series(x: Interval, terms: int, exponent: Fraction) -> Interval:
    """t_i = binomial(p, i) x^(p-i) for p = 1/2 or -1/2 on x > 0; t_0 = sqrt also where x touches 0."""
    root = elementary.sqrt(x)
    first = root if exponent > 0 else arithmetic.reciprocal(root)
    inverse = arithmetic.reciprocal(Interval(jnp.where(x.lo > 0, x.lo, jnp.nan), x.hi))
    powers = _powers(inverse, range(1, terms))
    binomials = [
        math.prod((exponent - j for j in range(i)), start=Fraction(1, math.factorial(i))) for i in range(1, terms)
    ]
    # Both factors are positive, so the ends of the product are the products of the ends.
    rest = Interval(jnp.maximum(lower(first.lo * powers.lo), 0.0), upper(first.hi * powers.hi))
    return _joined([_stacked([first]), _scaled(rest, binomials)])


def sine_series(x: Interval, terms: int, phase: int) -> Interval:
    """sin (phase 0) or cos (phase 1): derivatives cycle through sin, cos, -sin, -cos."""
    s, c = elementary.sin(x), elementary.cos(x)
    cycle = _stacked([s, c, -s, -c])
    repeated = _joined([cycle] * (1 + (terms + phase) // 4))
    chosen = Interval(repeated.lo[phase : phase + terms], repeated.hi[phase : phase + terms])
    return _scaled(chosen, [Fraction(1, math.factorial(i)) for i in range(terms)])


def tangent_series(x: Interval, terms: int, sign: int) -> Interval:
    """tan (sign +1) and tanh (sign -1): y' = 1 + sign y^2, so a_{i+1} = ([i = 0] + sign sum_l a_l a_{i-l}) / (i + 1)."""
    a = [elementary.tan(x) if sign > 0 else elementary.tanh(x)]
    for i in range(terms - 1):
        step = _convolution(a, i) if sign > 0 else -_convolution(a, i)
        a.append(_times(step + 1.0 if i == 0 else step, Fraction(1, i + 1)))
    return _stacked(a)


def atan_series(x: Interval, terms: int) -> Interval:
    """g = 1/(1 + x^2) has g_i = -(2 x g_{i-1} + g_{i-2}) / (1 + x^2); a_{i+1} = g_i / (i + 1)."""
    inverse = arithmetic.reciprocal(arithmetic.square(x) + 1.0)
    g = [inverse]
    for i in range(1, terms - 1):
        step = _times(x, Fraction(2)) * g[i - 1]
        g.append(-((step + g[i - 2] if i > 1 else step) * inverse))
    return _stacked([elementary.atan(x)] + [_times(g[i], Fraction(1, i + 1)) for i in range(terms - 1)])


def erf_series(x: Interval, terms: int) -> Interval:
    """g = 2/sqrt(pi) e^(-x^2) has g_i = -2 (x g_{i-1} + g_{i-2}) / i; a_{i+1} = g_i / (i + 1)."""
    front = arithmetic.div(arithmetic.point(2.0), elementary.sqrt(enclose_constant("pi")))
    g = [elementary.exp(-arithmetic.square(x)) * front]
    for i in range(1, terms - 1):
        step = x * g[i - 1]
        g.append(_times(step + g[i - 2] if i > 1 else step, Fraction(-2, i)))
    return _stacked([elementary.erf(x)] + [_times(g[i], Fraction(1, i + 1)) for i in range(terms - 1)])


def power_series(x: Interval, terms: int, exponent: int) -> Interval:
    """x^n for an integer n >= 0: t_i = binomial(n, i) x^(n-i), and 0 for i > n."""
    kept = min(terms, exponent + 1)
    powers = _stacked([arithmetic.power(x, exponent - i) for i in range(kept)])
    out = _scaled(powers, [Fraction(math.comb(exponent, i)) for i in range(kept)])
    zero = Interval(0 * x.lo, 0 * x.hi)
    return _joined([out, _stacked([zero] * (terms - kept))]) if kept < terms else out


def gelu_series(x: Interval, terms: int) -> Interval:
    """x Phi(x) with Phi(x) = (1 + erf(x / sqrt 2)) / 2: t_i = x Phi_i + Phi_{i-1}."""
    scale = arithmetic.div(arithmetic.point(1.0), elementary.sqrt(arithmetic.point(2.0)))
    inner = erf_series(x * scale, terms)
    shift = _stacked([arithmetic.point(1.0)] + [arithmetic.point(0.0)] * (terms - 1))
    factors = _scaled(_powers(scale, range(terms)), [Fraction(1, 2)] * terms)
    column = (slice(None),) + (None,) * x.lo.ndim
    cumulative = (inner + Interval(shift.lo[column], shift.hi[column])) * Interval(
        factors.lo[column], factors.hi[column]
    )
    rest = x * Interval(cumulative.lo[1:], cumulative.hi[1:]) + Interval(cumulative.lo[:-1], cumulative.hi[:-1])
    return _joined([_stacked([gelu_range(x)]), rest])


def gelu_range(x: Interval) -> Interval:
    """Range of x Phi(x): decreasing up to m in (-0.7518, -0.7517), increasing after it, minimum above -0.1699712075.

    Proof: with the density phi, the derivative is Phi + x phi and the second derivative phi (2 - x^2). So the derivative
    falls from 0 on (-inf, -sqrt 2), rises on [-sqrt 2, sqrt 2] from a negative to a positive value (one zero, m), and
    falls to its limit 1 afterwards, staying positive.
    """

    def at(z: Interval) -> Interval:
        scale = arithmetic.div(arithmetic.point(1.0), elementary.sqrt(arithmetic.point(2.0)))
        return z * _times(elementary.erf(z * scale) + 1.0, Fraction(1, 2))

    left, right = at(Interval(x.lo, x.lo)), at(Interval(x.hi, x.hi))
    turning = (x.lo < GELU_TURN[1]) & (x.hi > GELU_TURN[0])
    low = jnp.where(turning, GELU_MINIMUM, jnp.minimum(left.lo, right.lo))
    return Interval(low, jnp.maximum(left.hi, right.hi))


def _times(x: Interval, factor: Fraction) -> Interval:
    """x times an exact rational: the rounding of the factor and of the product is a quarter of the padding."""
    if factor == 1:
        return x
    scaled = Interval(x.lo * abs(float(factor)), x.hi * abs(float(factor)))
    padded = Interval(lower(scaled.lo), upper(scaled.hi))
    return padded if factor > 0 else -padded


def _scaled(x: Interval, factors: list[Fraction]) -> Interval:
    """Each coefficient (or the one given) times its exact rational; see `_times` for the rounding."""
    sizes = np.array([abs(float(f)) for f in factors]).reshape((-1,) + (1,) * (x.lo.ndim - 1))
    low, high = lower(x.lo * sizes), upper(x.hi * sizes)
    if all(f > 0 for f in factors):
        return Interval(low, high)
    positive = np.array([f > 0 for f in factors]).reshape(sizes.shape)
    return Interval(jnp.where(positive, low, -high), jnp.where(positive, high, -low))


def _powers(y: Interval, exponents: range) -> Interval:
    """y^i for a positive (or undefined) y; a product of i factors is off by at most i 2^-53, four times that is allowed."""
    rows = [[], []]
    for end, out in zip(y, rows, strict=True):
        running = jnp.ones_like(end)
        for i in range(exponents.stop):
            if i >= exponents.start:
                out.append(running)
            running = running * end
    pads = np.array([i * 2.0**-51 for i in exponents]).reshape((-1,) + (1,) * y.lo.ndim)
    low, high = (jnp.stack(r) for r in rows)
    return Interval(jnp.maximum(lower(low, pads), 0.0), upper(high, pads))


def _stacked(parts: list[Interval]) -> Interval:
    return Interval(jnp.stack([p.lo for p in parts]), jnp.stack([p.hi for p in parts]))


def _joined(parts: list[Interval]) -> Interval:
    return Interval(jnp.concatenate([p.lo for p in parts]), jnp.concatenate([p.hi for p in parts]))


def _convolution(a: list[Interval], i: int) -> Interval:
    """sum_{l=0}^{i} a_l a_{i-l}, with equal pairs taken once (twice the product) and the middle one as a square."""
    parts = [_times(a[ell] * a[i - ell], Fraction(2)) for ell in range((i + 1) // 2)]
    if i % 2 == 0:
        parts.append(arithmetic.square(a[i // 2]))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


SERIES: dict[str, Callable[[Interval, int], Interval]] = {
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
