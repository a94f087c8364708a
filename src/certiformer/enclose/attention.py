"""Attention of Taylor forms: softmax by the tilt, hard attention by decided score differences, linear attention.

Softmax with scores s_j and values v_j, all of them forms on the box; s_j(c) is the constant coefficient of s_j.

1. *Tilt.* Let z_j = s_j(c) - max_i s_i(c), let p_j be the computed softmax of max(z_j, -600), and

       t_j = (s_j - s_j(c)) - sum_i p_i (s_i - s_i(c)) + min(z_j + 600, 0).

   The subtracted sum is common to all j, so the attention weights are proportional to p_j e^(t_j + h_j), where h_j is the
   rounding of log p_j (exp: 8 units, the subtraction, the division); h_j goes into the remainder of t_j. Coefficients are
   combined before bounding, so that what the scores have in common cancels; of the remainders R_j there remains
   (1 - p_j) R_j + sum_{i != j} p_i R_i. The floor -600 keeps p_j a normal number; what it cuts off is put back into t_j, so
   a key 10,000 nats below the best is still weighed correctly.
2. *Average.* out = v0 + N / Z with v0 = sum_j p_j v_j(c) as computed, N = sum_j p_j e^(t_j) (v_j - v0) and
   Z = sum_j p_j e^(t_j), by the defect rule (`quotient`).
3. *Denominator.* With P = sum_j p_j, Jensen's inequality (exp is convex) gives Z >= P exp(sum_j p_j t_j / P). By
   construction sum_j p_j t_j is (1 - P) sum_i p_i (s_i - s_i(c)) plus sum_j p_j (h_j + min(z_j + 600, 0)): rounding, and
   weights below e^-600.

The average always lies in the hull of the values, which takes over where the quotient is worse.
No epsilon is added anywhere and no exponential is divided by a sum of separately bounded exponentials.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from certiformer.enclose.compose import elementary, or_interval
from certiformer.enclose.quotient import divide
from certiformer.enclose.taylor import Form, contract, enclosed_range, magnitude, pad_rows, raise_constant
from certiformer.interval import Interval, apart
from certiformer.interval.padding import UNIT, relative, slack

FLOOR = -600.0
"""e^-600 = 2.7e-261 is a normal number with room for a sum of 1e30 of them."""

Allowed = Bool[np.ndarray, "rows keys"]


def softmax_attention(scores: Form, values: Form, allowed: Allowed) -> Form:
    """Forms (heads, rows, keys) and (heads, keys, size) to the averages (heads, rows, size)."""
    space = scores.space
    p, tilt, sag = apart(lambda s: _tilt(s, allowed), scores)
    weights = elementary("exp", tilt)
    top, top_rem, bottom, bottom_rem, v0 = apart(_sums, p, weights, values)
    mass = p.sum(-1)[..., None] * (1 - (p.shape[-1] + 8) * UNIT)
    smallest = mass * jnp.exp(-sag[..., None] / mass * (1 + 8 * UNIT)) * (1 - relative("exp"))
    smallest = jnp.where(smallest > 0, smallest, jnp.nan)
    coef, rem = apart(lambda *a: divide(space, *a), top, top_rem, bottom[..., None], bottom_rem[..., None], smallest)
    coef = raise_constant(coef, v0)
    rem = rem + slack(1, jnp.abs(coef[0]) + jnp.abs(v0))
    average = or_interval(space, coef, rem, _hull(enclosed_range(values), allowed))
    return _no_key_is_zero(average, allowed)


def _tilt(scores: Form, allowed: Allowed) -> tuple[Array, Form, Array]:
    """Step 1, and a bound of |sum_j p_j t_j|."""
    keys = allowed.shape[1]
    mask = jnp.asarray(allowed)
    centre = jnp.where(mask, scores.coef[0], -jnp.inf)
    best = centre.max(-1, keepdims=True)
    z = jnp.where(mask, centre - jnp.where(best == -jnp.inf, 0.0, best), 0.0)
    raw = jnp.where(mask, jnp.exp(jnp.maximum(z, FLOOR)), 0.0)
    p = raw / jnp.maximum(raw.sum(-1, keepdims=True), 1.0)
    left = jnp.minimum(z - FLOOR, 0.0)
    moving = jnp.where(mask, scores.coef[1:], 0.0)
    own = jnp.where(mask, scores.rem, 0.0)
    common, common_rem = (p * moving).sum(-1, keepdims=True), (p * own).sum(-1, keepdims=True)
    coef = jnp.concatenate([left[None], moving - common])
    # Rounding of log p_j: that of z_j, exp and the division; then that of the sums above.
    log_error = 4 * relative("exp") + 16 * UNIT + 4 * UNIT * jnp.minimum(jnp.abs(z), -FLOOR) + UNIT * jnp.abs(left)
    size = jnp.abs(moving).sum(0) + own
    common_size = (p * size).sum(-1, keepdims=True)
    rem = jnp.maximum((1 - p) * own + common_rem - p * own, 0.0)
    rem = jnp.where(mask, rem + log_error + slack(keys, size + common_size), 0.0)
    sag = (p * (log_error + jnp.abs(left) * (1 + UNIT))).sum(-1) + slack(keys, common_size[..., 0])
    return p, Form(coef, rem, None, scores.space), sag * (1 + (keys + 8) * UNIT)


def _sums(p: Array, weights: Form, values: Form) -> tuple[Array, Array, Array, Array, Array]:
    """Numerator and denominator of step 2, and v0; p and weights (h, i, j), values (h, j, v)."""
    space, keys = weights.space, p.shape[-1]
    v0 = jnp.einsum("hij,hjv->hiv", p, values.coef[0])
    e, e_rem = p * weights.coef, p * weights.rem
    e_rem = e_rem + UNIT * p * magnitude(weights)
    bottom, bottom_rem = e.sum(-1), e_rem.sum(-1) + slack(keys, (jnp.abs(e).sum(0) + e_rem).sum(-1))
    # The constant of v_j - v0 depends on row and key, the moving part on the key alone: two contractions.
    fixed = values.coef[0][:, None] - v0[:, :, None]
    fixed_rem = (keys + 8) * UNIT * (jnp.abs(values.coef[0])[:, None] + jnp.abs(v0)[:, :, None])
    top, top_rem = contract(space, (e, e_rem), (fixed[None], fixed_rem), "hij,hijv->hiv")
    moving = jnp.concatenate([jnp.zeros_like(values.coef[:1]), values.coef[1:]])
    other, other_rem = contract(space, (e, e_rem), (moving, values.rem), "hij,hjv->hiv")
    rows = max(top.shape[0], other.shape[0])
    top = pad_rows(top, rows) + pad_rows(other, rows)
    return top, top_rem + other_rem + slack(2, jnp.abs(top).sum(0)), bottom, bottom_rem, v0


def hard_attention(scores: Form, values: Form, allowed: Allowed) -> Form:
    """The uniform average over the best keys.

    A key is out when another one is better everywhere on the box; the average lies in the hull of the keys that remain.
    Where one remains, the form of its value is kept. Exact ties are covered by the hull, not resolved.
    """
    better = _always_better(scores, allowed)
    candidate = jnp.asarray(allowed) & ~better.any(-1)
    chosen = candidate / jnp.maximum(candidate.sum(-1, keepdims=True), 1)
    single = (candidate.sum(-1) == 1)[..., None]
    coef = jnp.einsum("hij,ahjv->ahiv", chosen, values.coef)
    rem = jnp.einsum("hij,hjv->hiv", chosen, values.rem) + slack(
        allowed.shape[1], jnp.einsum("hij,hjv->hiv", chosen, magnitude(values))
    )
    rem = jnp.where(single, rem, jnp.inf)
    return _no_key_is_zero(or_interval(scores.space, coef, rem, _hull(enclosed_range(values), candidate)), allowed)


def _always_better(scores: Form, allowed: Allowed) -> Bool[Array, "heads rows keys keys"]:
    """[h, i, j, l]: whether key l scores more than key j on the whole box. NaN compares as not better."""
    gap_coef = scores.coef[..., None, :] - scores.coef[..., :, None]
    gap_rem = scores.rem[..., None, :] + scores.rem[..., :, None]
    size = magnitude(scores)
    gap_rem = gap_rem + slack(2, size[..., None, :] + size[..., :, None])
    gap = enclosed_range(Form(gap_coef, gap_rem, None, scores.space))
    return (gap.lo > 0) & jnp.asarray(allowed)[:, None, :]


def linear_attention(scores: Form, values: Form, allowed: Allowed) -> Form:
    """sum_j s_ij v_j over the allowed keys."""
    mask = jnp.asarray(allowed) * 1.0
    coef, rem = contract(
        scores.space, (scores.coef * mask, scores.rem * mask), (values.coef, values.rem), "hij,hjv->hiv"
    )
    return Form(coef, rem, None, scores.space)


def _hull(values: Interval, allowed: Float[Array, "*_"] | Allowed) -> Interval:
    """The hull over the allowed keys of values (heads, keys, size), for each row."""
    mask = jnp.asarray(allowed)[..., None]
    lo = jnp.where(mask, values.lo[:, None], jnp.inf).min(-2)
    hi = jnp.where(mask, values.hi[:, None], -jnp.inf).max(-2)
    return Interval(lo, hi)


def _no_key_is_zero(average: Form, allowed: Allowed) -> Form:
    """A row without any allowed key has the output 0."""
    if allowed.any(1).all():
        return average
    some = jnp.asarray(allowed.any(1))[:, None]
    interval = average.interval and Interval(
        jnp.where(some, average.interval.lo, 0.0), jnp.where(some, average.interval.hi, 0.0)
    )
    return Form(jnp.where(some, average.coef, 0.0), jnp.where(some, average.rem, 0.0), interval, average.space)
