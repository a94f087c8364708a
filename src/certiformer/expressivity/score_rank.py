r"""A table of items of width d holds at most d independent columns of scores, whatever is in front of it.

Scores are products of one vector for the history with one vector for each item. So the matrix of all scores has a rank
of at most the width, and most matrices of scores are far from all matrices of small rank.

Statement
---------
Let a model give item v in the context k the score h_k . e_v + b_v with h_k, e_v in R^d, in any way whatever: tied or
untied tables, any depth, any norms. Let r = d, or d + 1 with the biases b_v, and let q be a power of two with r < q.
There are q contexts, q items and a target of scores in {-1, 1} for them (a Hadamard matrix) with

    max over contexts and items of |score - target|  >=  sqrt(1 - r / q)

for every choice of weights. The constant score 0 has the error 1.

Source
------
The bottleneck of the softmax: Yang et al. 2018 state that the rank is too small. The number is our own, from the
theorem of Eckart and Young.

Differs from the source in
--------------------------
A distance in the largest error of a score, with its number, in the place of a statement about exact equality.

Proof
-----
The scores form a matrix S = H E^T + 1 b^T of rank at most r. The target Q has Q^T Q = q I, so all of its q singular
values are sqrt q. By Eckart and Young |Q - S|_F^2 >= sum of the squares of the last q - r singular values = (q - r) q.
The largest of q^2 squares is at least their mean, (q - r) / q. QED.

Assumptions
-----------
- more-items: **checked** there is a power of two above r that is not larger than the number of items (`score_limit`).
- contexts: **trusted** the model sees q different contexts: as many words of one token as there are items, for instance.

Certified
---------
The exact rational 1 - r / q, and its root rounded down.

Not certified
-------------
Anything about the order of the items by score: d = 2 is enough to put any one item on top of all others.

Example
-------
>>> score_limit(width=768, items=50_257, biased=False).error
0.9882117688026185
>>> score_limit(width=64, items=40, biased=True) is None
True

Tests
-----
`tests/theorems/test_score_rank.py`
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput

THEOREM = {
    "id": "expressivity.score_rank",
    "title": "A table of items of width d holds at most d independent columns of scores, whatever is in front of it",
    "kind": "lower bound",
    "sources": ("yang2018", "classical"),
    "verb": "audit",
    "assumptions": (
        ("more-items", "There is a power of two above the rank and not above the number of items.", "checked"),
        ("contexts", "The model sees as many different contexts.", "trusted"),
    ),
    "uses": (),
}


@dataclass(frozen=True)
class ScoreLimit:
    """On `items` items and contexts every model misses the target by the root of `squared`; `error` is not above that."""

    rank: int
    items: int
    squared: Fraction
    error: float


def score_limit(width: int, items: int, biased: bool) -> ScoreLimit | None:
    """What no weights reach; None where the table is wide enough for the theorem to be silent."""
    if width < 1 or items < 1:
        raise BadInput(f"a table has rows and columns, not {items} of {width}")
    rank, size = width + biased, 1 << (items.bit_length() - 1)
    if size <= rank:
        return None
    squared = 1 - Fraction(rank, size)
    root = math.sqrt(squared)
    while Fraction(root) ** 2 > squared:
        root = math.nextafter(root, 0.0)
    return ScoreLimit(rank, size, squared, root)


def hard_scores(items: int) -> Float[np.ndarray, "items items"]:
    """The target: the Hadamard matrix of Sylvester, for a power of two.

    >>> hard_scores(2).tolist()
    [[1.0, 1.0], [1.0, -1.0]]
    """
    if items < 1 or items & (items - 1):
        raise BadInput(f"the target is made for a power of two of items, not for {items}")
    scores = np.ones((1, 1))
    while len(scores) < items:
        scores = np.block([[scores, scores], [scores, -scores]])
    return scores
