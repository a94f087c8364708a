"""What every recommender has to beat: popularity, and item-kNN (cosines of items that share users)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from certiformer.recommend.log import Log
from certiformer.recommend.score import AT_ONCE, Scorer
from certiformer.recommend.split import Split

NEIGHBOURS = 100
DECAY = 0.8  # weight of an item of the history, by how many came after it


def trained_events(log: Log, split: Split) -> tuple[np.ndarray, np.ndarray]:
    """The users and the items of all events that are trained on."""
    users = np.repeat(np.arange(log.users), log.lengths)
    place = np.arange(len(log.items)) - log.offsets[users]
    kept = split.fitted[users] & (place < split.trained[users])
    return users[kept], log.items[kept]


def popularity(log: Log, split: Split) -> Float[np.ndarray, " items"]:
    """How often each item occurs among the events that are trained on."""
    return np.bincount(trained_events(log, split)[1], minlength=len(log.item_names)).astype(np.float32)


def popularity_scorer(log: Log, split: Split) -> Scorer:
    """The same scores for everybody."""
    counts = popularity(log, split)

    def score(histories: Sequence[np.ndarray]) -> Iterator[Float[np.ndarray, "users items"]]:
        for first in range(0, len(histories), AT_ONCE):
            yield np.tile(counts, (min(AT_ONCE, len(histories) - first), 1))

    return score


def neighbour_scorer(log: Log, split: Split) -> Scorer:
    """Item-kNN: the cosines of the items of the history with all items, later ones counting more."""
    from scipy.sparse import csr_array

    users, items = trained_events(log, split)
    count = len(log.item_names)
    counts: Any = csr_array((np.ones(len(users), np.float32), (items, users)), shape=(count, log.users))
    counts.data[:] = 1  # an item counts once for a user
    norms = np.sqrt(np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1))
    met: Any = csr_array((1 / norms)[:, None] * counts)
    likeness = _strongest(csr_array(met @ met.T))

    def score(histories: Sequence[np.ndarray]) -> Iterator[Float[np.ndarray, "users items"]]:
        for first in range(0, len(histories), AT_ONCE):
            part = histories[first : first + AT_ONCE]
            rows = np.repeat(np.arange(len(part)), [len(h) for h in part])
            weights = np.concatenate([DECAY ** np.arange(len(h))[::-1] for h in part]).astype(np.float32)
            past: Any = csr_array((weights, (rows, np.concatenate(part))), shape=(len(part), count))
            yield (past @ likeness).toarray()

    return score


def _strongest(likeness: Any) -> Any:
    """Every row with its largest entries alone, the diagonal left out."""
    from scipy.sparse import csr_array

    likeness.setdiag(0)
    kept = []
    for row in range(likeness.shape[0]):
        start, stop = likeness.indptr[row : row + 2]
        values = likeness.data[start:stop]
        kept.append(start + np.argsort(-values, kind="stable")[:NEIGHBOURS])
    chosen = np.concatenate(kept)
    rows = np.repeat(np.arange(likeness.shape[0]), [len(k) for k in kept])
    return csr_array((likeness.data[chosen], (rows, likeness.indices[chosen])), shape=likeness.shape)
