"""One block that computes a sum of ridge units of its whole input: the attention gathers, the feed-forward part computes.

The function, of the flat token-major point x of D numbers, is

    T(x) = constant + x linear + sum_u coefficients_u act(weights_u . x + bias_u).

With several tokens no token sees the others, so the attention first brings every number to the row that is read out,
*exactly* (the exact gather lemma, `construct.exact_gather`). Head h has key size 1, the constant query lambda (a
bias) and the key <e_h, one-hot code>: it puts weight a + c on token h and c on every other token (and on the special
token of the layout `output-token`, whose value is 0), whatever x is. The mixing matrix A = a I + c 11^T is inverted in
the output weights. With m keys (m = n tokens, or n + 1) and lambda = log(n + 1):

    a = n / (n + m),   c = 1 / (n + m),   A^{-1} = (I - 11^T / 2n) (n + m) / n        (n = m = 2: 3/2 and -1/2)

A row that is read already has its own token, which is not gathered again where one row answers for all outputs. A single
token needs no gather: its one head is there and adds nothing.

Where every token answers for its own row (`Shape.per_position`) the feed-forward weights are shared, so a unit meant
for the positions P is switched off elsewhere (`construct.position_gating`): relu(w.x + b - B e_t) = 0 at every t
outside P once B >= sup (w.x + b) on the box. Constants that differ by position are read off the one-hot code, linear
parts that do not differ off the gathered numbers or the token's own, and what remains of a linear part l.x becomes one
gated unit relu(l.x + s) - s that is always active at its position.

The residual stream is x | code | gathered | out; coordinates that are zero on the one row that is read are used again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from certiformer.construct.method import Shape, Size
from certiformer.construct.position_gating import Feed, Ridges, gated
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.model import Attention, Block, Code, Config, FeedForward, Heads, Input, Readout, Transformer

MOST_PRODUCTS = 2**28  # of balls, in one pass of the checker

Vector = Float[np.ndarray, " n"]

_AT_CONSTANT: dict[str, Callable[[float], float]] = {
    "relu": lambda b: max(b, 0.0),
    "gelu": lambda b: b * 0.5 * math.erfc(-b / math.sqrt(2.0)),
    "identity": lambda b: b,
}


def inverse_mixing(tokens: int, keys: int) -> tuple[Fraction, Fraction]:
    """The entries of A^{-1} on and off the diagonal, at lambda = log(tokens + 1)."""
    scale = Fraction(tokens + keys, tokens)
    return scale * (1 - Fraction(1, 2 * tokens)), -scale * Fraction(1, 2 * tokens)


def gather_transformer(
    shape: Shape,
    low: Float[np.ndarray, " inputs"],
    high: Float[np.ndarray, " inputs"],
    linear: Float[np.ndarray, "inputs outputs"],
    constant: Float[np.ndarray, " outputs"],
    weights: Float[np.ndarray, "units inputs"],
    bias: Float[np.ndarray, " units"],
    coefficients: Float[np.ndarray, "units outputs"],
    activation: str = "relu",
) -> Transformer:
    """The one-block transformer of the module docstring on the box from `low` to `high`.

    |x1 - x2| + 1, with one number in each of two tokens:

    >>> shape = Shape(tokens=2, width=1, out_tokens=1, out_width=1, layout="sequence")
    >>> linear, constant, weights = np.zeros((2, 1)), np.ones(1), np.array([[1.0, -1.0], [-1.0, 1.0]])
    >>> model = gather_transformer(
    ...     shape, np.zeros(2), np.ones(2), linear, constant, weights, np.zeros(2), np.ones((2, 1)))
    >>> model.evaluate([[0.5, 0.25], [0.0, 1.0]])
    array([[1.25],
           [2.  ]])
    """
    _refuse_many_numbers(shape, len(low))
    config, tensors = _assembled(shape, low, high, Ridges(linear, constant, weights, bias, coefficients), activation)
    return Transformer(config, tensors)


def _refuse_many_numbers(shape: Shape, inputs: int) -> None:
    """Refuse what takes minutes and gigabytes to be checked: every head mixes all tokens, with a slope for every input."""
    if shape.tokens > 1 and shape.tokens**2 * inputs**2 > MOST_PRODUCTS:
        raise Refused(f"{inputs:,} inputs in {shape.tokens:,} tokens are too many to be gathered by a head for each")


def gather_size(
    shape: Shape,
    low: Float[np.ndarray, " inputs"],
    high: Float[np.ndarray, " inputs"],
    linear: Float[np.ndarray, "inputs outputs"],
    constant: Float[np.ndarray, " outputs"],
    weights: Float[np.ndarray, "units inputs"],
    bias: Float[np.ndarray, " units"],
    coefficients: Float[np.ndarray, "units outputs"],
    activation: str = "relu",
) -> Size:
    """The size of `gather_transformer` with the same arguments; only the pattern of zeros and of equal entries matters."""
    config, tensors = _assembled(shape, low, high, Ridges(linear, constant, weights, bias, coefficients), activation)
    block = config.blocks[0]
    return Size(
        nonzero=sum(int(np.count_nonzero(t)) for t in tensors.values()),
        dense=sum(t.size for t in tensors.values()),
        heads=block.attention.heads[0].count if block.attention is not None else 0,
        units=block.ffn.width if block.ffn is not None else 0,
        registers=config.registers,
    )


def _assembled(
    shape: Shape, low: Vector, high: Vector, ridges: Ridges, activation: str
) -> tuple[Config, dict[str, np.ndarray]]:
    if shape.layout is None:
        shape = replace(shape, layout="token" if shape.tokens == 1 else "sequence")
    return _block(shape, feed_of(shape, low, high, ridges, activation), activation)


def feed_of(shape: Shape, low: Vector, high: Vector, ridges: Ridges, activation: str) -> Feed:
    """What the feed-forward part and the read-out compute on gathered numbers, whatever has gathered them."""
    ridges = _plain(_checked(shape, low, high, ridges, activation), activation)
    if shape.per_position:
        return gated(shape, np.asarray(low, float), np.asarray(high, float), ridges, activation)
    return Feed(
        up=ridges.weights,
        gate=np.zeros((len(ridges.bias), shape.tokens)),
        bias=ridges.bias,
        down=ridges.coefficients,
        read=ridges.linear,
        own=np.zeros((shape.width, shape.outputs)),
        position=np.zeros((shape.tokens, shape.outputs)),
        constant=ridges.constant,
    )


def _checked(shape: Shape, low: Vector, high: Vector, ridges: Ridges, activation: str) -> Ridges:
    arrays = Ridges(*(np.asarray(a, dtype=np.float64) for a in ridges))
    units = len(arrays.bias) if arrays.bias.ndim == 1 else -1
    wanted = ((shape.inputs, shape.outputs), (shape.outputs,), (units, shape.inputs), (units,), (units, shape.outputs))
    if tuple(a.shape for a in arrays) != wanted or {np.shape(low), np.shape(high)} != {(shape.inputs,)}:
        raise BadInput(f"arrays of shapes {[a.shape for a in arrays]} do not fit {shape}")
    if activation not in _AT_CONSTANT:
        raise BadInput(f"an activation is one of {', '.join(_AT_CONSTANT)}, not {activation!r}")
    return arrays


def _plain(ridges: Ridges, activation: str) -> Ridges:
    """Without units that do nothing: one without weights is a constant, one without coefficients is nothing."""
    used, still = ridges.coefficients.any(axis=1), ~ridges.weights.any(axis=1)
    constant = ridges.constant.copy()
    for u in np.flatnonzero(used & still):
        constant += ridges.coefficients[u] * _AT_CONSTANT[activation](float(ridges.bias[u]))
    keep = used & ~still
    return Ridges(ridges.linear, constant, ridges.weights[keep], ridges.bias[keep], ridges.coefficients[keep])


def _block(shape: Shape, feed: Feed, activation: str) -> tuple[Config, dict[str, np.ndarray]]:
    """The configuration and the tensors: coordinates first, then what reads and writes them."""
    special, together = shape.layout == "output-token", shape.layout == "token"
    n, d = (1, shape.inputs) if together else (shape.tokens, shape.width)
    coded = n > 1 or special
    used = np.flatnonzero(feed.up.any(axis=0) | feed.read.any(axis=1))
    # The row that answers for everything has its own token's numbers (token 0), unless it is the special one.
    at_hand = set() if special or shape.per_position else set(range(d))
    gathered = [int(i) for i in used if int(i) not in at_hand]
    outs = feed.down.shape[1]
    # Coordinates that are zero on the one row that is read may be written: the code of the others, everything if special.
    first_code = d
    free = [] if shape.per_position else list(range(d + n)) if special else list(range(d + 1, d + n)) if coded else []
    places = [*free, *range(d + n * coded, d + n * coded + len(gathered) + outs)][: len(gathered) + outs]
    width = max([d + n * coded, *(p + 1 for p in places)])
    place = {i: i for i in at_hand} | dict(zip(gathered, places, strict=False))
    out = places[len(gathered) :]

    units = len(feed.bias)
    values = sorted({i % d for i in gathered})
    heads = Heads(n, 1, len(values)) if gathered else Heads(1, 1, 1)
    config = Config(
        Input("continuous", tokens=n, width=d),
        width=width,
        outputs=outs,
        readout=Readout("all") if shape.per_position else Readout("register" if special else "token", token=0),
        blocks=(Block(Attention((heads,), bias=bool(gathered)), FeedForward(units, activation) if units else None),),
        registers=1 if special else 0,
        code=Code("one-hot", offset=first_code) if coded else Code(),
    )
    tensors = {"embed.weight": np.eye(d, width), "embed.bias": np.zeros(width)}
    if special:
        tensors["registers"] = np.zeros((1, width))
    tensors |= _attention(n, d, width, n + special, place, gathered, values, first_code)
    if units:
        up, down = np.zeros((width, units)), np.zeros((units, width))
        for i in used:
            up[place[int(i)]] = feed.up[:, i]
        if feed.gate.any():
            up[first_code : first_code + n] = feed.gate.T
        down[:, out] = feed.down
        tensors |= {"blocks.0.ffn.up": up, "blocks.0.ffn.up_bias": feed.bias}
        tensors |= {"blocks.0.ffn.down": down, "blocks.0.ffn.down_bias": np.zeros(width)}
    read = np.zeros((width, outs))
    for i in used:
        read[place[int(i)]] = feed.read[i]
    if shape.per_position:
        read[:d] += feed.own
        read[first_code : first_code + n] = feed.position
    read[out] = np.eye(outs) if units else 0.0
    return config, tensors | {"readout.weight": read, "readout.bias": feed.constant}


def _attention(
    n: int, d: int, width: int, keys: int, place: dict[int, int], gathered: list[int], values: list[int], code: int
) -> dict[str, np.ndarray]:
    """The heads of the exact gather; without anything to gather, one head that adds nothing."""
    heads, size = (n, len(values)) if gathered else (1, 1)
    query, key = np.zeros((heads, width, 1)), np.zeros((heads, width, 1))
    value, output = np.zeros((heads, width, size)), np.zeros((heads, size, width))
    head = "blocks.0.attention.groups.0"
    tensors = {f"{head}.query": query, f"{head}.key": key, f"{head}.value": value, f"{head}.output": output}
    if not gathered:
        return tensors
    diagonal, other = inverse_mixing(n, keys)
    inverse = np.where(np.eye(n, dtype=bool), float(diagonal), float(other))
    for h in range(n):
        key[h, code + h, 0] = 1.0
        value[h, values, range(size)] = 1.0
        for i in gathered:
            output[h, values.index(i % d), place[i]] = inverse[h, i // d]
    return tensors | {
        f"{head}.query_bias": np.full((n, 1), math.log(n + 1)),
        f"{head}.key_bias": np.zeros((n, 1)),
        f"{head}.value_bias": np.zeros((n, size)),
        "blocks.0.attention.output_bias": np.zeros(width),
    }
