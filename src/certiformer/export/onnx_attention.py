"""Attention and activations as ONNX nodes: attention for every kind of weights, mask and score bias.

Values carry the batch first: tokens are (batch, tokens, width), what belongs to heads is (batch, heads, tokens, size).
The registers of the first block are the same for the whole batch and have batch 1; their keys and values depend on
nothing that is fed, and a runtime computes them once.

Among the activations, GELU is x * Phi(x) with the normal distribution function Phi. In float32 it is written with
ONNX's `Erf`. onnxruntime has no float64 `Erf`, so there Phi comes from the complementary error function in a form made
for one expression without branches,

    erfc(z) = t * exp(-z^2 + P(2 t - 1)),   t = 2 / (2 + z),   z >= 0,

where P interpolates log(erfc(z) / t) + z^2, a smooth function of t in (0, 1], at Chebyshev points. Its Chebyshev
coefficients beyond degree 24 add up to less than 3e-16, so t * exp(...) is off by less than 3e-16 of itself before
rounding. The form of the substitution is that of Press, Teukolsky, Vetterling and Flannery, Numerical Recipes (2007),
section 6.2; the coefficients were computed anew from ball arithmetic, in powers of 2 t - 1, none larger than 0.68, so
that Horner's rule loses nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from certiformer.export.graph import Graph
from certiformer.model import Attention

# P, constant term first.
ERFC_EXPONENT = (
    -0.6717940840566922,
    0.6726432239776583,
    0.047343306841863525,
    -0.04689561023132892,
    -0.009872689364099222,
    0.008824938561312326,
    0.0017589335074028032,
    -0.002345812552995894,
    -0.00014624628742128406,
    0.0006736791352568864,
    -9.373894767667295e-05,
    -0.00017430412986925938,
    7.141810433422301e-05,
    3.174693542327236e-05,
    -3.023784054007137e-05,
    1.3989370477611051e-07,
    8.662535397475538e-06,
    -2.963484230959699e-06,
    -1.409445991433531e-06,
    1.283394915356199e-06,
    -4.146853754663641e-08,
    -2.895626567435524e-07,
    7.745572408758512e-08,
    2.980513364515168e-08,
    -1.2776086554968677e-08,
)


def _rectified(graph: Graph, hidden: str) -> str:
    return graph.apply("Relu", hidden)


def _gelu(graph: Graph, hidden: str) -> str:
    return graph.apply("Mul", hidden, (_normal_distribution if graph.float is np.float64 else _by_erf)(graph, hidden))


def _identity(graph: Graph, hidden: str) -> str:
    del graph
    return hidden


ACTIVATIONS: dict[str, Callable[[Graph, str], str]] = {"relu": _rectified, "gelu": _gelu, "identity": _identity}


def _by_erf(graph: Graph, x: str) -> str:
    """Phi(x) = (1 + erf(x / sqrt 2)) / 2."""
    erf = graph.apply("Erf", graph.apply("Mul", x, graph.number(math.sqrt(0.5))))
    return graph.apply("Mul", graph.apply("Add", erf, graph.number(1.0)), graph.number(0.5))


def _normal_distribution(graph: Graph, x: str) -> str:
    """Phi(x) = erfc(|x| / sqrt 2) / 2 for x < 0, and 1 minus that otherwise."""
    z = graph.apply("Mul", graph.apply("Abs", x), graph.number(math.sqrt(0.5)))
    tail = graph.apply("Mul", _erfc(graph, z), graph.number(0.5))
    rest = graph.apply("Sub", graph.number(1.0), tail)
    return graph.apply("Where", graph.apply("Less", x, graph.number(0.0)), tail, rest)


def _erfc(graph: Graph, z: str) -> str:
    two = graph.number(2.0)
    t = graph.apply("Div", two, graph.apply("Add", two, z))
    y = graph.apply("Sub", graph.apply("Mul", two, t), graph.number(1.0))
    exponent = graph.number(ERFC_EXPONENT[-1])
    for coefficient in ERFC_EXPONENT[-2::-1]:
        exponent = graph.apply("Add", graph.apply("Mul", exponent, y), graph.number(coefficient))
    exponent = graph.apply("Sub", exponent, graph.apply("Mul", z, z))
    return graph.apply("Mul", t, graph.apply("Exp", exponent))


class Rows(NamedTuple):
    """Tokens whose outputs are wanted, and their places in the whole sequence."""

    values: str
    places: str


class Keys(NamedTuple):
    """The whole sequence: its places, and its tokens in consecutive pieces (registers, then the rest)."""

    pieces: tuple[str, ...]
    places: str
    registers: int
    length: int
    """The largest number of places; tables are that large."""


class Allowed(NamedTuple):
    """Which keys a row may attend to, and whether the row has any (None: every row has)."""

    pairs: str
    any_key: str | None


def attention(
    graph: Graph, config: Attention, tensors: Mapping[str, np.ndarray], prefix: str, keys: Keys, rows: Rows
) -> str:
    """The output of the sub-layer at `rows`, before any residual."""
    allowed = _allowed(graph, config, tensors, prefix, keys, rows)
    outputs = []
    for index, group in enumerate(config.heads):
        name = f"{prefix}.groups.{index}"
        query = _project(graph, tensors, name, "query", rows.values, (0, 2, 1, 3))
        if config.scale == "inverse-sqrt" and group.key > 1:
            query = graph.apply("Mul", query, _scale(graph, group.key))
        columns = [_project(graph, tensors, name, "key", piece, (0, 2, 3, 1)) for piece in keys.pieces]
        scores = _joined(graph, [graph.apply("MatMul", query, column) for column in columns], axis=3)
        if config.score_bias != "none":
            scores = graph.apply("Add", scores, _score_bias(graph, config, tensors, name, keys, rows))
        weights = WEIGHTS[config.kind](graph, scores, allowed)
        values = [_project(graph, tensors, name, "value", piece, (0, 2, 1, 3)) for piece in keys.pieces]
        mixed = graph.apply("Transpose", _mix(graph, weights, values, keys.registers), perm=[0, 2, 1, 3])
        flat = graph.apply("Reshape", mixed, graph.integers(0, 0, group.count * group.value))
        output = tensors[f"{name}.output"].reshape(group.count * group.value, -1)
        outputs.append(graph.apply("MatMul", flat, graph.tensor(f"{name}.output", output)))
    total = outputs[0]
    for output in outputs[1:]:
        total = graph.apply("Add", total, output)
    if config.bias:
        total = graph.apply("Add", total, graph.tensor(f"{prefix}.output_bias", tensors[f"{prefix}.output_bias"]))
    return total


def _project(
    graph: Graph, tensors: Mapping[str, np.ndarray], name: str, role: str, tokens: str, order: Sequence[int]
) -> str:
    """(batch, tokens, width) to the queries, keys or values of all heads: (batch, tokens, heads, size) in `order`."""
    weight = tensors[f"{name}.{role}"]
    heads, width, size = weight.shape
    flat = graph.tensor(f"{name}.{role}", weight.transpose(1, 0, 2).reshape(width, heads * size))
    projected = graph.apply("MatMul", tokens, flat)
    if f"{name}.{role}_bias" in tensors:
        bias = graph.tensor(f"{name}.{role}_bias", tensors[f"{name}.{role}_bias"].reshape(-1))
        projected = graph.apply("Add", projected, bias)
    split = graph.apply("Reshape", projected, graph.integers(0, 0, heads, size))
    return graph.apply("Transpose", split, perm=list(order))


def _scale(graph: Graph, size: int) -> str:
    """1/sqrt(size) for every entry of a query.

    Deliberately a vector: onnxruntime merges a product with a single number into a neighbouring matrix product and keeps
    that number as a float32, which loses half of the digits of a float64 model (measured with 1.31: errors of 1e-7).
    """
    return graph.tensor(f"scale/{size}", np.full(size, 1.0 / math.sqrt(size)))


def _mix(graph: Graph, weights: str, values: list[str], registers: int) -> str:
    """The weighted sum of the values, piece by piece."""
    if len(values) == 1:
        return graph.apply("MatMul", weights, values[0])
    first = graph.apply("MatMul", graph.piece(weights, 0, registers, axis=3), values[0])
    second = graph.apply("MatMul", graph.piece(weights, registers, None, axis=3), values[1])
    return graph.apply("Add", first, second)


def _joined(graph: Graph, pieces: list[str], axis: int) -> str:
    return pieces[0] if len(pieces) == 1 else graph.apply("Concat", *pieces, axis=axis)


def _softmax(graph: Graph, scores: str, allowed: Allowed | None) -> str:
    if allowed is None:
        return graph.apply("Softmax", scores, axis=-1)
    nothing = graph.number(-math.inf)
    scores = graph.apply("Where", allowed.pairs, scores, nothing)
    if allowed.any_key is None:
        return graph.apply("Softmax", scores, axis=-1)
    # A row without an allowed key has the maximum -inf, and -inf - (-inf) would be NaN instead of the weight 0.
    top = graph.reduce("ReduceMax", scores, -1)
    top = graph.apply("Where", graph.apply("Equal", top, nothing), graph.number(0.0), top)
    weights = graph.apply("Exp", graph.apply("Sub", scores, top))
    return graph.apply("Div", weights, _total(graph, weights, allowed))


def _hard(graph: Graph, scores: str, allowed: Allowed | None) -> str:
    if allowed is not None:
        scores = graph.apply("Where", allowed.pairs, scores, graph.number(-math.inf))
    best = graph.apply("Equal", scores, graph.reduce("ReduceMax", scores, -1))
    if allowed is not None:
        best = graph.apply("And", best, allowed.pairs)
    weights = graph.cast(best, graph.float)
    return graph.apply("Div", weights, _total(graph, weights, allowed))


def _nearest(graph: Graph, scores: str, allowed: Allowed | None) -> str:
    return _hard(graph, graph.apply("Neg", graph.apply("Abs", scores)), allowed)


def _linear(graph: Graph, scores: str, allowed: Allowed | None) -> str:
    return scores if allowed is None else graph.apply("Where", allowed.pairs, scores, graph.number(0.0))


def _relu(graph: Graph, scores: str, allowed: Allowed | None) -> str:
    return _linear(graph, graph.apply("Relu", scores), allowed)


WEIGHTS: dict[str, Callable[[Graph, str, Allowed | None], str]] = {
    "softmax": _softmax,
    "hard": _hard,
    "nearest": _nearest,
    "linear": _linear,
    "relu": _relu,
}


def _total(graph: Graph, weights: str, allowed: Allowed | None) -> str:
    """The sum of each row, 1 for a row without any allowed key."""
    total = graph.reduce("ReduceSum", weights, -1)
    if allowed is None or allowed.any_key is None:
        return total
    return graph.apply("Where", allowed.any_key, total, graph.number(1.0))


def _allowed(
    graph: Graph, config: Attention, tensors: Mapping[str, np.ndarray], prefix: str, keys: Keys, rows: Rows
) -> Allowed | None:
    if config.mask == "none":
        return None
    if config.mask == "causal":
        key, row = _column_and_row(graph, keys, rows)
        return Allowed(graph.apply("LessOrEqual", key, row), None)
    mask = graph.allowed(f"{prefix}.mask", tensors[f"{prefix}.mask"])
    pairs = graph.apply("Gather", graph.apply("Gather", mask, rows.places, axis=0), keys.places, axis=1)
    any_key = graph.cast(graph.reduce("ReduceMax", graph.cast(pairs, np.int64), -1), np.bool_)
    return Allowed(pairs, any_key)


def _score_bias(
    graph: Graph, config: Attention, tensors: Mapping[str, np.ndarray], name: str, keys: Keys, rows: Rows
) -> str:
    bias = graph.tensor(f"{name}.score_bias", tensors[f"{name}.score_bias"])
    if config.score_bias == "table":
        return graph.apply("Gather", graph.apply("Gather", bias, rows.places, axis=1), keys.places, axis=2)
    # Entry i - j + (N - 1) is B[i-j].
    key, row = _column_and_row(graph, keys, rows)
    entry = graph.apply("Add", graph.apply("Sub", row, key), graph.integers(keys.length - 1))
    return graph.apply("Gather", bias, entry, axis=1)


def _column_and_row(graph: Graph, keys: Keys, rows: Rows) -> tuple[str, str]:
    """The places of the keys along the second axis, and of the rows along the first."""
    key = graph.apply("Unsqueeze", keys.places, graph.integers(0))
    return key, graph.apply("Unsqueeze", rows.places, graph.integers(1))
