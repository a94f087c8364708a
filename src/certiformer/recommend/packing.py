"""Histories of several users in one row: no token is spent on padding, and a mask keeps users apart.

Most histories are far shorter than the longest one that the model reads. Rows are filled greedily, longest history first; a
token sees the earlier tokens of its own user only, and its position counts from the beginning of its user.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Int


class Packed(NamedTuple):
    """`owner` numbers the users of a row from 1 (0: no token); `last[u]` is the (row, place) of the last token of u."""

    ids: Int[np.ndarray, "rows length"]
    position: Int[np.ndarray, "rows length"]
    owner: Int[np.ndarray, "rows length"]
    last: Int[np.ndarray, "users 2"]


def pack(histories: Sequence[np.ndarray], length: int) -> Packed:
    """Rows that hold the last `length` items of every history; none may be empty.

    >>> packed = pack([np.array([5, 6, 7]), np.array([8]), np.array([9, 9])], 4)
    >>> packed.ids.tolist(), packed.position.tolist(), packed.last.tolist()
    ([[5, 6, 7, 8], [9, 9, 0, 0]], [[0, 1, 2, 0], [0, 1, 0, 0]], [[0, 2], [0, 3], [1, 1]])
    """
    sizes = np.array([min(len(history), length) for history in histories], int)
    order = np.argsort(-sizes, kind="stable")
    rows, starts = _places(sizes[order], length)
    count = int(rows.max()) + 1
    ids, position, owner = (np.zeros((count, length), np.int32) for _ in range(3))
    last, owners = np.zeros((len(histories), 2), np.int32), np.zeros(count, np.int32)
    for user, row, start in zip(order.tolist(), rows.tolist(), starts.tolist(), strict=True):
        stop = start + int(sizes[user])
        owners[row] += 1
        ids[row, start:stop] = histories[user][-length:]
        position[row, start:stop] = np.arange(stop - start)
        owner[row, start:stop] = owners[row]
        last[user] = row, stop - 1
    return Packed(ids, position, owner, last)


def _places(sizes: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """A row and a start for each size, the sizes falling: always the fullest row that has room."""
    open_rows: list[list[tuple[int, int]]] = [[] for _ in range(length + 1)]  # by what is left: (row, used)
    rows, starts = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    count = 0
    for place, size in enumerate(sizes.tolist()):
        left = next((room for room in range(size, length + 1) if open_rows[room]), None)
        if left is None:
            row, used, left = count, 0, length
            count += 1
        else:
            row, used = heapq.heappop(open_rows[left])
        rows[place], starts[place] = row, used
        if left > size:
            heapq.heappush(open_rows[left - size], (row, used + size))
    return rows, starts
