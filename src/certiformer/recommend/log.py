"""Interactions as one sequence for each user, in an order that does not depend on that of the file.

Users are numbered by their names, items too. Rows are ordered by user, then time, then the name of the item: this rule for
ties is arbitrary, and stated. A row that repeats another one in user, item and time counts once. Without times the order of
the file is the order of the rows, and only equal rows that follow each other are one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from certiformer.errors import BadInput
from certiformer.recommend.interactions import Interactions


@dataclass(frozen=True)
class Log:
    """`items[offsets[u]:offsets[u + 1]]` is the sequence of user u; the names of users are kept as digests only."""

    offsets: Int[np.ndarray, " bounds"]
    items: Int[np.ndarray, " events"]
    times: Int[np.ndarray, " events"] | None
    digests: Int[np.ndarray, " users"]
    item_names: tuple[str, ...]

    @property
    def users(self) -> int:
        """How many users there are."""
        return len(self.offsets) - 1

    @property
    def lengths(self) -> Int[np.ndarray, " users"]:
        """How many events each user has."""
        return np.diff(self.offsets)

    def sequence(self, user: int | np.integer) -> Int[np.ndarray, " events"]:
        """The items of one user, in order."""
        return self.items[self.offsets[user] : self.offsets[user + 1]]

    def digest(self) -> str:
        """The SHA-256 of the processed data, the names of the items included."""
        state = hashlib.sha256("\0".join(self.item_names).encode("utf-8", "surrogatepass"))
        for array in (self.offsets, self.items, self.digests, *([] if self.times is None else [self.times])):
            state.update(np.ascontiguousarray(array, np.int64).tobytes())
        return state.hexdigest()


def start_after(table: Interactions, share: float) -> int:
    """T0: the time before which about this share of the rows lies."""
    if table.times is None:
        raise BadInput("--split time needs a column of times")
    if not 0 < share < 1:
        raise BadInput(f"--before is between 0 and 1, not {share:g}")
    return int(np.quantile(table.times, share, method="higher"))


def make_log(table: Interactions, core: int, start: int | None = None) -> tuple[Log, list[str]]:
    """The sequences of a table after the k-core filter, and what was left out, in words.

    With `start` the filter looks at what came before this time alone; what comes later stays where its item is known, so
    that the catalogue is known when the stream begins.
    """
    if core < 1:
        raise BadInput(f"--core is at least 1, not {core}")
    notes: list[str] = []
    users, user_names = _by_name(table.users, table.user_names)
    items, item_names = _by_name(table.items, table.item_names)
    times = table.times
    order = np.lexsort((items, times, users) if times is not None else (users,))
    users, items, times = users[order], items[order], None if times is None else times[order]
    same = (users[1:] == users[:-1]) & (items[1:] == items[:-1])
    if times is not None:
        same &= times[1:] == times[:-1]
    keep = np.concatenate([[True], ~same])
    if same.any():
        notes.append(f"{int(same.sum()):,} rows repeat the one before them and count once")
    users, items, times = users[keep], items[keep], None if times is None else times[keep]
    past = np.ones(len(users), bool) if start is None or times is None else times < start
    kept = np.zeros(len(users), bool)
    kept[past] = _core(users[past], items[past], core, len(user_names), len(item_names))
    kept |= ~past & np.isin(items, items[kept])
    if not kept.any():
        raise BadInput(f"no user and no item has {core} interactions; a smaller --core keeps more")
    if not kept.all():
        notes.append(f"{int((~kept).sum()):,} interactions are outside the {core}-core")
    users, items, times = users[kept], items[kept], None if times is None else times[kept]
    present, users = np.unique(users, return_inverse=True)
    known, items = np.unique(items, return_inverse=True)
    if len(known) < 2:
        raise BadInput("there is only one item, so there is nothing to rank")
    offsets = np.concatenate([[0], np.cumsum(np.bincount(users, minlength=len(present)))])
    digests = np.array([_digest(user_names[place]) for place in present], np.int64)
    names = tuple(item_names[place] for place in known)
    log = Log(offsets.astype(np.int64), items.astype(np.int32), times, digests, names)
    return log, notes


def _digest(name: str) -> int:
    """63 bits that stand for a name."""
    return int.from_bytes(hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:8], "big") >> 1


def _by_name(numbers: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, list[str]]:
    """The numbers of names in alphabetic order instead of the order in which they were met."""
    order = sorted(range(len(names)), key=names.__getitem__)
    places = np.empty(len(names), np.int32)
    places[order] = np.arange(len(names), dtype=np.int32)
    return places[numbers], [names[place] for place in order]


def _core(users: np.ndarray, items: np.ndarray, core: int, user_count: int, item_count: int) -> np.ndarray:
    """The rows that remain when users and items with fewer than `core` of them are left out again and again."""
    kept = np.ones(len(users), bool)
    while True:
        by_user = np.bincount(users[kept], minlength=user_count)
        by_item = np.bincount(items[kept], minlength=item_count)
        fine = kept & (by_user[users] >= core) & (by_item[items] >= core)
        if fine.sum() == kept.sum():
            return kept
        kept = fine
