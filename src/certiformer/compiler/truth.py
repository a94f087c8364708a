"""The truth of a comparison for all pairs of a key and a query, undefined ones included, as a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from certiformer.compiler.sources import Sources
from certiformer.errors import BadInput
from certiformer.rasp.graph import Node, Relation
from certiformer.rasp.meaning import holds as pair_holds
from certiformer.rasp.selectors import Comparison
from certiformer.rasp.value import Ratio, Value

MAX_PAIRS = 20_000_000

_VECTOR = {
    Comparison.EQ: np.equal,
    Comparison.NEQ: np.not_equal,
    Comparison.LT: np.less,
    Comparison.LEQ: np.less_equal,
    Comparison.GT: np.greater,
    Comparison.GEQ: np.greater_equal,
}


@dataclass(frozen=True)
class Truth:
    """Entry (key, query): keys and queries by their place in the list; the last row and column are for undefined."""

    matrix: Bool[np.ndarray, "keys queries"]
    key_places: tuple[int, ...] | None = None  # of every position, when known
    query_places: tuple[int, ...] | None = None

    def at_positions(self, j: int, i: int) -> bool:
        """For a key at position j and a query at position i, both known from the position."""
        if self.key_places is None or self.query_places is None:
            raise ValueError("the key or the query is not known from the position")
        keys, queries = self.key_places, self.query_places
        return bool(self.matrix[keys[j if len(keys) > 1 else 0], queries[i if len(queries) > 1 else 0]])


def truth_of(nodes: Sequence[Node], sources: Sources, atom: int, holds: bool) -> Truth:
    """The matrix of a `select` or `pattern`, or of its opposite, which holds for undefined pairs."""
    node = nodes[atom]
    if node.kind == "pattern":
        matrix = _pattern(node, sources)
        places = tuple(range(len(matrix) - 1))
        return Truth(matrix == holds, places, places)
    keys, queries = (nodes[i] for i in node.inputs)
    matrix = np.zeros((_size(keys) + 1, _size(queries) + 1), bool)
    matrix[:-1, :-1] = _defined(node, keys, queries)
    known = [sources[i] for i in node.inputs]
    places = [None if source is None else source.places for source in known]
    return Truth(matrix == holds, *places)


def _size(node: Node) -> int:
    if node.values is None or node.values.values is None:
        raise BadInput(
            f"{node.name} has too many values to list, so it cannot be compared position by position; use a smaller length"
        )
    return len(node.values.values)


def _pattern(node: Node, sources: Sources) -> np.ndarray:
    rows = node.constant[1:]
    length = sources.length
    matrix = np.zeros((length + 1, length + 1), bool)
    for query, row in enumerate(rows[:length]):
        for key, chosen in enumerate(row[:length]):
            matrix[key, query] = bool(chosen) and max(key, query) < len(rows)
    return matrix


def _defined(node: Node, keys: Node, queries: Node) -> np.ndarray:
    k, q = keys.values.values or (), queries.values.values or ()  # type: ignore[union-attr]
    if len(k) * len(q) > MAX_PAIRS:
        raise BadInput(
            f"{node.name} compares {len(k):,} with {len(q):,} values, which is too many; use a smaller length"
        )
    if isinstance(node.function, Relation):
        return np.array(node.function.entries, bool).reshape(node.function.shape)
    if node.function in (Comparison.TRUE, Comparison.FALSE):
        return np.full((len(k), len(q)), node.function is Comparison.TRUE)
    ranks = _ranks(k, q, node.function in (Comparison.EQ, Comparison.NEQ)) if node.function in _VECTOR else None
    if ranks is not None:
        return _VECTOR[node.function](ranks[0][:, None], ranks[1][None, :])  # type: ignore[index]
    return np.array([[pair_holds(node.function, a, b) for b in q] for a in k], bool).reshape(len(k), len(q))  # type: ignore[arg-type]


def _ranks(keys: Sequence[Value], queries: Sequence[Value], equality: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """Integers that compare as the values do; None when they do not compare like numbers (floats among fractions)."""
    kinds = {type(x) for x in (*keys, *queries)}
    if {float, Ratio} <= kinds or tuple in kinds and not equality:
        return None
    different = set(keys) | set(queries)  # by Python's ==, as selectors compare
    if equality:
        if any(_holds_both(x) for x in different):
            return None
        rank = {x: place for place, x in enumerate(different)}
    else:
        try:
            rank = {x: place for place, x in enumerate(sorted(different))}
        except TypeError:
            return None
    return np.array([rank[x] for x in keys], np.int64), np.array([rank[x] for x in queries], np.int64)


def _holds_both(value: Value) -> bool:
    """Whether a tuple has a fraction inside, which equals a float without having its hash."""
    return isinstance(value, tuple) and any(isinstance(x, (Ratio, float)) or _holds_both(x) for x in value)
