"""Interval arithmetic against exact rationals, compiled as it is used, with zero tolerance."""

from __future__ import annotations

import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from certiformer.interval import Interval, arithmetic, centre_radius, enclose_constant, point, rigorous_jit

BINARY = {
    "add": (arithmetic.add, lambda x, y: x + y),
    "sub": (arithmetic.sub, lambda x, y: x - y),
    "mul": (arithmetic.mul, lambda x, y: x * y),
    "div": (arithmetic.div, lambda x, y: x / y if y else None),
    "min": (arithmetic.minimum, min),
    "max": (arithmetic.maximum, max),
}
UNARY = {
    "neg": (lambda a: -a, lambda x: -x),
    "abs": (arithmetic.absolute, abs),
    "square": (arithmetic.square, lambda x: x * x),
    "cube": (lambda a: arithmetic.power(a, 3), lambda x: x**3),
    "power 10": (lambda a: arithmetic.power(a, 10), lambda x: x**10),
    "power 0": (lambda a: arithmetic.power(a, 0), lambda x: Fraction(1)),
    "reciprocal": (arithmetic.reciprocal, lambda x: 1 / x if x else None),
}


def intervals(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Centres from 1e-200 to 1e20 of both signs, widths from 0 and 1e-12 to 1e3, ends at 0, tiny and huge numbers."""
    rng = np.random.default_rng(seed)
    centre = rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-200, 20, count)
    centre[: count // 2] = rng.normal(size=count // 2)
    width = rng.choice([0.0, 1e-12, 1e-6, 1.0, 1e3], count) * rng.uniform(0.5, 1, count)
    lo, hi = centre - width, centre + width
    lo[:4], hi[:4] = [0.0, -1.0, -1e-307, 1e-300], [1.0, 0.0, 1e-307, 2e-300]
    # By contract ends are zero or normal; the products and sums of these still underflow.
    return tuple(np.where(np.abs(v) < 2.3e-308, 0.0, v) for v in (lo, hi))


def inside(lo: float, hi: float, rng: np.random.Generator) -> list[Fraction]:
    a, b = Fraction(lo), Fraction(hi)
    return [a, b, (a + b) / 2, a + (b - a) * Fraction(int(rng.integers(1, 1000)), 1000)]


def check(out: Interval, index: int, value: Fraction | None, what: str) -> None:
    """`value` must lie in the interval; an undefined value demands NaN."""
    lo, hi = float(out.lo[index]), float(out.hi[index])
    if value is None:
        assert math.isnan(lo) and math.isnan(hi), f"{what} is undefined but bounded by [{lo}, {hi}]"
        return
    assert math.isnan(lo) or lo == -math.inf or Fraction(lo) <= value, f"{what} = {float(value)!r} below {lo!r}"
    assert math.isnan(hi) or hi == math.inf or value <= Fraction(hi), f"{what} = {float(value)!r} above {hi!r}"


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    operation, exact = BINARY[name]
    (a, b), (c, d) = intervals(120, 1), intervals(120, 2)
    out = rigorous_jit(lambda w, x, y, z: operation(Interval(w, x), Interval(y, z)))(a, b, c, d)
    rng = np.random.default_rng(0)
    for i in range(len(a)):
        for x in inside(a[i], b[i], rng):
            for y in inside(c[i], d[i], rng):
                value = exact(x, y)
                if value is None and not math.isnan(out.lo[i]):
                    raise AssertionError(f"{name} by an interval with zero inside is bounded: {out.lo[i]}, {out.hi[i]}")
                if value is not None:
                    check(out, i, value, f"{name}({float(x)!r}, {float(y)!r})")


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    operation, exact = UNARY[name]
    lo, hi = intervals(120, 3)
    out = rigorous_jit(lambda x, y: operation(Interval(x, y)))(lo, hi)
    rng = np.random.default_rng(0)
    for i in range(len(lo)):
        for x in inside(lo[i], hi[i], rng):
            check(out, i, exact(x), f"{name}({float(x)!r})")


def test_results_are_tight():
    """One operation widens by a few parts in 1e15, not more."""
    x = point(jnp.array([0.1, 3.7, -2.2]))
    for out in (x + x, x * x, x / (x + 5.0), arithmetic.power(x, 5)):
        assert (np.asarray(out.hi - out.lo) <= 1e-13 * np.abs(np.asarray(out.lo)) + 1e-290).all()


def test_an_overflowed_lower_end_is_finite():
    """The true value is finite, so +inf would not be a lower bound (its reciprocal would be 0)."""
    big = point(1e200) * point(1e200)
    assert math.isfinite(float(big.lo)) and float(big.hi) == math.inf
    small = -big
    assert math.isfinite(float(small.hi)) and float(small.lo) == -math.inf


@pytest.mark.parametrize("bad", [math.nan])
def test_nan_survives(bad):
    x, y = Interval(jnp.array(bad), jnp.array(1.0)), point(2.0)
    for out in (
        x + y,
        x - y,
        x * y,
        x / y,
        -x,
        arithmetic.minimum(x, y),
        arithmetic.hull(x, y),
        arithmetic.power(x, 2),
    ):
        assert math.isnan(float(out.lo)) or math.isnan(float(out.hi))


@pytest.mark.parametrize("text", ["1/10", "-1/3", "3/4", "1" + "0" * 400, "-1" + "0" * 400, "1/1" + "0" * 400, "7"])
def test_constants(text):
    value, out = Fraction(text), enclose_constant(text)
    lo, hi = float(out.lo), float(out.hi)
    assert lo == -math.inf or Fraction(lo) <= value
    assert hi == math.inf or value <= Fraction(hi)
    assert all(v == 0 or not 0 < abs(v) < 2.2250738585072014e-308 for v in (lo, hi)), "a denormal end would be flushed"


def test_pi_and_e():
    digits = {
        "pi": "3.14159265358979323846264338327950288419716939937510",
        "e": "2.71828182845904523536028747135266249775724709369995",
    }
    for name, text in digits.items():
        out, value = enclose_constant(name), Fraction(text)
        assert Fraction(float(out.lo)) < value < Fraction(float(out.hi))
        assert float(out.hi) - float(out.lo) < 5e-16


def test_centre_and_radius_cover_the_interval():
    lo, hi = intervals(500, 5)
    c, r = (np.asarray(v) for v in rigorous_jit(centre_radius)(jnp.array(lo), jnp.array(hi)))
    for a, b, m, s in zip(lo, hi, c, r, strict=True):
        assert Fraction(m) - Fraction(s) <= Fraction(a) and Fraction(b) <= Fraction(m) + Fraction(s)


def test_32_bit_numbers_are_refused():
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="64-bit"):
        rigorous_jit(lambda x: x)
