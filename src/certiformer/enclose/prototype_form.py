"""The closed Taylor form of prototype attention on a box, with its proof.

One head: out(x) = sum_j e^(s_j) v_j / sum_j e^(s_j), s_j = A_j . x + b_j. Box x = c + r e, |e_i| <= 1.

1. *Tilt.* For any vector a and any positive numbers p_j with log p_j = s_j(c) + (a common constant) + h_j,

       e^(s_j(x))  is proportional to  p_j e^(t_j) e^(-h_j),     t_j = sum_i g_ji e_i,   g_ji = (A_ji - a_i) r_i,

   since s_j(x) - s_j(c) = A_j . (x - c) and the factor e^(-a . (x - c)) is common to all j. p is the softmax at the centre
   as computed, a = sum_j p_j A_j as computed: h_j is rounding only (step 5). Subtracting a removes the common motion of all
   scores; what remains is each prototype's distance from the attention mean, small where p_j is not.
2. *Closed form.* t_j is linear in e, so with k the order the coefficient of e^m in sum_j q_j e^(t_j) is
   sum_j q_j g_j^m / m! for |m| <= k, up to sum_j |q_j| rho(tau_j), tau_j = sum_i |g_ji| and, for |t| <= tau,

       |e^t - sum_{i<=k} t^i / i!| <= sum_{i>k} tau^i / i!
                                   <= tau^(k+1) / (k+1)! * min(e^tau, 1 / (1 - tau / (k+2)))  =: rho(tau)

   (bound the sum by e^tau, or by the geometric series of ratio tau / (k+2) when that is below 1).
   Numerator: q_j = p_j (v_j - v0) with v0 = sum_j p_j v_j as computed; denominator: q_j = p_j.
3. *Denominator bound.* exp is convex, so with P = sum_j p_j Jensen's inequality gives
   Z = sum_j p_j e^(t_j) >= P exp(sum_j p_j t_j / P), and sum_j p_j t_j is zero up to the rounding of a.
4. *Quotient.* out = v0 + N / Z by the defect rule (`quotient.divide`), with |Z| >= the bound of step 3.
5. *Rounding of the weights.* If the weights are changed by factors e^(h_j), |h_j| <= delta, an average of values changes
   by at most osc(v) delta / 2, osc = max - min: the derivative of the average along s h, 0 <= s <= 1, is the covariance of
   h and v under the current weights, at most the product of the standard deviations, at most osc(h)/2 * osc(v)/2, and
   osc(h) <= 2 delta. Twice that is charged, so that numerator and denominator may even have used weights rounded
   differently. delta collects: the scores at the centre, (D + 8) 2^-50 (|A||c| + |b|), the extraction error of A and b,
   the subtraction of the maximum, exp (8 units), the division; and in g: the rounding of a and of (A - a) r,
   (K + 8) 2^-50 |A| r. A weight below 1e-300 has an absolute error of at most 1e-300 instead, which contributes
   K 1e-300 e^(max tau).
6. *Dropped prototypes* change the average by at most tail * osc(v) (proof in `lists`).

Always, out lies between the smallest and the largest value: the interval that takes over on wide boxes.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.enclose.compose import or_interval
from certiformer.enclose.lists import Grid, PrototypeLists
from certiformer.enclose.prototype import PrototypeAttention, PrototypeHead
from certiformer.enclose.quotient import divide
from certiformer.enclose.space import Space
from certiformer.enclose.taylor import Form, add, affine, raise_constant, variables
from certiformer.interval import Interval, apart, arithmetic
from certiformer.interval.padding import TINY, UNIT, relative, slack

BoxFunction = Callable[[Float[Array, " D"], Float[Array, " D"]], Form]


def enclose_prototypes(prototypes: PrototypeAttention, order: int, lists: PrototypeLists | None = None) -> BoxFunction:
    """A function of (centre, radius) that encloses all outputs of the prototype attention on that box.

    With `lists` only boxes inside one of their cells are enclosed (the cell is found from the centre); any other box gives
    NaN, never a bound.
    """
    if lists is not None and lists.prototypes is not prototypes:
        raise ValueError("the lists were made for other prototypes")
    space = Space(prototypes.dimension, order)
    tables = [jnp.asarray(np.concatenate([h.slopes, h.offsets[:, None], h.values], 1)) for h in prototypes.heads]
    indices = [] if lists is None else [(jnp.asarray(h.index), jnp.asarray(h.tail)) for h in lists.heads]

    def enclose(centre: Float[Array, " D"], radius: Float[Array, " D"]) -> Form:
        out = affine(variables(space, centre, radius), prototypes.weight, prototypes.bias)
        for number, head in enumerate(prototypes.heads):
            rows, keep, tail = tables[number], jnp.ones(len(head.offsets)), jnp.zeros(())
            if lists is not None:
                cell, inside = _cell(lists.grid, centre, radius)
                index, tails = indices[number]
                chosen = index[cell]
                rows, keep = rows[jnp.maximum(chosen, 0)], (chosen >= 0) * 1.0
                tail = jnp.where(inside, tails[cell], jnp.nan)
            out = add(out, apart(lambda *a, h=head: _head_form(space, h, *a), rows, keep, tail, centre, radius))
        return out

    return enclose


def _cell(grid: Grid, centre: Array, radius: Array) -> tuple[Array, Array]:
    """The cell of the box's centre, and whether the whole box is inside it."""
    counts = np.array(grid.cells)
    width = (grid.upper - grid.lower) / counts
    place = jnp.clip(jnp.floor((centre - grid.lower) / width), 0, counts - 1)
    middle = grid.lower + width * (place + 0.5)
    # The overhang of 1e-9 radii is far above the rounding of this comparison and of the cell's centre.
    inside = (jnp.abs(centre - middle) + radius <= grid.radius * (1 - 1e-12)).all()
    strides = np.cumprod([1, *grid.cells[::-1]])[:-1][::-1]
    return (place @ jnp.asarray(strides, dtype=float)).astype(jnp.int32), inside


def _head_form(
    space: Space,
    head: PrototypeHead,
    rows: Float[Array, "K columns"],
    keep: Float[Array, " K"],
    tail: Float[Array, ""],
    centre: Float[Array, " D"],
    radius: Float[Array, " D"],
) -> Form:
    """Steps 1 to 6 of the module docstring for one head; `rows` holds slopes, offset and values of each prototype."""
    count, d, k = rows.shape[0], space.dimension, space.order
    slopes, offsets, values = rows[:, :d], rows[:, d], rows[:, d + 1 :]
    low, high = jnp.asarray(head.values.min(0)), jnp.asarray(head.values.max(0))
    osc = (high - low) * (1 + UNIT) + 2 * jnp.asarray(head.value_error)

    p, mean, v0 = apart(_centre_weights, slopes, offsets, values, keep, centre)
    moving = (slopes - mean) * radius
    tau = jnp.abs(moving).sum(-1) * (1 + (d + 4) * UNIT)
    moments, rest, heavy = apart(lambda *a: _moments(space, *a), p, values - v0, moving, tau)

    # Step 5: sizes of what is rounded, over all prototypes of the head so that no per-box maximum is needed.
    steep, tall = jnp.asarray(np.abs(head.slopes).max(0)), float(np.abs(head.offsets).max())
    score_size = steep @ jnp.abs(centre) + tall
    delta = (4 * (d + 8) * UNIT * score_size + 4 * relative("exp") + 16 * UNIT) + 2 * (
        jnp.asarray(head.slope_error) @ (jnp.abs(centre) + radius) + head.offset_error
    )
    tilt_error = 4 * (count + 8) * UNIT * (steep @ radius)
    underflow = count * TINY * jnp.exp(tau.max())

    top, bottom = moments[:, 1:], moments[:, :1]
    grown = 1 + (count + 2 * k + 16) * UNIT
    largest = jnp.abs(values - v0).max(0)
    rounding = (count + 2 * k + 16) * UNIT * heavy + underflow
    top_rem = rest[1:] * grown + rounding * largest + TINY
    bottom_rem = rest[:1] * grown + rounding + TINY
    mass = bottom[0] * (1 - (count + 8) * UNIT)
    smallest = mass * jnp.exp(-2 * tilt_error) * (1 - relative("exp")) - underflow
    smallest = jnp.where(smallest > 0, smallest, jnp.nan)
    coef, rem = apart(lambda *a: divide(space, *a), top, top_rem, bottom, bottom_rem, smallest)

    coef = raise_constant(coef, v0)
    charged = osc * (delta + tilt_error + tail) * (1 + 8 * UNIT) + jnp.asarray(head.value_error)
    rem = rem + charged + slack(count, 2 * jnp.maximum(jnp.abs(low), jnp.abs(high)) + jnp.abs(coef[0]))
    reach = Interval(low - head.value_error, high + head.value_error)
    reach = Interval(reach.lo + 0 * tail, reach.hi + 0 * tail)  # a box outside its cell stays NaN
    return or_interval(space, coef, rem, arithmetic.add(reach, arithmetic.point(0.0)))


def _centre_weights(
    slopes: Array, offsets: Array, values: Array, keep: Array, centre: Array
) -> tuple[Float[Array, " K"], Float[Array, " D"], Float[Array, " outputs"]]:
    """Softmax at the centre, its mean slope and its mean value."""
    scores = jnp.where(keep > 0, slopes @ centre + offsets, -jnp.inf)
    weights = jnp.exp(scores - scores.max()) * keep
    p = weights / weights.sum()
    return p, p @ slopes, p @ values


def _moments(
    space: Space, p: Array, centred: Array, moving: Array, tau: Array
) -> tuple[Float[Array, "coefficients columns"], Float[Array, " columns"], Float[Array, ""]]:
    """Coefficients of sum_j q_j e^(t_j) for q = p and q = p (v - v0), their truncation sums, and sum_j p_j e^tau_j.

    sum_j q_j g^m / m! is one matrix product: monomials of all variables but the last, weighted, against powers of the last.
    """
    d, k = space.dimension, space.order
    weighted = jnp.concatenate([p[None], p * centred.T])
    powers = [_scaled_powers(moving[:, axis], k) for axis in range(d)]
    first = weighted[:, None, :]
    exponents = Space(d - 1, k).exponents(k) if d > 1 else np.zeros((1, 0), dtype=int)
    for axis in range(d - 1):
        first = first * powers[axis][exponents[:, axis]]
    products = first.reshape(-1, p.shape[0]) @ powers[-1].T
    wanted = space.exponents(k)
    position = {tuple(row): i for i, row in enumerate(exponents.tolist())}
    flat = np.array([position[tuple(row[:-1])] * (k + 1) + row[-1] for row in wanted.tolist()])
    moments = products.reshape(weighted.shape[0], -1)[:, flat].T
    size = tau ** (k + 1) / math.factorial(k + 1)
    grow = jnp.exp(tau) * (1 + relative("exp"))
    ratio = tau / (k + 2)
    rho = size * jnp.where(ratio < 0.9, jnp.minimum(grow, 1 / (1 - ratio)), grow)
    return moments, jnp.abs(weighted) @ rho, p @ grow


def _scaled_powers(g: Float[Array, " K"], k: int) -> Float[Array, "powers K"]:
    """g^i / i! for i = 0 .. k."""
    rows = [jnp.ones_like(g)]
    for i in range(1, k + 1):
        rows.append(rows[-1] * g * (1.0 / i))
    return jnp.stack(rows)
