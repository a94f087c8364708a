"""A looped block that decides by itself when it is done: Euclid's algorithm with the halt in the weights.

Statement
    *Gate.* Let one coordinate of the stream, the halt, be 0 or 1, and let a block add W2 relu(W1 x + b) to the stream x,
    with nothing else in it. If every hidden unit satisfies w . x + b <= 0 for all x in a box with halt = 1, then the block
    is exactly the identity on these x, in real arithmetic and in every run of any floating-point type in which the sums
    keep their sign. Subtracting K times the halt from every unit, K at least the largest input a unit has on the box,
    makes any such block one that stops.

    *Euclid.* For whole numbers 0 <= a, b <= M, one pass of the block below, with five units, makes of (a, b, steps, halt)

        (|a - b|, min(a, b), steps + [b > 0], [b = 0])    while halt = 0, and leaves everything as it is once halt = 1.

    After s + 1 passes or more, where s <= max(a, b) + 1 is the number of subtractions that this very input needs, the
    stream is exactly (gcd(a, b), 0, s, 1), whatever the number of passes. Every token halts at its own time.

Source
    graves2016 and dehghani2019 (adaptive computation time: a learned halting probability, cut off at a threshold);
    giannou2023 (looped blocks as computers); own derivation of the gate and of the block.

Differs from the source in
    The halt is a number of the stream that the block itself writes, and after it nothing changes at all: no threshold, no
    mixture of the states of several passes, no control outside of the weights.

Proof
    Gate: all units are 0, so nothing is added. With K: w . x + b - K <= 0 where halt = 1, and nothing changes where halt is
    0. Euclid, with the units (each minus K halt, K = M + 1)

        relu(a - b),  relu(b - a),  relu(a),  relu(1 - b),  relu(1)

    and halt = 0: a + relu(a-b) + relu(b-a) - relu(a) = |a-b| since a >= 0; b - relu(b-a) = min(a, b); steps + relu(1) -
    relu(1-b) = steps + [b > 0] and halt + relu(1-b) = [b = 0], since b is whole and >= 0. Both numbers stay whole and in
    [0, M]. (a, b) and (|a-b|, min(a, b)) have the same common divisors, and b = 0 leaves gcd(a, 0) = a; so a is the gcd
    when the halt is set, and it stays. s <= max(a, b) + 1: call a pair full when a, b >= 1. A pass on a full pair gives
    max(|a-b|, min(a,b)) <= max(a, b) - 1 unless min(a, b) = max(a, b), that is a = b, which gives (0, a), then (a, 0): two
    passes, and a >= 1; from a full pair with different entries the larger entry drops by 1 or more. By induction on the
    larger entry s <= max(a, b) + 1; a pair (0, b) takes one pass, a pair (a, 0) none. On halt = 1 the largest input of a
    unit is M - (M + 1) = -1: the gate holds with the margin 1. All numbers are whole and at most 2 M + 2, so a run is exact
    as long as that is below 2^p for the precision p of its type, in any order of summation. QED.

    *Lower bound.* No fixed number of passes serves all M: along a line, L passes of a block of m units are a piecewise
    linear function with at most (m + 1)^L pieces, while for M = 2^k the numbers gcd(a, M), a = 0, 1, ..., M, change
    direction at every a from 1 to M - 1 (they are 1 at odd and at least 2 at even a); so (m + 1)^L >= M.

Assumptions
    - whole (**checked**): the inputs are whole numbers from 0 to M; `euclid_points` refuses others.
    - gate (**checked**): every unit is at most 0 once the halt is set; `frozen_margin` proves it from the stored weights.

Certified
    `frozen_margin` gives the largest number that no unit exceeds, with the opposite sign, in exact rationals.

Not certified
    Nothing is said about inputs that are not whole, or larger than M.

Example
    >>> config, tensors = euclid_network(largest=50, passes=60, tokens=3)
    >>> frozen_margin(tensors, [(0, 50), (0, 50), (0, 100), (1, 1)])
    Fraction(1, 1)
    >>> from certiformer.model import Transformer
    >>> Transformer(config, tensors).evaluate(euclid_points([[12, 18, 7, 7, 1, 50]], 50)).reshape(3, 3).tolist()
    [[6.0, 4.0, 1.0], [7.0, 2.0, 1.0], [1.0, 51.0, 1.0]]

Tests
    tests/theorems/test_adaptive_halting.py
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from jaxtyping import Float

from certiformer.construct.one_block import FFN, Tensors
from certiformer.errors import BadInput
from certiformer.model.config import Block, Config, FeedForward, Input, Readout

THEOREM = {
    "id": "construct.adaptive_halting",
    "title": "A looped block can decide by itself when it is done: Euclid's algorithm with the halt in the weights.",
    "kind": "exact",
    "sources": (
        "classical",
        "graves2016",
        "dehghani2019",
        "giannou2023",
    ),
    "verb": "theorem",
    "assumptions": (
        ("whole", "the inputs are whole numbers from 0 to M", "checked"),
        ("gate", "every unit is at most 0 once the halt is set", "checked"),
    ),
    "uses": (),
}

PRECISION = {"float64": 53, "float32": 24, "bfloat16": 8}
A, B, STEPS, HALT = range(4)


def gated(up: Float[np.ndarray, "width units"], halt: int, stop: float) -> Float[np.ndarray, "width units"]:
    """The same units, each minus `stop` times the halt."""
    up = up.copy()
    up[halt] -= stop
    return up


def euclid_network(largest: int, passes: int, tokens: int = 1, dtype: str = "float64") -> tuple[Config, Tensors]:
    """The looped block; each token reads (a, b) and its outputs are gcd(a, b), the number of subtractions, and the halt."""
    if largest < 1 or passes < 1:
        raise BadInput("Euclid's block needs a largest number and a number of passes of at least 1")
    if dtype not in PRECISION or 2 * largest + 2 >= 2 ** PRECISION[dtype]:
        raise BadInput(f"whole numbers up to {2 * largest + 2:,} are not exact in {dtype}")
    config = Config(
        Input("continuous", tokens=tokens, width=2),
        width=4,
        outputs=3,
        readout=Readout("all"),
        blocks=(Block(None, FeedForward(5)),),
        loops=passes,
        dtype=dtype,
    )
    up, down = np.zeros((4, 5)), np.zeros((5, 4))
    up[A], up[B] = [1, -1, 1, 0, 0], [-1, 1, 0, -1, 0]
    down[:, A], down[1, B] = [1, 1, -1, 0, 0], -1
    down[:, STEPS], down[3, HALT] = [0, 0, 0, -1, 1], 1
    tensors = {
        "embed.weight": np.eye(2, 4),
        "embed.bias": np.zeros(4),
        f"{FFN}.up": gated(up, HALT, largest + 1.0),
        f"{FFN}.up_bias": np.array([0.0, 0.0, 0.0, 1.0, 1.0]),
        f"{FFN}.down": down,
        f"{FFN}.down_bias": np.zeros(4),
        "readout.weight": np.eye(4)[:, [A, STEPS, HALT]],
        "readout.bias": np.zeros(3),
    }
    return config, tensors


def euclid_points(points: Sequence[Sequence[float]], largest: int) -> Float[np.ndarray, "rows numbers"]:
    """The numbers as inputs of the block; what is not whole or out of range is refused."""
    rows = np.asarray(points, np.float64)
    if rows.ndim != 2 or not np.all((rows >= 0) & (rows <= largest) & (rows == np.floor(rows))):
        raise BadInput(f"Euclid's block reads whole numbers from 0 to {largest:,}")
    return rows


def frozen_margin(tensors: Tensors, box: Sequence[tuple[int, int]]) -> Fraction:
    """How far every unit is below 0 on the box, in exact rationals; not negative: the block is the identity there.

    `box` has a pair of bounds for each coordinate of the stream, the halt being (1, 1).
    """
    if np.any(tensors[f"{FFN}.down_bias"]):
        raise BadInput("a block with an output bias is never the identity")
    highest = []
    for column, bias in zip(tensors[f"{FFN}.up"].T.tolist(), tensors[f"{FFN}.up_bias"].tolist(), strict=True):
        ends = [max(Fraction(w) * low, Fraction(w) * high) for w, (low, high) in zip(column, box, strict=True)]
        highest.append(sum(ends, Fraction(bias)))
    return -max(highest)
