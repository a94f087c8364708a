"""Building programs: one node per distinct expression, exact folding of rational constants, light exact simplification.

Both front ends (the formula parser and the tracer of JAX callables) and every rewriting of a program go through
`Builder`. It never changes the function that is denoted, *including where it is singular*: `0*x` becomes `0` only if
`x` is a real number at every point (`total`), and `1/x1 - 1/x1` stays, because it has no value at x1 = 0.

A `Builder` is itself an algebra for `fold`, so `fold(program, variables, builder)` copies a program into a builder,
and two programs denote the same expression if that gives the same numbers.
Standard library only.
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import isqrt
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.programs import (
    MAX_CONSTANT_BITS,
    MAX_INPUTS,
    MAX_NODES,
    MAX_POWER,
    NAMED_CONSTANTS,
    PARTIAL,
    Program,
    arguments,
    extract,
    fits,
    rational,
)

# f(argument) = value exactly, for the few rational arguments where that is so; constants by their text.
_EXACT_VALUES = {
    **{(name, "0"): "0" for name in ("sin", "tan", "tanh", "atan", "erf")},
    **{("exp", "0"): "1", ("cos", "0"): "1", ("exp", "1"): "e", ("log", "1"): "0", ("log", "e"): "1"},
}

# A condition is True, False, ("lt" or "le", a, b), ("not", c), ("and", c, ...), ("or", c, ...), or ("defined", a): true
# where a has a real value and singular elsewhere.
Condition = bool | tuple


class Builder:
    """A growing list of nodes without duplicates; every method returns the number of a node.

    >>> build = Builder()
    >>> x = build.var(0)
    >>> build.mul(x, build.add(x, build.constant("0"))) == build.pow(x, 2)
    True
    >>> build.program(1, [build.sub(build.rational(Fraction(1, 3)), build.rational(Fraction(1, 2)))]).nodes
    (('const', '-1/6'),)
    """

    def __init__(self) -> None:
        self.nodes: list[tuple] = []
        self._number: dict[tuple, int] = {}
        self._values: list[Fraction | None] = []
        self._total: list[bool] = []

    def program(self, inputs: int, outputs: list[int]) -> Program:
        """The finished program of the given output nodes, without the nodes that none of them needs."""
        return Program(inputs, *extract(self.nodes, outputs))

    def value(self, a: int) -> Fraction | None:
        """The exact value of node `a` if it is a rational constant."""
        return self._values[a]

    def undefined(self, a: int) -> bool:
        """No node stands for "no value": where an expression is singular, so is the program that is built."""
        return False

    def total(self, a: int) -> bool:
        """Whether node `a` is known to be a real number at every point of the whole space (no singular point)."""
        return self._total[a]

    # Leaves

    def var(self, index: int) -> int:
        if not 0 <= index < MAX_INPUTS:
            raise BadInput(f"a target has at most {MAX_INPUTS} variables, x1 to x{MAX_INPUTS}")
        return self._node("var", index)

    def constant(self, text: str) -> int:
        return self._node("const", text) if text in NAMED_CONSTANTS else self.rational(rational(text))

    def rational(self, value: Fraction | int) -> int:
        value = Fraction(value)
        if not fits(value):
            raise BadInput(f"a constant of the target needs more than {MAX_CONSTANT_BITS} binary digits")
        return self._node("const", str(value), value=value)

    # Arithmetic

    def neg(self, a: int) -> int:
        value = self.value(a)
        if value is not None:
            return self.rational(-value)
        return self.nodes[a][1] if self.nodes[a][0] == "neg" else self._node("neg", a)

    def add(self, a: int, b: int) -> int:
        p, q = self.value(a), self.value(b)
        if p is not None and q is not None:
            return self._folded(p + q, "add", a, b)
        if p == 0 or q == 0:
            return b if p == 0 else a
        return self._node("add", a, b)

    def sub(self, a: int, b: int) -> int:
        p, q = self.value(a), self.value(b)
        if p is not None and q is not None:
            return self._folded(p - q, "sub", a, b)
        if q == 0:
            return a
        if a == b and self.total(a):
            return self.rational(0)
        return self.neg(b) if p == 0 else self._node("sub", a, b)

    def mul(self, a: int, b: int) -> int:
        p, q = self.value(a), self.value(b)
        if p is not None and q is not None:
            return self._folded(p * q, "mul", a, b)
        for factor, other in ((p, b), (q, a)):
            if factor == 1:
                return other
            if factor == -1:
                return self.neg(other)
            if factor == 0 and self.total(other):
                return self.rational(0)
        (base, m), (other, n) = self._as_power(a), self._as_power(b)
        if base == other and m + n <= MAX_POWER:  # x*x is x**2: enclosures then know that both factors are equal
            return self.pow(base, m + n)
        return self._node("mul", a, b)

    def div(self, a: int, b: int) -> int:
        p, q = self.value(a), self.value(b)
        if q == 0:
            raise BadInput("a division by the constant zero has no value")
        if p is not None and q is not None:
            return self._folded(p / q, "div", a, b)
        if q == 1:
            return a
        return self.neg(a) if q == -1 else self._node("div", a, b)

    def pow(self, a: int, n: int) -> int:
        """a to the integer n >= 0; no node has n = 0, since 1 + 0*a keeps the singular points in every arithmetic."""
        if n > MAX_POWER:
            raise BadInput(f"an exponent of the target is larger than {MAX_POWER}")
        if n == 1:
            return a
        if n == 0:
            return self.add(self.rational(1), self.mul(self.rational(0), a))
        p = self.value(a)
        if p is not None and n * max(p.numerator.bit_length(), p.denominator.bit_length()) <= MAX_CONSTANT_BITS:
            return self.rational(p**n)
        name, *rest = self.nodes[a]
        if name == "pow" and n * rest[1] <= MAX_POWER:
            return self.pow(rest[0], n * rest[1])
        return self._node("pow", a, n)

    def power(self, a: int, b: int) -> int:
        """a to any exponent: whole ones by `pow`, halves by `sqrt`, the rest as exp(b log a), singular for a <= 0."""
        exponent = self.value(b)
        if exponent is None or exponent.denominator > 2:
            return self.exp(self.mul(b, self.log(a)))
        base = self.sqrt(a) if exponent.denominator == 2 else a
        result = self.pow(base, abs(exponent.numerator))
        return self.div(self.rational(1), result) if exponent < 0 else result

    # Functions

    def sqrt(self, a: int) -> int:
        p = self.value(a)
        if p is not None and p < 0:
            raise BadInput("the square root of a negative constant is not a real number")
        if p is not None:
            root = Fraction(isqrt(p.numerator), isqrt(p.denominator))
            if root * root == p:
                return self.rational(root)
        name, *rest = self.nodes[a]
        return self.abs(rest[0]) if name == "pow" and rest[1] == 2 else self._node("sqrt", a)

    def log(self, a: int) -> int:
        p = self.value(a)
        if p is not None and p <= 0:
            raise BadInput("the logarithm of a constant that is not positive is not a real number")
        return self._function("log", a)

    def exp(self, a: int) -> int:
        return self._function("exp", a)

    def sin(self, a: int) -> int:
        return self._function("sin", a)

    def cos(self, a: int) -> int:
        return self._function("cos", a)

    def tan(self, a: int) -> int:
        return self._function("tan", a)

    def tanh(self, a: int) -> int:
        return self._function("tanh", a)

    def atan(self, a: int) -> int:
        return self._function("atan", a)

    def erf(self, a: int) -> int:
        return self._function("erf", a)

    def abs(self, a: int) -> int:
        p = self.value(a)
        if p is not None:
            return self.rational(abs(p))
        name, *rest = self.nodes[a]
        if name == "neg":
            return self.abs(rest[0])
        return a if name == "abs" else self._node("abs", a)

    def min(self, a: int, b: int) -> int:
        p, q = self.value(a), self.value(b)
        if p is not None and q is not None:
            return a if p <= q else b
        return a if a == b else self._node("min", a, b)

    def max(self, a: int, b: int) -> int:
        p, q = self.value(a), self.value(b)
        if p is not None and q is not None:
            return a if p >= q else b
        return a if a == b else self._node("max", a, b)

    # Choices

    def where(self, comparison: str, a: int, b: int, x: int, y: int) -> int:
        return self.select(self.compare(comparison, a, b), x, y)

    def compare(self, comparison: str, a: int, b: int) -> Condition:
        """The condition a < b (`"lt"`) or a <= b (`"le"`), decided where both sides are constants or the same."""
        p, q = self.value(a), self.value(b)
        if p is not None and q is not None:
            return p < q if comparison == "lt" else p <= q
        if a == b and self.total(a):
            return comparison == "le"
        return (comparison, a, b)

    def select(self, condition: Condition, x: int, y: int) -> int:
        """The node of `x` where the condition holds and `y` elsewhere."""
        if isinstance(condition, bool):
            return x if condition else y
        name, *rest = condition
        if name == "not":
            return self.select(rest[0], y, x)
        if name == "and":
            return reduce(lambda value, part: self.select(part, value, y), reversed(rest), x)
        if name == "or":
            return reduce(lambda value, part: self.select(part, x, value), reversed(rest), y)
        if name == "defined":  # adding 0*a changes no value and keeps the singular points of a
            return self.add(x, self.mul(rest[0], self.rational(0)))
        a, b = rest
        if x == y and self.total(a) and self.total(b):
            return x
        return self._node("where", name, a, b, x, y)

    # Inside

    def _function(self, name: str, a: int) -> int:
        kind, text, *_ = self.nodes[a]
        exact = _EXACT_VALUES.get((name, text)) if kind == "const" else None
        return self.constant(exact) if exact is not None else self._node(name, a)

    def _as_power(self, a: int) -> tuple[int, int]:
        name, *rest = self.nodes[a]
        return (rest[0], rest[1]) if name == "pow" else (a, 1)

    def _folded(self, value: Fraction, name: str, a: int, b: int) -> int:
        """The constant if it is small enough, else the operation on the two constants, which is the same number."""
        return self.rational(value) if fits(value) else self._node(name, a, b)

    def _node(self, *node: Any, value: Fraction | None = None) -> int:
        number = self._number.get(node)
        if number is None:
            if len(self.nodes) >= MAX_NODES:
                raise BadInput(f"the target needs more than {MAX_NODES} scalar operations")
            number = self._number[node] = len(self.nodes)
            self.nodes.append(node)
            self._values.append(value)
            self._total.append(self._is_total(node))
        return number

    def _is_total(self, node: tuple) -> bool:
        name = node[0]
        if name == "div":  # a constant divisor is never 0 here: it was refused
            return self._total[node[1]] and self.nodes[node[2]][0] == "const"
        if name in PARTIAL:  # sqrt, log, tan: likewise for their constants; the poles of tan are irrational
            return self.value(node[1]) is not None
        return all(self._total[a] for a in arguments(node))
