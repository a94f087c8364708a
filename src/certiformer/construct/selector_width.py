"""How many positions are selected, from one softmax head: 1 / (1 + width), inverted by ReLU units with whole weights.

Statement
    Let a head give the score 0 to the start of the sequence (a token before the data), 0 to the w selected positions
    and at most -L to all others, and let its value be 1 at the start and 0 elsewhere. It returns r with

        1 / (1 + w + (n - w) exp(-L)) <= r <= 1 / (1 + w).

    With r = 1/(1+w) exactly, any f(w), w = 0, ..., n, is a sum of units relu(1 - (j+1) r), j = 0, ..., n - 1:

        f(w) = f(0) + sum_j ((j+2) (f(j+1) - f(j)) - j (f(j) - f(j-1))) relu(1 - (j+1) r),

    with whole weights for whole f. In particular w = sum_j 2 relu(1 - (j+1) r), and when n exp(-L) < 1 the leakage of the
    softmax moves that sum by at most 2 n exp(-L).

Source
    weiss2021 (selector_width), lindner2023 (the token at the start); the weights of the units are our own derivation.

Differs from the source in
    Tracr divides the axis of r into numerical bins with steep units, which is wrong from some length on; the units here
    are the interpolation itself, and the error is bounded.

Proof
    The weights of the softmax are 1 at the start, 1 at each selected position and at most exp(-L) elsewhere, over their
    sum; only the start counts. Going down from r = 1, the piecewise linear function through (1/(1+w), f(w)) has the
    slope m_j = -(f(j+1) - f(j)) (j+1) (j+2) between 1/(j+2) and 1/(j+1); a unit relu(1 - (j+1) r) = (j+1) relu(1/(j+1) -
    r) with the weight -(m_j - m_{j-1}) / (j+1) = (j+2) (f(j+1) - f(j)) - j (f(j) - f(j-1)) changes it there. For f(w) =
    w the weights are 2. With l = (n - w) exp(-L) < 1 the number r lies between 1/(w+2) and 1/(w+1), where the slope is
    -(w+1) (w+2), so the result is w + (w+1) (w+2) (1/(1+w) - 1/(1+w+l)) <= w + (w+2) l / (w+1) <= w + 2 l. QED.

    *How sharp.* Rounding to the nearest whole number is right when L > log(4 n); `sharpness` takes the next power of two
    above log n + 37 (37 = -log 1e-16), which leaves less than 1e-15.

    *Lower bound.* L > log n is necessary when nothing else is known of the other scores: if n exp(-L) >= 1, the start
    beside no selected position and n others that weigh 1 together has the weight 1/2, as it has beside one selected
    position and others that weigh nothing.

Assumptions
    - form (**checked**): one block without norm, one softmax head, a token at the start, ReLU units; the leakage and the
      distance of the stored numbers from the ideal ones are part of the bound.

Certified
    `axioms.exact_width` proves, from the stored weights, the largest error over all V^n sequences for the
    selector "has the same letter" (the histogram). In compiled programs the rule *situations* proves every width.

Not certified
    Shorter sequences (the rule *situations* covers them for compiled programs). The rounding of a run is bounded by
    `kernel.rounding.runs`.

Example
    >>> inverse_units([0, 1, 2, 3])
    (0, [((-1, 1), 2), ((-2, 1), 2), ((-3, 1), 2)])
    >>> start_weight(3)
    Fraction(1, 4)

Tests
    tests/theorems/test_selector_width.py
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, log, log2

import numpy as np

from certiformer.construct.one_block import FFN, HEAD, MAX_WEIGHTS, Number, Tensors, Unit, interpolated
from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Config, FeedForward, Heads, Input, Readout

THEOREM = {
    "id": "construct.selector_width",
    "title": "One softmax head and ReLU units with whole weights count the selected positions.",
    "kind": "exact",
    "sources": (
        "classical",
        "weiss2021",
        "lindner2023",
    ),
    "verb": "compile",
    "assumptions": (
        ("form", "one block, one softmax head, a token at the start, ReLU units on its weight", "checked"),
    ),
    "uses": ("axioms.exact_width",),
}


def start_weight(width: int) -> Fraction:
    """What the start of the sequence weighs beside `width` selected positions of the same score."""
    return Fraction(1, 1 + width)


def inverse_points(widths: Sequence[int], values: Sequence[Number]) -> list[tuple[Number, Number]]:
    """The points (1 / (1 + w), f(w)) through which the table of a width goes."""
    return [(start_weight(w), f) for w, f in zip(widths, values, strict=True)]


def inverse_units(values: Sequence[Number], first: int = 0) -> tuple[Number, list[tuple[Unit, Number]]]:
    """f(`first`) and the units on r that add up to f(w) - f(`first`), for w = `first`, `first` + 1, ..."""
    return interpolated(inverse_points(range(first, first + len(values)), values), downward=True)


def sharpness(tokens: int) -> float:
    """The gap L between selected positions and all others, a power of two: scores stay exact."""
    return float(2 ** ceil(log2(log(tokens) + 37)))


def histogram_network(alphabet: int, tokens: int) -> tuple[Config, Tensors]:
    """The block whose output at each position is the number of positions with the same letter.

    The stream is  letter (V) | start | r | result.  The score of letters x, y is L (<x, y> - 1), that of the start 0.
    """
    v, width = alphabet, alphabet + 3
    start, r, result = v, v + 1, v + 2
    base, units = inverse_units(range(1, tokens + 1), first=1)
    if width * (v + 2 * len(units) + 2 * (v + 1)) > MAX_WEIGHTS:
        raise BadInput(f"a histogram of {tokens} letters from {v} needs too many weights; use smaller sizes")
    config = Config(
        Input("ids", tokens=tokens, vocabulary=v),
        width=width,
        outputs=1,
        readout=Readout("all"),
        registers=1,
        blocks=(Block(Attention((Heads(1, v + 1, 1),), scale="unit"), FeedForward(len(units)) if units else None),),
    )
    sharp = sharpness(tokens)
    query, key = np.zeros((1, width, v + 1)), np.zeros((1, width, v + 1))
    query[0, :v, :v], query[0, :v, v] = sharp * np.eye(v), sharp
    key[0, :v, :v], key[0, :v, v] = np.eye(v), -1.0
    value, output, read, registers = (np.zeros(s) for s in ((1, width, 1), (1, 1, width), (width, 1), (1, width)))
    value[0, start, 0] = output[0, 0, r] = registers[0, start] = read[result, 0] = 1.0
    tensors = {
        "embed.weight": np.eye(v, width),
        "registers": registers,
        f"{HEAD}.query": query,
        f"{HEAD}.key": key,
        f"{HEAD}.value": value,
        f"{HEAD}.output": output,
        "readout.weight": read,
        "readout.bias": np.array([float(base)]),
    }
    if units:
        up, down = np.zeros((width, len(units))), np.zeros((len(units), width))
        up[r] = [float(slope) for (slope, _), _ in units]
        down[:, result] = [float(factor) for _, factor in units]
        bias = np.array([float(bias) for (_, bias), _ in units])
        tensors |= {f"{FFN}.up": up, f"{FFN}.up_bias": bias, f"{FFN}.down": down, f"{FFN}.down_bias": np.zeros(width)}
    return config, tensors
