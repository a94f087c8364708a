"""A stored transformer as an array program: the table of `docs/model.md`, line by line.

Node 0 is the input: the data tokens, as numbers (`continuous`) or already embedded (`ids`, see `embedded_ids`). The last
node is the read-out. In the last pass of the last block only the rows that are read are computed.

`Network.forms` is the one allowed second implementation of the transformer; tests hold it equal to `certiformer.model`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from flint import arb, arb_mat, fmpq

from certiformer.kernel import taylor
from certiformer.kernel.arrays import (
    Apply,
    ArrayProgram,
    Attend,
    Constant,
    Input,
    Linear,
    Norm,
    Pool,
    Rows,
    Scores,
    Stack,
    Sum,
    Weight,
)
from certiformer.kernel.balls import ONE, ZERO, Box
from certiformer.kernel.forward import evaluate, point_stream
from certiformer.kernel.refusal import Refused
from certiformer.kernel.taylor import Form
from certiformer.kernel.weights import Tensor

MAX_ARRAYS = 8_000_000  # numbers of all arrays of one evaluation, beside what follows from the stored ones


class Network:
    """A stored transformer as a function of the flat point (x_1, ..., x_D), token after token.

    `config` and `tensors` are what `read_model` accepted. A token id counts as one number.
    """

    def __init__(self, config: dict[str, Any], tensors: dict[str, Tensor]):
        self.config, self.tensors = config, tensors
        self.tokens, self.token_width = config["input"]["tokens"], config["input"].get("width", 1)
        self.registers = config["registers"]
        self._weights: dict[tuple, Weight] = {}
        self.dimension = self.tokens * self.token_width
        self.outputs = config["outputs"] * (self.tokens if config["readout"]["kind"] == "all" else 1)

    @cached_property
    def program(self) -> ArrayProgram:
        """What the transformer computes."""
        self.require_room(1)
        return _Lowering(self).program

    def require_room(self, monomials: int) -> None:
        """Refuse forms of so many monomials that would fill the memory: a small file may ask for very large arrays."""
        stored = sum(len(tensor.data) for tensor in self.tensors.values())
        if (_array_numbers(self.config) - 8 * stored) * monomials > MAX_ARRAYS:
            raise Refused("the arrays of the transformer are too large to be computed")

    def restrict(self, box: Box) -> Network:
        """The same function on a smaller box; a general network has nothing to gain."""
        return self

    def forms(self, box: Box, order: int) -> list[Form]:
        """The forms of all outputs on `box`."""
        table = taylor.table(self.dimension, order)
        self.require_room(table.size)
        result = evaluate(self.program, point_stream(table, box, self.program.source))[-1]
        return [result.form(r, c) for r in range(result.shape[0]) for c in range(result.shape[1])]

    @property
    def read_rows(self) -> tuple[int, ...]:
        """The rows of the stream that the read-out looks at."""
        readout = self.config["readout"]
        if readout["kind"] == "register":
            return (readout["token"],)
        if readout["kind"] == "token":
            return (self.registers + readout["token"],)
        return tuple(range(self.registers, self.registers + self.tokens))

    def code(self, t: int) -> list[arb]:
        """The position code of data token t."""
        code, width = self.config["code"], self.config["width"]
        if code["kind"] == "table":
            return self.tensors["code.table"].row(t)
        result = [ZERO] * width
        if code["kind"] == "one-hot":
            result[code["offset"] + t] = ONE
        elif code["kind"] == "circle":
            angle = 2 * arb.pi() * arb(fmpq(t, code["period"]))
            result[code["offset"]], result[code["offset"] + 1] = angle.cos(), angle.sin()
        elif code["kind"] == "sinusoidal":
            for i in range(code["width"]):
                exponent = arb(fmpq(2 * (i // 2), code["width"]))
                angle = arb(t) / (arb(10000).log() * exponent).exp()
                result[code["offset"] + i] = angle.cos() if i % 2 else angle.sin()
        return result

    def codes(self) -> arb_mat:
        """The codes of all data tokens, one row each."""
        return arb_mat([self.code(t) for t in range(self.tokens)])

    def weight(self, name: str, *lead: int) -> Weight:
        """A stored matrix, made once."""
        key = (name, *lead)
        if key not in self._weights:
            self._weights[key] = Weight(self.tensors[name].matrix(*lead))
        return self._weights[key]

    def row(self, name: str, *lead: int) -> list[arb]:
        return self.tensors[name].row(*lead)

    def allowed(self, block: int, i: int) -> tuple[int, ...]:
        """The rows that row i may attend to in a block."""
        mask, total = self.config["blocks"][block]["attention"]["mask"], self.registers + self.tokens
        if mask == "table":
            table = self.tensors[f"blocks.{block}.attention.mask"]
            return tuple(j for j in range(total) if table.at(i, j) != 0)
        return tuple(range(total if mask == "none" else i + 1))

    def score_bias(self, block: int, group: int, head: int, i: int, j: int) -> arb:
        """What is added to the score of query i and key j."""
        kind = self.config["blocks"][block]["attention"]["score_bias"]
        if kind == "none":
            return ZERO
        tensor = self.tensors[f"blocks.{block}.attention.groups.{group}.score_bias"]
        index = (i, j) if kind == "table" else (i - j + self.registers + self.tokens - 1,)
        return arb(tensor.at(head, *index))

    def embedded_ids(self, ids: list[int]) -> arb_mat:
        """The data tokens of a sequence of ids: row W[id] + code(t) for each."""
        rows = [self.row("embed.weight", letter) for letter in ids]
        return arb_mat([[a + b for a, b in zip(row, self.code(t), strict=True)] for t, row in enumerate(rows)])


def _array_numbers(config: dict[str, Any]) -> int:
    """How many numbers the arrays of the program have, up to a small factor."""
    rows, width = config["registers"] + config["input"]["tokens"], config["width"]
    columns = 0
    for block in config["blocks"]:
        columns += 4 * width + (2 * block["ffn"]["width"] if block["ffn"] else 0)
        for group in block["attention"]["heads"] if block["attention"] else ():
            columns += group["count"] * (2 * group["key"] + group["value"] + width + rows)
    return rows * (2 * width + columns * config["loops"] + config["outputs"])


class _Lowering:
    """The program of one transformer while it grows; methods return the position of their result."""

    def __init__(self, stored: Network):
        self.stored, self.program = stored, ArrayProgram()
        config, self.add = stored.config, self.program.add
        stream = self._tokens()
        everything = tuple(range(stored.registers + stored.tokens))
        passes = [b for _ in range(config["loops"]) for b in range(len(config["blocks"]))]
        for position, b in enumerate(passes):
            stream = self._block(stream, b, stored.read_rows if position == len(passes) - 1 else everything)
        if not passes:
            stream = self._rows(stream, stored.read_rows)
        self._readout(stream)

    def _tokens(self) -> int:
        stored, source = self.stored, self.stored.config["input"]
        if source["kind"] == "ids":
            data = self.add(Input(stored.tokens, stored.config["width"]))
        else:
            numbers = self.add(Input(stored.tokens, source["width"]))
            data = self.add(Linear(numbers, stored.weight("embed.weight"), stored.row("embed.bias")))
            if stored.config["code"]["kind"] != "none":
                data = self.add(Sum((data, self.add(Constant(stored.codes())))))
        if not stored.registers:
            return data
        return self.add(Stack((self.add(Constant(stored.tensors["registers"].matrix())), data)))

    def _rows(self, x: int, chosen: tuple[int, ...]) -> int:
        everything = tuple(range(self.stored.registers + self.stored.tokens))
        return x if chosen == everything else self.add(Rows(x, chosen))

    def _block(self, stream: int, b: int, rows: tuple[int, ...]) -> int:
        """The given rows after block b."""
        block, name = self.stored.config["blocks"][b], f"blocks.{b}"
        kept = self._rows(stream, rows)
        if block["attention"] is not None:
            inner = self._norm(stream, f"{name}.norm.attention", block["norm"], "pre")
            out = self._attention(inner, b, rows)
            kept = self.add(Sum((kept, out))) if block["attention"]["residual"] else out
            kept = self._norm(kept, f"{name}.norm.attention", block["norm"], "post")
        if block["ffn"] is not None:
            inner = self._norm(kept, f"{name}.norm.ffn", block["norm"], "pre")
            out = self._feed_forward(inner, f"{name}.ffn", block["ffn"]["kind"])
            kept = self.add(Sum((kept, out))) if block["ffn"]["residual"] else out
            kept = self._norm(kept, f"{name}.norm.ffn", block["norm"], "post")
        return kept

    def _norm(self, x: int, name: str, norm: dict[str, Any] | None, place: str) -> int:
        """x, normalised where the block has a norm at this place."""
        if norm is None or norm["place"] != place:
            return x
        scale, shift = self.stored.row(f"{name}.scale"), self.stored.row(f"{name}.shift")
        return self.add(Norm(x, arb(norm["epsilon"]), scale, shift))

    def _feed_forward(self, x: int, name: str, kind: str) -> int:
        stored = self.stored
        hidden = self.add(Linear(x, stored.weight(f"{name}.up"), stored.row(f"{name}.up_bias")))
        if kind != "identity":
            hidden = self.add(Apply(kind, hidden))
        return self.add(Linear(hidden, stored.weight(f"{name}.down"), stored.row(f"{name}.down_bias")))

    def _attention(self, x: int, b: int, rows: tuple[int, ...]) -> int:
        stored, queries, name = self.stored, self._rows(x, rows), f"blocks.{b}.attention"
        attention = stored.config["blocks"][b]["attention"]
        parts = []
        for g, group in enumerate(attention["heads"]):
            for head in range(group["count"]):
                mixed = self._head(x, queries, b, g, head, rows)
                parts.append(self.add(Linear(mixed, stored.weight(f"{name}.groups.{g}.output", head))))
        if attention["bias"]:
            parts.append(self.add(Constant(arb_mat([stored.row(f"{name}.output_bias")] * len(rows)))))
        return parts[0] if len(parts) == 1 else self.add(Sum(tuple(parts)))

    def _head(self, x: int, queries: int, b: int, g: int, head: int, rows: tuple[int, ...]) -> int:
        """The mixed values of one head."""
        stored, attention, name = (
            self.stored,
            self.stored.config["blocks"][b]["attention"],
            f"blocks.{b}.attention.groups.{g}",
        )
        projected = {}
        for part, source in (("query", queries), ("key", x), ("value", x)):
            bias = stored.row(f"{name}.{part}_bias", head) if attention["bias"] else None
            projected[part] = self.add(Linear(source, stored.weight(f"{name}.{part}", head), bias))
        factor = ONE if attention["scale"] == "unit" else arb(attention["heads"][g]["key"]).rsqrt()
        scores = self.add(Scores(projected["query"], projected["key"], factor))
        if attention["score_bias"] != "none":
            keys = range(stored.registers + stored.tokens)
            biases = arb_mat([[stored.score_bias(b, g, head, i, j) for j in keys] for i in rows])
            scores = self.add(Sum((scores, self.add(Constant(biases)))))
        allowed = tuple(stored.allowed(b, i) for i in rows)
        return self.add(Attend(attention["kind"], scores, projected["value"], allowed))

    def _readout(self, stream: int) -> int:
        stored, kind = self.stored, self.stored.config["readout"]["kind"]
        if kind in ("mean", "sum"):
            count = len(stored.read_rows)
            share = arb(fmpq(1, count)) if kind == "mean" else ONE
            stream = self.add(Pool(stream, Weight(arb_mat(1, count, [share] * count))))
        return self.add(Linear(stream, stored.weight("readout.weight"), stored.row("readout.bias")))
