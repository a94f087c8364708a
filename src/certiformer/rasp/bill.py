"""A first bill for a graph: which sublayer each node needs, how many coordinates it holds, and who is to blame for them.

An estimate for the plainest compiler: attention reads one layer and writes the next, a map follows in the feed-forward
part, an affine map of numbers is free, a number takes one coordinate and a symbol one per value. Better codes, shared
coordinates and several heads in a layer only lower it. Counting: attention sublayers are 1, 3, 5, ..., feed-forward ones
2, 4, 6, ...
"""

from __future__ import annotations

from dataclasses import dataclass

from certiformer.rasp.graph import Graph, Node
from certiformer.rasp.operation import Affine


@dataclass(frozen=True)
class Line:
    """What one node costs: its sublayer (0: the embedding), its coordinates, the entries of its table or relation."""

    node: int
    name: str
    sublayer: int
    width: int
    entries: int


@dataclass(frozen=True)
class Bill:
    """The lines, and what they add up to."""

    lines: tuple[Line, ...]
    layers: int
    width: int
    entries: int

    @property
    def widest(self) -> Line:
        """The node that takes the most coordinates."""
        return max(self.lines, key=lambda line: line.width)

    def __str__(self) -> str:
        most = self.widest
        return (
            f"{self.layers} layers, {self.width:,} coordinates, {self.entries:,} table entries;"
            f" {most.name} takes {most.width:,} coordinates"
        )


def bill(graph: Graph) -> Bill:
    """The estimate for a graph.

    >>> from certiformer.rasp.graph_to_simplified import graph_to_simplified
    >>> from certiformer.rasp.library import catalogue
    >>> from certiformer.rasp.program_to_graph import program_to_graph
    >>> reverse = program_to_graph(catalogue()["reverse"].make(), {"a", "b"}, 10)
    >>> print(bill(graph_to_simplified(reverse)))
    2 layers, 43 coordinates, 0 table entries; opposite takes 19 coordinates
    """
    sublayers: list[int] = []
    lines = []
    for number, node in enumerate(graph.nodes):
        sublayers.append(_sublayer(graph, node, sublayers))
        entries = len(getattr(node.function, "entries", ()))
        lines.append(Line(number, node.name, sublayers[-1], _width(node), entries))
    return Bill(
        tuple(lines), (max(sublayers) + 1) // 2, sum(line.width for line in lines), sum(line.entries for line in lines)
    )


def _sublayer(graph: Graph, node: Node, done: list[int]) -> int:
    ready = max((done[i] for i in node.inputs), default=0)
    if node.kind in ("width", "aggregate", "length"):
        return ready + 1 + ready % 2  # the next attention sublayer, an odd number
    if node.kind == "map":
        free = (
            isinstance(node.function, Affine) and node.numerical and all(graph.nodes[i].numerical for i in node.inputs)
        )
        return ready if free else ready + 2 - ready % 2  # the next feed-forward sublayer, an even number
    return ready


def _width(node: Node) -> int:
    if node.values is None:
        return 0
    return 1 if node.numerical or node.values.values is None else len(node.values.values)
