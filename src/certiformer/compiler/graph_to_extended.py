"""Adds to a graph what the transformer computes besides: for every width and aggregate, the heads that give it.

A head looks for one conjunction of comparisons, either among all positions or (in a causal block) among those up to its
own. Whatever else a program selects is rewritten, with *identities* that hold for every input:

* a width is a sum of widths of conjunctions, by `selector_polynomial`; a conjunction over positions up to the own one that
  compares nothing but positions is a map of `indices`;
* a mean times the width of its selector is a sum, and with v = low + step (b_0 + 2 b_1 + 4 b_2 + ...)

      sum of v over the selected = low * width + step * sum_t 2^t width(selected and b_t),

  log2 of the range many widths, all of them integers;
* an aggregate whose selector is no conjunction is computed from such a sum and the width by a table.

The new nodes stand after those of the program, and whatever the output does not need has no plan.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from certiformer.compiler.selector_polynomial import EVERYTHING, ONE, Conjunction, Polynomial, Selectors, added
from certiformer.compiler.sources import CONSTANT, POSITION, Sources
from certiformer.compiler.totals import Totals, Windows
from certiformer.compiler.truth import truth_of
from certiformer.errors import BadInput
from certiformer.rasp.graph import Graph, Node, Table
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.operation import Binary
from certiformer.rasp.selectors import Comparison


@dataclass(frozen=True)
class HeadPlan:
    """The head for a width or an aggregate: all literals of `conjunction` must hold, for keys j <= i if `causal`."""

    selector: int
    conjunction: Conjunction
    causal: bool


@dataclass(frozen=True)
class Sum:
    """A node that equals offset + sum of factor * other node."""

    terms: tuple[tuple[object, int], ...]
    offset: object = 0


@dataclass
class Extended:
    """The program with its derived nodes, and how each needed width, aggregate and sum is obtained."""

    builder: GraphBuilder
    output: int
    causal: bool
    plans: dict[int, HeadPlan] = field(default_factory=dict)
    sums: dict[int, Sum] = field(default_factory=dict)

    @property
    def nodes(self) -> list[Node]:
        return self.builder.nodes


def graph_to_extended(graph: Graph, causal: bool = False) -> Extended:
    """The plans for everything that the output of a simplified graph needs."""
    return _Planner(graph, causal).run()


class _Planner:
    def __init__(self, graph: Graph, causal: bool) -> None:
        self.builder = GraphBuilder.continued(graph)
        self.extended = Extended(self.builder, graph.output, causal)
        self.nodes = self.builder.nodes
        self.sources = Sources(self.nodes, graph.length)
        self.selectors = Selectors(self.nodes, lambda literal: truth_of(self.nodes, self.sources, *literal).matrix)
        self.totals = Totals(self.builder)
        self.windows = Windows(self.builder, self.sources)
        self.indices = self.builder.add("indices")
        self.before = self.builder.add("select", (self.indices, self.indices), Comparison.LEQ, name="up to here")

    def run(self) -> Extended:
        waiting, seen = [self.extended.output], set()
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                waiting += self._plan(number)
        return self.extended

    def _plan(self, number: int) -> list[int]:
        """Notes how a node is obtained, and returns the nodes that this needs."""
        if self.sources[number] is not None:
            return []
        node = self.nodes[number]
        match node.kind:
            case "length" if self.extended.causal:
                raise BadInput(f"{node.name} is the number of all tokens, which a causal model cannot know")
            case "length":
                everyone = self.builder.add("select", (self.indices, self.indices), Comparison.TRUE, name="everyone")
                return self._head(number, everyone, EVERYTHING, False)
            case "width":
                return self._width(number, node)
            case "aggregate":
                return self._aggregate(number, node)
            case "map" if node.function == Binary("*"):
                return self._product(number, node)
        return list(node.inputs)

    def _head(self, number: int, selector: int, conjunction: Conjunction, causal: bool) -> list[int]:
        causal = causal or self.extended.causal
        self.extended.plans[number] = HeadPlan(selector, conjunction, causal)
        needed = [i for atom, _ in conjunction for i in self.nodes[atom].inputs]
        return needed + ([self.nodes[number].inputs[1]] if self.nodes[number].kind == "aggregate" else [])

    def _sum(self, number: int, terms: tuple[tuple[object, int], ...], offset: object = 0) -> list[int]:
        self.extended.sums[number] = Sum(terms, offset)
        return [other for _, other in terms]

    # --- widths -------------------------------------------------------------------------------------------------------

    def _width(self, number: int, node: Node) -> list[int]:
        (selector,) = node.inputs
        parts = self._parts(selector)
        if len(parts) == 1:
            conjunction, causal, factor = parts[0]
            if factor == 1 and not self._is_positional(conjunction, causal):
                return self._head(number, selector, conjunction, causal)
        terms, offset = [], 0
        for conjunction, causal, factor in parts:
            if self._is_positional(conjunction, causal):
                other = self._counted_positions(conjunction)
            elif not conjunction:
                other = self.builder.add("length")
            else:
                other = self.builder.add("width", (self._selector(conjunction, causal),))
            if other == number:  # the same conjunction, written in another order
                return self._head(number, selector, conjunction, causal)
            terms.append((factor, other))
        return self._sum(number, tuple(terms), offset)

    def _parts(self, selector: int) -> list[tuple[Conjunction, bool, int]]:
        """(conjunction, whether only up to the own position, factor): their widths add up to that of the selector."""
        left, here, right = self.selectors.cases(selector).as_tuple()
        if self.extended.causal:  # nothing right of the query is selected, which validation has proved or tried
            right = {}
        here_only = added(here, left, -1)
        same_place = (self.builder.add("select", (self.indices, self.indices), Comparison.EQ, name="here"), True)
        parts = [(conjunction, True, factor) for conjunction, factor in added(left, right, -1).items()]
        parts += [(conjunction, False, factor) for conjunction, factor in right.items()]
        parts += [(conjunction | {same_place}, True, factor) for conjunction, factor in here_only.items()]
        split: dict[tuple[Conjunction, bool], int] = {}
        for conjunction, causal, factor in parts:
            cut = (causal or self.extended.causal) and not self._is_positional(conjunction, causal)
            for piece in self.windows.split(conjunction) if cut else [conjunction]:
                split[piece, causal] = split.get((piece, causal), 0) + factor
        return [(piece, causal, factor) for (piece, causal), factor in split.items() if factor]

    def _selector(self, conjunction: Conjunction, causal: bool) -> int:
        """A node for a conjunction."""
        parts = [atom if holds else self.builder.add("not", (atom,)) for atom, holds in sorted(conjunction)]
        if causal:
            parts.append(self.before)
        selector = parts[0]
        for part in parts[1:]:
            selector = self.builder.add("and", (selector, part))
        return selector

    def _is_positional(self, conjunction: Conjunction, causal: bool) -> bool:
        """Whether the count is known from the position alone."""
        inputs = {i for atom, _ in conjunction for i in self.nodes[atom].inputs}
        known = [self.sources[i] for i in inputs]
        return causal and all(source is not None and source.kind in (POSITION, CONSTANT) for source in known)

    def _counted_positions(self, conjunction: Conjunction) -> int:
        length = self.builder.length
        counts = [0] * length
        tables = [truth_of(self.nodes, self.sources, atom, holds) for atom, holds in conjunction]
        for i in range(length):
            counts[i] = sum(all(table.at_positions(j, i) for table in tables) for j in range(i + 1))
        outputs = tuple(sorted(set(counts)))
        place = {count: p for p, count in enumerate(outputs)}
        table = Table((length,), tuple(place[count] for count in counts))
        if len(outputs) == 1:
            return self.builder.add("full", constant=outputs[0])
        return self.builder.add("map", (self.indices,), table, outputs=outputs, name="counted positions")

    # --- aggregates and sums --------------------------------------------------------------------------------------------

    def _aggregate(self, number: int, node: Node) -> list[int]:
        selector, value = node.inputs
        left, here, right = self.selectors.cases(selector).as_tuple()
        if left == here and (self.extended.causal or right in ({}, left)):
            conjunction = _only(left)
            if conjunction is not None:
                return self._head(number, selector, conjunction, right == {} and left != right)
        constant = self.nodes[value].kind == "full" and self.nodes[value].constant is not None
        conjunction = _only(self.selectors.whole(selector))
        if conjunction is not None and not constant:
            return self._head(number, selector, conjunction, False)
        return self._sum(number, ((1, self.totals.aggregate(number, constant)),))

    def _product(self, number: int, node: Node) -> list[int]:
        """A mean times the width of its own selector, when that is a sum of defined numbers."""
        for mean, count in (node.inputs, node.inputs[::-1]):
            if self.nodes[mean].kind != "aggregate" or not self.totals.has_bits(self.nodes[mean].inputs[1]):
                continue
            selector, value = self.nodes[mean].inputs
            counted = self.nodes[count].kind == "width" and self.nodes[count].inputs[0] == selector
            if self.nodes[count].kind == "length":
                counted = self.selectors.whole(selector) == ONE
            if counted and (self._never_empty(selector) or self.nodes[mean].constant is not None):
                return self._sum(number, self.totals.terms(selector, value, count))
        return list(node.inputs)

    def _never_empty(self, selector: int) -> bool:
        here = self.selectors.cases(selector).here
        if "reflexive" in self.nodes[selector].facts or here == ONE:
            return True
        conjunction = _only(here)
        if conjunction is None or not self._is_positional(conjunction, True):
            return False
        tables = [truth_of(self.nodes, self.sources, atom, holds) for atom, holds in conjunction]
        return all(table.at_positions(i, i) for table in tables for i in range(self.builder.length))


def _only(p: Polynomial) -> Conjunction | None:
    """The conjunction that a polynomial is, if it is one."""
    if len(p) == 1:
        ((conjunction, factor),) = p.items()
        if factor == 1:
            return conjunction
    return None
