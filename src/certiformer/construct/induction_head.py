"""An induction head in two layers of one head each: what followed the last time, for all sequences.

Statement
    Let the tokens be letters x_0, ..., x_{n-1} from an alphabet of V, after one register. Two causal attention layers with
    one softmax head each and no feed-forward layer compute, at every position i of every one of the V^n sequences, the
    unit vector of x_j for the largest j <= i with x_{j-1} = x_i, and the zero vector when there is no such j, with an
    error below 4 n exp(-64). The stream has width 3 V + 3, and the scores are whole multiples of 64 up to 64 n^2.

    The scores of layer 1 are -64 (j - (i - 1))^2 up to a constant: position i reads the letter of position i - 1, and
    position 0 that of the register, which stands at -1 and holds none. Those of layer 2 are 64 (n [x_i = x_{j-1}] + j) for
    data and 64 n for the register; the value is x_j, and zero at the register.

Source
    olsson2022 (the mechanism, found in trained models); own derivation of the weights and of the error. The lower bounds
    are sanford2024 and peng2024.

Differs from the source in
    Trained heads do this approximately. Here the register makes "there was none" a case of its own, and one rank of whole
    numbers for all keys makes every score different from every other, so that no gap shrinks with n.

Proof
    Layer 1: among the places -1, 0, ..., i the wanted one leads by 64, so that all others weigh at most n exp(-64)
    together. Layer 2: divided by 64, a key that matches has the score n + j with 1 <= j <= n - 1, the register n, any
    other key j <= n - 1. These are different whole numbers, so the largest leads by at least 64: the last match if there
    is one, the register otherwise. The letter of the leader is the value. What leaks in layer 1 moves the scores of layer
    2 by 64 n times n exp(-64), which is absorbed. QED.

    *Lower bounds.* One layer cannot do it with few heads: number of heads x head size x bits of a number must be of order
    n (sanford2024), while here it is 1 x (V + 1) x O(log n) in each of two layers. In the same way one layer with H heads
    of size d composes functions on n points only if H (d + 1) p >= n log n (peng2024). `construct.exact_gather`, with n
    heads, meets the first bound up to logarithms.

Assumptions
    - form (**checked**): two attention layers without norm, causal, one register, one softmax head each.

Certified
    `axioms.exact_induction` proves, from the stored weights, the largest error over all V^n sequences, with the
    leakage of both layers.

Not certified
    Shorter sequences. The rounding of a run is bounded by `kernel.rounding.runs`.

Example
    >>> config, tensors = induction_network(5, 60)
    >>> config.width, [block.attention.heads[0].key for block in config.blocks]
    (18, [2, 6])

Tests
    tests/theorems/test_induction_head.py
"""

from __future__ import annotations

import numpy as np

from certiformer.construct.one_block import MAX_WEIGHTS, Tensors, squared_difference
from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Code, Config, Heads, Input, Readout

THEOREM = {
    "id": "construct.induction_head",
    "title": "Two layers of one head each find what followed the last occurrence of every letter, for all sequences.",
    "kind": "exact",
    "sources": (
        "classical",
        "olsson2022",
        "sanford2024",
        "peng2024",
    ),
    "verb": "build",
    "assumptions": (
        ("form", "two causal attention layers without norm, one register, one softmax head each", "checked"),
    ),
    "uses": ("axioms.exact_induction",),
}

GAP = 64  # exp(-64) = 1.6e-28; a power of two, so that scores are exact
LEAD = "63.999"  # what is claimed of the lead of the right position, less what layer 1 leaks into the scores of layer 2


def induction_network(alphabet: int, tokens: int) -> tuple[Config, Tensors]:
    """The two layers; output v of position i is 1 where v followed the last earlier occurrence of the letter at i.

    The stream is  letter (V) | previous letter (V) | place, its square, rank | result (V).
    """
    v, width = alphabet, 3 * alphabet + 3
    previous, result = slice(v, 2 * v), slice(2 * v + 3, width)
    place, square, rank = 2 * v, 2 * v + 1, 2 * v + 2
    if width * (tokens + 10 * v) > MAX_WEIGHTS:
        raise BadInput(f"induction over {tokens} letters from {v} needs too many weights; use smaller sizes")
    config = Config(
        Input("ids", tokens=tokens, vocabulary=v),
        width=width,
        outputs=v,
        readout=Readout("all"),
        registers=1,
        code=Code("table"),
        blocks=tuple(Block(Attention((Heads(1, size, v),), scale="unit", mask="causal"), None) for size in (2, v + 1)),
    )
    places = range(-1, tokens)
    score = squared_difference([i - 1 for i in range(tokens)], places, GAP)
    stand = np.zeros((tokens + 1, width))  # the register stands at -1 and ranks above every data token
    stand[:, place], stand[:, square] = places, np.array(score.key_squares) / GAP
    stand[:, rank] = [tokens, *range(tokens)]
    first, second = (_empty(width, size, v) for size in (2, v + 1))
    first["query"][0, place, 0] = score.factor
    first["query"][0, :v, 0] = -score.factor  # every data token has exactly one letter: i - 1 from i
    first["query"][0, :v, 1] = -GAP
    first["key"][0, place, 0] = first["key"][0, square, 1] = 1.0
    first["value"][0, :v] = np.eye(v)
    first["output"][0, :, previous] = np.eye(v)
    second["query"][0, :v, :v], second["query"][0, :v, v] = GAP * tokens * np.eye(v), GAP
    second["key"][0, previous, :v], second["key"][0, rank, v] = np.eye(v), 1.0
    second["value"][0, :v] = np.eye(v)
    second["output"][0, :, result] = np.eye(v)
    read = np.zeros((width, v))
    read[result] = np.eye(v)
    tensors = {"embed.weight": np.eye(v, width), "registers": stand[:1], "code.table": stand[1:]}
    for block, head in enumerate((first, second)):
        tensors |= {f"blocks.{block}.attention.groups.0.{name}": tensor for name, tensor in head.items()}
    return config, {**tensors, "readout.weight": read, "readout.bias": np.zeros(v)}


def _empty(width: int, key: int, value: int) -> Tensors:
    shapes = {"query": (width, key), "key": (width, key), "value": (width, value), "output": (value, width)}
    return {name: np.zeros((1, *shape)) for name, shape in shapes.items()}
