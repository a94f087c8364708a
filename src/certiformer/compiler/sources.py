"""Which nodes are known before the first layer: functions of the token alone, or of the position alone.

Their cells are rows of the embedding and of the position table and cost no head and no unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from certiformer.rasp.graph import Node, Table
from certiformer.rasp.meaning import apply
from certiformer.rasp.operation import Operation
from certiformer.rasp.value import identity

CONSTANT, TOKEN, POSITION = "constant", "token", "position"


@dataclass(frozen=True)
class Source:
    """The place of a node's value in its list (-1: undefined) for every token, every position, or (one entry) always."""

    kind: str
    places: tuple[int, ...]


class Sources:
    """The sources of a growing list of nodes."""

    def __init__(self, nodes: Sequence[Node], length: int) -> None:
        self._nodes = nodes
        self.length = length
        self._found: list[Source | None] = []
        self._lists: dict[int, dict[tuple, int]] = {}

    def __getitem__(self, number: int) -> Source | None:
        for next_one in range(len(self._found), len(self._nodes)):
            self._found.append(self._source(self._nodes[next_one]))
        return self._found[number]

    def _source(self, node: Node) -> Source | None:
        if node.values is None or node.values.values is None:
            return None
        match node.kind:
            case "tokens":
                return Source(TOKEN, tuple(range(len(node.values.values))))
            case "indices":
                return Source(POSITION, tuple(range(self.length)))
            case "full":
                return Source(CONSTANT, (-1 if node.constant is None else 0,))
            case "written":
                own = {identity(value): place for place, value in enumerate(node.values.values)}
                written = [*node.constant[1:], *[None] * self.length][: self.length]
                return Source(POSITION, tuple(-1 if x is None else own[identity(x)] for x in written))
            case "map":
                return self._map(node)
        return None

    def _map(self, node: Node) -> Source | None:
        inputs = [self._found[i] for i in node.inputs]
        kinds = {source.kind for source in inputs if source is not None and source.kind != CONSTANT}
        if any(source is None for source in inputs) or len(kinds) > 1:
            return None
        known = [source for source in inputs if source is not None]
        count = max(len(source.places) for source in known)
        rows = [source.places if len(source.places) == count else source.places * count for source in known]
        return Source(
            kinds.pop() if kinds else CONSTANT, tuple(self._result(node, at) for at in zip(*rows, strict=True))
        )

    def _result(self, node: Node, at: tuple[int, ...]) -> int:
        if any(place < 0 for place in at):
            return -1
        if isinstance(node.function, Table):
            place = 0
            for number, size in zip(at, node.function.shape, strict=True):
                place = place * size + number
            return node.function.entries[place]
        if not isinstance(node.function, Operation) or node.values is None:
            raise TypeError(node.kind)
        arguments = [self._nodes[i].values.values[p] for i, p in zip(node.inputs, at, strict=True)]  # type: ignore
        value = apply(node.function, arguments)
        if value is None:
            return -1
        own = self._lists.get(id(node))
        if own is None:
            own = self._lists[id(node)] = {identity(x): p for p, x in enumerate(node.values.values or ())}
        return own[identity(value)]
