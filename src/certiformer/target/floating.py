"""A program as an ordinary JAX function in float64, for searching and for pictures; never part of a proof.

Its rounding is not controlled: constants are the nearest doubles and every operation is XLA's. Enclosures live in
`certiformer.enclose`, proofs in `certiformer.kernel`.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.kernel.programs import NAMED_CONSTANTS, Program, rational
from certiformer.target.pointwise import fold_pointwise

Function = Callable[[Float[Array, "*batch inputs"]], Float[Array, "*batch outputs"]]


def as_jax(program: Program) -> Function:
    """The function from points x[..., inputs] to values [..., outputs], NaN where the program has none.

    >>> from certiformer.target.parse import parse_formula
    >>> as_jax(parse_formula("[x1*x2, max(x1, x2)]"))(jnp.array([[2.0, 3.0], [-1.0, 5.0]])).tolist()
    [[6.0, 3.0], [-5.0, 5.0]]
    """

    def function(x: Float[Array, "*batch inputs"]) -> Float[Array, "*batch outputs"]:
        x = jnp.asarray(x)
        values = fold_pointwise(program, [x[..., i] for i in range(program.inputs)], _Floats())
        return jnp.stack([jnp.broadcast_to(v, x.shape[:-1]) for v in values], axis=-1)

    return function


class _Floats:
    """The operations of the IR as `jax.numpy` calls; no double is a pole of `tan`."""

    neg = staticmethod(jnp.negative)
    sqrt = staticmethod(jnp.sqrt)
    exp = staticmethod(jnp.exp)
    log = staticmethod(jnp.log)
    sin = staticmethod(jnp.sin)
    cos = staticmethod(jnp.cos)
    tan = staticmethod(jnp.tan)
    tanh = staticmethod(jnp.tanh)
    atan = staticmethod(jnp.arctan)
    erf = staticmethod(jax.scipy.special.erf)
    abs = staticmethod(jnp.abs)
    add = staticmethod(jnp.add)
    sub = staticmethod(jnp.subtract)
    mul = staticmethod(jnp.multiply)
    div = staticmethod(jnp.divide)
    min = staticmethod(jnp.minimum)
    max = staticmethod(jnp.maximum)

    def constant(self, text: str) -> Array:
        if text in NAMED_CONSTANTS:
            return jnp.float64({"pi": math.pi, "e": math.e}[text])
        value = rational(text)
        try:
            return jnp.float64(float(value))
        except OverflowError:
            return jnp.float64(math.inf if value > 0 else -math.inf)

    def pow(self, a: Array, n: int) -> Array:
        return jax.lax.integer_pow(a, n)

    def compare(self, comparison: str, a: Array, b: Array) -> tuple[Array, Array]:
        return (a < b, a >= b) if comparison == "lt" else (a <= b, a > b)

    def select(self, condition: tuple[Array, Array], x: Array, y: Array) -> Array:
        true, false = condition
        return jnp.where(true, x, jnp.where(false, y, jnp.nan))

    def outside(self, name: str, result: Array, *arguments: Array) -> Array:
        last = arguments[-1]
        return {"div": last == 0, "log": last <= 0, "sqrt": last < 0}.get(name, jnp.isnan(result))

    def blank(self, value: Array, missing: Array) -> Array:
        return jnp.where(missing, jnp.nan, value)
