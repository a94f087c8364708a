"""Target programs for tests, written with ordinary Python operators (independent of the formula parser)."""

from __future__ import annotations

from certiformer.target.ir import Program


class Node:
    """One node of a program under construction; operators append to the shared list."""

    def __init__(self, nodes: list, position: int) -> None:
        self.nodes, self.position = nodes, position

    def _new(self, *node) -> Node:
        self.nodes.append(node)
        return Node(self.nodes, len(self.nodes) - 1)

    def _other(self, value) -> Node:
        return value if isinstance(value, Node) else self._new("const", str(value))

    def __add__(self, other):
        return self._new("add", self.position, self._other(other).position)

    def __sub__(self, other):
        return self._new("sub", self.position, self._other(other).position)

    def __mul__(self, other):
        return self._new("mul", self.position, self._other(other).position)

    def __truediv__(self, other):
        return self._new("div", self.position, self._other(other).position)

    def __pow__(self, n: int):
        return self._new("pow", self.position, n)

    def __neg__(self):
        return self._new("neg", self.position)

    def call(self, name: str, *others) -> Node:
        return self._new(name, self.position, *(self._other(o).position for o in others))

    def where(self, comparison: str, other, x, y) -> Node:
        return self._new("where", comparison, self.position, *(self._other(o).position for o in (other, x, y)))


def program(dimension: int, build) -> Program:
    """`build(x1, ..., xD)` returns one Node or a list of them."""
    nodes: list = [("var", i) for i in range(dimension)]
    out = build(*(Node(nodes, i) for i in range(dimension)))
    outputs = out if isinstance(out, list) else [out]
    return Program(dimension, tuple(nodes), tuple(o.position for o in outputs))
