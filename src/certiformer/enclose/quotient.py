"""Quotients of Taylor forms by their defect.

For N/Z with |Z| >= z > 0 on the box take any polynomial q. Then, exactly,

    N/Z - q = (N - q Z) / Z,      so      |N/Z - q| <= (max |N - q Z|) / z.

q is the power-series quotient cut after degree k: it makes every kept coefficient of N - q Z vanish up to rounding, so
the defect consists of the dropped products (degree above k), that rounding, and the remainders rem_N + |q|_1 rem_Z.
What numerator and denominator have in common cancels in q; bounding exp / sum as separate ranges would lose it.
"""

from __future__ import annotations

import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.enclose.compose import or_interval
from certiformer.enclose.space import Space, difference_table
from certiformer.enclose.taylor import Form, aligned, enclosed_range, full_product, pad_rows
from certiformer.interval import arithmetic
from certiformer.interval.padding import TINY, UNIT, slack


def quotient(numerator: Form, denominator: Form) -> Form:
    """numerator / denominator; NaN where the denominator may vanish."""
    numerator, denominator = aligned(numerator, denominator)
    z = enclosed_range(denominator)
    smallest = jnp.where(z.lo > 0, z.lo, jnp.where(z.hi < 0, -z.hi, jnp.nan))
    space = numerator.space
    coef, rem = divide(space, numerator.coef, numerator.rem, denominator.coef, denominator.rem, smallest)
    return or_interval(space, coef, rem, arithmetic.div(enclosed_range(numerator), z))


def divide(
    space: Space, top: Array, top_rem: Array, bottom: Array, bottom_rem: Array, smallest: Float[Array, "*_"]
) -> tuple[Array, Array]:
    """Coefficients and remainder of top / bottom, given |bottom| >= smallest > 0 on the box."""
    full_top = pad_rows(top, space.size(space.order))
    q = top / bottom if bottom.shape[0] == 1 else _series_quotient(space, full_top, bottom)
    size_q, size_z = jnp.abs(q).sum(0), jnp.abs(bottom).sum(0)
    # The dropped part of q Z.
    full = full_product(space, q, bottom)
    defect = jnp.abs(full[space.size(space.order) :]).sum(0)
    defect = defect + top_rem + size_q * bottom_rem
    # Backward error of the substitution: each kept coefficient of N - q Z is a sum of rounded products (any order).
    rounding = slack(2 * full.shape[0], jnp.abs(top).sum(0) + size_q * size_z + top_rem) + TINY * size_z
    rem = (defect + rounding) / smallest * (1 + 8 * UNIT)
    return q, rem + TINY


def _series_quotient(
    space: Space, top: Float[Array, "rows ..."], bottom: Float[Array, "rows_b ..."]
) -> Float[Array, "rows ..."]:
    """q with (q Z)_a = N_a for every |a| <= k, degree by degree: q_c = (N_c - sum_{b != 0} q_{c-b} Z_b) / Z_0."""
    inverse_scale = bottom[0]
    q = top[:1] / inverse_scale
    for degree in range(1, space.order + 1):
        first, last = space.size(degree - 1), space.size(degree)
        width = min(len(bottom), last)
        table = difference_table(space.dimension, space.order, space.degree_of(width))[first:last, 1:]
        padded = jnp.concatenate([q, jnp.zeros((1, *q.shape[1:]))])
        known = padded[jnp.minimum(table, first)]
        rows = (top[first:last] - (known * bottom[1:width]).sum(1)) / inverse_scale
        q = jnp.concatenate([q, rows])
    return q
