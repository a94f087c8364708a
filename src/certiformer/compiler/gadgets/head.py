"""Heads: what they compare, what they read, and how the beginning of the sequence takes part.

The token before the data ("start") has the score 0 as a key. A `width` head gives 0 to every selected position, too, so the
weight of start is 1 / (1 + width): its value is the flag that is 1 there. A `read` head gives 1/2 to selected positions and
at most -1/2 to others, so start is read exactly where nothing is selected, and its value is the default.

One dimension, the *guard*, has the key 1 - flag: it carries what depends on the query alone, the 1/2, and -1 for start as a
query, which therefore sees only itself. All other features are 0 at start.
"""

from __future__ import annotations

from collections.abc import Generator
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from certiformer.compiler.draft import DraftCell, DraftHead, Feature
from certiformer.compiler.gadgets.scores import Numbers, Part, parts_for
from certiformer.compiler.graph_to_extended import HeadPlan
from certiformer.compiler.linear_form import Form, Number
from certiformer.compiler.truth import truth_of
from certiformer.construct.selector_width import start_weight
from certiformer.rasp.facts import selects_one_value
from certiformer.rasp.graph import Node
from certiformer.rasp.value import identity, is_number

if TYPE_CHECKING:
    from certiformer.compiler.extended_to_draft import Lowering

Asking = Generator[tuple[int, Feature], Form, Form]


class HeadMaker:
    """Makes the head of a plan and returns the form of the cell it writes."""

    def __init__(self, lowering: Lowering) -> None:
        self.lowering = lowering

    def make(self, number: int, node: Node, plan: HeadPlan) -> Asking:
        low = self.lowering
        reads = node.kind == "aggregate"
        guard = Form((), Fraction(1, 2) if reads else 0)
        queries: list[Form] = []
        keys: list[Form] = []
        penalty = Form()
        for atom, holds in sorted(plan.conjunction):
            key_node, query_node = self._sides(atom)
            part = self._cheapest(atom, holds, key_node, query_node, self._one_value(node, plan))
            for factor, query, key in part.products:
                queries.append((yield (query_node, self._feature(query_node, query, part.snap))).scaled(factor))
                keys.append((yield (key_node, self._feature(key_node, key, part.snap))))
            for feature in part.key_penalties:
                penalty = penalty + (yield (key_node, self._feature(key_node, feature, part.snap)))
            for feature in part.query_penalties:
                guard = guard + (yield (query_node, self._feature(query_node, feature, part.snap))).scaled(-1)
        if penalty != Form():
            queries.append(Form((), -1))
            keys.append(penalty)
        draft = low.draft
        queries = [draft.with_start(query, 0) for query in queries] + [draft.with_start(guard, -1)]
        keys = [draft.with_start(key, 0) for key in keys] + [Form((), 1) + low.start().scaled(-1)]
        if reads:
            value, cell = yield from self._read(number, node)
        else:
            numbers = tuple(start_weight(w) for w in node.values.values)  # type: ignore[union-attr]
            value, cell = low.start(), DraftCell(number, Feature(numbers), 1)
        written = draft.add_cell(cell)
        factor = low.precision.sharpness * (2 if reads else 1)
        sharp = tuple(query.scaled(factor) for query in queries)
        kind = "read" if reads else "width"
        draft.heads.append(DraftHead(kind, plan.selector, number, plan.causal, sharp, tuple(keys), value, written))
        return Form.of({written: 1})

    def _sides(self, atom: int) -> tuple[int, int]:
        node = self.lowering.nodes[atom]
        if node.kind == "pattern":
            indices = self.lowering.extended.builder.add("indices")
            return indices, indices
        return node.inputs[0], node.inputs[1]

    def _feature(self, number: int, numbers: Numbers, snap: str) -> Feature:
        defined, undefined = (numbers, None) if self._undefined(number) is None else (numbers[:-1], numbers[-1])
        if self.lowering.exact[number] or len(set(numbers)) == 1:
            return Feature(defined, undefined)
        return Feature(defined, undefined, snapped=snap)

    def _undefined(self, number: int) -> Number | None:
        return self.lowering.codes[number].undefined

    def _codes(self, number: int) -> Numbers:
        code = self.lowering.codes[number]
        return (*(code.numbers or ()), *(() if code.undefined is None else (code.undefined,)))

    def _one_value(self, node: Node, plan: HeadPlan) -> bool:
        """Whether small differences between the scores of selected positions change nothing."""
        nodes = self.lowering.nodes
        return node.kind == "aggregate" and selects_one_value(nodes, nodes[plan.selector], node.inputs[1])

    def _squares_hold(self, key_node: int, query_node: int) -> bool:
        low = self.lowering
        largest = max(abs(floor(code)) + 1 for number in (key_node, query_node) for code in self._codes(number))
        tables = any(low.nodes[i].kind == "map" and low.linear(i) is None for i in (key_node, query_node))
        return low.precision.squares_hold(low.extended.builder.length, largest, tables)

    def _cheapest(self, atom: int, holds: bool, key_node: int, query_node: int, tolerant: bool) -> Part:
        low = self.lowering
        truth = truth_of(low.nodes, low.sources, atom, holds).matrix
        if self._undefined(key_node) is None:
            truth = truth[:-1]
        if self._undefined(query_node) is None:
            truth = truth[:, :-1]
        exact = low.exact[key_node] and low.exact[query_node]
        robust = not exact and not (tolerant and self._squares_hold(key_node, query_node))
        ways = parts_for(truth, self._codes(key_node), self._codes(query_node), robust)
        return min(ways, key=lambda part: self._cost(part, key_node, query_node))

    def _cost(self, part: Part, key_node: int, query_node: int) -> int:
        cost = len(part.products)
        for number, wanted in zip((query_node, key_node), part.features(), strict=True):
            cost += sum(self.lowering.price(number, self._feature(number, numbers, part.snap)) for numbers in wanted)
        return cost

    def _read(self, number: int, node: Node) -> Generator[tuple[int, Feature], Form, tuple[Form, DraftCell]]:
        """The value of each position, with the default at start, and the cell that gets their mean."""
        low = self.lowering
        selector, value = node.inputs
        code = low.codes[number]
        held = low.codes[value]
        one_value = selects_one_value(low.nodes, low.nodes[selector], value)
        mixed = held.undefined is not None and not one_value
        feature = code
        if mixed:
            feature = Feature(code.numbers, code.undefined, or_more=True)
            held = Feature(held.numbers, self._far(value, held, code))
        elif held.undefined is not None and code.undefined is not None:
            held = Feature(held.numbers, code.undefined)
        form = yield (value, held)
        default = code.undefined if node.constant is None else self._default(node, code)
        if default is None:  # something is always selected
            default = low.draft.at_start(form)
        # Weights are positive: a mean of what does not dip does not dip, but a difference of inexact numbers may.
        copied = len(form.terms) == 1 and not form.constant and form.terms[0][1] > 0
        copied = copied and not low.draft.cells[form.cells[0]].dips and default == low.draft.at_start(form)
        dips = not low.exact[value] and not copied
        return low.draft.with_start(form, default), DraftCell(number, feature, default, dips=dips)

    def _far(self, value: int, held: Feature, code: Feature) -> Number:
        """One undefined among the selected must lift the mean to the undefined code: n (U - low) + low."""
        smallest = self.lowering.unlisted.bounds(value)[0] if held.numbers is None else min(held.numbers, default=0)
        return floor(self.lowering.extended.builder.length * ((code.undefined or 0) - smallest) + smallest) + 1

    def _default(self, node: Node, code: Feature) -> Number | None:
        values = node.values.values if node.values else None
        if values is None:  # of numbers, so that a default that is none is never read
            return Fraction(node.constant) if is_number(node.constant) else None
        wanted = identity(node.constant)
        place = next((p for p, x in enumerate(values) if x == node.constant and identity(x) == wanted), None)
        return None if place is None or code.numbers is None else code.numbers[place]
