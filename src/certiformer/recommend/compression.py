"""What few bits buy: a head that was learned from counted users, written into a file whose bits are charged.

The transformer was trained on other users. On the counted users two numbers are learned: how much popularity and how much
item-kNN are added to its scores, each one of 16 values, chosen for the most hits on the counted users themselves. That is
a file of one byte. By the axiom `binomial_tail` a predictor of b bits that has k hits on n users has, with probability at
least 1 - share, a hit rate above every p whose tail is at most share 2^-b. The sampling unit is a user with one wanted
item.

Beside it stand a list of ten items that is learned from the same users and written down, the trivial list, and what the
whole transformer would cost: its weights, rounded to eight bits and compressed, are a file, too.
"""

from __future__ import annotations

import math
import zlib
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from certiformer.model import Transformer
from certiformer.recommend.baselines import neighbour_scorer, popularity
from certiformer.recommend.binomial import lower_bound, text
from certiformer.recommend.folder import Recommender
from certiformer.recommend.metrics import Asked
from certiformer.recommend.score import ranks, scorer

STEPS = 16
POPULARITY = tuple(step / 8 for step in range(STEPS))  # times log(1 + count)
NEIGHBOURS = tuple(step / 2 for step in range(STEPS))  # times the cosine
BITS = 8


class Head(NamedTuple):
    """The byte, and the hits of the head that it names."""

    byte: int
    hits: np.ndarray


def decoded(byte: int) -> tuple[float, float]:
    """The weights of popularity and of item-kNN that a byte stands for.

    >>> decoded(0), decoded(0x21)
    ((0.0, 0.0), (0.25, 0.5))
    """
    return POPULARITY[byte >> 4], NEIGHBOURS[byte & 15]


def learn_head(opened: Recommender, asked: Asked, cut: int) -> Head:
    """The byte with the most hits on these users; the smallest one among equals."""
    log_counts = np.log1p(popularity(opened.log, opened.split))
    hits = np.zeros((STEPS * STEPS, len(asked.wanted)), bool)
    first = 0
    near = neighbour_scorer(opened.log, opened.split)(asked.histories)
    for scores, cosines in zip(scorer(opened.model)(asked.histories), near, strict=True):
        part = slice(first, first + len(scores))
        seen = [np.unique(h) for h in asked.histories[part]] if opened.filtered else None
        for popular, close in product(range(STEPS), range(STEPS)):
            mixed = scores + POPULARITY[popular] * log_counts + NEIGHBOURS[close] * cosines
            hits[popular * STEPS + close, part] = ranks(mixed, asked.wanted[part], seen) <= cut
        first += len(scores)
    byte = int(np.argmax(hits.sum(axis=1)))
    return Head(byte, hits[byte])


def statement(opened: Recommender, asked: Asked, head: Head, share: Fraction, cut: int) -> dict[str, Any]:
    """The bound of the head, and the figures that it stands beside."""
    users, items = len(asked.wanted), opened.model.config.outputs
    listed = _popular_list(opened, asked, cut)
    bits = cut * math.ceil(math.log2(items))
    whole = coded_bits(opened.model)
    return {
        "users": users,
        "hits": int(head.hits.sum()),
        "bits": BITS,
        "value": text(lower_bound(users, int(head.hits.sum()), share / 2**BITS)),
        "head": dict(zip(("popularity", "item_knn"), decoded(head.byte), strict=True)),
        "trivial": cut / items,
        "popular_list": {
            "bits": bits,
            "hits": int(listed.sum()),
            "value": text(lower_bound(users, int(listed.sum()), share / 2**bits)),
        },
        "whole_model": {"bits": whole, **_needed(int(head.hits.sum()), users, int(listed.sum()), whole, share)},
    }


def coded_bits(model: Transformer) -> int:
    """The bits of a file that holds every weight with eight bits, compressed; the read-out is the table of items."""
    parts = []
    for name, tensor in sorted(model.tensors.items()):
        if name.startswith("readout."):
            continue
        array = np.asarray(tensor, np.float64)
        size = float(np.abs(array).max()) or 1.0
        parts.append(np.float32(size).tobytes() + np.round(array / size * 127).astype(np.int8).tobytes())
    return 8 * len(zlib.compress(b"".join(parts), 9))


def _popular_list(opened: Recommender, asked: Asked, cut: int) -> np.ndarray:
    """Whether the wanted item is on the list of the most wanted items of these very users."""
    counts = np.bincount(asked.wanted, minlength=opened.model.config.outputs)
    return np.isin(asked.wanted, np.argsort(-counts, kind="stable")[:cut])


def _needed(hits: int, users: int, beaten: int, bits: int, share: Fraction) -> dict[str, Any]:
    """About how many users would show, with so many bits, that the hit rate is above that of the list."""
    q, p = hits / users, beaten / users
    if not 0 < p < q < 1:
        return {"users_needed": None}
    apart = q * math.log(q / p) + (1 - q) * math.log((1 - q) / (1 - p))
    return {"users_needed": math.ceil((bits * math.log(2) - math.log(share)) / apart)}
