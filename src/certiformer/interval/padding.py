"""Every rounding allowance of level 1, in one place.

Compiled XLA code on a CPU is not IEEE arithmetic operation by operation: products contract to fused multiply-add,
sums are taken in any order, and results below 2.3e-308 are flushed to zero. What does hold for each single operation is

    |computed - exact| <= 2^-53 |exact| + 2.3e-308,

whatever the order and with or without fused operations (the latter only removes a rounding). So enclosures are padded
by *amounts*, never by `nextafter`, and never rely on an exact cancellation:

* one arithmetic operation: `UNIT * |result| + TINY` with `UNIT = 2^-50`, eight times the worst case;
* a block with sums of n terms: `(n + 8) * UNIT * (sum of the magnitudes involved) + TINY` (`slack`), at least four
  times the classical bound n 2^-53 / (1 - n 2^-53) for any order of summation;
* an elementary function: four times the largest error ever measured against ball arithmetic (`ULPS`). The measurement
  is evidence, not proof, which is one reason why a level-1 result is never printed as "certified".

A padding factor followed by a constant could be folded away by the compiler's algebraic simplifier, which
`certiformer.interval.rigorous_jit` switches off; `certiformer.interval.canaries` checks that it is off.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

UNIT = 2.0**-50
"""Relative allowance of one operation: eight units of rounding."""

TINY = 1e-300
"""Absolute allowance: a normal number far above the largest flushed value, 2.3e-308."""

LARGEST = 1.7976931348623157e308
"""The largest finite double; an overflowed lower end is replaced by it."""

TRIGONOMETRIC_LIMIT = 1e5
"""sin, cos and tan were measured for |x| up to this; beyond it sin and cos are enclosed by [-1, 1]."""

MEASURED = {
    "sqrt": 0.5,
    "exp": 1.68,
    "log": 0.52,
    "sin": 0.52,
    "cos": 7.96,
    "tan": 1.83,
    "tanh": 6.5,
    "atan": 1.01,
    "erf": 1.07,
}
"""Largest error in units in the last place against Arb (jax 0.10.1, 0.10.2 and, for atan, 0.12.0; x86-64 CPU).

150,000 to 400,000 points per function: uniform, logarithmic, next to multiples of pi/2, at saturation; with both of XLA's
emitters, optimised and not. The value for cos is that at the double nearest an odd multiple of pi/2; elsewhere it is 0.52.
"""

ULPS = {"sqrt": 2, "exp": 8, "log": 4, "sin": 4, "cos": 32, "tan": 8, "tanh": 32, "atan": 8, "erf": 8}
"""Allowance used, in units in the last place: at least four times `MEASURED` (sqrt: rounded correctly by IEEE 754)."""


def relative(name: str) -> float:
    """The allowance of an elementary function as a multiple of its value; one unit in the last place is <= 2^-52 |y|."""
    return ULPS[name] * 2.0**-52


def slack(terms: int, magnitude: Float[Array, "*_"]) -> Float[Array, "*_"]:
    """Rounding allowance of a block whose longest sum has `terms` terms and whose magnitudes add up to `magnitude`."""
    return (terms + 8) * UNIT * magnitude + TINY


def lower(value: Float[Array, "*_"], factor: float | np.ndarray = UNIT) -> Float[Array, "*_"]:
    """`value` moved down by its allowance; an overflow to +inf becomes a finite lower end first."""
    capped = jnp.minimum(value, LARGEST)
    return capped - (jnp.abs(capped) * factor + TINY)


def upper(value: Float[Array, "*_"], factor: float | np.ndarray = UNIT) -> Float[Array, "*_"]:
    """`value` moved up by its allowance; an overflow to -inf becomes a finite upper end first."""
    capped = jnp.maximum(value, -LARGEST)
    return capped + (jnp.abs(capped) * factor + TINY)
