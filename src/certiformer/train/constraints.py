"""Constraints on weights as data: what they bound, and the projection that keeps a member inside while it is trained.

| kind | what is at most `largest` | tensors |
|---|---|---|
| `qk` | the spectral norm of W_Q W_K^T / sqrt(head size) of every head, as `audit` measures it | all heads |
| `ov` | the spectral norm of W_V W_O of every head | all heads |
| `ffn` | the product of the spectral norms of the two maps of the hidden units | all feed-forward parts |
| `frobenius` | the Frobenius norm of every matrix | all maps, or those named |
| `l21` | the (2,1) norm: the sum of the lengths of the stored rows, one for each input | all maps, or those named |
| `rows` | the length of every row | the tables of tokens and codes, or those named |
| `gain` | the size of every gain of a norm | all norms |
| `rank` | the rank of W_Q W_K^T and W_V W_O of every head; a whole number | all heads |

A product of two factors is scaled down by sharing the factor. Spectral norms are bounded from above by traces of powers,
(tr M^k)^(1/2k) >= |W| for M = W^T W, which is a few products of small matrices; so a step never leaves more than
rounding above the bound. What holds at the end is proved from the stored weights (`train.settle`).

>>> parse_constraint("qk <= 1"), parse_constraint("frobenius:embed.weight<=2.5").tensors
(Constraint(kind='qk', largest=1.0, tensors=()), ('embed.weight',))
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from certiformer.errors import BadInput

KINDS = ("qk", "ov", "ffn", "frobenius", "l21", "rows", "gain", "rank")
NAMED = ("frobenius", "l21", "rows")  # kinds that tensors can be named for
SQUARINGS = 6  # k = 64: at most side^(1/128) above the norm
TINY = 1e-30  # below the squares that float32 holds
_TEXT = re.compile(r"\s*([a-z0-9]+)(?::([\w.,-]+))?\s*<=\s*([+-]?[\d.]+(?:[eE][+-]?\d+)?)\s*")
Tensors = Mapping[str, Any]


@dataclass(frozen=True)
class Constraint:
    """One line of the table; `tensors` are the names of matrices, for the kinds that take names."""

    kind: str
    largest: float
    tensors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadInput(f"there is no constraint {self.kind!r}; there are {', '.join(KINDS)}")
        if not (math.isfinite(self.largest) and self.largest > 0):
            raise BadInput(f"the largest value of {self.kind} is a positive number, not {self.largest}")
        if self.tensors and self.kind not in NAMED:
            raise BadInput(f"the constraint {self.kind} knows its tensors; {', '.join(NAMED)} take names")
        if self.kind == "rank" and self.largest != int(self.largest):
            raise BadInput(f"a rank is a whole number, not {self.largest}")


def parse_constraint(text: str) -> Constraint:
    """A constraint from its text: KIND<=NUMBER, or KIND:TENSOR,TENSOR<=NUMBER."""
    match = _TEXT.fullmatch(text)
    if match is None:
        raise BadInput(f"a constraint is KIND<=NUMBER, for instance qk<=1, not {text!r}")
    kind, names, number = match.groups()
    return Constraint(kind, float(number), tuple(names.split(",")) if names else ())


@dataclass(frozen=True)
class Part:
    """What one constraint bounds: one tensor, or two factors whose products it bounds, head by head."""

    constraint: Constraint
    names: tuple[str, ...]

    @property
    def text(self) -> str:
        """The part in words."""
        return f"{self.constraint.kind} of {' and '.join(self.names)}"


def parts_of(constraint: Constraint, params: Any) -> list[Part]:
    """The parts of these weights that the constraint bounds; `BadInput` where there is none."""
    if not isinstance(params, Mapping):
        raise BadInput("constraints find tensors by their names, and these weights are not a dictionary")
    unknown = [name for name in constraint.tensors if name not in params]
    if unknown:
        raise BadInput(f"a constraint names the tensor {unknown[0]!r}, which these weights do not have")
    names = list(_names(constraint, params))
    if not names:
        raise BadInput(f"these weights have nothing that the constraint {constraint.kind} bounds")
    return [Part(constraint, group) for group in names]


def _names(constraint: Constraint, params: Tensors) -> Iterator[tuple[str, ...]]:
    heads = ((".query", ".key"), (".value", ".output"))
    ends = {"qk": heads[:1], "ov": heads[1:], "ffn": ((".ffn.up", ".ffn.down"),), "rank": heads}
    if constraint.kind in ends:
        for first, second in ends[constraint.kind]:
            stems = sorted(name.removesuffix(first) for name in params if name.endswith(first))
            yield from ((stem + first, stem + second) for stem in stems if stem + second in params)
    elif constraint.tensors:
        yield from ((name,) for name in constraint.tensors)
    elif constraint.kind == "gain":
        yield from ((name,) for name in sorted(params) if ".norm." in name and name.endswith(".scale"))
    elif constraint.kind == "rows":
        yield from ((name,) for name in ("embed.weight", "code.table") if name in params)
    else:
        maps = (".query", ".key", ".value", ".output", ".ffn.up", ".ffn.down")
        yield from ((name,) for name in sorted(params) if name.endswith(maps))


def projected(constraints: tuple[Constraint, ...], params: Any) -> Any:
    """The weights inside all constraints, up to rounding; those that are inside are not touched."""
    for constraint in constraints:
        for part in parts_of(constraint, params):
            made = _projected(constraint, [params[name] for name in part.names])
            params = {**params, **dict(zip(part.names, made, strict=True))}
    return params


def _projected(constraint: Constraint, tensors: list[Array]) -> list[Array]:
    largest = constraint.largest
    if constraint.kind == "qk":
        query, key = tensors
        size = product_bound(query, jnp.swapaxes(key, -1, -2)) / math.sqrt(query.shape[-1])
        return _shared(largest / jnp.maximum(size, TINY), query, key)
    if constraint.kind == "ov":
        value, output = tensors
        return _shared(largest / jnp.maximum(product_bound(value, output), TINY), value, output)
    if constraint.kind == "ffn":
        up, down = tensors
        return _shared(largest / jnp.maximum(spectral_bound(up) * spectral_bound(down), TINY), up, down)
    if constraint.kind == "rank":
        # The last axis of the first factor is the size of a head; of an output it is the one before.
        axis = -1 if tensors[1].shape == tensors[0].shape else -2
        return [_cut(tensors[0], -1, int(largest)), _cut(tensors[1], axis, int(largest))]
    (tensor,) = tensors
    if constraint.kind == "gain":
        return [jnp.clip(tensor, -largest, largest)]
    if constraint.kind == "rows":
        lengths = jnp.sqrt((tensor**2).sum(-1, keepdims=True))
        return [tensor * jnp.minimum(1.0, largest / jnp.maximum(lengths, TINY))]
    if constraint.kind == "frobenius":
        length = jnp.sqrt((tensor**2).sum((-1, -2), keepdims=True))
        return [tensor * jnp.minimum(1.0, largest / jnp.maximum(length, TINY))]
    return [_in_l21_ball(tensor, largest)]


def _shared(ratio: Float[Array, "*heads"], first: Array, second: Array) -> list[Array]:
    """Two factors whose product is scaled by `ratio` where that is below 1."""
    root = jnp.sqrt(jnp.minimum(1.0, ratio))[..., None, None]
    return [(first * root).astype(first.dtype), (second * root).astype(second.dtype)]


def _cut(tensor: Array, axis: int, rank: int) -> Array:
    kept = jnp.arange(tensor.shape[axis]) < rank
    return tensor * (kept[:, None] if axis == -2 else kept).astype(tensor.dtype)


def _in_l21_ball(tensor: Float[Array, "*heads rows columns"], radius: float) -> Array:
    """The nearest matrix whose rows have lengths of sum `radius` at most: the projection of the lengths on the simplex."""
    lengths = jnp.sqrt((tensor**2).sum(-1))
    ordered = jnp.sort(lengths, axis=-1)[..., ::-1]
    sums = jnp.cumsum(ordered, axis=-1)
    counts = jnp.arange(1, lengths.shape[-1] + 1)
    kept = (ordered - (sums - radius) / counts > 0).sum(-1, keepdims=True)
    threshold = (jnp.take_along_axis(sums, kept - 1, axis=-1) - radius) / kept
    shorter = jnp.where(sums[..., -1:] > radius, jnp.maximum(lengths - threshold, 0.0), lengths)
    return tensor * (shorter / jnp.maximum(lengths, TINY))[..., None]


def spectral_bound(tensor: Float[Array, "*heads rows columns"]) -> Float[Array, "*heads"]:
    """An upper bound of the spectral norm, up to rounding, and at most side^(1/128) above it."""
    turned = jnp.swapaxes(tensor, -1, -2)
    wide = tensor.shape[-1] > tensor.shape[-2]
    return jnp.sqrt(_radius_bound(tensor @ turned if wide else turned @ tensor))


def product_bound(first: Float[Array, "*heads n e"], second: Float[Array, "*heads e m"]) -> Float[Array, "*heads"]:
    """The same of a product. It is multiplied out: (A^T A)(B B^T) is smaller, and where A B nearly vanishes its powers have
    traces that rounding makes negative."""
    return spectral_bound(first @ second)


def _radius_bound(matrix: Float[Array, "*heads n n"]) -> Float[Array, "*heads"]:
    """(tr M^k)^(1/k) for k = 2^SQUARINGS and a matrix with eigenvalues that are not negative."""
    size = _trace(matrix)
    logarithm = jnp.log(size)
    for step in range(1, SQUARINGS + 1):
        unit = matrix / size[..., None, None]
        matrix = unit @ unit
        size = _trace(matrix)
        logarithm = logarithm + jnp.log(size) / 2**step
    return jnp.exp(logarithm)


def _trace(matrix: Float[Array, "*heads n n"]) -> Float[Array, "*heads"]:
    return jnp.maximum(jnp.trace(matrix, axis1=-2, axis2=-1), TINY)
