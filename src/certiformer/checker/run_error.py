"""How far a run in floating point may be from the real-number function: a bound over the box, in balls.

T_real is the function of the stored weights over the real numbers, of which a certificate speaks. T_run is any
execution of the same formulas (`docs/model.md`) in a format: any order of summation, with or without fused
multiply-add, subnormal numbers flushed or not (`rounding` has the model of one operation). The bound is for every
point of the box whose coordinates are numbers of the format; `round_input` adds what rounding the coordinates of any
other point costs.

*Running error analysis.* For each intermediate number the pass keeps a Taylor form of its real value over a cell of
the box and a bound of |run - real|. Every rule below has the shape

    |op_run(x + e) - op(x)| <= |op(x + e) - op(x)|  +  what rounding may add to op(x + e),

the first by a Lipschitz constant, the second by `rounding`. Sums over heads, the output bias and the products before
them are one sum of products, and so are the embedding, its bias and its code. Scores, attention and layer norm are in
`run_scores`, `run_attention` and `run_norm`.

*Cells.* Ranges are tighter on smaller boxes. The cell with the largest bound is bisected again and again, always in
the same way, so a recorded bound is found again.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_mat

from certiformer.checker.run_attention import Omitted, enclosed, hard, softmax
from certiformer.checker.run_norm import layer_norm
from certiformer.checker.run_scores import ScoreTable
from certiformer.kernel import stream, taylor
from certiformer.kernel.balls import INFINITY, ONE, ZERO, BallDomain, Box, larger, largest, working_precision
from certiformer.kernel.forward import gelu, mix, normalised
from certiformer.kernel.network import Network
from certiformer.kernel.rounding import Format, NoBound, format_of, no_overflow, operations
from certiformer.kernel.rounding.operations import Rounded, Weights, exact_values, side_by_side, stacked
from certiformer.kernel.splits import Cell, halves, root
from certiformer.kernel.stream import Stream
from certiformer.kernel.taylor import Table

ORDER = 1
FEW = 24  # keys: up to here the softmax is enclosed by a quotient of forms, beyond by a fixed mean of the values
LIGHT = arb(-60).exp().lower()  # weights below may be left out on smaller cells
MOST_CELLS = 4_096
DEEPEST = 16  # bisections of one axis: ranges on smaller cells are not narrower by much
PATIENCE = 64  # cells before giving up on smaller ones
WORK = 8_000_000  # cells times keys times heads: what a check may spend on a recorded bound


@dataclass(frozen=True)
class RunBound:
    """An upper bound of |T_run - T_real| over the box, or None with the reason; `cells` is how many the box was cut
    into.
    """

    bound: arb | None
    reason: str
    cells: int


def run_error(
    network: Network,
    domain: BallDomain,
    dtype: str,
    *,
    round_input: bool = False,
    goal: arb | None = None,
    cells: int | None = None,
    seconds: float = float("inf"),
) -> RunBound:
    """A bound of |T_run - T_real| over the domain for runs in `dtype`; stops at `goal`, or when cells or seconds are
    spent.
    """
    working_precision()
    if network.config["input"]["kind"] != "continuous":
        return RunBound(None, "the run of a transformer that reads token ids is not bounded", 0)
    walk = Walk(network, format_of(dtype), round_input)
    most, began = cells or cell_limit(network), time.monotonic()
    heap: list[tuple[float, int, _Part]] = []
    made = 0

    def push(cell: Cell, parent: _Part) -> None:
        nonlocal made
        part = walk.part(cell, domain.box(cell), parent)
        made += 1
        heapq.heappush(heap, (-float(part.bound), made, part))

    push(root(domain.dimension), _Part((), INFINITY, "", {}))
    before = INFINITY
    while len(heap) < most and time.monotonic() - began < seconds:
        part = heap[0][2]
        worst, cell = part.bound, part.cell
        if worst.is_zero() or (goal is not None and worst <= goal):
            break
        if len(heap) >= PATIENCE and len(heap) & (len(heap) - 1) == 0:
            if not worst < 0.98 * before:
                break  # twice as many cells have not helped
            before = worst
        axis = min(range(domain.dimension), key=lambda i: cell[i][0])
        if cell[axis][0] >= DEEPEST:
            break
        heapq.heappop(heap)
        for half in halves(cell, axis):
            push(half, part)
    bound = largest([part.bound for _, _, part in heap])
    reason = next((part.reason for _, _, part in heap if part.reason), "")
    return RunBound(bound if bound.is_finite() else None, reason, len(heap))


def cell_limit(network: Network) -> int:
    """How many cells a check may use: fewer for longer sequences."""
    heads = sum(g["count"] for b in network.config["blocks"] if b["attention"] for g in b["attention"]["heads"])
    keys = network.registers + network.tokens
    return max(16, min(MOST_CELLS, WORK // (max(heads, 1) * keys * network.config["loops"])))


@dataclass(frozen=True)
class _List:
    """The registers that one head of the first block still looks at on a cell, and what each query leaves out."""

    kept: list[int]
    omitted: dict[int, Omitted]


@dataclass(frozen=True)
class _Part:
    """A cell of the box with its bound, or the reason why there is none, and the lists that hold on it."""

    cell: Cell
    bound: arb
    reason: str
    lists: dict[tuple[str, int], _List]


class Walk:
    """The forward pass of `Network`, with an error beside every form."""

    def __init__(self, network: Network, form: Format, round_input: bool):
        self.network, self.form, self.round_input = network, form, round_input
        self._weights: dict[tuple, Weights] = {}
        self._constant: dict[tuple, Rounded] = {}
        self._lists: dict[tuple[str, int], _List] = {}
        self._found: dict[tuple[str, int], _List] = {}

    def part(self, cell: Cell, box: Box, parent: _Part) -> _Part:
        """The bound on one cell; what holds on its parent holds on it as well."""
        self._lists, self._found = parent.lists, dict(parent.lists)
        try:
            entries = self.outputs(box).error.entries()
        except NoBound as problem:
            return _Part(cell, parent.bound, str(problem) if parent.reason or not parent.cell else "", self._lists)
        bound = largest([entry.upper() for entry in entries])
        if not bound < parent.bound:
            lost = "" if parent.bound.is_finite() else "a range of the transformer could not be enclosed"
            return _Part(cell, parent.bound, parent.reason or lost, self._found)
        return _Part(cell, bound, "", self._found)

    def outputs(self, box: Box) -> Rounded:
        """The outputs on a box with the errors of a run."""
        network, config = self.network, self.network.config
        h = self._embed(self.monomials(), box)
        last, everything = list(network.read_rows), list(range(h.shape[0]))
        steps = [b for _ in range(config["loops"]) for b in range(len(config["blocks"]))]
        for place, b in enumerate(steps):
            h = self._block(h, b, last if place == len(steps) - 1 else everything)
        h = h.rows(list(range(len(last)))) if steps else h.rows(last)
        kind = config["readout"]["kind"]
        if kind in ("mean", "sum"):
            h = self._pool(h, kind)
        return self._linear(h, "readout.weight", bias="readout.bias")

    def monomials(self) -> Table:
        """The monomials of the forms: the inputs, to first order."""
        return taylor.table(self.network.dimension, ORDER)

    def _embed(self, tab: Table, box: Box) -> Rounded | _Split:
        network, form = self.network, self.form
        n, width = network.tokens, network.token_width
        forms = [[taylor.variable(tab, box, t * width + i) for i in range(width)] for t in range(n)]
        x = exact_values(stream.from_forms(tab, forms))
        if self.round_input:
            error = [(form.unit * size + form.tiny).upper() for size in x.size.entries()]
            x = Rounded(x.value, arb_mat(n, width, error))
        bias = [network.tensors["embed.bias"].row()] * n
        code = [network.code(t) for t in range(n)]
        data = operations.linear(form, x, self._matrix("embed.weight"), [bias, code])
        data = Rounded(data.value, data.error + self._code_error(code))
        if not network.registers:
            return data
        return _Split(self._once(("registers",), lambda: self._registers(tab)), data)

    def _registers(self, tab: Table) -> Rounded:
        rows = [self.network.tensors["registers"].row(r) for r in range(self.network.registers)]
        return exact_values(stream.constants(tab, arb_mat(rows)))

    def _code_error(self, code: list[list[arb]]) -> arb_mat:
        """Sines and cosines are computed in float64 and rounded to the format; other codes are exact.

        An angle is at most 2 pi t and off by at most 8 roundings of float64, the function by 4 more.
        """
        rows, width = len(code), len(code[0])
        if self.network.config["code"]["kind"] not in ("circle", "sinusoidal"):
            return arb_mat(rows, width)
        double, u = arb((1, -53)), self.form.unit
        entries = [
            (2 * u * abs(c) + double * (8 * 7 * t + 4) + 2 * self.form.tiny).upper() if not c.is_zero() else ZERO
            for t, row in enumerate(code)
            for c in row
        ]
        return arb_mat(rows, width, entries)

    def _matrix(self, name: str, *lead: int) -> Weights:
        return self._kept((name, *lead), lambda: self.network.tensors[name].matrix(*lead))

    def _kept(self, key: tuple, matrix: Callable[[], arb_mat]) -> Weights:
        if key not in self._weights:
            self._weights[key] = Weights(matrix(), self.form)
        return self._weights[key]

    def _once(self, key: tuple, make: Callable[[], Rounded]) -> Rounded:
        """What does not depend on the cell."""
        if key not in self._constant:
            self._constant[key] = make()
        return self._constant[key]

    def _linear(
        self, x: Rounded | _Split, name: str, *lead: int, bias: str | None = None, kept: list[int] | None = None
    ) -> Rounded:
        if isinstance(x, _Split):
            fixed = self._once((name, *lead), lambda: self._linear(x.fixed, name, *lead, bias=bias))
            fixed = fixed if kept is None else fixed.rows(kept)
            return stacked(fixed, self._linear(x.moving, name, *lead, bias=bias))
        rows = None if bias is None else [[self.network.tensors[bias].row(*lead)] * x.shape[0]]
        return operations.linear(self.form, x, self._matrix(name, *lead), rows)

    def _block(self, h: Rounded | _Split, b: int, rows: list[int]) -> Rounded:
        block, prefix = self.network.config["blocks"][b], f"blocks.{b}"
        norm, attention, ffn = block["norm"], block["attention"], block["ffn"]
        before, after = (norm if norm and norm["place"] == place else None for place in ("pre", "post"))
        kept = h.rows(rows)
        if attention is not None:
            out = self._attention(self._norm(h, f"{prefix}.norm.attention", before), b, rows)
            kept = operations.plus(self.form, kept, out) if attention["residual"] else out
            kept = self._norm(kept, f"{prefix}.norm.attention", after)
        if ffn is not None:
            out = self._ffn(self._norm(kept, f"{prefix}.norm.ffn", before), f"{prefix}.ffn", ffn["kind"])
            kept = operations.plus(self.form, kept, out) if ffn["residual"] else out
            kept = self._norm(kept, f"{prefix}.norm.ffn", after)
        return kept

    def _ffn(self, u: Rounded, name: str, kind: str) -> Rounded:
        hidden = self._linear(u, f"{name}.up", bias=f"{name}.up_bias")
        if kind == "relu":
            hidden = operations.relu(hidden)
        elif kind == "gelu":
            rows, columns = hidden.shape
            forms = [[gelu(hidden.value.form(r, c)) for c in range(columns)] for r in range(rows)]
            hidden = operations.gelu(self.form, hidden, stream.from_forms(u.value.table, forms))
        return self._linear(hidden, f"{name}.down", bias=f"{name}.down_bias")

    def _pool(self, h: Rounded, kind: str) -> Rounded:
        """The sum of n rows errs by gamma_(n-1) of the sizes; the division by n by its own error."""
        count, form = h.shape[0], self.form
        if count == 1:
            return h
        share = ONE / count if kind == "mean" else ONE
        row = arb_mat(1, count, [share] * count)
        value = Stream(h.value.table, {i: row * m for i, m in h.value.coef.items()}, row * h.value.rem)
        for size in (arb_mat(1, count, [ONE] * count) * h.reach).entries():
            no_overflow(form, 2 * size)
        gamma = form.gamma(count - 1 + (form.divide + 1 if kind == "mean" else 0))
        error = row * h.error + (row * h.reach) * gamma
        return Rounded(value, arb_mat(1, h.shape[1], [(e + 2 * count * form.tiny).upper() for e in error.entries()]))

    def _norm(self, h: Any, name: str, norm: dict[str, Any] | None) -> Any:
        if norm is None:
            return h
        if isinstance(h, _Split):
            fixed = self._once((name,), lambda: self._norm(h.fixed, name, norm))
            return _Split(fixed, self._norm(h.moving, name, norm))
        scale, shift = (self.network.tensors[f"{name}.{part}"].row() for part in ("scale", "shift"))
        value = normalised(h.value, arb(norm["epsilon"]), scale, shift)
        return layer_norm(self.form, h, value, scale, shift, arb(norm["epsilon"]))

    def _attention(self, u: Rounded | _Split, b: int, rows: list[int]) -> Rounded:
        """All heads side by side, then one sum of products with all output matrices, and the output bias."""
        network, parts, output = self.network, [], []
        prefix, attention = f"blocks.{b}", network.config["blocks"][b]["attention"]
        for g, group in enumerate(attention["heads"]):
            name = f"{prefix}.attention.groups.{g}"
            for head in range(group["count"]):
                parts.append(self._head(u, b, g, head, rows))
                output += network.tensors[f"{name}.output"].matrix(head).tolist()
        weights = self._kept((prefix, "output"), lambda: arb_mat(output))
        bias = [network.tensors[f"{prefix}.attention.output_bias"].row()] * len(rows) if attention["bias"] else None
        return operations.linear(self.form, side_by_side(parts), weights, None if bias is None else [bias])

    def _head(self, u: Rounded | _Split, b: int, g: int, head: int, rows: list[int]) -> Rounded:
        attention, name = self.network.config["blocks"][b]["attention"], f"blocks.{b}.attention.groups.{g}"
        group = attention["heads"][g]
        bias = [f"{name}.{part}_bias" if attention["bias"] else None for part in ("query", "key", "value")]
        q = self._linear(u.rows(rows), f"{name}.query", head, bias=bias[0])
        known = self._lists.get((name, head)) if isinstance(u, _Split) else None
        kept = None if known is None else known.kept
        k = self._linear(u, f"{name}.key", head, bias=bias[1], kept=kept)
        v = self._linear(u, f"{name}.value", head, bias=bias[2], kept=kept)
        for size in v.reach.entries():
            no_overflow(self.form, 4 * size)
        # The sequence that is left: place -> position in the whole sequence.
        whole = list(range(u.shape[0])) if kept is None else kept + list(range(self.network.registers, u.shape[0]))
        scores = ScoreTable(self.form, q, k, attention, group["key"])
        result, light = [], []
        for position, i in enumerate(rows):
            seen = set(self.network.allowed(b, i))
            allowed = [p for p, j in enumerate(whole) if j in seen]
            omitted = Omitted() if known is None else known.omitted[i]
            if not allowed:
                result.append(exact_values(stream.constants(v.value.table, arb_mat(1, group["value"]))))
                light.append({})
                continue
            extra = [self.network.score_bias(b, g, head, i, whole[p]) for p in allowed]
            values = v if len(allowed) == v.shape[0] else v.rows(allowed)
            mixed, weights = self._mixed(scores, position, allowed, extra, values, attention["kind"], omitted)
            result.append(mixed)
            light.append(dict(zip(allowed, weights, strict=True)))
        if isinstance(u, _Split) and attention["kind"] == "softmax":
            self._shorten((name, head), known, whole, rows, light, v)
        return result[0] if len(result) == 1 else stacked(*result)

    def _shorten(
        self,
        key: tuple[str, int],
        known: _List | None,
        whole: list[int],
        rows: list[int],
        light: list[dict[int, arb]],
        v: Rounded,
    ) -> None:
        """The rule on lists: leave out the registers that weigh nothing for any query."""
        count = len(whole) - self.network.tokens
        gone = [p for p in range(count) if all(weights.get(p, ZERO) < LIGHT for weights in light)]
        if len(whole) <= FEW or 5 * len(gone) < len(whole):
            return
        lost = set(gone)
        value = largest([v.reach[p, c].upper() for p in gone for c in range(v.shape[1])])
        omitted = {}
        for i, weights in zip(rows, light, strict=True):
            old = Omitted() if known is None else known.omitted[i]
            weight = sum((weights.get(p, ZERO) for p in gone), old.weight).upper()
            omitted[i] = Omitted(old.count + len(gone), weight, larger(value, old.value))
        self._found[key] = _List([whole[p] for p in range(count) if p not in lost], omitted)

    def _mixed(
        self,
        table: ScoreTable,
        row: int,
        allowed: list[int],
        extra: list[arb],
        v: Rounded,
        kind: str,
        omitted: Omitted,
    ) -> tuple[Rounded, list[arb]]:
        """The weighted sum of the values, and bounds of the weights."""
        if kind in ("linear", "relu"):
            return table.weighted(kind, row, allowed, extra, v), [ONE] * len(allowed)
        scores = (table.nearest if kind == "nearest" else table.relative)(row, allowed, extra)
        if kind == "softmax" and len(allowed) > FEW:
            real = enclosed(scores, v.value)
        else:
            real = mix(kind, table.forms(row, allowed, extra), v.value)
        if kind in ("hard", "nearest"):
            return hard(self.form, scores, v, real), [ONE] * len(allowed)
        return softmax(self.form, scores, v, real, omitted)


class _Split:
    """The sequence before the first block: registers, which are the same on every cell, and data tokens."""

    def __init__(self, fixed: Rounded, moving: Rounded):
        self.fixed, self.moving = fixed, moving
        self.shape = fixed.shape[0] + moving.shape[0], fixed.shape[1]

    def rows(self, chosen: list[int]) -> Rounded:
        count = self.fixed.shape[0]
        if all(r >= count for r in chosen):
            return self.moving.rows([r - count for r in chosen])
        return stacked(self.fixed, self.moving).rows(chosen)
