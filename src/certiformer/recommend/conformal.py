"""Sets that hold the next item of 90 % of users: for each user the smallest number of best items that is enough.

The softmax of the scores gives every item a mass. The *reach* of an item is the mass of all items that are at least as
likely. On n calibration users the reaches of their wanted items are known (infinite
for an item that was seen and is left out). The set of a new user holds the items whose
reach is at most the ceil((n + 1) 0.9)-th smallest of them (all items, where that number exceeds n). If the new user is
exchangeable with the calibration users, the set holds the wanted item with probability at least 0.9: its rank among the
n + 1 reaches is uniform, and ties only help. By segment, the same holds within each segment (Vovk et al. 2005).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from certiformer.recommend.metrics import Asked
from certiformer.recommend.score import Scorer, without_seen

LEVEL = 0.9
SEGMENTS = {"short": (0, 10), "medium": (11, 30), "long": (31, 10**9)}


class Reaches(NamedTuple):
    """The reach of the wanted item of each user, the length of the history, and all reaches in increasing order."""

    wanted: Float[np.ndarray, " users"]
    lengths: Int[np.ndarray, " users"]
    ordered: Float[np.ndarray, "users items"]


def reaches(score: Scorer, asked: Asked, filtered: bool) -> Reaches:
    """What the sets are made of, for some users."""
    wanted, ordered, first = [], [], 0
    for scores in score(asked.histories):
        rows = np.arange(len(scores))
        own = asked.wanted[first : first + len(scores)]
        kept = np.array(scores, np.float64)
        if filtered:
            seen = [np.unique(h) for h in asked.histories[first : first + len(scores)]]
            kept = without_seen(kept, seen)
        order = np.argsort(-kept, axis=1, kind="stable")
        mass = np.exp(kept - kept.max(axis=1, keepdims=True))
        mass /= mass.sum(axis=1, keepdims=True)
        sums = np.cumsum(np.take_along_axis(mass, order, axis=1), axis=1)
        place = np.argmax(order == own[:, None], axis=1)
        wanted.append(np.where(np.isneginf(kept[rows, own]), np.inf, sums[rows, place]))
        ordered.append(sums)
        first += len(scores)
    lengths = np.array([len(h) for h in asked.histories])
    return Reaches(np.concatenate(wanted), lengths, np.concatenate(ordered))


def threshold(calibration: Float[np.ndarray, " users"], level: float = LEVEL) -> float:
    """The reach up to which items are in the set; infinite where there are too few users.

    >>> threshold(np.arange(1, 20) / 20), threshold(np.array([0.5] * 8))
    (0.9, inf)
    """
    rank = math.ceil((len(calibration) + 1) * level - 1e-12)
    return math.inf if rank > len(calibration) else float(np.sort(calibration)[rank - 1])


def sets(found: Reaches, calibrating: Bool[np.ndarray, " users"]) -> dict[str, Any]:
    """The mean K, the realised coverage on the users that did not calibrate, and both by segment."""
    limit = threshold(found.wanted[calibrating])
    rest = ~calibrating
    facts = {"threshold": _finite(limit), **_realised(found, rest, limit), "segments": []}
    for name, (low, high) in SEGMENTS.items():
        inside = (found.lengths >= low) & (found.lengths <= high)
        if (inside & rest).any():
            own = threshold(found.wanted[inside & calibrating])
            facts["segments"].append(
                {"history": name, "threshold": _finite(own), **_realised(found, inside & rest, own)}
            )
    return facts


def halves(count: int, seed: int) -> Bool[np.ndarray, " users"]:
    """Which half of the users calibrates."""
    chosen = np.zeros(count, bool)
    chosen[np.random.default_rng(seed).permutation(count)[: (count + 1) // 2]] = True
    return chosen


def coverages(found: Reaches, runs: int, seed: int) -> Float[np.ndarray, " runs"]:
    """The realised coverage over random halves."""
    values = []
    for run in range(runs):
        calibrating = halves(len(found.wanted), seed + run)
        values.append(float(np.mean(found.wanted[~calibrating] <= threshold(found.wanted[calibrating]))))
    return np.array(values)


def _realised(found: Reaches, chosen: Bool[np.ndarray, " users"], limit: float) -> dict[str, Any]:
    sizes = (found.ordered[chosen] <= limit).sum(axis=1)
    if not len(sizes):
        return {"users": 0, "mean_k": None, "median_k": None, "coverage": None}
    coverage = float(np.mean(found.wanted[chosen] <= limit))
    return {
        "users": int(chosen.sum()),
        "mean_k": float(np.mean(sizes)),
        "median_k": float(np.median(sizes)),
        "coverage": coverage,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
