"""The meaning of a graph on many inputs of one length at once: the oracle of an exhaustive run.

Values are interned: an array holds, for every input and position, a number that stands for a value of the node (0 for
undefined). A map, a predicate or an aggregate is then evaluated once for every combination of numbers that occurs, by the
same rules as `graph_run`, and looked up for all inputs. So two million inputs cost as many array operations as one, and
the scalar rules stay the only definition of what a program means.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from jaxtyping import Int

from certiformer.errors import BadInput
from certiformer.rasp.graph import Graph, Node
from certiformer.rasp.graph_run import GraphRunner
from certiformer.rasp.meaning import aggregate
from certiformer.rasp.value import Value, exact, identity, is_number, reduced

TOO_MANY = "the values of the program are too many for an exhaustive run"

Numbers = Int[np.ndarray, "inputs positions"]


class _Names:
    """The values of one node that have occurred, numbered; 0 is undefined."""

    def __init__(self) -> None:
        self.values: list[Value] = [None]
        self._numbers: dict[tuple, int] = {identity(None): 0}

    def number(self, value: Value) -> int:
        key = identity(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


class BatchMeaning:
    """A graph ready to be evaluated on arrays of token ids (places in its vocabulary)."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._scalar = GraphRunner(graph)
        self._names = [_Names() for _ in graph.nodes]
        self._known: list[dict[Any, int]] = [{} for _ in graph.nodes]

    def run(self, ids: Int[np.ndarray, "inputs positions"]) -> Numbers:
        """The numbers of the output's values; `values` spells them."""
        results: list[np.ndarray] = []
        for number, node in enumerate(self.graph.nodes):
            results.append(self._step(number, node, [results[i] for i in node.inputs], ids))
        return results[self.graph.output]

    @property
    def values(self) -> Sequence[Value]:
        """The values that the numbers of `run` stand for, so far."""
        return self._names[self.graph.output].values

    def _step(self, number: int, node: Node, below: list[np.ndarray], ids: np.ndarray) -> np.ndarray:
        n = ids.shape[1]
        match node.kind:
            case "tokens":
                return self._numbered(number, self.graph.vocab)[ids]
            case "map":
                return self._looked_up(number, node.inputs, below, lambda *x: self._scalar.map_value(node, x))
            case "select":
                keys, queries = below
                pair = np.broadcast_arrays(keys[:, None, :], queries[:, :, None])
                names = [self._names[i] for i in node.inputs]
                chosen = _by_combination(
                    self._known[number],
                    pair,
                    lambda k, q: int(self._scalar.selected(node, names[0].values[k], names[1].values[q])),
                )
                return chosen.astype(bool)
            case "and":
                return below[0] & below[1]
            case "or":
                return below[0] | below[1]
            case "not":
                return ~below[0]
            case "width":
                counts = self._numbered(number, range(n + 1))
                return counts[below[0].sum(axis=2)]
            case "aggregate":
                return self._aggregate(number, node, *below)
        # What is left depends on the length alone: the scalar rules give it once.
        row = self._scalar.step(node, [], [self.graph.vocab[0]] * n)
        if node.is_selector:
            return np.broadcast_to(np.array(row, bool), (len(ids), n, n))
        return np.broadcast_to(self._numbered(number, row), ids.shape)

    def _numbered(self, number: int, values: Sequence[Value]) -> np.ndarray:
        return np.array([self._names[number].number(value) for value in values], np.int64)

    def _looked_up(
        self, number: int, inputs: Sequence[int], below: Sequence[np.ndarray], rule: Callable[..., Value]
    ) -> np.ndarray:
        names = [self._names[i] for i in inputs]

        def numbered(*places: int) -> int:
            arguments = [name.values[place] for name, place in zip(names, places, strict=True)]
            return self._names[number].number(rule(*arguments))

        return _by_combination(self._known[number], below, numbered)

    def _aggregate(self, number: int, node: Node, pattern: np.ndarray, values: np.ndarray) -> np.ndarray:
        """By (how many, smallest and largest place, largest place of a symbol, sum of numerators): these fix the result."""
        names = self._names[node.inputs[1]].values
        numbers = [is_number(value) for value in names]
        shared = math.lcm(*(exact(v).denominator for v, numeric in zip(names, numbers, strict=True) if numeric))
        numerators = [int(exact(v) * shared) if numeric else 0 for v, numeric in zip(names, numbers, strict=True)]
        if max(map(abs, numerators)) * pattern.shape[2] >= 2**62:
            raise BadInput(TOO_MANY)
        weights = np.array(numerators, np.int64)
        symbols = np.array([0 if numeric else place for place, numeric in enumerate(numbers)], np.int64)
        spread = np.broadcast_to(values[:, None, :], pattern.shape)
        count = pattern.sum(axis=2)
        lowest = np.where(pattern, spread, len(names)).min(axis=2)
        highest = np.where(pattern, spread, -1).max(axis=2)
        symbol = np.where(pattern, symbols[spread], 0).max(axis=2)
        total = np.where(pattern, weights[spread], 0).sum(axis=2)

        def numbered(count: int, lowest: int, highest: int, symbol: int, total: int) -> int:
            if count == 0:
                value = aggregate([], node.constant)
            elif lowest == 0:
                value = None
            elif lowest == highest:
                value = names[lowest]
            elif symbol:
                other = lowest if symbol != lowest else highest
                value = aggregate([names[symbol], names[other]], node.constant)  # raises, and says why
            else:
                value = reduced(Fraction(total, shared * count))
            return self._names[number].number(value)

        selected = (count, lowest, highest, symbol, total)
        return _by_combination(self._known[number], selected, numbered, (shared, len(names)))


def _by_combination(
    known: dict[Any, int], arrays: Sequence[np.ndarray], rule: Callable[..., int], salt: tuple[int, ...] = ()
) -> np.ndarray:
    """`rule` at every entry of integer arrays of one shape, called once for every combination that occurs."""
    arrays = np.broadcast_arrays(*arrays)
    offsets = [int(array.min()) for array in arrays]
    sizes = [int(array.max()) - low + 1 for array, low in zip(arrays, offsets, strict=True)]
    cells = 1
    for size in sizes:
        cells *= size
    if cells > 2**62:
        raise BadInput(TOO_MANY)
    code = np.zeros(arrays[0].shape, np.int64)
    for array, low, size in zip(arrays, offsets, sizes, strict=True):
        code = code * size + (array - low)
    if cells <= 4 * code.size + 1024:  # a table of all combinations is no larger than the arrays
        present = np.zeros(cells, bool)
        present[code.reshape(-1)] = True
        occurring, where = np.flatnonzero(present), None
    else:
        occurring, where = np.unique(code, return_inverse=True)
    results = np.empty(len(occurring), np.int64)
    for place, cell in enumerate(occurring.tolist()):
        combination = []
        for size, low in zip(reversed(sizes), reversed(offsets), strict=True):
            cell, rest = divmod(cell, size)
            combination.append(rest + low)
        key = (*salt, *reversed(combination))
        if key not in known:
            known[key] = rule(*reversed(combination))
        results[place] = known[key]
    if where is not None:
        return results[where].reshape(code.shape)
    table = np.zeros(cells, np.int64)
    table[occurring] = results
    return table[code]
