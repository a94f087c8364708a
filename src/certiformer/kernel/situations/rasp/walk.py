"""The walk through the sub-layers of a compiled transformer: from what the coordinates hold before to what they hold after.

Nothing of the circuit is believed. What a coordinate holds is computed from the weights for all cases, and must be what its
cell claims; a coordinate without a cell must be empty (zero); roles of heads and units must name exactly the cells in the
coordinates that the weights read and write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.situations.numbers import BITS, UNIT
from certiformer.kernel.situations.rasp.cases import DEPTH, NOTHING, Amount, Part, Sum, settle
from certiformer.kernel.situations.rasp.circuit import ATTENTION, EMBEDDING, FFN, Cell, Circuit, HeadRole
from certiformer.kernel.situations.rasp.computing_heads import ReadHead, WidthHead
from certiformer.kernel.situations.rasp.domains import shown
from certiformer.kernel.situations.rasp.fixed import Arithmetic, as_float, low_bit
from certiformer.kernel.situations.rasp.readout import Decoding, decoded
from certiformer.kernel.situations.rasp.scores import Scores
from certiformer.kernel.situations.rasp.state import EMPTY, Content, Form
from certiformer.kernel.situations.rasp.tables import directions, gathered
from certiformer.kernel.situations.rasp.variables import Variables
from certiformer.kernel.situations.walk import Weights, columns

HEADS = {"read": ReadHead, "width": WidthHead}


class Walk:
    """One pass: real arithmetic, or a run in a dtype. `errors` and `gaps` collect what is found on the way."""

    def __init__(
        self,
        arithmetic: Arithmetic,
        variables: Variables,
        circuit: Circuit,
        config: dict,
        weights: Weights,
        known: dict,
    ):
        self.arithmetic, self.variables, self.circuit, self.config = arithmetic, variables, circuit, config
        self.weights, self.known = weights, known
        self.contents: list[Content] = [EMPTY] * config["width"]
        self.errors: list[tuple[str, float, str]] = []
        self.gaps: list[tuple[float, str]] = []
        self.cells: dict[tuple[int, str], dict[int, tuple[int, Cell]]] = {}
        for number, cell in enumerate(circuit.cells):
            block = 0 if cell.written[1] == EMBEDDING else cell.written[0]
            own = self.cells.setdefault((block, cell.written[1]), {})
            if cell.coordinate in own or not 0 <= cell.coordinate < config["width"]:
                raise Refused(f"the cell {shown(cell.name)} has no coordinate of its own")
            own[cell.coordinate] = (number, cell)
        self._check_places()

    def run(self) -> Decoding:
        """Go through all sub-layers, then read out."""
        self._embed()
        for b, block in enumerate(self.config["blocks"]):
            if block["attention"] is not None:
                self._attend(b, block["attention"])
            if block["ffn"] is not None:
                self._feed_forward(b, block["ffn"])
        rows, outputs = self.weights.rows("readout.weight"), self.config["outputs"]
        bias = self.weights.vector("readout.bias")
        own = columns(rows, outputs)
        forms = self._forms(own, bias)
        self._compare({c for column in own for c in column}, self.circuit.output.reads, "the read-out reads")
        return decoded(self.arithmetic, self.variables, self.contents, forms, self.circuit.output)

    def _forms(self, weights: list[dict[int, int]], bias: Mapping[int, int]) -> list[Form]:
        """The linear forms of the coordinates with these columns of weights."""
        known = self.arithmetic, self.variables, self.contents
        return [Form(*known, column, bias.get(i, 0)) for i, column in enumerate(weights)]

    def _check_places(self) -> None:
        """Every cell is written and cleared in a sub-layer that exists."""
        existing = {(0, EMBEDDING)}
        for b, block in enumerate(self.config["blocks"]):
            existing |= {(b, part) for part in (ATTENTION, FFN) if block[part] is not None}
        for cell in self.circuit.cells:
            written = (0, EMBEDDING) if cell.written[1] == EMBEDDING else cell.written
            if written not in existing or cell.cleared not in {None, *existing}:
                raise Refused(
                    f"the cell {shown(cell.name)} is written or cleared in a sub-layer that the transformer has not"
                )
        for role in (*self.circuit.heads, *self.circuit.units):
            if (role.block, ATTENTION if isinstance(role, HeadRole) else FFN) not in existing:
                raise Refused(
                    f"the circuit speaks of a sub-layer of layer {role.block + 1} that the transformer has not"
                )

    def _replace(self, place: tuple[int, str], new: dict[int, Content]) -> None:
        """Put the new contents in place; cells end exactly where the circuit says."""
        for c, content in new.items():
            before, after = self.contents[c].cell, content.cell
            if before is not None and before != after and self.circuit.cells[before].cleared != place:
                raise Refused(
                    f"the cell {shown(self.circuit.cells[before].name)} ends at {_named(place)}, unlike the circuit says"
                )
            self.contents[c] = content
        for content in self.contents:
            if content.cell is not None and self.circuit.cells[content.cell].cleared == place:
                raise Refused(
                    f"the cell {shown(self.circuit.cells[content.cell].name)} is not cleared at {_named(place)}"
                )
        found = [(as_float(content.worst), content.cell) for content in new.values()]
        worst, cell = max(found, default=(0.0, None), key=lambda pair: pair[0])
        name = "a cleared coordinate" if cell is None else shown(self.circuit.cells[cell].name)
        self.errors.append((_named(place), worst, name if worst else "exact"))

    def _compare(self, coordinates: set[int], cells: tuple[int, ...], what: str) -> None:
        empty = [c for c in coordinates if self.contents[c].cell is None]
        if empty:
            raise Refused(f"{what} coordinate {empty[0]}, which holds no cell")
        if {self.contents[c].cell for c in coordinates} != set(cells) or len(set(cells)) != len(cells):
            raise Refused(f"{what} other cells than the circuit says")

    def _embed(self) -> None:
        tokens, codes = self.weights.rows("embed.weight"), self.weights.rows("code.table")
        first = self.weights.rows("registers")[0]
        place, new = (0, EMBEDDING), {}
        touched = {c for row in (*tokens, *codes, first) for c in row}
        for c in touched | set(self.cells.get(place, {})):
            parts = []
            for variable, rows in ((self.variables.tokens, tokens), (self.variables.indices, codes)):
                values = [row.get(c, 0) for row in rows]
                if any(values):
                    self.variables.require_listed(variable)
                    parts.append(Part((variable,), lambda places, values=values: _stored(values[places[0]]), NOTHING))
            parts.append(Part((), lambda places: NOTHING, _stored(first.get(c, 0))))
            grid = low_bit([*(row.get(c, 0) for row in (*tokens, *codes, first))])
            total = Sum(parts, NOTHING, False, UNIT, grid)
            new[c] = self._settled(total, place, c)
        self._replace(place, new)

    def _settled(self, total: Sum, place: tuple[int, str], c: int) -> Content:
        cell = self.cells.get(place, {}).get(c)
        name = f"coordinate {c}" if cell is None else self.variables.name(cell[1].node)
        where = f"{_named(place)}, which should compute {name}" if cell else f"{_named(place)}, {name}"
        try:
            return settle(self.arithmetic, self.variables, total, cell, where)
        except Refused as problem:
            text = str(problem)
            raise Refused(text if text.startswith(where) else f"{where}: {text}") from None

    def _feed_forward(self, b: int, ffn: dict[str, Any]) -> None:
        name, place = f"blocks.{b}.ffn", (b, FFN)
        incoming = columns(self.weights.rows(f"{name}.up"), ffn["width"])
        outgoing = self.weights.rows(f"{name}.down")
        bias, shift = self.weights.vector(f"{name}.up_bias"), self.weights.vector(f"{name}.down_bias")
        self._check_units(b, incoming, outgoing)
        units = [(row, bias.get(u, 0), out) for u, (row, out) in enumerate(zip(incoming, outgoing, strict=True))]
        found = directions(self.arithmetic, self.variables, self.contents, units)
        touched = {*shift, *(c for row in outgoing for c in row)}
        new = {}
        for c in touched | set(self.cells.get(place, {})):
            total = gathered(c, found, shift.get(c, 0), self.contents[c])
            new[c] = self._settled(total, place, c)
        self._replace(place, new)

    def _check_units(self, b: int, incoming: list[dict[int, int]], outgoing: list[dict[int, int]]) -> None:
        """Every unit belongs to one role, which names exactly the cells read and written."""
        owner: dict[int, int] = {}
        for number, role in enumerate(self.circuit.units):
            if role.block != b:
                continue
            own = range(role.first, role.first + role.count)
            if role.count < 1 or role.first < 0 or own.stop > len(incoming) or any(u in owner for u in own):
                raise Refused(f"the circuit gives units of layer {b + 1} that do not exist, or gives one twice")
            owner |= dict.fromkeys(own, number)
            self._compare({c for u in own for c in incoming[u]}, role.reads, f"a {role.kind} of layer {b + 1} reads")
            written = {c for u in own for c in outgoing[u]}
            cells = [self.circuit.cells[k] for k in role.cells if 0 <= k < len(self.circuit.cells)]
            starts = [cell.cleared if role.kind == "clear" else cell.written for cell in cells]
            if written != {cell.coordinate for cell in cells} or any(start != (b, FFN) for start in starts):
                raise Refused(f"a {role.kind} of layer {b + 1} writes other coordinates than the circuit says")
        if len(owner) != len(incoming):
            raise Refused(f"layer {b + 1} has hidden units that the circuit does not explain")

    def _attend(self, b: int, attention: dict[str, Any]) -> None:
        name, place = f"blocks.{b}.attention", (b, ATTENTION)
        shift = self.weights.vector(f"{name}.output_bias") if attention["bias"] else {}
        roles = {(role.group, role.head): role for role in self.circuit.heads if role.block == b}
        heads = [(g, h) for g, group in enumerate(attention["heads"]) for h in range(group["count"])]
        if set(roles) != set(heads) or len(roles) != sum(role.block == b for role in self.circuit.heads):
            raise Refused(f"the circuit does not explain every head of layer {b + 1} once")
        new: dict[int, Content] = {}
        for g, h in heads:
            for c, content in self._head(b, attention, roles[g, h], f"{name}.groups.{g}", shift).items():
                if c in new:
                    raise Refused(f"two heads of layer {b + 1} write the same coordinate")
                new[c] = content
        for c in {*shift, *self.cells.get(place, {})}:
            if c not in new:
                raise Refused(f"coordinate {c} is written by {_named(place)}, but by no head")
        self._replace(place, new)

    def _head(
        self, b: int, attention: dict[str, Any], role: HeadRole, name: str, shift: Mapping[int, int]
    ) -> dict[int, Content]:
        where = f"{_named((b, ATTENTION))}, which should compute {self.variables.name(role.node)}"
        group, h = attention["heads"][role.group], role.head
        sides = {}
        for side, size in (("query", group["key"]), ("key", group["key"]), ("value", group["value"])):
            bias = self.weights.rows(f"{name}.{side}_bias")[h] if attention["bias"] else {}
            sides[side] = (columns(self.weights.head(f"{name}.{side}", h), size), bias)
        for side, cells in (("query", role.queries), ("key", role.keys), ("value", role.values)):
            self._compare({c for column in sides[side][0] for c in column}, cells, f"{where}: the {side} reads")
        causal = attention["mask"] == "causal"
        factor = arb(1) if attention["scale"] == "unit" else arb(1) / arb(group["key"]).sqrt()
        queries, keys = self._forms(*sides["query"]), self._forms(*sides["key"])
        scores = Scores(self.arithmetic, self.variables, queries, keys, factor, causal)
        try:
            gaps = scores.gaps(role.selector, self.known.setdefault((b, role.group, h), {}))
        except Refused as problem:
            raise Refused(f"{where}: {problem}") from None
        forms = self._forms(*sides["value"])
        head = HEADS[role.kind](self.arithmetic, self.variables, forms, gaps, role.selector, where)
        out = columns(self.weights.head(f"{name}.output", h), self.config["width"])
        new = {}
        for c, column in enumerate(out):
            if not column:
                continue
            cell = self.cells.get((b, ATTENTION), {}).get(c)
            if cell is None:
                raise Refused(f"{where}: it writes to coordinate {c}, where the circuit has no new cell")
            out_of = [column.get(v, 0) for v in range(group["value"])]
            new[c] = head.write(cell, out_of, shift.get(c, 0), self.contents[c])
        if {content.cell for content in new.values()} != set(role.writes) or not new:
            raise Refused(f"{where}: it writes other cells than the circuit says")
        if role.node not in {self.circuit.cells[k].node for k in role.writes}:
            raise Refused(f"{where}: {self.variables.name(role.node)} is not what it writes")
        self.gaps += [(float(gap), where) for gap in head.separations]
        return new


def _stored(value: int) -> Amount:
    return Amount(value << (DEPTH - BITS), 0, 0, abs(value), int(value != 0))


def _named(place: tuple[int, str]) -> str:
    part = {EMBEDDING: "the embedding", ATTENTION: "the attention", FFN: "the hidden units"}[place[1]]
    return part if place[1] == EMBEDDING else f"{part} of layer {place[0] + 1}"
