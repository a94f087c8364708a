"""A target program as a NumPy function in float64: for planning on arrays of ever new sizes, which JAX would recompile.

Rounding is not controlled; never part of a proof. Where the program has no value the result is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from certiformer.target import Program, rational
from certiformer.target.pointwise import fold_pointwise

NAMED = {"pi": math.pi, "e": math.e}

Function = Callable[[Float[np.ndarray, "points inputs"]], Float[np.ndarray, "points outputs"]]


def as_numpy(program: Program) -> Function:
    """The function from points [points, inputs] to values [points, outputs].

    >>> from certiformer.target import parse_formula
    >>> as_numpy(parse_formula("[x1*x2, max(x1, x2), erf(0*x1)]"))(np.array([[2.0, 3.0], [-1.0, 5.0]])).tolist()
    [[6.0, 3.0, 0.0], [-5.0, 5.0, 0.0]]
    """

    def function(x: Float[np.ndarray, "points inputs"]) -> Float[np.ndarray, "points outputs"]:
        x = np.asarray(x, dtype=np.float64)
        with np.errstate(all="ignore"):
            values = fold_pointwise(program, [x[:, i] for i in range(program.inputs)], _Arrays())
        return np.stack([np.broadcast_to(np.asarray(v, dtype=np.float64), len(x)) for v in values], axis=-1)

    return function


class _Arrays:
    """The operations of the IR on NumPy arrays; no double is a pole of `tan`."""

    neg = staticmethod(np.negative)
    sqrt = staticmethod(np.sqrt)
    exp = staticmethod(np.exp)
    log = staticmethod(np.log)
    sin = staticmethod(np.sin)
    cos = staticmethod(np.cos)
    tan = staticmethod(np.tan)
    tanh = staticmethod(np.tanh)
    atan = staticmethod(np.arctan)
    erf = staticmethod(np.vectorize(math.erf, otypes=[np.float64]))
    abs = staticmethod(np.abs)
    add = staticmethod(np.add)
    sub = staticmethod(np.subtract)
    mul = staticmethod(np.multiply)
    div = staticmethod(np.divide)
    min = staticmethod(np.minimum)
    max = staticmethod(np.maximum)

    def constant(self, text: str) -> np.float64:
        try:
            return np.float64(NAMED[text] if text in NAMED else float(rational(text)))
        except OverflowError:
            return np.float64(math.inf if rational(text) > 0 else -math.inf)

    def pow(self, a: np.ndarray, n: int) -> np.ndarray:
        return np.asarray(a) ** n

    def compare(self, comparison: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (a < b, a >= b) if comparison == "lt" else (a <= b, a > b)

    def select(self, condition: tuple[np.ndarray, np.ndarray], x: np.ndarray, y: np.ndarray) -> np.ndarray:
        true, false = condition
        return np.where(true, x, np.where(false, y, np.nan))

    def outside(self, name: str, result: np.ndarray, *arguments: np.ndarray) -> np.ndarray:
        last = arguments[-1]
        return {"div": last == 0, "log": last <= 0, "sqrt": last < 0}.get(name, np.isnan(result))

    def blank(self, value: np.ndarray, missing: np.ndarray) -> np.ndarray:
        return np.where(missing, np.nan, value)
