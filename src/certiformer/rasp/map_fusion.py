"""Fuses maps of maps: chains of + - * into one affine map, others into one table over what the inner maps read.

A fused map reads the inputs of the maps below it, at most two, and its table has at most `MAX_FUSED` entries. Affine maps
stay affine, since adding numbers costs a compiler nothing; they are opened by a table only when they have one input.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

from certiformer.errors import BadInput
from certiformer.rasp.graph import Graph, Node, Table, ValueSet, tabulated
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.meaning import apply
from certiformer.rasp.operation import Affine, Operation, as_affine
from certiformer.rasp.value import Value, all_exact, canonical, identities, identity

MAX_FUSED = 4_096  # entries of a table that fusing may write
NOTHING = identity(None)


class MapFuser:
    """Rebuilds the maps of `graph` in `builder`; `single_reader` are rebuilt maps that only one node reads."""

    def __init__(self, builder: GraphBuilder, graph: Graph, single_reader: set[int]) -> None:
        self.builder, self.graph, self.single_reader = builder, graph, single_reader
        self._places: dict[
            tuple[bool, int], dict[tuple, int]
        ] = {}  # (whether rebuilt, node) -> value -> place in its list

    def fuse(self, node: Node, inputs: tuple[int, ...]) -> int:
        """The number of a node with the meaning of `node`, whose rebuilt inputs are `inputs`."""
        if node.function is None:
            return self.builder.add("map", inputs, None, node.constant, name=node.name)
        affine = self._fused_affine(node, inputs)
        if affine is not None:
            return affine
        sources = self._sources(inputs)
        if self._entries(sources) > MAX_FUSED:
            sources = tuple(dict.fromkeys(inputs))
        small = 0 < self._entries(sources) <= MAX_FUSED
        if isinstance(node.function, Operation) and (not small or sources == inputs):
            return (
                self._simple(node, inputs) if small else self.builder.add("map", inputs, node.function, name=node.name)
            )
        sets = [self.builder.values(i).values or () for i in sources]
        results = self._results(node, [self._column(i, sources, sets) for i in inputs])
        if sources != inputs and self._grows(node, results):
            # Through the inner maps, arguments look unrelated that are not; the list inferred before is the better one.
            return self._unfused(node, inputs)
        return self._add_table(node, sources, tuple(map(len, sets)), results)

    def _grows(self, node: Node, results: list[Value]) -> bool:
        known = {NOTHING, *identities((node.values.values if node.values else None) or ())}
        return not known.issuperset(identities({id(value): value for value in results}.values()))

    def _unfused(self, node: Node, inputs: tuple[int, ...]) -> int:
        if isinstance(node.function, Operation):
            return self.builder.add("map", inputs, node.function, name=node.name)
        sets = [self.builder.values(i).values or () for i in inputs]
        results = self._results(node, [self._column(i, inputs, sets) for i in inputs])
        return self._add_table(node, inputs, tuple(map(len, sets)), results)

    # --- affine maps --------------------------------------------------------------------------------------------------

    def _fused_affine(self, node: Node, inputs: tuple[int, ...]) -> int | None:
        """+ - * of exact numbers, with the affine maps below it taken in; None when it is not of this kind."""
        outer = as_affine(node.function) if isinstance(node.function, Operation) else None
        if outer is None or not all(_exact_numbers(self.builder.values(i)) for i in inputs):
            return None
        factors: dict[int, Value] = {}
        offset = outer.offset
        for factor, number in zip(outer.factors, inputs, strict=True):
            inner = self.builder.nodes[number]
            opened = inner.kind == "map" and isinstance(inner.function, Affine)
            parts = zip(inner.inputs, inner.function.factors, strict=True) if opened else [(number, 1)]  # type: ignore[union-attr]
            for source, inner_factor in parts:
                read = self.builder.nodes[source]
                if read.kind == "full" and read.constant is not None:
                    offset += factor * inner_factor * read.constant
                else:
                    factors[source] = factors.get(source, 0) + factor * inner_factor
            offset += factor * inner.function.offset if opened else 0  # type: ignore[union-attr]
        undefined_lost = any(f == 0 and self.builder.values(i).undefined for i, f in factors.items())
        kept = {i: canonical(f) for i, f in factors.items() if f != 0}
        if len(kept) > 2 or undefined_lost:  # a factor 0 would forget that the input may be undefined
            return None
        if not kept:
            return self.builder.add("full", constant=canonical(offset), name=node.name)
        only = next(iter(kept))
        if len(kept) == 1 and kept[only] == 1 and offset == 0 and _no_truth_values(self.builder.values(only)):
            return only
        return self.builder.add("map", tuple(kept), Affine(tuple(kept.values()), canonical(offset)), name=node.name)

    # --- tables -------------------------------------------------------------------------------------------------------

    def _sources(self, inputs: tuple[int, ...]) -> tuple[int, ...]:
        """What a map would read if the maps below it were fused: those of one input, and tables that nobody else reads."""
        found: dict[int, None] = {}
        for i in inputs:
            while self._opens(i) and len(self.builder.nodes[i].inputs) == 1:
                i = self.builder.nodes[i].inputs[0]
            found.update(dict.fromkeys(self.builder.nodes[i].inputs if self._opens(i) else (i,)))
        return tuple(found) if len(found) <= 2 else tuple(dict.fromkeys(inputs))

    def _opens(self, number: int) -> bool:
        """Whether a table may read the inputs of this node instead: a listed map of one input, or a private table."""
        inner = self.builder.nodes[number]
        if inner.kind != "map" or inner.function is None or not self._entries((number, *inner.inputs)):
            return False
        return len(inner.inputs) == 1 or (number in self.single_reader and not isinstance(inner.function, Affine))

    def _entries(self, numbers: Sequence[int]) -> int:
        """The size of a table over these nodes; 0 when one of them has no list."""
        size = 1
        for i in numbers:
            size *= len(self.builder.values(i).values or ())
        return size

    def _column(self, number: int, sources: tuple[int, ...], sets: list[tuple[Value, ...]]) -> list[Value]:
        """The values of a rebuilt node for all values of its one or two sources, in table order."""
        if sources.count(number) and len(sources) == 2:  # it is one of them
            a, b = sets
            return [x for x in a for _ in b] if number == sources[0] else list(b) * len(a)
        own = [place for place, source in enumerate(sources) if self._reads(number, source)]
        short = [
            self._through(number, dict(zip([sources[place] for place in own], values, strict=True)))
            for values in product(*(sets[place] for place in own))
        ]
        if len(own) == len(sources):
            return short
        if len(sources) == 1 or not own:
            return short * prod(map(len, sets))
        return [x for x in short for _ in sets[1]] if own == [0] else short * len(sets[0])

    def _reads(self, number: int, source: int) -> bool:
        if number == source:
            return True
        inner = self.builder.nodes[number]
        return inner.kind == "map" and any(self._reads(i, source) for i in inner.inputs)

    def _results(self, node: Node, columns: list[list[Value]]) -> list[Value]:
        """The values of a map of the old graph for whole columns of arguments."""
        if not isinstance(node.function, Table) or node.values is None:
            return [self._result(node, list(arguments)) for arguments in zip(*columns, strict=True)]
        entries = node.function.entries
        outputs = (*(node.values.values or ()), None)  # entry -1, undefined, is the last one
        places = [0] * len(columns[0])
        for i, column, size in zip(node.inputs, columns, node.function.shape, strict=True):
            place = self._place(False, i)  # an argument that was not inferred before cannot occur: it stays below zero
            found = [place.get(key, -1) for key in identities(column)]
            places = [p * size + f if p >= 0 and f >= 0 else -1 for p, f in zip(places, found, strict=True)]
        return [outputs[entries[p]] if p >= 0 else None for p in places]

    def _through(self, number: int, at: dict[int, Value]) -> Value:
        """The value of a rebuilt node when its sources have the values `at`; rebuilt chains have two or three links."""
        if number in at:
            return at[number]
        inner = self.builder.nodes[number]
        return self._result(inner, [self._through(i, at) for i in inner.inputs], rebuilt=True)

    def _result(self, node: Node, arguments: list[Value], rebuilt: bool = False) -> Value:
        """The value of a map; the tables of a node count in the lists of its own graph, the old or the rebuilt one."""
        if any(x is None for x in arguments):
            return None
        if isinstance(node.function, Operation):
            return apply(node.function, arguments)
        if not isinstance(node.function, Table) or node.values is None:
            raise BadInput(f"{node.name} has no function")
        place = 0
        for i, value, size in zip(node.inputs, arguments, node.function.shape, strict=True):
            position = self._place(rebuilt, i).get(identity(value))
            if position is None:
                return None  # an argument that was not inferred before cannot occur
            place = place * size + position
        entry = node.function.entries[place]
        return None if entry < 0 else (node.values.values or ())[entry]

    def _place(self, rebuilt: bool, number: int) -> dict[tuple, int]:
        if (rebuilt, number) not in self._places:
            values = (self.builder.nodes if rebuilt else self.graph.nodes)[number].values
            listed = (values.values if values else None) or ()
            self._places[rebuilt, number] = {identity(value): place for place, value in enumerate(listed)}
        return self._places[rebuilt, number]

    def _simple(self, node: Node, inputs: tuple[int, ...]) -> int:
        """An operation stays one, unless it always gives the same value or its own argument."""
        sets = [self.builder.values(i).values or () for i in inputs]
        results = self._results(node, [self._column(i, inputs, sets) for i in inputs])
        short = self._shortcut(node, inputs, results)
        if short is not None:
            return short
        if self._needed(inputs, tuple(map(len, sets)), results)[0] != inputs:
            return self._add_table(node, inputs, tuple(map(len, sets)), results)
        return self.builder.add("map", inputs, node.function, name=node.name)

    def _add_table(self, node: Node, sources: tuple[int, ...], sizes: tuple[int, ...], results: list[Value]) -> int:
        short = self._shortcut(node, sources, results)
        if short is not None:
            return short
        sources, sizes, results = self._needed(sources, sizes, results)
        outputs, entries = tabulated(results)
        return self.builder.add("map", sources, Table(sizes, entries), name=node.name, outputs=outputs)

    def _needed(
        self, sources: tuple[int, ...], sizes: tuple[int, ...], results: list[Value]
    ) -> tuple[tuple[int, ...], tuple[int, ...], list[Value]]:
        """The same table without an input that never matters; one that may be undefined always does."""
        if len(sources) != 2:
            return sources, sizes, results
        keys = identities(results)
        rows = [keys[r * sizes[1] : (r + 1) * sizes[1]] for r in range(sizes[0])]
        if not self.builder.values(sources[0]).undefined and all(row == rows[0] for row in rows):
            return sources[1:], sizes[1:], results[: sizes[1]]
        if not self.builder.values(sources[1]).undefined and all(x == row[0] for row in rows for x in row):
            return sources[:1], sizes[:1], results[:: sizes[1]]
        return sources, sizes, results

    def _shortcut(self, node: Node, sources: tuple[int, ...], results: list[Value]) -> int | None:
        """A constant, or the input itself, when that is all a map gives."""
        kinds = set(identities({id(value): value for value in results}.values()))
        surely_defined = not any(self.builder.values(i).undefined for i in sources)
        if len(kinds) == 1 and (surely_defined or results[0] is None):
            return self.builder.add("full", constant=results[0], name=node.name)
        if len(sources) == 1:
            listed = self.builder.values(sources[0]).values or ()
            if len(kinds) == len(listed) and identities(results) == identities(listed):
                return sources[0]
        return None


def _exact_numbers(values: ValueSet) -> bool:
    return values.span is not None or (values.values is not None and all_exact(values.values))


def _no_truth_values(values: ValueSet) -> bool:
    if values.values is None:
        return values.span is not None and not values.span.truths
    return not any(type(value) is bool for value in values.values)
