"""Parity of n bits in one block: one uniform head and n ReLU units with weights 1, -2, 2, -2, ...

Statement
    Let c be the number of ones among n bits. With a head that counts (`construct.counting`)

        c mod 2 = relu(c) - 2 relu(c - 1) + 2 relu(c - 2) - ... + (-1)^(n-1) 2 relu(c - n + 1),

    n hidden units in all, exactly, for all 2^n inputs. Where the count arrives as r = 1 / (1 + c), as in compiled
    programs (`construct.selector_width`), c mod 2 is a sum of n units relu(1 - (j+1) r) with the whole weights
    (-1)^j (2 j + 2), j = 0, ..., n - 1.

Source
    Own derivation of the weights; that uniform attention and a function of the count compute parity is folklore. The
    lower bounds are hahn2020; chiang2022 escape them by another way.

Differs from the source in
    Chiang and Cholak (2022, arXiv 2202.12172) use two layers and let the position enter; with n in the weights one layer
    and no position code are enough.

Proof
    `construct.counting` with f(c) = c mod 2: f(j+1) - 2 f(j) + f(j-1) is 2 at even j >= 2 and -2 at odd j, and 1 at
    j = 0, since f(-1) := f(0) = 0. For r = 1/(1+c) see `construct.selector_width`: the weight at j is
    (j+2) (f(j+1) - f(j)) - j (f(j) - f(j-1)) = (j+2) (-1)^j + j (-1)^j = (-1)^j (2 j + 2). QED.

    *Lower bounds.* Hahn (hahn2020): with hard attention no transformer with *fixed* weights recognises parity of all
    lengths (Theorem 1); with softmax the outputs for two inputs that differ in one bit come within O(1/n) of each other
    (Lemma 5). So a margin that does not shrink needs weights that grow with n, as here. Behind one uniform head n - 2
    units are necessary: with the bit at the position that is read held fixed, c takes n consecutive values, and the
    output, a piecewise linear function of c, changes the sign of its slope n - 2 times among them.

Assumptions
    - form (**checked**): as in `construct.counting`.

Certified
    `axioms.exact_count` proves, from the stored weights, the largest error over all 2^n inputs.

Not certified
    Shorter inputs. The rounding of a run is bounded by `kernel.rounding.runs`: below 1e-6 for n = 1,000 in float64.

Example
    >>> parity_values(5)
    [0, 1, 0, 1, 0, 1]
    >>> config, tensors = parity_network(4)
    >>> tensors["blocks.0.ffn.down"][:, -1].tolist()
    [1.0, -2.0, 2.0, -2.0]

Tests
    tests/theorems/test_parity.py
"""

from __future__ import annotations

from certiformer.construct.counting import symmetric_network
from certiformer.construct.one_block import Tensors
from certiformer.errors import BadInput
from certiformer.model.config import Config

THEOREM = {
    "id": "construct.parity",
    "title": "One head and n ReLU units compute the parity of n bits, for all 2^n inputs.",
    "kind": "exact",
    "sources": (
        "classical",
        "hahn2020, Theorem 1 and Lemma 5",
        "chiang2022",
    ),
    "verb": "build",
    "assumptions": (("form", "one block, one uniform softmax head, n ReLU units on the count", "checked"),),
    "uses": (
        "construct.counting",
        "construct.selector_width",
    ),
}


def parity_values(tokens: int) -> list[int]:
    """c mod 2 for c = 0, ..., n."""
    return [count % 2 for count in range(tokens + 1)]


def parity_network(tokens: int, alphabet: int = 2) -> tuple[Config, Tensors]:
    """The block whose output is the number of letters 1, modulo 2."""
    if alphabet < 2:
        raise BadInput("parity counts the letters 1, so the alphabet has at least two letters, 0 and 1")
    return symmetric_network(alphabet, tokens, (1,), parity_values(tokens))
