"""Sums over the selected positions from widths, and aggregates from such sums; see `graph_to_extended`.

*Windows*: a comparison of positions that accepts only a few before the own one is split into one equality with each.
As a relation of positions it would need a dimension for every position. But `j > i - 3` among j <= i accepts exactly
i, i - 1 and i - 2, so the width of a conjunction with it is the sum of three widths, each with one equality of positions.
"""

from __future__ import annotations

from fractions import Fraction

from certiformer.compiler.selector_polynomial import Conjunction, Literal
from certiformer.compiler.sources import POSITION, Sources
from certiformer.compiler.truth import truth_of
from certiformer.compiler.twins import require_means, require_truths_at_ends
from certiformer.errors import BadInput
from certiformer.rasp.facts import selects_one_value
from certiformer.rasp.graph import Table
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.meaning import aggregate
from certiformer.rasp.operation import Affine, is_exact
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import exact, identity, reduced
from certiformer.rasp.values import common_step

SHORT = 8  # up to this length a relation of positions is as good
FEW = 4  # accepted positions


class Windows:
    """Splits the conjunctions of a width among positions up to the own one."""

    def __init__(self, builder: GraphBuilder, sources: Sources) -> None:
        self.builder, self.sources = builder, sources

    def split(self, conjunction: Conjunction) -> list[Conjunction]:
        """Conjunctions whose widths add up to that of the given one."""
        if self.builder.length <= SHORT:
            return [conjunction]
        parts = [frozenset[Literal]()]
        for literal in sorted(conjunction):
            equalities = self._accepted(literal)
            pieces = [literal] if equalities is None else [(equality, True) for equality in equalities]
            parts = [kept | {piece} for kept in parts for piece in pieces]
        return parts

    def _accepted(self, literal: Literal) -> list[int] | None:
        """Equalities of indices with each accepted position, when these are few and at fixed distances."""
        atom, holds = literal
        node = self.builder.nodes[atom]
        known = [self.sources[i] for i in node.inputs]
        if node.kind != "select" or any(source is None or source.kind != POSITION for source in known):
            return None
        truth = truth_of(self.builder.nodes, self.sources, atom, holds)
        accepted = [[j for j in range(i + 1) if truth.at_positions(j, i)] for i in range(self.builder.length)]
        distances = (
            sorted({i - j for i, row in enumerate(accepted) for j in row}) if max(map(len, accepted)) <= FEW else []
        )
        if not 0 < len(distances) <= FEW or any(
            len(row) != sum(d <= i for d in distances) for i, row in enumerate(accepted)
        ):
            return None
        indices = self.builder.add("indices")
        found = []
        for d in distances:
            back = self.builder.add("map", (indices,), Affine((1,), -d), name=f"{d} back") if d else indices
            found.append(self.builder.add("select", (indices, back), Comparison.EQ, name=f"the position {d} back"))
        return found


MAX_ENTRIES = 1_000_000  # of the table that divides a sum by a width


class Totals:
    """Adds the nodes for sums to a graph."""

    def __init__(self, builder: GraphBuilder) -> None:
        self.builder = builder

    def has_bits(self, value: int) -> bool:
        """Whether a node has listed exact numbers, always defined, so that a sum of them has a meaning."""
        values = self.builder.values(value)
        return values.values is not None and not values.undefined and all(map(is_exact, values.values))

    def terms(self, selector: int, value: int, count: int) -> tuple[tuple[object, int], ...]:
        """(factor, node): their sum is that of `value` over the selected positions, `count` of them."""
        numbers = [exact(x) for x in self.builder.values(value).values or ()]
        low = min(numbers)
        step = common_step([x - low for x in numbers])
        digits = [int((x - low) / step) if step else 0 for x in numbers]
        terms: list[tuple[object, int]] = [(reduced(low), count)] if low else []
        return tuple(terms + self._bits(selector, value, digits, step))

    def _bits(self, selector: int, value: int, digits: list[int], step: Fraction) -> list[tuple[object, int]]:
        terms: list[tuple[object, int]] = []
        true = self.builder.add("full", constant=True)
        for bit in range(max(digits, default=0).bit_length()):
            table = Table((len(digits),), tuple(digit >> bit & 1 for digit in digits))
            name = f"bit {bit} of {self.builder.nodes[value].name}"
            node = self.builder.add("map", (value,), table, outputs=(False, True), name=name)
            chosen = self.builder.add("select", (node, true), Comparison.EQ, name=name)
            both = self.builder.add("and", (selector, chosen))
            terms.append((reduced(step * 2**bit), self.builder.add("width", (both,), name=f"how many {name}")))
        return terms

    def aggregate(self, number: int, constant: bool) -> int:
        """A map with the values of an aggregate, from the sum of codes over the selected positions and their number."""
        node = self.builder.nodes[number]
        selector, value = node.inputs
        width = self.builder.add("width", (selector,))
        if constant:
            read = self.builder.nodes[value].constant
            results = [node.constant if count == 0 else read for count in self.builder.values(width).values or ()]
            return self._table(number, (width,), results)
        values = self.builder.values(value)
        if values.values is None:
            raise BadInput(
                f"{node.name} reads one of too many values through a selector made by or; use a smaller length"
            )
        if not selects_one_value(self.builder.nodes, self.builder.nodes[selector], value):
            require_means(node.name, values.values, range(len(values.values)))
            require_truths_at_ends(node.name, values.values)
            if float in values.types:
                raise BadInput(f"{node.name} reads a mean of floats through a selector made by or; use fractions")
        numbers = [exact(x) if is_exact(x) else None for x in values.values]
        low = min((x for x in numbers if x is not None), default=Fraction(0))
        step = common_step([x - low for x in numbers if x is not None])
        means = all(x is not None for x in numbers) and step and len(set(numbers)) == len(numbers)
        digits = [int((x - low) / step) if means and x is not None else p for p, x in enumerate(numbers)]
        terms = self._bits(selector, value, digits, Fraction(1))
        limit = self.builder.length * max(digits, default=0) + 1
        if values.undefined:
            everyone = self.builder.add("full", constant=True)
            defined = self.builder.add("select", (value, everyone), Comparison.TRUE)
            missing = self.builder.add("and", (selector, self.builder.add("not", (defined,))))
            terms.append((limit, self.builder.add("width", (missing,))))
        total = self._added(terms)
        sums, counts = (self.builder.values(i).values for i in (total, width))
        if sums is None or counts is None or len(sums) * len(counts) > MAX_ENTRIES:
            raise BadInput(f"{node.name} reads a mean through a selector made by or, which needs a smaller length")
        place = {digit: value for digit, value in zip(digits, values.values, strict=True)}

        def result(z: int, w: int) -> object:
            if w == 0:
                return node.constant
            if z >= limit:
                return None
            if z % w == 0 and z // w in place:
                return place[z // w]
            return aggregate([reduced(low + step * Fraction(z, w))], None) if means else None

        return self._table(number, (total, width), [result(z, w) for z in sums for w in counts])

    def _added(self, terms: list[tuple[object, int]]) -> int:
        if not terms:
            return self.builder.add("full", constant=0)
        factor, total = terms[0]
        if factor != 1:
            total = self.builder.add("map", (total,), Affine((factor,), 0))
        for factor, other in terms[1:]:
            total = self.builder.add("map", (total, other), Affine((1, factor), 0))
        return total

    def _table(self, number: int, inputs: tuple[int, ...], results: list[object]) -> int:
        """A map to the aggregate's own list; a result outside it belongs to arguments that never meet."""
        values = self.builder.values(number)
        place = {identity(x): p for p, x in enumerate(values.values or ())}
        sizes = tuple(len(self.builder.values(i).values or ()) for i in inputs)
        entries = tuple(-1 if x is None else place.get(identity(x), -1) for x in results)
        name = self.builder.nodes[number].name
        return self.builder.add("map", inputs, Table(sizes, entries), outputs=values.values, name=name)
