"""What a proof speaks of: two functions on a box, or a transformer at the rows of a list.

Both sides of a claim about a box offer the same three things, whatever they are (a network, a sum of prototype heads, a
target program): `outputs`, `forms(box, order)` and `restrict(box)`, which may return a cheaper object that is valid on that
box only.

*Network*: a stored transformer as an array program, the table of `docs/model.md` line by line. Node 0 is the input: the
data tokens, as numbers (`continuous`) or already embedded (`ids`, see `embedded_ids`). The last node is the read-out. In
the last pass of the last block only the rows that are read are computed. It is the one allowed second implementation of
the transformer; tests hold it equal to `certiformer.model`.

*Points.* At a row, numbers or token ids, `PointNetwork` is the forward pass of a network with two additions: it embeds
token ids, and it adds up ReLU units that look in the same direction w without visiting each of them. For units relu(s -
t_i) with s = w . h and outgoing weights d_i, sorted by threshold,

    sum_i d_i relu(s - t_i) = s sum_{i < k} d_i - sum_{i < k} d_i t_i + (the units whose sign at s is not certain),

where the first k thresholds are certainly at most s: two table look-ups instead of thousands of products. Both sides
are the same real number; the sums are kept in balls.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

from flint import arb, arb_mat, fmpq

from certiformer.kernel import Refused, arrays, taylor
from certiformer.kernel.arrays import ArrayProgram, Stream, Weight, arguments, constants, node_value, point_stream
from certiformer.kernel.balls import ONE, ZERO, BallDomain, Box, ball, larger
from certiformer.kernel.programs import Program
from certiformer.kernel.taylor import Form, table, target_forms, value_ball
from certiformer.kernel.weights import Tensor

Row = tuple[Fraction, ...]


class Function(Protocol):
    """A vector function on a box that can be enclosed by Taylor forms."""

    @property
    def outputs(self) -> int: ...

    def forms(self, box: Box, order: int) -> list[Form]: ...

    def restrict(self, box: Box) -> Function: ...


@dataclass(frozen=True)
class ProgramFunction:
    """A target program as a function."""

    program: Program

    @property
    def outputs(self) -> int:
        return len(self.program.outputs)

    def forms(self, box: Box, order: int) -> list[Form]:
        return target_forms(self.program, box, order)

    def restrict(self, box: Box) -> ProgramFunction:
        return self


@dataclass(frozen=True)
class SelectedOutput:
    """One output of a function."""

    function: Function
    output: int
    outputs = 1

    def forms(self, box: Box, order: int) -> list[Form]:
        return [self.function.forms(box, order)[self.output]]

    def restrict(self, box: Box) -> SelectedOutput:
        return SelectedOutput(self.function.restrict(box), self.output)


def select(function: Function, output: int) -> Function:
    """One output of a function, as simply as it can be had."""
    if isinstance(function, ProgramFunction):
        return ProgramFunction(function.program.select(output))
    return SelectedOutput(function, output)


@dataclass(frozen=True)
class Problem:
    """The statement `sup over domain, max over outputs, |left - right| <= bound` for a bound still to be proved."""

    left: Function
    right: Function
    domain: BallDomain

    def restrict(self, box: Box) -> Problem:
        return Problem(self.left.restrict(box), self.right.restrict(box), self.domain)


def error_upper(problem: Problem, box: Box, order: int) -> tuple[arb, list[Form], str]:
    """An upper bound of max |left - right| on `box`: the difference is one form before its range is taken.

    Returns the bound, the forms of both sides (for choosing where to bisect) and why a side may be undefined there.
    """
    left, right = problem.left.forms(box, order), problem.right.forms(box, order)
    worst, singular = ZERO, ""
    for a, b in zip(left, right, strict=True):
        difference = taylor.add(a, b, -1)
        worst = larger(worst, taylor.magnitude(difference))
        singular = singular or difference.singular
    return worst, left + right, singular


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
        if (_array_numbers(self.config, len(self.read_rows)) - 8 * stored) * monomials > MAX_ARRAYS:
            raise Refused("the arrays of the transformer are too large to be computed")

    def restrict(self, box: Box) -> Network:
        """The same function on a smaller box; a general network has nothing to gain."""
        return self

    def forms(self, box: Box, order: int) -> list[Form]:
        """The forms of all outputs on `box`."""
        table = taylor.table(self.dimension, order)
        self.require_room(table.size)
        result = arrays.evaluate(self.program, point_stream(table, box, self.program.source))[-1]
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
        code, result = self.config["code"], [ZERO] * self.config["width"]
        if code["kind"] == "table":
            return self.row("code.table", t)
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


def _array_numbers(config: dict[str, Any], read: int) -> int:
    """How many numbers the arrays have, 64 more for each part, up to a small factor; the last pass is of the rows read."""
    rows, width, loops = config["registers"] + config["input"]["tokens"], config["width"], config["loops"]
    numbers, passes = rows * (2 * width + config["outputs"]) + 64 * loops * len(config["blocks"]), loops * rows
    for block in config["blocks"]:
        heads, hidden = (block["attention"] or {"heads": ()})["heads"], (block["ffn"] or {"width": 0})["width"]
        queries = 4 * width + 2 * hidden + sum(group["count"] * (group["key"] + width + rows) for group in heads)
        numbers += (passes - (rows - read if block is config["blocks"][-1] else 0)) * queries
        numbers += loops * sum(group["count"] * (rows * (group["key"] + group["value"]) + 64) for group in heads)
    return numbers


class _Lowering:
    """The program of one transformer while it grows; methods return the position of their result."""

    def __init__(self, stored: Network):
        self.stored, self.program = stored, ArrayProgram()
        self.add, self.everything = self.program.add, tuple(range(stored.registers + stored.tokens))
        stream = self._tokens()
        passes = list(range(len(stored.config["blocks"]))) * stored.config["loops"]
        for n, b in enumerate(passes, 1):
            stream = self._block(stream, b, stored.read_rows if n == len(passes) else self.everything)
        if not passes:
            stream = self._rows(stream, stored.read_rows)
        self._readout(stream)

    def _tokens(self) -> int:
        stored, source = self.stored, self.stored.config["input"]
        if source["kind"] == "ids":
            data = self.add(arrays.Input(stored.tokens, stored.config["width"]))
        else:
            numbers = self.add(arrays.Input(stored.tokens, source["width"]))
            data = self._linear(numbers, "embed.weight", "embed.bias")
            if stored.config["code"]["kind"] != "none":
                data = self.add(arrays.Sum((data, self.add(arrays.Constant(stored.codes())))))
        if not stored.registers:
            return data
        return self.add(arrays.Stack((self.add(arrays.Constant(stored.tensors["registers"].matrix())), data)))

    def _linear(self, x: int, weight: str, bias: str | None, *lead: int) -> int:
        shift = None if bias is None else self.stored.row(bias, *lead)
        return self.add(arrays.Linear(x, self.stored.weight(weight, *lead), shift))

    def _rows(self, x: int, chosen: tuple[int, ...]) -> int:
        return x if chosen == self.everything else self.add(arrays.Rows(x, chosen))

    def _block(self, stream: int, b: int, rows: tuple[int, ...]) -> int:
        """The given rows after block b."""
        block, kept = self.stored.config["blocks"][b], self._rows(stream, rows)
        for part in ("attention", "ffn"):
            if block[part] is not None:
                inner = self._norm(stream if part == "attention" else kept, b, part, "pre")
                out = self._attention(inner, b, rows) if part == "attention" else self._feed_forward(inner, b)
                kept = self.add(arrays.Sum((kept, out))) if block[part]["residual"] else out
                kept = self._norm(kept, b, part, "post")
        return kept

    def _norm(self, x: int, b: int, part: str, place: str) -> int:
        """x, normalised where the block has a norm at this place."""
        norm, name = self.stored.config["blocks"][b]["norm"], f"blocks.{b}.norm.{part}"
        if norm is None or norm["place"] != place:
            return x
        return self.add(
            arrays.Norm(x, arb(norm["epsilon"]), self.stored.row(f"{name}.scale"), self.stored.row(f"{name}.shift"))
        )

    def _feed_forward(self, x: int, b: int) -> int:
        kind, name = self.stored.config["blocks"][b]["ffn"]["kind"], f"blocks.{b}.ffn"
        hidden = self._linear(x, f"{name}.up", f"{name}.up_bias")
        if kind != "identity":
            hidden = self.add(arrays.Apply(kind, hidden))
        return self._linear(hidden, f"{name}.down", f"{name}.down_bias")

    def _attention(self, x: int, b: int, rows: tuple[int, ...]) -> int:
        queries, name = self._rows(x, rows), f"blocks.{b}.attention"
        attention, parts = self.stored.config["blocks"][b]["attention"], []
        for g, group in enumerate(attention["heads"]):
            for head in range(group["count"]):
                mixed = self._head(x, queries, b, g, head, rows)
                parts.append(self._linear(mixed, f"{name}.groups.{g}.output", None, head))
        if attention["bias"]:
            parts.append(self.add(arrays.Constant(arb_mat([self.stored.row(f"{name}.output_bias")] * len(rows)))))
        return parts[0] if len(parts) == 1 else self.add(arrays.Sum(tuple(parts)))

    def _head(self, x: int, queries: int, b: int, g: int, head: int, rows: tuple[int, ...]) -> int:
        """The mixed values of one head."""
        stored, attention = self.stored, self.stored.config["blocks"][b]["attention"]
        name = f"blocks.{b}.attention.groups.{g}"
        query, key, value = (
            self._linear(source, f"{name}.{part}", f"{name}.{part}_bias" if attention["bias"] else None, head)
            for part, source in (("query", queries), ("key", x), ("value", x))
        )
        factor = ONE if attention["scale"] == "unit" else arb(attention["heads"][g]["key"]).rsqrt()
        scores = self.add(arrays.Scores(query, key, factor))
        if attention["score_bias"] != "none":
            biases = arb_mat([[stored.score_bias(b, g, head, i, j) for j in self.everything] for i in rows])
            scores = self.add(arrays.Sum((scores, self.add(arrays.Constant(biases)))))
        return self.add(arrays.Attend(attention["kind"], scores, value, tuple(stored.allowed(b, i) for i in rows)))

    def _readout(self, stream: int) -> int:
        kind, count = self.stored.config["readout"]["kind"], len(self.stored.read_rows)
        if kind in ("mean", "sum"):
            share = arb(fmpq(1, count)) if kind == "mean" else ONE
            stream = self.add(arrays.Pool(stream, Weight(arb_mat(1, count, [share] * count))))
        return self._linear(stream, "readout.weight", "readout.bias")


class PointNetwork(Network):
    """A stored transformer as a function of single points; boxes are for `Network`."""

    def values(self, point: Row) -> list[arb]:
        """Balls around all outputs at `point`; raises `Refused` when one cannot be enclosed."""
        if len(point) != self.dimension:
            raise Refused(f"the transformer reads {self.dimension} inputs, not {len(point)}")
        values: dict[int, Stream] = {0: constants(table(1, 0), self._tokens(point))}
        for n, bundles in self._steps:
            values[n] = (
                node_value(self.program.nodes[n], values, table(1, 0)) if bundles is None else bundles.value(values)
            )
        result = values[len(self.program.nodes) - 1]
        balls = [value_ball(result.form(r, c)) for r in range(result.shape[0]) for c in range(result.shape[1])]
        if not all(value.is_finite() for value in balls):
            raise Refused(f"the transformer's output at ({', '.join(map(str, point))}) could not be enclosed")
        return balls

    def _tokens(self, point: Row) -> arb_mat:
        """The value of the program's input: the point itself, or the embedded ids."""
        if self.config["input"]["kind"] == "continuous":
            return arb_mat(self.tokens, self.token_width, [ball(x) for x in point])
        for t, letter in enumerate(point):
            if letter.denominator != 1 or not 0 <= letter < self.config["input"]["vocabulary"]:
                raise Refused(f"token {t + 1} of a row is not an id of the transformer's vocabulary")
        return self.embedded_ids([int(letter) for letter in point])

    @cached_property
    def _steps(self) -> list[tuple[int, Bundles | None]]:
        """The nodes that have to be computed, in order; units that are added up in bundles need no node of their own."""
        nodes, steps, needed = self.program.nodes, [], {len(self.program.nodes) - 1}
        for n in range(len(nodes) - 1, 0, -1):
            if n in needed:
                bundles = bundles_of(self.program, n)
                needed.update(arguments(nodes[n]) if bundles is None else (bundles.source,))
                steps.append((n, bundles))
        return steps[::-1]


def bundles_of(program: ArrayProgram, n: int) -> Bundles | None:
    """The relu layer whose last step is node n; None where bundles would not help."""
    last = program.nodes[n]
    middle = program.nodes[last.x] if isinstance(last, arrays.Linear) else None
    first = program.nodes[middle.x] if isinstance(middle, arrays.Apply) and middle.name == "relu" else None
    if not isinstance(last, arrays.Linear) or not isinstance(first, arrays.Linear):
        return None
    columns, rows = first.weight.matrix.transpose().tolist(), last.weight.matrix.tolist()
    groups: dict[tuple[float, ...], list[int]] = {}
    for unit, column in enumerate(columns):  # stored weights are float64 numbers, so that this is exact
        groups.setdefault(tuple(float(entry) for entry in column), []).append(unit)
    if 4 * len(groups) > len(columns):
        return None
    shifts = first.bias or [ZERO] * len(columns)
    bundles = [Bundle(direction, [(-shifts[u], rows[u]) for u in own]) for direction, own in groups.items()]
    return Bundles(first.x, bundles, last.bias or [ZERO] * last.weight.matrix.ncols())


@dataclass(frozen=True)
class Bundles:
    """A relu layer that reads the node `source`, its units sorted by direction."""

    source: int
    bundles: list[Bundle]
    bias: list[arb]

    def value(self, values: Mapping[int, Stream]) -> Stream:
        source, sums = values[self.source], []
        for r in range(source.shape[0]):
            row = [value_ball(source.form(r, c)) for c in range(source.shape[1])]
            sums.append(list(self.bias))
            for bundle in self.bundles:
                bundle.add(row, sums[-1])
        return constants(source.table, arb_mat(sums))


class Bundle:
    """Units relu(w . h - t_i) with outgoing rows d_i, summed by prefix sums over increasing t_i."""

    def __init__(self, direction: tuple[float, ...], units: list[tuple[arb, list[arb]]]):
        self.direction = [(c, arb(w)) for c, w in enumerate(direction) if w]
        units = sorted(units, key=lambda unit: unit[0])
        self.thresholds, self.columns = [t for t, _ in units], []
        for c in range(len(units[0][1])):
            if all(row[c].is_zero() for _, row in units):
                continue
            slopes, offsets = [ZERO], [ZERO]
            for t, row in units:
                slopes.append(slopes[-1] + row[c])
                offsets.append(offsets[-1] + row[c] * t)
            self.columns.append((c, [row[c] for _, row in units], slopes, offsets))

    def add(self, row: list[arb] | Mapping[int, arb], out: list[arb]) -> None:
        """Add the units' contribution at the residual row to `out`."""
        s = sum((row[c] * w for c, w in self.direction), ZERO)
        if not s.is_finite():
            raise Refused("a hidden unit of the transformer could not be enclosed")
        sure, possible = bisect_right(self.thresholds, s.lower()), bisect_left(self.thresholds, s.upper())
        for c, weights, slopes, offsets in self.columns:
            out[c] = out[c] + s * slopes[sure] - offsets[sure]
            for i in range(sure, possible):
                out[c] = out[c] + weights[i] * (s - self.thresholds[i]).nonnegative_part()


class Rows(Protocol):
    """A finite list of inputs, each with the outputs that are wanted for it."""

    @property
    def inputs(self) -> int: ...

    @property
    def outputs(self) -> int: ...

    @property
    def count(self) -> int: ...

    @property
    def rows(self) -> Iterable[tuple[Row, Row]]: ...

    def find(self, point: Row) -> Row | None: ...

    def sentence(self, tolerance: str, /) -> str: ...


@dataclass(frozen=True)
class FiniteProblem:
    """The statement `max over rows and outputs of |T(row) - y| <= bound` for a bound still to be proved."""

    network: PointNetwork
    target: Rows

    def errors(self, inputs: Row, outputs: Row) -> list[arb]:
        """Balls around T - y at one row."""
        return [t - ball(y) for t, y in zip(self.network.values(inputs), outputs, strict=True)]

    def error_lower(self, point: Row, output: int) -> arb:
        """A lower bound of the error of one output at a point, which must be a row."""
        wanted = self.target.find(point)
        if wanted is None:
            raise Refused("the recorded witness is not a row of the claim")
        if not 0 <= output < len(wanted):
            raise Refused("the recorded witness names an output that does not exist")
        return larger(self.errors(point, wanted)[output].abs_lower(), ZERO)
