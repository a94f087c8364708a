"""Reading a stored block as sigmoid heads with a sink, followed by ReLU units: sparse, in balls, nothing assumed.

One register is the sink. A head whose query does not depend on the input and whose values are constant gives at a row

    sum_j w_j r_j = r_sink + w_T (r_T - r_sink) + (the other data tokens),

with w_T = sigmoid(s_T - s_sink) when the other tokens have no weight. Let omega = sum over the others of sup e^{s_j -
s_sink} >= their total weight and rho >= |r_j - r_sink| for all data tokens: the others change the sum by at most 2 omega
rho (their own part, and what the weight of T loses). Scores are affine in the input, so their suprema over a box are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, Box, larger
from certiformer.kernel.problem import Network
from certiformer.kernel.weights import Tensor

Vector = dict[int, arb]  # coordinate of the residual stream -> value; absent means zero


@dataclass(frozen=True)
class Affine:
    """constant + sum_i slopes[i] x_i."""

    constant: arb
    slopes: dict[int, arb]

    def farthest(self, box: Box, from_: arb = ZERO) -> arb:
        """An upper bound of |value - from_| over the box."""
        value, reach = self._centred(box)
        return (abs(value - from_) + reach).upper()

    def highest(self, box: Box) -> arb:
        value, reach = self._centred(box)
        return (value + reach).upper()

    def middle(self, box: Box) -> arb:
        """A number near the value at the middle of the box."""
        return self._centred(box)[0].mid()

    def _centred(self, box: Box) -> tuple[arb, arb]:
        value, reach = self.constant, ZERO
        for i, slope in self.slopes.items():
            value, reach = value + slope * box.centre[i], reach + abs(slope) * box.radius[i]
        return value, reach


@dataclass(frozen=True)
class SinkHead:
    """One head at one row: score of each data token over the sink, what the sink writes, what each token adds to it."""

    scores: list[Affine]
    base: Vector
    moves: list[Vector]


class Block:
    """A network of one softmax block with a sink and ReLU units; `Refused` when it is anything else."""

    def __init__(self, network: Network):
        config = network.config
        blocks, self.network = config["blocks"], network
        plain = len(blocks) == 1 and config["loops"] == 1 and network.registers == 1 and not blocks[0]["norm"]
        if config["input"]["kind"] != "continuous" or not plain or not blocks[0]["attention"] or not blocks[0]["ffn"]:
            raise Refused("the transformer is not one block of attention and feed-forward with one register")
        self.attention, ffn = blocks[0]["attention"], blocks[0]["ffn"]
        usual = {"kind": "softmax", "bias": False, "mask": "none", "score_bias": "none", "residual": True}
        if any(self.attention[name] != value for name, value in usual.items()):
            raise Refused("the attention of the transformer is not plain softmax attention with a residual")
        if ffn["kind"] != "relu" or not ffn["residual"] or config["readout"]["kind"] not in ("token", "all"):
            raise Refused("the transformer is not read off data tokens after ReLU units with a residual")
        self.width, self.units = config["width"], ffn["width"]
        self.rows = [row - 1 for row in network.read_rows]
        bias = _vector(network.tensors["embed.bias"].row())
        self.sink = _vector(network.tensors["registers"].row(0))
        self.tokens = [_sum(bias, _vector(network.code(t))) for t in range(network.tokens)]
        weight = network.tensors["embed.weight"]
        self.embed = [_vector(weight.row(i)) for i in range(network.token_width)]

    def axis(self, token: int, coordinate: int) -> int:
        return token * self.network.token_width + coordinate

    def heads(self, row: int) -> list[SinkHead]:
        """All heads as data token `row` sees them."""
        found = []
        for g, group in enumerate(self.attention["heads"]):
            for head in range(group["count"]):
                found.append(self._head(f"blocks.0.attention.groups.{g}", head, group, row))
        return found

    def _head(self, name: str, head: int, group: dict[str, Any], row: int) -> SinkHead:
        tensors = self.network.tensors
        query, key, value, output = (tensors[f"{name}.{part}"] for part in ("query", "key", "value", "output"))
        if any(not entry.is_zero() for line in self.embed for entry in _apply(line, query, head)):
            raise Refused("the query of a head depends on the input")
        if any(not entry.is_zero() for line in self.embed for entry in _apply(line, value, head)):
            raise Refused("the value of a head depends on the input")
        factor = ONE if self.attention["scale"] == "unit" else arb(group["key"]).rsqrt()
        asked = [factor * q for q in _apply(self.tokens[row], query, head)]
        slopes = [_dot(asked, _apply(line, key, head)) for line in self.embed]
        rest = _dot(asked, _apply(self.sink, key, head))
        scores = [
            Affine(_dot(asked, _apply(token, key, head)) - rest, {self.axis(t, c): s for c, s in enumerate(slopes)})
            for t, token in enumerate(self.tokens)
        ]
        written = _rows(output, head)
        base = _combine(_apply(self.sink, value, head), written)
        moves = [_sum(_combine(_apply(token, value, head), written), base, -1) for token in self.tokens]
        return SinkHead(scores, base, moves)

    def stream(self, row: int, column: Vector, base: Vector, bias: arb) -> Affine:
        """column . (data token + what the sinks write) + bias, before any head moves."""
        constant = bias + _inner(column, self.tokens[row]) + _inner(column, base)
        return Affine(constant, {self.axis(row, c): _inner(column, line) for c, line in enumerate(self.embed)})

    @cached_property
    def up(self) -> list[Vector]:
        """The input weights of every unit."""
        return _columns(self.network.tensors["blocks.0.ffn.up"])

    @cached_property
    def up_bias(self) -> list[arb]:
        return self.network.tensors["blocks.0.ffn.up_bias"].row()

    @cached_property
    def read(self) -> list[Vector]:
        """The read-out weights of every output of a row."""
        return _columns(self.network.tensors["readout.weight"])

    @cached_property
    def read_bias(self) -> list[arb]:
        """The constant of every output of a row, with that of the feed-forward part."""
        down = _vector(self.network.tensors["blocks.0.ffn.down_bias"].row())
        own = self.network.tensors["readout.bias"].row()
        return [b + _inner(column, down) for b, column in zip(own, self.read, strict=True)]

    @cached_property
    def unit_outputs(self) -> list[list[arb]]:
        """For every unit what one unit of activation adds to every output."""
        read, down = self.read, _rows(self.network.tensors["blocks.0.ffn.down"])
        return [[_inner(line, column) for column in read] for line in down]


def others(head: SinkHead, token: int, box: Box) -> tuple[arb, Vector]:
    """2 omega and rho of the module docstring for a head that should look at `token`."""
    omega = sum((s.highest(box).exp() for t, s in enumerate(head.scores) if t != token), ZERO)
    largest: Vector = {}
    for move in head.moves:
        for c, value in move.items():
            largest[c] = larger(largest.get(c, ZERO), value.abs_upper())
    return (2 * omega).upper(), largest


def _vector(entries: list[arb]) -> Vector:
    return {c: value for c, value in enumerate(entries) if not value.is_zero()}


def _sum(a: Vector, b: Vector, sign: int = 1) -> Vector:
    result = dict(a)
    for c, value in b.items():
        result[c] = result.get(c, ZERO) + sign * value
    return {c: value for c, value in result.items() if not value.is_zero()}


def _inner(a: Vector, b: Vector) -> arb:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return sum((value * large[c] for c, value in small.items() if c in large), ZERO)


def _dot(a: list[arb], b: list[arb]) -> arb:
    return sum((x * y for x, y in zip(a, b, strict=True)), ZERO)


def _apply(vector: Vector, tensor: Tensor, head: int) -> list[arb]:
    """vector . tensor[head], a full row."""
    rows, columns = tensor.shape[-2:]
    start, total = head * rows * columns, [ZERO] * columns
    for c, value in vector.items():
        for k in range(columns):
            weight = tensor.data[start + c * columns + k]
            if weight:
                total[k] = total[k] + value * arb(weight)
    return total


def _rows(tensor: Tensor, *lead: int) -> list[Vector]:
    rows, columns = tensor.shape[-2:]
    start = (lead[0] if lead else 0) * rows * columns
    return [
        {c: arb(w) for c, w in enumerate(tensor.data[start + r * columns : start + (r + 1) * columns]) if w}
        for r in range(rows)
    ]


def _columns(tensor: Tensor) -> list[Vector]:
    columns: list[Vector] = [{} for _ in range(tensor.shape[-1])]
    for r, line in enumerate(_rows(tensor)):
        for c, weight in line.items():
            columns[c][r] = weight
    return columns


def _combine(weights: list[arb], rows: list[Vector]) -> Vector:
    result: Vector = {}
    for weight, row in zip(weights, rows, strict=True):
        if not weight.is_zero():
            result = _sum(result, {c: weight * value for c, value in row.items()})
    return result
