"""`evaluate` and `top`: honest metrics of the unsealed users beside the baselines, and the best items for a history."""

from __future__ import annotations

from typing import Any

import numpy as np

from certiformer.errors import BadInput
from certiformer.recommend.baselines import neighbour_scorer, popularity_scorer
from certiformer.recommend.folder import Recommender
from certiformer.recommend.metrics import asked_of, errors, metrics, ranked, segments
from certiformer.recommend.score import best, scorer, without_seen
from certiformer.recommend.split import OPEN
from certiformer.train.rounds import Progress


def evaluate(opened: Recommender, progress: Progress | None = None) -> dict[str, Any]:
    """Full-ranking metrics of the test items of the unsealed users."""
    asked = asked_of(opened.log, opened.split, OPEN)
    if not len(asked.wanted):
        raise BadInput(f"{opened.directory} has no unsealed user with a test item")
    makers = {
        "popularity": lambda: popularity_scorer(opened.log, opened.split),
        "item-knn": lambda: neighbour_scorer(opened.log, opened.split),
    }
    baselines = {}
    for place, (name, make) in enumerate(makers.items()):
        if progress is not None:
            progress("evaluate", place, 3, name)
        baselines[name] = metrics(*ranked(make(), asked, opened.filtered))
    if progress is not None:
        progress("evaluate", 2, 3, "the model")
    rank, coverage = ranked(scorer(opened.model), asked, opened.filtered)
    repeated = float(np.mean([w in h for h, w in zip(asked.histories, asked.wanted, strict=True)]))
    return {
        "metrics": metrics(rank, coverage),
        "standard_errors": errors(rank),
        "baselines": baselines,
        "users": len(rank),
        "items": opened.model.config.outputs,
        "segments": segments(rank, asked.histories),
        "repeated": repeated,
        "seen": opened.facts["seen"],
        "split": opened.facts["split"]["kind"],
        "ranking": "full",
        "sha256": opened.facts["data"]["sha256"],
    }


def top(opened: Recommender, history: list[str], k: int) -> list[tuple[str, float]]:
    """The k best items after a history, with their scores; items of the history are left out where `fit` was told so."""
    if not history:
        raise BadInput("a history has at least one item")
    if k < 1:
        raise BadInput(f"k is at least 1, not {k}")
    numbers = opened.numbers(history)
    scores = next(scorer(opened.model)([numbers]))
    if opened.filtered:
        scores = without_seen(scores, [np.unique(numbers)])
    return [(opened.log.item_names[place], float(scores[0, place])) for place in best(scores[0], k)]
