"""The functions of one argument that a formula may call, those outside the IR rewritten into it.

Every rewriting is an identity of real numbers, with the same singular points. The tracer of callables uses some too.
Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from certiformer.target.build import Builder


def sinh(build: Builder, a: int) -> int:
    return build.div(build.sub(build.exp(a), build.exp(build.neg(a))), build.rational(2))


def cosh(build: Builder, a: int) -> int:
    return build.div(build.add(build.exp(a), build.exp(build.neg(a))), build.rational(2))


def sigmoid(build: Builder, a: int) -> int:
    """1/(1 + exp(-a)) = 1/2 + tanh(a/2)/2, which cannot overflow and reads `a` once."""
    half = build.rational(Fraction(1, 2))
    return build.add(half, build.mul(half, build.tanh(build.mul(half, a))))


def relu(build: Builder, a: int) -> int:
    return build.max(a, build.rational(0))


def sign(build: Builder, a: int) -> int:
    """-1, 0 or 1; two comparisons."""
    zero = build.rational(0)
    not_positive = build.where("lt", a, zero, build.rational(-1), zero)
    return build.where("lt", zero, a, build.rational(1), not_positive)


FUNCTIONS: dict[str, Callable[[Builder, int], int]] = {
    "sin": Builder.sin,
    "cos": Builder.cos,
    "tan": Builder.tan,
    "exp": Builder.exp,
    "log": Builder.log,
    "sqrt": Builder.sqrt,
    "tanh": Builder.tanh,
    "atan": Builder.atan,
    "erf": Builder.erf,
    "abs": Builder.abs,
    "sinh": sinh,
    "cosh": cosh,
    "sigmoid": sigmoid,
    "relu": relu,
    "sign": sign,
}
