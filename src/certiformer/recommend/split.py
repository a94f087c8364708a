"""What is trained on, what is tested on, and which users are sealed.

- `last`: of every user the last item is the test, the one before it the validation, all before them the training.
- `time`: a time T0 parts the log. Of every user the last item before T0 is the validation, what is before it the
  training, and the first item from T0 on the test; everything from T0 on is the stream.

Users with fewer events than that are trained on and never tested. Sealed users are neither trained nor tuned on:
`holdout` for the bound of the hit rate, `conformal` for the sets, `counted` for the head whose bits are counted. Who is
sealed depends on the seed and the name of a user alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int

from certiformer.errors import BadInput
from certiformer.recommend.log import Log

SPLITS = ("last", "time")
OPEN, HOLDOUT, CONFORMAL, COUNTED = range(4)
SHORTEST = 3


@dataclass(frozen=True)
class Split:
    """By user: how many events are trained on (`trained`), the places of the validation and the test item in the
    sequence (-1 where there is none), and the group. `start` is T0 of the split by time."""

    trained: Int[np.ndarray, " users"]
    validation: Int[np.ndarray, " users"]
    test: Int[np.ndarray, " users"]
    group: Int[np.ndarray, " users"]
    start: int | None = None

    def tested(self, group: int) -> Int[np.ndarray, " chosen"]:
        """The users of a group that have a test item."""
        return np.flatnonzero((self.test >= 0) & (self.group == group))

    @property
    def fitted(self) -> Bool[np.ndarray, " users"]:
        """Who is trained on."""
        return self.group == OPEN


def make_split(log: Log, kind: str, seal: float, seed: int, start: int | None = None) -> Split:
    """The split of a log; `start` is T0 of a split by time."""
    if kind not in SPLITS:
        raise BadInput(f"--split is one of {', '.join(SPLITS)}, not {kind!r}")
    if not 0 <= seal < 1 / 3:
        raise BadInput(f"--seal is at least 0 and below 1/3, for three groups of users; {seal:g} is not")
    if kind == "last":
        trained, validation, test = _leave_last_out(log.lengths)
    else:
        trained, validation, test = _by_time(log, start)
    group = _groups(log, test >= 0, seal, seed)
    if not ((group == OPEN) & (trained >= 2)).any():
        raise BadInput("no user has two events to be trained on; more data, or a smaller --seal, is needed")
    return Split(trained, validation, test, group, start)


def _leave_last_out(lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    long = lengths >= SHORTEST
    validation, test = (np.where(long, lengths - back, -1) for back in (2, 1))
    return np.where(long, lengths - 2, lengths), validation, test


def _by_time(log: Log, start: int | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if log.times is None or start is None:
        raise BadInput("--split time needs a column of times")
    before = np.add.reduceat((log.times < start).astype(np.int64), log.offsets[:-1])
    long = before >= SHORTEST - 1
    test = np.where(long & (before < log.lengths), before, -1)
    return np.where(long, before - 1, before), np.where(long, before - 1, -1), test


def leaks(log: Log, split: Split) -> list[int]:
    """The users whose validation or test item is trained on, or whose test item is the validation item.

    What `make_split` makes has none; a folder whose split was changed may.
    """
    wrong = (split.trained > np.where(split.validation >= 0, split.validation, log.lengths)) | (
        (split.test >= 0)
        & ((split.test < split.trained) | (split.test <= split.validation) | (split.test >= log.lengths))
    )
    return np.flatnonzero(wrong).tolist()


def _groups(log: Log, testable: np.ndarray, seal: float, seed: int) -> np.ndarray:
    """Users in the order of a keyed hash of their digests; the first ones are sealed."""
    group = np.full(log.users, OPEN, np.int8)
    size = round(seal * int(testable.sum()))
    if size:
        keys = [hashlib.sha256(f"{seed}:{int(digest)}".encode()).digest() for digest in log.digests]
        ordered = [user for user in sorted(range(log.users), key=keys.__getitem__) if testable[user]]
        for place, name in enumerate((HOLDOUT, CONFORMAL, COUNTED)):
            group[ordered[place * size : (place + 1) * size]] = name
    return group
