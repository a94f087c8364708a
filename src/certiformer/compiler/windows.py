"""Windows: a comparison of positions that accepts only a few before the own one, split into one equality with each.

As a relation of positions it would need a dimension for every position. But `j > i - 3` among j <= i accepts exactly
i, i - 1 and i - 2, so the width of a conjunction with it is the sum of three widths, each with one equality of positions.
"""

from __future__ import annotations

from certiformer.compiler.selector_polynomial import Conjunction, Literal
from certiformer.compiler.sources import POSITION, Sources
from certiformer.compiler.truth import truth_of
from certiformer.rasp.graph_builder import GraphBuilder
from certiformer.rasp.operation import Affine
from certiformer.rasp.selectors import Comparison

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
