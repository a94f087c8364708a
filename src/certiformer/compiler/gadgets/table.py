"""Tables: a new cell with a feature of a node, from what the node reads, by units on one linear form."""

from __future__ import annotations

from collections.abc import Generator
from itertools import product
from math import ceil, floor
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from certiformer.compiler.draft import DraftCell, DraftTable, Feature
from certiformer.compiler.features import entries, like
from certiformer.compiler.gadgets.ridge import Grid, additive, choose_ridge
from certiformer.compiler.linear_form import Form, Number
from certiformer.compiler.twins import ONE_KIND
from certiformer.construct.one_block import interpolated
from certiformer.construct.selector_width import inverse_points
from certiformer.errors import BadInput
from certiformer.rasp.graph import Node, Table
from certiformer.rasp.meaning import apply
from certiformer.rasp.value import identity

if TYPE_CHECKING:
    from certiformer.compiler.extended_to_draft import Lowering

Asking = Generator[tuple[int, Feature], Form, Form]
Points = list[tuple[Number, Number]]


class TableMaker:
    """Makes tables; those on the same linear form share their units."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering
        self._tables: dict[tuple[Form, bool], DraftTable] = {}
        self._places: dict[int, np.ndarray] = {}

    def make(self, number: int, feature: Feature) -> Asking:
        """The form of a new cell that holds the feature."""
        low = self.lowering
        node, plans = low.nodes[number], low.extended.plans
        if node.kind in ("width", "length") and number in plans:
            r = yield from low.raw(number)
            return self.written(number, feature, r, inverse_points(self.listed(number), feature.numbers or ()), True)
        if node.kind == "aggregate" and number in plans:
            raw = yield from low.raw(number)
            points = _distinct(entries(low.codes[number]), entries(feature), node.name)
            if low.draft.cells[raw.cells[0]].feature.or_more:  # flat from the undefined code on
                points.append((points[-1][0] + 1, points[-1][1]))
            return self.written(number, feature, raw, points)
        if low.linear(number) is not None or low.affine(node) is not None or node.kind == "aggregate":
            own = yield (number, low.codes[number])
            return self.written(
                number, feature, own, _distinct(entries(low.codes[number]), entries(feature), node.name)
            )
        if any(low.codes[i].numbers is None for i in node.inputs):
            return (yield from low.unlisted.comparison(number, node, feature))
        return (yield from (self._of_one if len(node.inputs) == 1 else self._of_two)(number, node, feature))

    def _of_one(self, number: int, node: Node, feature: Feature) -> Asking:
        low, (inner,) = self.lowering, node.inputs
        values = self.listed(inner)
        held = entries(feature)
        results = [held[place] for place in self.places(number).tolist()]
        if low.nodes[inner].kind in ("width", "length") and inner in low.extended.plans:
            r = yield from low.raw(inner)
            return self.written(number, feature, r, inverse_points(values, results), True)
        if len(set(results)) == 1 and low.codes[inner].undefined is not None:
            base = low.unlisted.presence(inner)
            if base is not None:
                return (yield from low.unlisted.definedness(number, base, feature, results[0]))
        code = low.codes[inner]
        ridge = yield (inner, code)
        if code.undefined is not None:
            results.append(entries(feature)[-1])
        return self.written(number, feature, ridge, _distinct(entries(code), results, node.name))

    def _of_two(self, number: int, node: Node, feature: Feature) -> Asking:
        codes = self.lowering.codes
        x, y = node.inputs
        grid = self.grid(number, feature)
        split = additive(grid)
        if split is not None:
            left = yield (x, like(codes[x], split[0]))
            right = yield (y, like(codes[y], split[1]))
            return left + right
        found = choose_ridge(entries(codes[x]), entries(codes[y]), grid)
        ridge = Form()
        for place, factor in zip((x, y), found.factors, strict=True):
            if factor:
                ridge = ridge + (yield (place, codes[place])).scaled(factor)
        return self.written(number, feature, ridge, list(found.points))

    def grid(self, number: int, feature: Feature) -> Grid:
        """The feature of a map of two for every pair of arguments, undefined ones last."""
        x, y = self.lowering.nodes[number].inputs
        held, scale = Grid.scaled(entries(feature))
        table = held[self.places(number)].reshape(len(self.listed(x)), len(self.listed(y)))
        undefined = [int(self.lowering.codes[i].undefined is not None) for i in (x, y)]
        if any(undefined):
            code = held[-1] if feature.undefined is not None else 0
            table = np.pad(table, [(0, more) for more in undefined], constant_values=code)
        return Grid(table, scale)

    def listed(self, number: int) -> tuple:
        """The values of a node; a sentence when there are too many."""
        node = self.lowering.nodes[number]
        if node.values is None or node.values.values is None:
            raise BadInput(f"{node.name} has too many values to list, and a table needs the list; use a smaller length")
        return node.values.values

    def places(self, number: int) -> Int[np.ndarray, " arguments"]:
        """The place of a map's result in its list for all arguments, row by row; -1, the last one, for undefined."""
        if number not in self._places:
            node = self.lowering.nodes[number]
            if isinstance(node.function, Table):
                found = node.function.entries
            else:
                own = {identity(x): p for p, x in enumerate((node.values.values if node.values else None) or ())}
                arguments = product(*(self.listed(i) for i in node.inputs))
                results = [apply(node.function, at) for at in arguments]  # type: ignore[arg-type]
                found = [-1 if x is None else own[identity(x)] for x in results]
            self._places[number] = np.array(found, np.int64)
        return self._places[number]

    def written(self, number: int, feature: Feature, ridge: Form, points: Points, downward: bool = False) -> Form:
        """A cell written by units on a ridge through the given points; the start of the sequence sees the base point."""
        draft = self.lowering.draft
        base, units = interpolated(points, downward)
        if not units:  # values that would differ do not occur
            return Form((), base)
        ends = [s for s, _ in points]
        first, seen = max(ends) if downward else min(ends), draft.at_start(ridge)
        if (seen < first) if downward else (seen > first):
            # Beyond the first point all is flat. A whole number is added, so that all units see the very same direction.
            ridge = draft.with_start(ridge, seen - floor(seen - first) if downward else seen - ceil(seen - first))
        key = (ridge, downward)
        if key not in self._tables:
            self._tables[key] = DraftTable(ridge)
            draft.tables.append(self._tables[key])
        table = self._tables[key]
        inexact = not all(self.lowering.exact[draft.cells[other].node] for other in ridge.cells)
        dips = inexact and any(factor < 0 for _, factor in units)
        cell = draft.add_cell(DraftCell(number, feature, base, dips=dips))
        table.writes[cell] = [(table.unit(*unit), factor) for unit, factor in units]
        table.offsets[cell] = base
        return Form.of({cell: 1})


def _distinct(at: list[Number], held: list[Number], name: str) -> Points:
    points = dict(zip(at, held, strict=True))
    if len(points) < len(at) and any(points[s] != f for s, f in zip(at, held, strict=True)):
        raise BadInput(f"{name} tells True from 1 (or False from 0) in what may be a mean; {ONE_KIND}")
    return list(points.items())
