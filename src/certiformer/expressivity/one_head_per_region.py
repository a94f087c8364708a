r"""One head per region, added up, is wrong by M/4 to M/2 for M regions; telescoped it is right to about 1/M.

The mechanism of a published proof, built as it is printed, on the simplest target that shows what happens.

Statement
---------
Let f(x) = 1 - |2x - 1| on [0, 1], cut into M = 2^k >= 2 regions R_i = [(i-1)/M, i/M] with midpoints x_i and templates
y_i = f(x_i). Head i sees the data token and a sink with value 0; its score is an affine function of x, its value is
v_i, so that

    T(x) = sum_i v_i w_i(x),    w_i(x) = 1/(1 + e^-(p_i x + q_i)),     the feed-forward network being the identity.

(a) As printed, v_i = y_i. Whatever the scores are: if every head wakes up on its own region, w_i(x) >= 1 - delta for x
    in R_i, then sup |T - f| >= (1 - delta) M/4.
(b) For the half-lines that start at the region, p_i x + q_i = s M (x - (i-1)/M) with sharpness s > 0,

    M/2 / (1 + e^-s)  <=  sup |T - f|  <=  M/2.

(c) With the same heads and telescoped values v_i = y_i - y_(i-1), y_0 = 0,

    sup |T - f|  <=  1/M + 4 log(2) / (s M).

(d) Without the sink each softmax has one key, and T = M/2 for every x: no head is dormant.

Source
------
Gumaan 2025 (arXiv 2507.10581), proof of Theorem 1: one head per region, a hyperplane that separates the region from
the rest, value y_i, other heads dormant, feed-forward network the identity.

Differs from the source in
--------------------------
The proof asks for a hyperplane with R_i on one side and all other regions on the other. On an interval there is none
for an inner region, so the head gets a half-line that contains its region; (a) holds for every way to do this. The
proof also asks that other heads output about 0, for which the sink is added here; (d) is the case without it. The
telescoped values of (c) are the repair and not part of the proof.

Proof
-----
The midpoints are x_i = (2i-1)/(2M), symmetric about 1/2, and y_i = (2i-1)/M for i <= M/2, so the sum of all y_i is
2 (M/2)^2 / M = M/2. Also f(0) = f(1) = 0.

(a) w_i is monotone in x. If it does not decrease, w_i(1) >= 1 - delta, since R_i lies to the left of 1; if it does not
increase, w_i(0) >= 1 - delta. So T(0) + T(1) >= (1 - delta) sum_i y_i = (1 - delta) M/2, and T - f at one end is at least
half of that.

(b) At x = 1 head i has the score s M (1 - (i-1)/M) >= s, so T(1) - f(1) >= (M/2)/(1 + e^-s). Conversely
0 <= T <= M/2 and 0 <= f <= 1 <= M/2.

(c) Let S be the step function that is y_i on R_i, 0 to the left of 0 and y_M = 1/M to the right of 1, and let f be 0
outside of [0, 1]. A point of R_i is at most 1/(2M) away from x_i and f has the Lipschitz constant 2, so |S - f| <= 1/M
everywhere. The function 1/(1 + e^-z) is the distribution function of the logistic law, hence T(x) = E[S(x + Z)] with Z
logistic of scale 1/(sM), and E|Z| = 2 log(2) / (sM). So |T(x) - f(x)| <= E|S(x+Z) - f(x+Z)| + E|f(x+Z) - f(x)| <=
1/M + 2 E|Z|.

(d) A softmax over one key is 1.

Assumptions
-----------
- dyadic: **checked** M is a power of two between 2 and 2^20 and the sharpness an integer between 1 and 2^20, so that
  every weight is a binary number (`one_head_per_region`).

Certified
---------
`printed_error` and `telescoped_bound` enclose the bounds of (b) and (c) in balls; the stored weights are exact, so the
bounds hold for the real-number function of the model as it is stored.

Not certified
-------------
A floating-point run adds its rounding, of the order M 2^-53. Nothing is said about other repairs; one softmax over all
regions is `construct.voronoi`.

Example
-------
>>> import numpy as np
>>> points = np.linspace(0, 1, 1025)[:, None]
>>> tent = 1 - np.abs(2 * points - 1)
>>> for regions in (4, 16, 64):
...     printed, repaired = (one_head_per_region(regions, 64, telescoped) for telescoped in (False, True))
...     errors = [np.abs(model.evaluate(points) - tent).max() for model in (printed, repaired)]
...     print(regions, *(f"{error:.4f}" for error in errors))
4 2.0000 0.2500
16 8.0000 0.0625
64 32.0000 0.0156

Tests
-----
`tests/theorems/test_one_head_per_region.py`
"""

from __future__ import annotations

import numpy as np
from flint import arb
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer

THEOREM = {
    "id": "expressivity.one_head_per_region",
    "title": "One head per region, added up, is wrong by M/4 to M/2 for M regions; telescoped it is right to about 1/M",
    "kind": "lower bound",
    "sources": ("gumaan2025, proof of Theorem 1",),
    "verb": "explore",
    "assumptions": (
        ("dyadic", "The number of regions is a power of two and the sharpness a positive integer.", "checked"),
    ),
    "uses": (),
}

LARGEST = 2**20


def one_head_per_region(regions: int, sharpness: int, telescoped: bool = False, sink: bool = True) -> Transformer:
    """The mechanism as one transformer block with as many heads as regions.

    **Arguments:**

    - `sharpness`: how fast a head wakes up, relative to the width of a region.
    - `telescoped`: give head i the value y_i - y_(i-1) instead of y_i.
    - `sink`: add the token with value 0 that lets a head be dormant.
    """
    _check_dyadic(regions, sharpness)
    # Coordinates of the stream: x, the constant 1, the output. The sink is the zero vector: score 0 and value 0.
    attention = Attention((Heads(regions, 1, 1),), scale="unit")
    block = Block(attention, FeedForward(3, kind="identity", residual=False))
    source = Input("continuous", 1, width=1)
    config = Config(source, 3, 1, Readout("token", 0), blocks=(block,), registers=1 if sink else 0)
    constant, output = np.eye(3)[1], np.eye(3)[2]
    heads = "blocks.0.attention.groups.0"
    keys = np.stack([np.full(regions, sharpness * regions), -sharpness * np.arange(regions), np.zeros(regions)], axis=1)
    values = templates(regions)
    if telescoped:
        values = np.diff(values, prepend=0.0)
    tensors = {
        "embed.weight": np.eye(3)[:1],
        "embed.bias": constant,
        f"{heads}.query": np.broadcast_to(constant[None, :, None], (regions, 3, 1)),
        f"{heads}.key": keys[:, :, None],
        f"{heads}.value": np.broadcast_to(constant[None, :, None], (regions, 3, 1)),
        f"{heads}.output": values[:, None, None] * output,
        "blocks.0.ffn.up": np.eye(3),
        "blocks.0.ffn.up_bias": np.zeros(3),
        "blocks.0.ffn.down": np.eye(3),
        "blocks.0.ffn.down_bias": np.zeros(3),
        "readout.weight": output[:, None],
        "readout.bias": np.zeros(1),
    }
    if sink:
        tensors["registers"] = np.zeros((1, 3))
    return Transformer(config, tensors)


def templates(regions: int) -> Float[np.ndarray, " regions"]:
    """The tent at the midpoints of the regions; exact, because the number of regions is a power of two.

    >>> templates(4)
    array([0.25, 0.75, 0.75, 0.25])
    """
    return 1.0 - np.abs(2.0 * (np.arange(regions) + 0.5) / regions - 1.0)


def printed_error(regions: int, sharpness: int) -> tuple[arb, arb]:
    """The two sides of (b): a lower and an upper bound on the largest error with the values as printed."""
    _check_dyadic(regions, sharpness)
    return arb(regions) / 2 / (1 + arb(-sharpness).exp()), arb(regions) / 2


def telescoped_bound(regions: int, sharpness: int) -> arb:
    """The bound of (c) on the largest error with telescoped values."""
    _check_dyadic(regions, sharpness)
    return arb(1) / regions + 4 * arb(2).log() / (regions * sharpness)


def _check_dyadic(regions: int, sharpness: int) -> None:
    if type(regions) is not int or not 2 <= regions <= LARGEST or regions & (regions - 1):
        raise BadInput(f"the number of regions is a power of two from 2 to {LARGEST}, not {regions!r}")
    if type(sharpness) is not int or not 1 <= sharpness <= LARGEST:
        raise BadInput(f"the sharpness is an integer from 1 to {LARGEST}, not {sharpness!r}")
