"""After training: weights that keep their constraints exactly, with a proof of each from the stored numbers.

While a member is trained its constraints hold up to rounding. Here every bound is computed once more from the weights as
they are stored, in balls: spectral norms by |W| <= (tr M^k)^(1/2k) with M = W^T W and k = 2^14, whose excess is a factor
of at most side^(2^-15), Frobenius norms and lengths by sums of exact squares. Where a proved bound is above what was
asked, the weights are scaled down by a little, rounded to their type, and proved again. A power iteration proves
nothing: it approaches the norm from below.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.train.constraints import Constraint, Part, parts_of

SQUARINGS = 14
PRECISION = 320  # bits: squaring may lose one each time
TRIES = 8
LARGEST = arb(sys.float_info.max)
LESS = 1 - 2.0**-20  # room for the rounding of scaled weights to float32

Stored = dict[str, np.ndarray]


@dataclass(frozen=True)
class Kept:
    """A constraint that holds for the stored weights: what it bounds, the proved bound, and what was asked."""

    what: str
    proved: float
    largest: float


def settle(constraints: tuple[Constraint, ...], params: Any) -> tuple[Stored, tuple[Kept, ...]]:
    """Weights of the same types inside all constraints, and the proofs; weights that are inside are returned as they are.

    >>> rng = np.random.default_rng(0)
    >>> weights = {"a.query": rng.normal(size=(1, 8, 2)), "a.key": rng.normal(size=(1, 8, 2))}
    >>> found, (kept,) = settle((Constraint("qk", 1.0),), weights)
    >>> bool(kept.proved <= 1.0 < 1.0001 * np.linalg.norm(found["a.query"][0] @ found["a.key"][0].T, 2) / 2**0.5)
    True
    """
    if not isinstance(params, Mapping):
        raise BadInput("constraints find tensors by their names, and these weights are not a dictionary")
    weights = {name: np.asarray(tensor) for name, tensor in params.items()}
    for _ in range(TRIES):
        proofs = []
        for constraint in constraints:
            for part in parts_of(constraint, weights):
                worst = 0.0
                for head, bound in enumerate(_bounds(part, weights)):
                    worst = max(worst, bound)
                    if bound > constraint.largest:
                        _scale_down(part, weights, head, constraint.largest / bound * LESS)
                proofs.append(Kept(part.text, worst, constraint.largest))
        if all(one.proved <= one.largest for one in proofs):
            return weights, tuple(proofs)
    late = next(one for one in proofs if not one.proved <= one.largest)
    raise BadInput(
        f"{late.what} is {late.proved:.6g} and could not be brought to {late.largest:g}; constraints may disagree"
    )


def proved_bounds(constraint: Constraint, params: Any) -> list[Kept]:
    """The proved bound of every part of these weights, whether it is kept or not."""
    weights = {name: np.asarray(tensor) for name, tensor in params.items()}
    parts = parts_of(constraint, weights)
    return [Kept(part.text, max(_bounds(part, weights)), constraint.largest) for part in parts]


def spectral_above(matrix: Float[np.ndarray, "rows columns"]) -> float:
    """A proved upper bound of the spectral norm of the stored matrix.

    >>> 5.0 <= spectral_above(np.array([[3.0, 0.0], [4.0, 0.0]])) < 5.0001
    True
    """
    return product_above(matrix, None)


def product_above(first: Float[np.ndarray, "n e"], second: Float[np.ndarray, "e m"] | None) -> float:
    """The same of a product of two stored matrices, which is never rounded."""
    with ctx.workprec(PRECISION):
        a = _balls(first)
        if second is None:
            gram = a * a.transpose() if a.nrows() < a.ncols() else a.transpose() * a
        else:
            b = _balls(second)
            gram = (a.transpose() * a) * (b * b.transpose())
        return _up(_radius(gram).sqrt())


def _radius(matrix: arb_mat) -> arb:
    """(tr M^k)^(1/k); tr M where that cannot be told from 0."""
    size = matrix.trace()
    if not size > 0:
        return arb(size.upper()).max(arb(0))
    total = size.log()
    for step in range(1, SQUARINGS + 1):
        unit = matrix / size
        matrix = unit * unit
        size = matrix.trace()
        total += size.log() / 2**step
    return total.exp()


def _balls(matrix: np.ndarray) -> arb_mat:
    return arb_mat([[arb(float(x)) for x in row] for row in matrix])


def _up(value: arb) -> float:
    """The float above; infinity for what is no number."""
    if not value.is_finite():
        return math.inf
    top = value.upper()
    if top > LARGEST:
        return math.inf
    nearest = float(top)
    return nearest if arb(nearest) >= top else math.nextafter(nearest, math.inf)


def _length(vector: np.ndarray) -> arb:
    return sum((arb(float(x)) * arb(float(x)) for x in vector), arb(0)).sqrt()


def _bounds(part: Part, weights: Stored) -> list[float]:
    """The proved bound, head by head where there are heads."""
    kind, tensors = part.constraint.kind, [weights[name] for name in part.names]
    with ctx.workprec(PRECISION):
        if kind == "qk":
            root = arb(tensors[0].shape[-1]).sqrt()
            pairs = zip(*tensors, strict=True)
            return [_up(arb(product_above(q, k.T)) / root) for q, k in pairs]
        if kind == "ov":
            return [product_above(v, o) for v, o in zip(*tensors, strict=True)]
        if kind == "ffn":
            return [_up(arb(spectral_above(tensors[0])) * arb(spectral_above(tensors[1])))]
        if kind == "rank":
            return [float(_columns_used(first)) for first in tensors[0]]
        (tensor,) = tensors
        if kind == "gain":
            return [_up(arb(float(np.abs(tensor).max(initial=0.0))))]
        if kind == "rows":
            return [max((_up(_length(row)) for row in tensor), default=0.0)]
        matrices = tensor if tensor.ndim == 3 else tensor[None]
        if kind == "frobenius":
            return [_up(_length(matrix.reshape(-1))) for matrix in matrices]
        return [_up(sum((_length(row) for row in matrix), arb(0))) for matrix in matrices]


def _columns_used(matrix: np.ndarray) -> int:
    """How many columns are not zero: no rank of a product with it is larger."""
    return int(matrix.any(axis=0).sum())


def _scale_down(part: Part, weights: Stored, head: int, ratio: float) -> None:
    """The part, or its head, times the ratio; two factors share it."""
    if part.constraint.kind == "rank":
        raise BadInput(f"{part.text} has more columns than its rank allows; the projection sets them to 0")
    if part.constraint.kind == "gain":
        (name,) = part.names
        kind = weights[name].dtype.type
        largest = np.nextafter(kind(part.constraint.largest), kind(0))  # the nearest number of the type may be above
        weights[name] = np.clip(weights[name], -largest, largest).astype(kind)
        return
    one = ratio ** (1 / len(part.names))
    for name in part.names:
        tensor = weights[name].copy()
        if tensor.ndim == 3:
            tensor[head] = (tensor[head] * one).astype(tensor.dtype)
        else:
            tensor = (tensor * one).astype(tensor.dtype)
        weights[name] = tensor
