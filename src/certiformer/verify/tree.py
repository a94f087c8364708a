"""The split tree while it grows: arrays of nodes, saved and restored in one file.

A node is a cell (per axis a depth m and an index k, see `kernel.rules`), the best bound known on it, and, once it
is bisected, an axis and the position of its lower half (the upper half follows). Integers only: the cover is exact.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Float, Int
from safetensors import SafetensorError
from safetensors.numpy import load, save

from certiformer.disk import write_atomically
from certiformer.errors import BadInput
from certiformer.kernel.rules import LEAF, MAX_DEPTH
from certiformer.reading import read_regular

LARGEST_CHECKPOINT = 1 << 30


class SplitTree:
    """A growing split tree of a box of `dimension` axes.

    >>> tree = SplitTree(1)
    >>> children = tree.split(np.array([0]), np.array([0]))
    >>> children.tolist(), tree.to_bytes()
    ([1, 2], b'\\x00\\xff\\xff')
    """

    def __init__(self, dimension: int):
        self.dimension = dimension
        self.count = 1
        self._depth = np.zeros((1, dimension), np.int64)
        self._index = np.zeros((1, dimension), np.int64)
        self._axis = np.full(1, -1, np.int16)
        self._child = np.zeros(1, np.int64)
        self._bound = np.full(1, np.inf)

    def cells(self, nodes: Int[np.ndarray, " n"]) -> tuple[Int[np.ndarray, "n D"], Int[np.ndarray, "n D"]]:
        """Depths and indices of the given nodes."""
        return self._depth[nodes], self._index[nodes]

    def leaves(self) -> Int[np.ndarray, " n"]:
        return np.flatnonzero(self._axis[: self.count] < 0)

    def bounds(self, nodes: Int[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
        return self._bound[nodes]

    def set_bounds(self, nodes: Int[np.ndarray, " n"], values: Float[np.ndarray, " n"]) -> None:
        """Record bounds; not-a-number counts as no bound at all."""
        self._bound[nodes] = np.where(np.isnan(values), np.inf, values)

    def upper(self) -> float:
        """The largest bound over the leaves: an upper bound of the error on the whole box."""
        return float(self._bound[self.leaves()].max())

    def deepest(self) -> int:
        return int(self._depth[: self.count].max())

    def split(self, nodes: Int[np.ndarray, " n"], axes: Int[np.ndarray, " n"]) -> Int[np.ndarray, " m"]:
        """Bisect leaves along the given axes; a half inherits its parent's bound until it has a better one."""
        self._reserve(2 * len(nodes))
        first = self.count + 2 * np.arange(len(nodes))
        self._axis[nodes], self._child[nodes] = axes, first
        for half in (0, 1):
            child = first + half
            self._depth[child], self._index[child] = self._depth[nodes], self._index[nodes]
            self._depth[child, axes] += 1
            self._index[child, axes] = 2 * self._index[nodes, axes] + half
            self._axis[child], self._bound[child] = -1, self._bound[nodes]
        self.count += 2 * len(nodes)
        return np.sort(np.concatenate([first, first + 1]))

    def splittable(self, nodes: Int[np.ndarray, " n"]) -> bool:
        """Whether no axis of these nodes has reached the largest depth."""
        return bool((self._depth[nodes] < MAX_DEPTH).all())

    def to_bytes(self) -> bytes:
        """The preorder bytes of `kernel.rules`."""
        axis, child = self._axis[: self.count].tolist(), self._child[: self.count].tolist()
        result, stack = bytearray(), [0]
        while stack:
            node = stack.pop()
            if axis[node] < 0:
                result.append(LEAF)
            else:
                result.append(axis[node])
                stack += (child[node] + 1, child[node])
        return bytes(result)

    def save(self, path: Path, seal: str) -> None:
        """Write the whole tree atomically, marked with the hash of what it was grown for."""
        n = self.count
        arrays = {"depth": self._depth[:n], "index": self._index[:n], "axis": self._axis[:n]}
        arrays |= {"child": self._child[:n], "bound": self._bound[:n]}
        write_atomically(path, save({k: np.ascontiguousarray(v) for k, v in arrays.items()}, {"seal": seal}))

    @staticmethod
    def restore(path: Path, seal: str, dimension: int) -> SplitTree | None:
        """The saved tree, or None if there is none for this very search."""
        try:
            data = read_regular(path, LARGEST_CHECKPOINT, links=False)
            arrays = load(data)
            header = int.from_bytes(data[:8], "little")
            known = f'"seal":"{seal}"'.encode() in data[8 : 8 + header].replace(b" ", b"")
            tree = SplitTree(dimension)
            tree._depth, tree._index, tree._axis = arrays["depth"], arrays["index"], arrays["axis"]
            tree._child, tree._bound = arrays["child"], arrays["bound"]
        except (OSError, SafetensorError, KeyError, BadInput):
            return None
        tree.count = len(tree._axis)
        return tree if known and tree._depth.shape == (tree.count, dimension) else None

    def _reserve(self, extra: int) -> None:
        while self.count + extra > len(self._axis):
            for name in ("_depth", "_index", "_axis", "_child", "_bound"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.empty_like(old)]))
