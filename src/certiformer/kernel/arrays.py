"""Programs over arrays: what a stored transformer computes, as a list of nodes with real-number meaning.

Every node is a matrix of real functions of the point (x_1, ..., x_D); it refers to earlier nodes by position.

| node                         | meaning                                                                              |
|------------------------------|--------------------------------------------------------------------------------------|
| `Input(rows, columns)`       | the point, row after row                                                             |
| `Constant(matrix)`           | numbers, each known as a ball                                                        |
| `Linear(x, weight, bias)`    | x W + b, the same for every row                                                      |
| `Pool(x, weights)`           | W x: constant combinations of the rows of x                                          |
| `Rows(x, chosen)`            | the chosen rows of x                                                                 |
| `Stack(parts)`               | the rows of all parts, one part after the other                                      |
| `Sum(parts)`                 | the entrywise sum                                                                    |
| `Scores(queries, keys, factor)` | factor * queries keys^T                                                           |
| `Attend(kind, scores, values, allowed)` | row i: the mix of the rows `allowed[i]` of `values` under the scores of row i |
| `Norm(x, epsilon, gain, shift)` | (x - mean) / sqrt(variance + epsilon) * gain + shift, row by row                   |
| `Apply(name, x)`             | a function of one variable, entry by entry                                           |

Kinds of attention: `softmax`; `linear` (the scores are the weights), `relu` (their positive parts are); `hard`, the mean
of the values whose score is largest, and `nearest`, of those whose score is nearest to zero. A row that may see nothing
is zero.

The meaning is the one of `docs/model.md`. Interpreters (`kernel.forward` in Taylor forms) follow this table literally.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from flint import arb, arb_mat

KINDS = ("softmax", "linear", "relu", "hard", "nearest")
APPLIED = ("relu", "gelu")


@dataclass(frozen=True, eq=False)
class Weight:
    """A constant matrix; its absolute values are made once."""

    matrix: arb_mat

    @cached_property
    def size(self) -> arb_mat:
        """Entrywise upper bounds of |W|."""
        rows, columns = self.matrix.nrows(), self.matrix.ncols()
        return arb_mat(rows, columns, [entry.abs_upper() for entry in self.matrix.entries()])


@dataclass(frozen=True)
class Input:
    rows: int
    columns: int


@dataclass(frozen=True)
class Constant:
    matrix: arb_mat


@dataclass(frozen=True)
class Linear:
    x: int
    weight: Weight
    bias: list[arb] | None = None


@dataclass(frozen=True)
class Pool:
    x: int
    weights: Weight


@dataclass(frozen=True)
class Rows:
    x: int
    chosen: tuple[int, ...]


@dataclass(frozen=True)
class Stack:
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Sum:
    parts: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    queries: int
    keys: int
    factor: arb


@dataclass(frozen=True)
class Attend:
    kind: str
    scores: int
    values: int
    allowed: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Norm:
    x: int
    epsilon: arb
    gain: list[arb]
    shift: list[arb]


@dataclass(frozen=True)
class Apply:
    name: str
    x: int


Node = Input | Constant | Linear | Pool | Rows | Stack | Sum | Scores | Attend | Norm | Apply


def arguments(node: Node) -> tuple[int, ...]:
    """The positions of the nodes that `node` reads."""
    match node:
        case Input() | Constant():
            return ()
        case Stack(parts) | Sum(parts):
            return parts
        case Scores(queries, keys):
            return queries, keys
        case Attend(_, scores, values):
            return scores, values
    return (node.x,)


class ArrayProgram:
    """A list of nodes; node 0 is the input, the last one the result."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []

    @property
    def source(self) -> Input:
        """Node 0."""
        first = self.nodes[0]
        if not isinstance(first, Input):
            raise TypeError("node 0 of an array program is its input")
        return first

    def add(self, node: Node) -> int:
        """Append a node; returns its position."""
        self.nodes.append(node)
        return len(self.nodes) - 1
