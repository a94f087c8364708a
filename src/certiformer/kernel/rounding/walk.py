"""The walk over an array program with an error beside every form.

Every node of `kernel.arrays` carries the form of its real value, as `kernel.arrays` computes it, and a bound of
|run - real|. A sum of matrix products that nothing else reads and of constants is one sum of products, in any order:
the heads of a block with their output bias, the embedding with its bias and its code. Scores are looked at by the rows
that use them.

*Pieces.* Until rows are mixed, what comes from the registers does not depend on the point: it is computed once for all
boxes, and the moving rest for each. `Linear` and `Norm` act on every piece of a `Stack` by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flint import arb, arb_mat

from certiformer.kernel import arrays
from certiformer.kernel.arrays import node_value
from certiformer.kernel.balls import ZERO, larger, largest
from certiformer.kernel.rounding import attention, operations
from certiformer.kernel.rounding.attention import Omitted
from certiformer.kernel.rounding.formats import Format, NoBound, no_overflow
from certiformer.kernel.rounding.operations import Counted, Rounded, exact_values
from certiformer.kernel.taylor import Table

LIGHT = arb(-60).exp().lower()  # weights below may be left out on smaller cells

# A node, or a node applied to one piece of what it reads.
Piece = Any


@dataclass(frozen=True)
class Kept:
    """The registers that one head of the first block still looks at on a cell, and what each query leaves out."""

    kept: list[int]
    omitted: list[Omitted]


class Walk:
    """The walk for one program and format; `codes` bounds the errors of the codes that are added to the embedding."""

    def __init__(
        self, program: arrays.ArrayProgram, form: Format, table: Table, codes: arb_mat, scores: int | None = None
    ):
        self.nodes, self.source, self.form, self.table = program.nodes, program.source, form, table
        self.codes, self.scores = codes, scores
        self.readers = Counter(x for node in program.nodes for x in arrays.arguments(node))
        self._counted: dict[int, Counted] = {}
        self._fixed: dict[Piece, Rounded] = {}
        self._moving: dict[Piece, Rounded] = {}
        self.lists: Mapping[int, Kept] = {}
        self.shorter: dict[int, Kept] = {}

    def result(self, point: Rounded, lists: Mapping[int, Kept]) -> Rounded:
        """The last node for this value of the input; afterwards `shorter` holds the lists for smaller boxes."""
        self._moving, self.lists, self.shorter = {0: point}, lists, dict(lists)
        return self._at(len(self.nodes) - 1)

    def _at(self, position: int) -> Rounded:
        pieces = self._pieces(position)
        return self._piece(pieces[0]) if len(pieces) == 1 else self._stacked([self._piece(p) for p in pieces])

    def _pieces(self, position: int) -> tuple[Piece, ...]:
        """The parts of a node that are stacked, one after the other."""
        node = self.nodes[position]
        if isinstance(node, arrays.Stack):
            return node.parts
        if isinstance(node, arrays.Linear | arrays.Norm) and len(inner := self._pieces(node.x)) > 1:
            return tuple((position, piece) for piece in inner)
        return (position,)

    def _piece(self, piece: Piece) -> Rounded:
        known = self._fixed if self._is_fixed(piece) else self._moving
        if piece not in known:
            if isinstance(piece, tuple):
                position, inner = piece
                known[piece] = self._row_by_row(position, self._piece(inner))
            else:
                known[piece] = self._value(piece)
        return known[piece]

    def _is_fixed(self, piece: Piece) -> bool:
        while isinstance(piece, tuple):
            piece = piece[1]
        return isinstance(self.nodes[piece], arrays.Constant)

    def _stacked(self, parts: list[Rounded]) -> Rounded:
        """Arrays of one width on top of each other."""
        whole = node_value(arrays.Stack(tuple(range(len(parts)))), [part.value for part in parts], self.table)
        return Rounded(whole, arb_mat([line for part in parts for line in part.error.tolist()]))

    def _row_by_row(self, position: int, x: Rounded) -> Rounded:
        """A linear map, a norm or an activation."""
        node, form = self.nodes[position], self.form
        match node:
            case arrays.Linear(_, _, bias):
                constants = [] if bias is None else [arb_mat([bias] * x.shape[0])]
                error = operations.products(form, [(x, self._weights(position, node))], constants)
            case arrays.Norm():
                error = operations.norm(form, x, node)
            case arrays.Apply("relu"):
                error = operations.relu(x)
            case arrays.Apply("gelu"):
                error = operations.gelu(form, x)
            case _:
                raise NoBound(f"a run of {type(node).__name__} is not defined")
        return Rounded(node_value(node, {node.x: x.value}, self.table), error)

    def _value(self, position: int) -> Rounded:
        node = self.nodes[position]
        match node:
            case arrays.Constant(matrix):
                return exact_values(arrays.constants(self.table, matrix))
            case arrays.Rows(x, chosen):
                return self._rows(x, list(chosen))
            case arrays.Pool(x, weights):
                inner = self._at(x)
                value = node_value(node, {x: inner.value}, self.table)
                return Rounded(value, operations.pooled(self.form, inner, weights))
            case arrays.Sum(parts):
                return self._products(parts) if self._is_one_sum(parts) else self._added(parts)
            case arrays.Attend():
                return self._attended(position, node)
            case arrays.Linear() | arrays.Norm() | arrays.Apply():
                return self._row_by_row(position, self._at(node.x))
        raise NoBound(f"a run of {type(node).__name__} is not defined by itself")

    def _rows(self, x: int, chosen: list[int]) -> Rounded:
        pieces = self._pieces(x)
        first = len(pieces) > 1 and self._piece(pieces[0]).shape[0]
        if first and len(pieces) == 2 and min(chosen) >= first:
            return self._piece(pieces[1]).rows([r - first for r in chosen])
        return self._at(x).rows(chosen)

    def _weights(self, position: int, node: arrays.Linear) -> Counted:
        if position not in self._counted:
            self._counted[position] = Counted(node.weight, self.form)
        return self._counted[position]

    def _is_one_sum(self, parts: tuple[int, ...]) -> bool:
        kinds = [(self.nodes[part], self.readers[part]) for part in parts]
        linear = [n for n, read in kinds if isinstance(n, arrays.Linear) and read == 1]
        return bool(linear) and len(linear) + sum(isinstance(n, arrays.Constant) for n, _ in kinds) == len(parts)

    def _products(self, parts: tuple[int, ...]) -> Rounded:
        """Matrix products and constants, added up in any order."""
        terms, constants, coded, values = [], [], False, []
        for part in parts:
            node = self.nodes[part]
            if isinstance(node, arrays.Constant):
                values.append(arrays.constants(self.table, node.matrix))
                constants.append(node.matrix)
            elif isinstance(node, arrays.Linear):
                x = self._at(node.x)
                values.append(node_value(node, {node.x: x.value}, self.table))
                terms.append((x, self._weights(part, node)))
                constants += [] if node.bias is None else [arb_mat([node.bias] * x.shape[0])]
                coded = coded or node.x == 0
        error = operations.products(self.form, terms, constants)
        total = node_value(arrays.Sum(tuple(range(len(values)))), values, self.table)
        return Rounded(total, error + self.codes if coded else error)

    def _added(self, parts: tuple[int, ...]) -> Rounded:
        total = self._at(parts[0])
        for part in parts[1:]:
            other = self._at(part)
            total = Rounded(arrays.plus(total.value, other.value), operations.added(self.form, total, other))
        return total

    def _attended(self, position: int, node: arrays.Attend) -> Rounded:
        scored, bias = self._scores(node.scores)
        q, known = self._at(scored.queries), self.lists.get(position)
        k, v = self._listed(scored.keys, known), self._listed(node.values, known)
        for size in v.reach.entries():
            no_overflow(self.form, 4 * size)
        pieces = self._pieces(scored.keys)
        registers = self._piece(pieces[0]).shape[0] if len(pieces) == 2 and self._is_fixed(pieces[0]) else 0
        left = list(range(registers)) if known is None else known.kept
        # The sequence that is left: place -> position in the whole sequence.
        whole = left + list(range(registers, registers + k.shape[0] - len(left)))
        table = attention.Scores(self.form, q, k, scored.factor)
        rows, light, same = [], [], {}
        for i, seen in enumerate(node.allowed):
            looked = set(seen)
            allowed = [p for p, j in enumerate(whole) if j in looked]
            extra = [ZERO if bias is None else bias[i, whole[p]] for p in allowed]
            if not allowed:
                rows.append(exact_values(arrays.constants(v.value.table, arb_mat(1, v.shape[1]))))
                light.append({})
                continue
            # Queries that are zero ask the same: without biases, rows that see the same have the same value.
            alike = seen if bias is None and all(q.reach[i, c].is_zero() for c in range(q.shape[1])) else i
            if alike not in same:
                self._count(len(allowed))
                omitted = Omitted() if known is None else known.omitted[i]
                values = v if len(allowed) == v.shape[0] else v.rows(allowed)
                same[alike] = attention.mixed(node.kind, table, i, allowed, extra, values, omitted)
            rows.append(same[alike][0])
            light.append(dict(zip(allowed, same[alike][1], strict=True)))
        if registers and node.kind == "softmax":
            self._shorten(position, known, whole, len(left), light, v)
        return rows[0] if len(rows) == 1 else self._stacked(rows)

    def _count(self, scores: int) -> None:
        if self.scores is not None:
            self.scores -= scores
            if self.scores < 0:
                raise NoBound("too many scores would have to be enclosed")

    def _scores(self, position: int) -> tuple[arrays.Scores, arb_mat | None]:
        """The scores that an attention reads, and what is added to them."""
        node, biases = self.nodes[position], []
        if isinstance(node, arrays.Sum):
            node, *rest = (self.nodes[part] for part in node.parts)
            biases = [part.matrix for part in rest if isinstance(part, arrays.Constant)]
            if len(biases) != 1 or len(rest) != 1:
                raise NoBound("a run of these scores is not defined")
        if not isinstance(node, arrays.Scores):
            raise NoBound("a run of these scores is not defined")
        return node, biases[0] if biases else None

    def _listed(self, x: int, known: Kept | None) -> Rounded:
        """The rows of a node, without the registers that are left out."""
        if known is None:
            return self._at(x)
        fixed, moving = (self._piece(piece) for piece in self._pieces(x))
        return self._stacked([fixed.rows(known.kept), moving]) if known.kept else moving

    def _shorten(
        self,
        position: int,
        known: Kept | None,
        whole: list[int],
        count: int,
        light: list[dict[int, arb]],
        v: Rounded,
    ) -> None:
        """The rule on lists: leave out the registers that weigh nothing for any query."""
        gone = [p for p in range(count) if all(weights.get(p, ZERO) < LIGHT for weights in light)]
        if len(whole) <= attention.FEW or 5 * len(gone) < len(whole):
            return
        lost = set(gone)
        value = largest([v.reach[p, c].upper() for p in gone for c in range(v.shape[1])])
        omitted = []
        for i, weights in enumerate(light):
            old = Omitted() if known is None else known.omitted[i]
            weight = sum((weights.get(p, ZERO) for p in gone), old.weight).upper()
            omitted.append(Omitted(old.count + len(gone), weight, larger(value, old.value)))
        self.shorter[position] = Kept([whole[p] for p in range(count) if p not in lost], omitted)
