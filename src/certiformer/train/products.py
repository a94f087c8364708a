"""Products of matrices written the way compilers handle them best; what is computed stays the same.

`forward` describes one sequence, and training maps it over a batch. Two kinds of products come out badly then:

- *Tokens times weights.* The gradient of the weights sums over two axes, sequence and token, and XLA copies both factors to
  bring these axes together. With all tokens of the batch as the rows of one matrix the sum runs over one axis: no copies.
- *The small products of attention*, one for each sequence and head. A product of 8 x 8 matrices costs more in calls and
  padding than in arithmetic; as a sum of products of numbers it becomes part of the loops around it.

So the function is traced, and its products are replaced while the trace is followed. Nothing here knows what a
transformer is. Rounding may differ in the last bits, as it does between any two ways to sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend import core
from jaxtyping import Array

SMALL = 8  # products over at most this many terms, in batches, are written as sums


def with_fast_products(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays, with its products rewritten."""

    def rewritten(*arguments: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*arguments)
        results = _follow(closed.jaxpr, closed.consts, jax.tree.leaves(arguments))
        return jax.tree.unflatten(jax.tree.structure(shape), results)

    return rewritten


def _follow(jaxpr: core.Jaxpr, constants: Sequence[Any], arguments: Sequence[Any]) -> list[Any]:
    values: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*constants, *arguments), strict=True))
    for equation in jaxpr.eqns:
        inputs = [v.val if isinstance(v, core.Literal) else values[v] for v in equation.invars]
        outputs = _apply(jaxpr, equation, inputs)
        values |= zip(equation.outvars, outputs, strict=True)
    return [v.val if isinstance(v, core.Literal) else values[v] for v in jaxpr.outvars]


def _apply(jaxpr: core.Jaxpr, equation: core.JaxprEqn, inputs: list[Any]) -> list[Any]:
    primitive, parameters = equation.primitive, equation.params
    if primitive is core.primitives.dot_general_p:
        return [_product(*inputs, **parameters)]
    if primitive.name in ("jit", "pjit"):
        return _follow(parameters["jaxpr"].jaxpr, parameters["jaxpr"].consts, inputs)
    # Everything else as it is: a program of this one equation.
    given = {v: value for v, value in zip(equation.invars, inputs, strict=True) if not isinstance(v, core.Literal)}
    single = jaxpr.replace(
        constvars=[], invars=list(given), outvars=list(equation.outvars), eqns=[equation], effects=equation.effects
    )
    return core.jaxpr_as_fun(core.ClosedJaxpr(single, []))(*given.values())


def _product(left: Array, right: Array, *, dimension_numbers: Any, precision: Any, **rest: Any) -> Array:
    (left_sum, right_sum), (left_batch, right_batch) = dimension_numbers
    if rest.get("preferred_element_type") in (None, left.dtype) and left.dtype == right.dtype:
        if not left_batch:
            return _merged(left, right, left_sum, right_sum, precision)
        if math.prod(left.shape[axis] for axis in left_sum) <= SMALL:
            return _summed(
                _aligned(left, left_batch, left_sum), _aligned(right, right_batch, right_sum), len(left_batch)
            )
    return jax.lax.dot_general(left, right, dimension_numbers, precision, **rest)


def _aligned(factor: Array, batch: Sequence[int], summed: Sequence[int]) -> Array:
    """The axes of the batch first, those summed over last and merged."""
    free = [axis for axis in range(factor.ndim) if axis not in (*batch, *summed)]
    ordered = jnp.transpose(factor, (*batch, *free, *summed))
    return ordered.reshape(*ordered.shape[: ordered.ndim - len(summed)], -1)


def _merged(left: Array, right: Array, left_sum: Sequence[int], right_sum: Sequence[int], precision: Any) -> Array:
    """All other axes of each factor become one; the factor with more numbers gives the rows."""
    if left.size < right.size:
        product = _merged(right, left, right_sum, left_sum, precision)
        split = right.ndim - len(right_sum)
        return jnp.transpose(product, (*range(split, product.ndim), *range(split)))
    rows, columns = _aligned(left, (), left_sum), _aligned(right, (), right_sum)
    terms = rows.shape[-1]
    product = jnp.matmul(rows.reshape(-1, terms), columns.reshape(-1, terms).T, precision=precision)
    return product.reshape(*rows.shape[:-1], *columns.shape[:-1])


def _summed(left: Array, right: Array, batch: int) -> Array:
    """Every number of the product as the sum that it is."""
    left_free, right_free = left.ndim - batch - 1, right.ndim - batch - 1
    left = left.reshape(*left.shape[:-1], *[1] * right_free, left.shape[-1])
    right = right.reshape(*right.shape[:batch], *[1] * left_free, *right.shape[batch:])
    return (left * right).sum(-1)
