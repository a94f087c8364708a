"""Taylor forms: a polynomial, a remainder and an interval that together enclose a function on a box.

A box has centre c and radius r; e_i = (x_i - c_i) / r_i runs over [-1, 1]. A form of a real function g asserts, for every
e in [-1, 1]^D,

    |g(e) - sum_a coef[a] e^a| <= rem      and, where an interval is carried,      lo <= g(e) <= hi.

The interval is what a nonlinear function knows beyond its polynomial (a sine is within [-1, 1], a square is not
negative); sums and products pass it on where both operands have one or are constants, matrix products do not. No
derivative of g is claimed anywhere, so steps, kinks and functions with misleading derivatives cannot fool a form.
Order 0 is interval arithmetic, order 1 the affine form with one remainder.

The coefficient axis comes first (`coef[a, ...]`), so that mapping a form by a matrix is one matrix product; a polynomial
of lower degree is stored by the prefix of its coefficients, so constants carry one and variables D + 1 of them.

Rounding: every operation adds to `rem` the slack of `certiformer.interval.padding`, (n + 8) 2^-50 times the sum of the
magnitudes involved plus 1e-300, with n the number of terms in its longest sum.

Not-a-number policy: NaN means that g may be undefined or that nothing is known; it survives every operation and is never
a bound. `rem = inf` is a void but valid statement.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from certiformer.enclose.approximate import Approximate
from certiformer.enclose.space import Space, difference_table, even_mask
from certiformer.interval import Interval, apart, arithmetic
from certiformer.interval.padding import TINY, UNIT, slack

UNROLLED_ROWS = 16
"""A product with at most this many rows is written out; larger ones gather by a table (smaller programs to compile)."""


@partial(jax.tree_util.register_dataclass, data_fields=("coef", "rem", "interval"), meta_fields=("space",))
@dataclass(frozen=True)
class Form:
    """The enclosure of an array of functions on one box; see the module docstring for what it asserts."""

    coef: Float[Array, "coefficients ..."]
    rem: Float[Array, "*_"]
    interval: Interval | None
    space: Space

    @property
    def shape(self) -> tuple[int, ...]:
        return self.coef.shape[1:]

    @property
    def degree(self) -> int:
        """The degree up to which coefficients are stored."""
        return self.space.degree_of(self.coef.shape[0])

    def __getitem__(self, index: Any) -> Form:
        index = index if isinstance(index, tuple) else (index,)
        interval = self.interval and Interval(self.interval.lo[index], self.interval.hi[index])
        return Form(self.coef[(slice(None), *index)], self.rem[index], interval, self.space)

    def __add__(self, other: Form) -> Form:
        return add(self, other)

    def __sub__(self, other: Form) -> Form:
        return sub(self, other)

    def __mul__(self, other: Form) -> Form:
        return product(self, other)

    def __neg__(self) -> Form:
        return Form(-self.coef, self.rem, self.interval and -self.interval, self.space)


def constant(space: Space, value: Interval) -> Form:
    """The form of numbers known up to an interval."""
    mid, rad = arithmetic.centre_radius(value.lo, value.hi)
    return Form(mid[None], rad, None, space)


def variables(space: Space, centre: Float[Array, " D"], radius: Float[Array, " D"]) -> Form:
    """The input variables x_1..x_D on the box, as a form of shape (D,); exact in the order >= 1."""
    if space.order == 0:
        return Form(centre[None], radius, None, space)
    coef = jnp.concatenate([centre[None], jnp.eye(space.dimension) * radius])
    return Form(coef, jnp.zeros_like(centre), None, space)


def join(forms: list[Form], axis: int = 0) -> Form:
    """Forms one after the other along an existing axis >= 0 of their shape."""
    rows = max(f.coef.shape[0] for f in forms)
    coef = jnp.concatenate([pad_rows(f.coef, rows) for f in forms], axis + 1)
    return Form(coef, jnp.concatenate([f.rem for f in forms], axis), None, forms[0].space)


def stack(forms: list[Form]) -> Form:
    """Forms of equal shape along a new first axis."""
    return join([f[None] for f in forms])


def pad_rows(coef: Float[Array, "rows ..."], rows: int) -> Float[Array, "more ..."]:
    """Coefficients continued by zeros up to `rows`."""
    missing = rows - coef.shape[0]
    return coef if not missing else jnp.concatenate([coef, jnp.zeros((missing, *coef.shape[1:]))])


def raise_constant(coef: Float[Array, "rows ..."], amount: Float[Array | np.ndarray, "*_"]) -> Float[Array, "rows ..."]:
    """The polynomial plus `amount` (written without a scatter, which XLA compiles badly)."""
    return jnp.concatenate([coef[:1] + amount, coef[1:]])


def polynomial_range(space: Space, coef: Float[Array, "rows ..."], rem: Float[Array, "*_"]) -> Interval:
    """Range of a polynomial +- remainder: an even monomial runs over [0, 1], every other one over [-1, 1]."""
    rows = coef.shape[0]
    if rows == 1:
        low, high, total = coef[0] - rem, coef[0] + rem, jnp.abs(coef[0]) + rem
    else:
        even = even_mask(space.dimension, space.degree_of(rows))[1:]
        moving, sizes = coef[1:], jnp.abs(coef[1:])
        mask = even.reshape((-1,) + (1,) * (coef.ndim - 1))
        if even.any():
            up = jnp.where(mask, jnp.maximum(moving, 0.0), sizes).sum(0)
            down = jnp.where(mask, jnp.maximum(-moving, 0.0), sizes).sum(0)
        else:
            up = down = sizes.sum(0)
        low, high = coef[0] - down - rem, coef[0] + up + rem
        total = jnp.abs(coef[0]) + up + down + rem
    pad = slack(rows, total)
    return Interval(low - pad, high + pad)


def enclosed_range(x: Form) -> Interval:
    """The range of x: that of its polynomial and remainder, cut down by its interval part."""
    whole = polynomial_range(x.space, x.coef, x.rem)
    return whole if x.interval is None else arithmetic.intersect(whole, x.interval)


def magnitude(x: Form) -> Float[Array, "*_"]:
    """sum_a |coef[a]| + rem: bounds |x| and scales the rounding slack."""
    return jnp.abs(x.coef).sum(0) + x.rem


def aligned(x: Form, y: Form) -> tuple[Form, Form]:
    """x and y with shapes of equal rank, so that arrays broadcast by shape and never against the coefficient axis."""
    rank = max(len(x.shape), len(y.shape))
    lifted = [rearranged(f, lambda a: a.reshape((1,) * (rank - a.ndim) + a.shape)) for f in (x, y)]
    return lifted[0], lifted[1]


def add(x: Form, y: Form) -> Form:
    x, y = aligned(x, y)
    rows = max(x.coef.shape[0], y.coef.shape[0])
    coef = pad_rows(x.coef, rows) + pad_rows(y.coef, rows)
    rem = x.rem + y.rem + slack(2, magnitude(x) + magnitude(y))
    return Form(coef, rem, _both_known(x, y, arithmetic.add), x.space)


def _both_known(x: Form, y: Form, operation: Callable[[Interval, Interval], Interval]) -> Interval | None:
    """The interval of a sum or product where one operand carries an interval and the other does or is a constant."""
    if x.interval is None and y.interval is None:
        return None
    known = [enclosed_range(f) if f.interval is not None or f.coef.shape[0] == 1 else None for f in (x, y)]
    return None if known[0] is None or known[1] is None else operation(known[0], known[1])


def sub(x: Form, y: Form) -> Form:
    return add(x, -y)


def shift(x: Form, amount: Float[Array, "*_"]) -> Form:
    """x plus exactly known doubles."""
    return Form(raise_constant(x.coef, amount), x.rem + slack(1, jnp.abs(x.coef[0]) + jnp.abs(amount)), None, x.space)


def scale(x: Form, factor: Float[Array, "*_"]) -> Form:
    """x times exactly known doubles."""
    size = jnp.abs(factor)
    return Form(x.coef * factor, x.rem * size + slack(1, magnitude(x) * size), None, x.space)


def total(x: Form, axis: int) -> Form:
    """The sum along an axis >= 0 of the shape of x."""
    rem = x.rem.sum(axis) + slack(x.shape[axis], magnitude(x).sum(axis))
    return Form(x.coef.sum(axis + 1), rem, None, x.space)


def affine(x: Form, weights: Approximate, bias: Approximate | None = None) -> Form:
    """x @ W + b for all real W, b within the errors of `weights` and `bias`.

    The polynomial is mapped exactly up to rounding; |x - polynomial| <= rem gives rem @ |W|. With magnitudes
    m = sum_a |coef[a]| + rem the rounding of sums of d terms is at most (d + 8) 2^-50 m @ |W|, which has room for the
    addition of b up to 8 2^-50 |b|; the matrix error contributes at most m @ error.
    """
    inputs, many = weights.value.shape[0], magnitude(x)
    grown = 1 + (inputs + 8) * UNIT  # the sums of non-negative terms are themselves rounded, relatively to their size
    spread = (x.rem + (inputs + 8) * UNIT * many) @ (np.abs(weights.value) * grown)
    if weights.error.any():
        spread = spread + many @ (weights.error * grown)
    coef = x.coef @ weights.value
    if bias is None:
        return Form(coef, spread + TINY, None, x.space)
    return Form(
        raise_constant(coef, bias.value), spread + (bias.error + 8 * UNIT * np.abs(bias.value) + TINY), None, x.space
    )


def rearranged(x: Form, function: Callable[[Array], Array]) -> Form:
    """x with its array axes rearranged by `function` (reshape, transpose, indexing): no arithmetic."""
    interval = x.interval and Interval(function(x.interval.lo), function(x.interval.hi))
    return Form(jax.vmap(function)(x.coef), function(x.rem), interval, x.space)


def contract(
    space: Space, a: tuple[Array, Array], b: tuple[Array, Array], pattern: str
) -> tuple[Float[Array, "rows ..."], Float[Array, "*_"]]:
    """A sum of products of polynomials with remainders, sum_m A_m B_m, as the einsum `pattern` says (e.g. "im,jm->ij").

    Coefficients of equal monomials are summed over m before they are dropped, so the part of degree above the order is
    |sum_m ...| and not sum_m |...|: for scores this is what fusing query and key matrices into one bilinear form achieves.
    """
    (coef_a, rem_a), (coef_b, rem_b) = a, b
    size_a, size_b = jnp.abs(coef_a).sum(0), jnp.abs(coef_b).sum(0)
    left, right, out = pattern.replace("->", ",").split(",")
    pairs = jnp.einsum(f"Y{left},Z{right}->YZ{out}", coef_a, coef_b)
    full = _gather_pairs(space, pairs)
    kept, dropped = truncated(space, full)
    rem = dropped + jnp.einsum(pattern, size_a, rem_b) + jnp.einsum(pattern, rem_a, size_b + rem_b)
    terms = full.shape[0] + math.prod(n for n, i in zip(size_a.shape, left, strict=True) if i not in out)
    return kept, rem + slack(terms, jnp.einsum(pattern, size_a + rem_a, size_b + rem_b))


def _gather_pairs(space: Space, pairs: Float[Array, "rows_a rows_b ..."]) -> Float[Array, "rows ..."]:
    """Sum the products of coefficients a and b into the coefficient a + b."""
    rows_a, rows_b = pairs.shape[:2]
    if rows_b == 1:
        return pairs[:, 0]
    if rows_a == 1:
        return pairs[0]
    table = difference_table(space.dimension, space.degree_of(rows_a), space.degree_of(rows_b))
    chosen = [[(i, j) for j, i in enumerate(row) if i < rows_a] for row in table]
    if len(table) <= UNROLLED_ROWS:
        return jnp.stack([sum((pairs[i, j] for i, j in c[1:]), pairs[c[0]]) for c in chosen])
    matrix = np.zeros((len(table), rows_a * rows_b))
    for place, c in enumerate(chosen):
        matrix[place, [i * rows_b + j for i, j in c]] = 1.0
    return jnp.tensordot(matrix, pairs.reshape(rows_a * rows_b, *pairs.shape[2:]), 1)


def full_product(
    space: Space, a: Float[Array, "rows_a ..."], b: Float[Array, "rows_b ..."]
) -> Float[Array, "rows ..."]:
    """All coefficients of the product of two polynomials, up to the sum of their degrees."""
    if a.shape[0] < b.shape[0]:
        a, b = b, a
    if b.shape[0] == 1:
        return a * b
    table = difference_table(space.dimension, space.degree_of(a.shape[0]), space.degree_of(b.shape[0]))
    if len(table) <= UNROLLED_ROWS:
        return jnp.stack([_row(a, b, row) for row in table])
    padded = jnp.concatenate([a, jnp.zeros((1, *a.shape[1:]))])
    return (padded[table] * b).sum(1)


def _row(a: Array, b: Array, row: np.ndarray) -> Array:
    terms = [a[i] * b[j] for j, i in enumerate(row) if i < a.shape[0]]
    return sum(terms[1:], terms[0])


def truncated(space: Space, coef: Float[Array, "rows ..."]) -> tuple[Array, Array]:
    """Cut a polynomial after the order of the space; returns coefficients and the remainder of what was dropped.

    A dropped term g e^a lies in g [0, 1] if all exponents are even, hence in g/2 +- |g|/2, else in +-|g|.
    """
    keep = space.size(space.order)
    if coef.shape[0] <= keep:
        return coef, jnp.zeros(coef.shape[1:])
    dropped = coef[keep:]
    even = even_mask(space.dimension, space.degree_of(coef.shape[0]))[keep:]
    weight = np.where(even, 0.5, 1.0).reshape((-1,) + (1,) * (coef.ndim - 1))
    kept = coef[:keep]
    if even.any():
        middles = np.where(even, 0.5, 0.0).reshape(weight.shape)
        kept = raise_constant(kept, (dropped * middles).sum(0))
    return kept, (jnp.abs(dropped) * weight).sum(0)


def multiply(space: Space, a: Array, rem_a: Array, b: Array, rem_b: Array) -> tuple[Array, Array]:
    """Product of two polynomials with remainders, without intervals: coefficients and remainder.

    (A + a)(B + b) = AB + Ab + aB + ab with |a| <= rem_a, |b| <= rem_b, |A| <= sum |A_a|, |B| <= sum |B_b|.
    """
    size_a, size_b = jnp.abs(a).sum(0), jnp.abs(b).sum(0)
    full = full_product(space, a, b)
    kept, dropped = truncated(space, full)
    rem = dropped + size_a * rem_b + rem_a * size_b + rem_a * rem_b
    return kept, rem + slack(full.shape[0], (size_a + rem_a) * (size_b + rem_b))


def product(x: Form, y: Form) -> Form:
    x, y = aligned(x, y)
    coef, rem = apart(partial(multiply, x.space), x.coef, x.rem, y.coef, y.rem)
    return Form(coef, rem, _both_known(x, y, arithmetic.mul), x.space)
