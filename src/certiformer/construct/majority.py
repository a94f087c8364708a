"""Majority in one block: one uniform head and two ReLU units a letter.

Statement
    Let c be the number of a letter among n tokens and h = floor(n / 2). With a head that counts (`construct.counting`)

        1[c > n / 2] = relu(c - h) - relu(c - h - 1),

    exactly, for all V^n sequences; the number of units does not depend on n.

Source
    Own derivation; majority is the standard example of what one uniform head can do (weiss2021). The lower bound is
    hahn2020.

Differs from the source in
    Nothing is thresholded at a "hard" step: on whole numbers the two units are a step.

Proof
    c > n / 2 iff c >= h + 1, since c is whole. relu(s) - relu(s - 1) is 0 for s <= 0 and 1 for s >= 1, at s = c - h. It
    is what `one_block` makes of f(c) = 1[c > n / 2]: the slope changes at h and at h + 1 only (for n = 1 at h = 0
    only: the value 1 is reached at the last count). QED.

    *Lower bound.* The gap between c = h and c = h + 1 is one token in n, so the value of the head has to be of order n:
    a fixed softmax transformer separates these counts by O(1/n) only (hahn2020, Lemma 5). In contrast to parity the sign
    of c - n/2 can be read off a fixed transformer, with a margin that vanishes like 1/n.

Assumptions
    - form (**checked**): as in `construct.counting`.

Certified
    `axioms.exact_count` proves, from the stored weights, the largest error over all V^n sequences.

Not certified
    Shorter sequences. The rounding of a run is bounded by `kernel.rounding.runs`.

Example
    >>> majority_values(5)
    [0, 0, 0, 1, 1, 1]
    >>> majority_network(3, 1000)[0].blocks[0].ffn.width
    6

Tests
    tests/theorems/test_majority.py
"""

from __future__ import annotations

from certiformer.construct.counting import symmetric_network
from certiformer.construct.one_block import Tensors
from certiformer.model.config import Config

THEOREM = {
    "id": "construct.majority",
    "title": "One head and two ReLU units a letter tell which letter has the majority, for all sequences.",
    "kind": "exact",
    "sources": (
        "classical",
        "weiss2021",
        "hahn2020, Lemma 5",
    ),
    "verb": "build",
    "assumptions": (("form", "one block, one uniform softmax head, two ReLU units a letter", "checked"),),
    "uses": ("construct.counting",),
}


def majority_values(tokens: int) -> list[int]:
    """1[c > n / 2] for c = 0, ..., n."""
    return [int(2 * count > tokens) for count in range(tokens + 1)]


def majority_network(alphabet: int, tokens: int) -> tuple[Config, Tensors]:
    """The block whose output v is 1 where more than half of the tokens are the letter v, and 0 elsewhere."""
    return symmetric_network(alphabet, tokens, range(alphabet), majority_values(tokens))
