"""Which nodes are held without any rounding error.

Functions of the token or the position are; widths and means come out of a division and are not; what is read from one
position is as exact as what stands there; a sum or a table is as exact as what it is made of.
"""

from __future__ import annotations

from certiformer.compiler.graph_to_extended import Extended
from certiformer.compiler.sources import Sources


class Exactness:
    """Answers for each node, inputs first, each once."""

    def __init__(self, extended: Extended, sources: Sources) -> None:
        self._extended, self._sources = extended, sources
        self._exact: dict[int, bool] = {}

    def __getitem__(self, number: int) -> bool:
        stack = [number]
        while stack:
            top = stack[-1]
            below = self._made_of(top)
            missing = [i for i in below or () if i not in self._exact]
            if missing and top not in self._exact:
                stack += missing
                continue
            stack.pop()
            self._exact[top] = below is not None and all(self._exact[i] for i in below)
        return self._exact[number]

    def _made_of(self, number: int) -> tuple[int, ...] | None:
        """The nodes on which the exactness of this one depends; None when it is inexact anyway."""
        node = self._extended.nodes[number]
        if self._sources[number] is not None:
            return ()
        if number in self._extended.sums:
            return tuple(other for _, other in self._extended.sums[number].terms)
        if number in self._extended.plans:
            single = node.kind == "aggregate" and "single" in self._extended.nodes[node.inputs[0]].facts
            return (node.inputs[1],) if single else None
        return node.inputs
