"""Two independent readings of a program, exact rationals and balls; and random formulas with their exact values.

A singular value is None in the first and NaN in the second.
"""

from __future__ import annotations

from fractions import Fraction

import flint
from hypothesis import strategies as st

from certiformer.target import Program
from target.reading import read


class Rationals:
    """The rational operations of the IR on fractions; None is a singular value."""

    def constant(self, text):
        return Fraction(text)

    def neg(self, a):
        return -a

    def abs(self, a):
        return abs(a)

    def add(self, a, b):
        return a + b

    def sub(self, a, b):
        return a - b

    def mul(self, a, b):
        return a * b

    def div(self, a, b):
        return None if b == 0 else a / b

    def min(self, a, b):
        return min(a, b)

    def max(self, a, b):
        return max(a, b)

    def pow(self, a, n):
        return a**n

    def where(self, comparison, a, b, x, y):
        return x if (a < b if comparison == "lt" else a <= b) else y


def exact(program: Program, point) -> list[Fraction | None]:
    """The exact outputs of a program of rational operations."""
    return read(program, [Fraction(x) for x in point], Rationals())


class Balls:
    """The IR in balls; a comparison must be decided."""

    def constant(self, text):
        if text in ("pi", "e"):
            return flint.arb.pi() if text == "pi" else flint.arb(1).exp()
        return ball(Fraction(text))

    def __getattr__(self, name):
        if name not in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf"):
            raise AttributeError(name)
        return lambda a: getattr(a, name)()

    def neg(self, a):
        return -a

    def abs(self, a):
        return abs(a)

    def add(self, a, b):
        return a + b

    def sub(self, a, b):
        return a - b

    def mul(self, a, b):
        return a * b

    def div(self, a, b):
        return a / b

    def min(self, a, b):
        return a.min(b)

    def max(self, a, b):
        return a.max(b)

    def pow(self, a, n):
        return a**n

    def where(self, comparison, a, b, x, y):
        if a < b:
            return x
        if a > b:
            return y
        if a.is_exact() and b.is_exact() and a == b:
            return x if comparison == "le" else y
        return flint.arb("nan")


def ball(value: Fraction) -> flint.arb:
    return flint.arb(flint.fmpq(value.numerator, value.denominator))


def balls(program: Program, point) -> list[flint.arb]:
    """The outputs of a program at a rational point, in balls of 200 bits."""
    old, flint.ctx.prec = flint.ctx.prec, 200
    try:
        return read(program, [ball(Fraction(x)) for x in point], Balls())
    finally:
        flint.ctx.prec = old


# Random formulas: a strategy of (text, function from a point to the exact value or None)

_NUMBERS = st.sampled_from(["0", "1", "2", "3", "0.5", "1.25", "1e-3", "2.5e1", ".75", "7."])


def _leaf(inputs):
    numbers = _NUMBERS.map(lambda t: (t, lambda p: Fraction(t)))
    variables = st.integers(1, inputs).map(lambda i: (f"x{i}", lambda p: p[i - 1]))
    return st.one_of(numbers, variables)


def _strict(function):
    def value(*parts):
        return None if any(part is None for part in parts) else function(*parts)

    return value


_BINARY = {
    "({}) + ({})": lambda a, b: a + b,
    "({}) - ({})": lambda a, b: a - b,
    "({}) * ({})": lambda a, b: a * b,
    "({})/({})": lambda a, b: None if b == 0 else a / b,
    "min({}, {})": min,
    "max({},{})": max,
}
_UNARY = {
    "-({})": lambda a: -a,
    "abs({})": abs,
    "({})**2": lambda a: a * a,
    "({})^3": lambda a: a * a * a,
    "({})**0": lambda a: Fraction(1),
    "({})**-1": lambda a: None if a == 0 else 1 / a,
    "relu({})": lambda a: max(a, Fraction(0)),
    "sign({})": lambda a: Fraction((a > 0) - (a < 0)),
    "(({}))": lambda a: a,
}
_COMPARED = {"<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}


def _extend(children):
    def unary(form, a):
        return form.format(a[0]), lambda p: _strict(_UNARY[form])(a[1](p))

    def binary(form, a, b):
        return form.format(a[0], b[0]), lambda p: _strict(_BINARY[form])(a[1](p), b[1](p))

    def where(sign, a, b, x, y):
        def value(p):
            holds = _strict(_COMPARED[sign])(a[1](p), b[1](p))
            return None if holds is None else x[1](p) if holds else y[1](p)

        return f"where({a[0]} {sign} {b[0]}, {x[0]}, {y[0]})", value

    return st.one_of(
        st.builds(unary, st.sampled_from(sorted(_UNARY)), children),
        st.builds(binary, st.sampled_from(sorted(_BINARY)), children, children),
        st.builds(where, st.sampled_from(sorted(_COMPARED)), children, children, children, children),
    )


def formulas(inputs=2, leaves=12):
    """Random formulas of rational operations, with an evaluation that shares no code with the library."""
    return st.recursive(_leaf(inputs), _extend, max_leaves=leaves).filter(lambda f: len(f[0]) <= 2000)


points = st.lists(st.fractions(min_value=-3, max_value=3, max_denominator=8), min_size=2, max_size=2)
