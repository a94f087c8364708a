"""The stored tensors of a compiled transformer as exact integers, zeros left out."""

from __future__ import annotations

from collections.abc import Mapping

from certiformer.checker.margin.fixed import weight
from certiformer.kernel.weights import Tensor

Rows = list[dict[int, int]]


class Weights:
    """The stored tensors as exact integers, zeros left out."""

    def __init__(self, tensors: Mapping[str, Tensor]):
        self.tensors = tensors
        self._rows: dict[str, Rows] = {}

    def rows(self, name: str) -> Rows:
        """The rows of a tensor, all leading axes run together; one row for a vector."""
        if name not in self._rows:
            tensor = self.tensors[name]
            width = tensor.shape[-1]
            whole = [weight(x, name) if x else 0 for x in tensor.data]
            starts = range(0, len(whole), width)
            self._rows[name] = [{c: x for c, x in enumerate(whole[s : s + width]) if x} for s in starts]
        return self._rows[name]

    def vector(self, name: str) -> list[int]:
        row = self.rows(name)[0] if self.rows(name) else {}
        return [row.get(c, 0) for c in range(self.tensors[name].shape[-1])]

    def head(self, name: str, number: int) -> Rows:
        """The rows of one head's matrix."""
        size = self.tensors[name].shape[1]
        return self.rows(name)[number * size : (number + 1) * size]


def columns(rows: Rows, width: int) -> Rows:
    """The columns of a matrix that is given by its rows."""
    found: Rows = [{} for _ in range(width)]
    for r, row in enumerate(rows):
        for c, x in row.items():
            found[c][r] = x
    return found
