"""Enclosures of a target program: the algebra of Taylor forms, run by `certiformer.kernel.programs.fold`.

Literals are enclosed outward as exact rationals, pi and e as the real numbers. An argument outside the domain of a function
(log of a number <= 0, a divisor that may vanish, sqrt of a negative number) makes the result NaN, whatever reads it but the
branch of a `where` that is certainly not taken on the box. sqrt is continued by sqrt(max(x, 0)) because rounding cannot
tell 0 from a number just below it; whether the argument really stays >= 0 is decided by the checker.
"""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from certiformer.enclose import compose, select
from certiformer.enclose.quotient import quotient
from certiformer.enclose.space import Space
from certiformer.enclose.taylor import Form, add, constant, product, stack, sub, variables
from certiformer.interval import enclose_constant
from certiformer.kernel.programs import Program
from certiformer.target.pointwise import fold_pointwise


class TargetForm:
    """Interprets each operation of a target program on Taylor forms of one space."""

    def __init__(self, space: Space) -> None:
        self.space = space

    def constant(self, text: str) -> Form:
        return constant(self.space, enclose_constant(text))

    def neg(self, a: Form) -> Form:
        return -a

    def add(self, a: Form, b: Form) -> Form:
        return add(a, b)

    def sub(self, a: Form, b: Form) -> Form:
        return sub(a, b)

    def mul(self, a: Form, b: Form) -> Form:
        return compose.power(a, 2) if a is b else product(a, b)

    def div(self, a: Form, b: Form) -> Form:
        return quotient(a, b)

    def pow(self, a: Form, n: int) -> Form:
        return compose.power(a, n)

    def min(self, a: Form, b: Form) -> Form:
        return select.minimum(a, b)

    def max(self, a: Form, b: Form) -> Form:
        return select.maximum(a, b)

    def abs(self, a: Form) -> Form:
        return select.absolute(a)

    def compare(self, comparison: str, a: Form, b: Form) -> select.Decision:
        return select.compare(comparison, a, b)

    def select(self, condition: select.Decision, x: Form, y: Form) -> Form:
        return select.where(condition, x, y)

    def outside(self, name: str, result: Form, *arguments: Form) -> Bool[Array, "*_"]:
        return jnp.isnan(result.rem)

    def blank(self, value: Form, missing: Bool[Array, "*_"]) -> Form:
        return Form(value.coef, jnp.where(missing, jnp.nan, value.rem), value.interval, value.space)

    def sqrt(self, a: Form) -> Form:
        return compose.elementary("sqrt", a)

    def exp(self, a: Form) -> Form:
        return compose.elementary("exp", a)

    def log(self, a: Form) -> Form:
        return compose.elementary("log", a)

    def sin(self, a: Form) -> Form:
        return compose.elementary("sin", a)

    def cos(self, a: Form) -> Form:
        return compose.elementary("cos", a)

    def tan(self, a: Form) -> Form:
        return compose.elementary("tan", a)

    def tanh(self, a: Form) -> Form:
        return compose.elementary("tanh", a)

    def atan(self, a: Form) -> Form:
        return compose.elementary("atan", a)

    def erf(self, a: Form) -> Form:
        return compose.elementary("erf", a)


def enclose_target(program: Program, order: int) -> Callable[[Float[Array, " D"], Float[Array, " D"]], Form]:
    """A function of (centre, radius) that returns the form of all outputs of `program` on that box."""
    space = Space(program.inputs, order)
    algebra = TargetForm(space)

    def enclose(centre: Float[Array, " D"], radius: Float[Array, " D"]) -> Form:
        x = variables(space, centre, radius)
        return stack(fold_pointwise(program, [x[i] for i in range(program.inputs)], algebra))

    return enclose
