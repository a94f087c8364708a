"""Full-ranking metrics of users, with intervals, by segment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from certiformer.recommend.log import Log
from certiformer.recommend.score import Scorer, ranks, without_seen
from certiformer.recommend.split import Split

CUTS = (5, 10, 20)
SEGMENTS = ((1, 5), (6, 10), (11, 20), (21, 50), (51, 10**9))  # by the length of the history


class Asked(NamedTuple):
    """Users with what comes before their wanted item, and that item."""

    histories: list[np.ndarray]
    wanted: Int[np.ndarray, " users"]


def asked_of(log: Log, split: Split, group: int) -> Asked:
    """The test items of the users of a group."""
    users = split.tested(group)
    histories = [log.sequence(user)[: split.test[user]] for user in users]
    return Asked(histories, np.array([log.sequence(user)[split.test[user]] for user in users], np.int64))


def ranked(score: Scorer, asked: Asked, filtered: bool) -> tuple[Float[np.ndarray, " users"], float]:
    """The rank of every wanted item, and the share of all items that are among somebody's first 10."""
    found, shown, first = [], set(), 0
    size = 0
    for scores in score(asked.histories):
        size = scores.shape[1]
        part = slice(first, first + len(scores))
        seen = [np.unique(history) for history in asked.histories[part]] if filtered else None
        found.append(ranks(scores, asked.wanted[part], seen))
        left = scores if seen is None else without_seen(scores, seen)
        shown |= set(np.argpartition(-left, min(10, size - 1), axis=1)[:, :10].ravel().tolist())
        first += len(scores)
    return np.concatenate(found) if found else np.zeros(0), len(shown) / max(size, 1)


def metrics(rank: Float[np.ndarray, " users"], coverage: float) -> dict[str, float | None]:
    """HR and NDCG at several cuts, MRR@10 and the coverage of the catalogue; null where nobody was tested."""
    values: dict[str, float | None] = {}
    for k in CUTS:
        hit = rank <= k
        gain = np.where(hit, 1 / np.log2(rank + 1), 0.0)
        values |= {f"HR@{k}": _mean(hit), f"NDCG@{k}": _mean(gain)}
    values["MRR@10"] = _mean(np.where(rank <= 10, 1 / np.maximum(rank, 1), 0.0))
    values["coverage@10"] = coverage if len(rank) else None
    return values


def errors(rank: Float[np.ndarray, " users"]) -> dict[str, float | None]:
    """The standard errors of HR@10 and NDCG@10 over users."""
    if len(rank) < 2:
        return {"HR@10": None, "NDCG@10": None}
    hit = rank <= 10
    gain = np.where(hit, 1 / np.log2(rank + 1), 0.0)
    return {name: float(np.std(v, ddof=1) / np.sqrt(len(v))) for name, v in (("HR@10", hit), ("NDCG@10", gain))}


def segments(rank: Float[np.ndarray, " users"], histories: Sequence[np.ndarray]) -> list[dict[str, Any]]:
    """HR@10 and NDCG@10 by the length of the history."""
    lengths = np.array([len(history) for history in histories], int)
    rows = []
    for low, high in SEGMENTS:
        own = rank[(lengths >= low) & (lengths <= high)]
        if len(own):
            name = f"{low} to {high}" if high < 10**9 else f"{low} or more"
            chosen: Mapping[str, Any] = metrics(own, 0.0)
            rows.append({"history": name, "users": len(own), **{k: chosen[k] for k in ("HR@10", "NDCG@10")}})
    return rows


def _mean(values: np.ndarray) -> float | None:
    return float(np.mean(values)) if len(values) else None
