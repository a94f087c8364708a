"""Weights of a one-block transformer with squares by attention and radial bumps by the feed-forward part.

The residual stream is laid out as x | flag and out 0 | out 1 | ... | Q. Sigmoid heads over the data token and a sink of
zeros (as in `construct.sigmoid_attention`) write Q = sum of squares of (x - middle)/spacing; hidden unit (c, k) is
relu(threshold_k - |c|^2 + 2 c . (x - middle)/spacing - Q), c in cells, and writes heights_k v(c) to the outputs. The first
output is written on top of the flag, which the read-out takes off again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from certiformer.kernel import Refused
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer

MAX_SQUARE_HEADS = 60
FIT_POINTS = 400
LARGEST_COEFFICIENT = 1e5  # beyond, cancellation would eat the accuracy of the stored weights


@dataclass(frozen=True)
class Squares:
    """tau^2 ~ constant + sum_h coefficients_h sigmoid(steepness (tau - places_h)) on |tau| <= half, up to `error`."""

    steepness: float
    places: Float[np.ndarray, " heads"]
    coefficients: Float[np.ndarray, " heads"]
    constant: float
    error: float


@lru_cache(maxsize=64)
def fit_squares(half: float, tolerance: float) -> Squares:
    """The fewest equally spaced sigmoids found that square within `tolerance`: least squares for the coefficients.

    The reach of the knots beyond the interval and their sharpness are searched, the middle of the error is taken off.

    >>> found = fit_squares(2.0, 1e-3)
    >>> len(found.places), found.error < 1e-3
    (4, True)
    """
    tau = half * np.cos(np.linspace(0, np.pi, FIT_POINTS))
    for count in range(2, MAX_SQUARE_HEADS + 1):
        for reach in (0.8, 1.0, 1.2, 1.5, 2.0):
            places = half * reach * np.linspace(-1, 1, count)
            for sharpness in (0.7, 1.0, 1.5, 2.0, 2.5, 3.0):
                steepness = sharpness / (places[1] - places[0])
                bent = 0.5 * (1 + np.tanh(steepness * (tau[:, None] - places) / 2))
                design = np.concatenate([bent, np.ones((FIT_POINTS, 1))], 1)
                solution = np.linalg.lstsq(design, tau**2, rcond=1e-11)[0]
                off = design @ solution - tau**2
                error = float(off.max() - off.min()) / 2
                if error <= tolerance and np.abs(solution).max() < LARGEST_COEFFICIENT:
                    constant = float(solution[-1] - (off.max() + off.min()) / 2)
                    return Squares(steepness, places, solution[:-1], constant, error)
    raise Refused(f"squares within {tolerance:.3g} need more than {MAX_SQUARE_HEADS} heads a variable")


def square_transformer(
    squares: list[Squares],
    middle: Float[np.ndarray, " inputs"],
    spacing: Float[np.ndarray, " inputs"],
    centres: Float[np.ndarray, "centres inputs"],
    thresholds: Float[np.ndarray, " terms"],
    outgoing: Float[np.ndarray, "units outputs"],
    linear: Float[np.ndarray, "inputs outputs"],
    constant: Float[np.ndarray, " outputs"],
) -> Transformer:
    """The transformer of the module docstring: `centres` in cells about the middle, one unit a centre and threshold."""
    inputs, outputs = linear.shape
    heads = [len(s.places) for s in squares]
    config = configuration(sum(heads), len(outgoing), inputs, outputs)
    flag, square = inputs, inputs + outputs
    query, key, value = (np.zeros((sum(heads), config.width, 1)) for _ in range(3))
    write = np.zeros((sum(heads), 1, config.width))
    query[:, flag, 0] = value[:, flag, 0] = 1.0
    start = 0
    for axis, (found, count) in enumerate(zip(squares, heads, strict=True)):
        own = slice(start, start + count)
        key[own, axis, 0] = found.steepness / spacing[axis]
        key[own, flag, 0] = -found.steepness * (found.places + middle[axis] / spacing[axis])
        write[own, 0, square] = found.coefficients
        start += count
    embed, shift = np.zeros((inputs, config.width)), np.zeros(config.width)
    embed[:, :inputs] = np.eye(inputs)
    shift[flag], shift[square] = 1.0, sum(s.constant for s in squares)
    steep = 2 * centres / spacing
    offsets = (centres**2).sum(1) + steep @ middle
    up, down = np.zeros((config.width, len(outgoing))), np.zeros((len(outgoing), config.width))
    up[:inputs], up[square] = np.repeat(steep, len(thresholds), axis=0).T, -1.0
    down[:, flag:square] = outgoing
    read = np.zeros((config.width, outputs))
    read[:inputs], read[flag:square] = linear, np.eye(outputs)
    head = "blocks.0.attention.groups.0"
    tensors = {
        "embed.weight": embed,
        "embed.bias": shift,
        "registers": np.zeros((1, config.width)),
        f"{head}.query": query,
        f"{head}.key": key,
        f"{head}.value": value,
        f"{head}.output": write,
        "blocks.0.ffn.up": up,
        "blocks.0.ffn.up_bias": (thresholds[None] - offsets[:, None]).ravel(),
        "blocks.0.ffn.down": down,
        "blocks.0.ffn.down_bias": np.zeros(config.width),
        "readout.weight": read,
        "readout.bias": constant - shift[flag:square],
    }
    return Transformer(config, tensors)


def configuration(heads: int, units: int, inputs: int, outputs: int) -> Config:
    """The configuration of such a transformer of the given size."""
    return Config(
        Input("continuous", tokens=1, width=inputs),
        width=inputs + outputs + 1,
        outputs=outputs,
        readout=Readout("token", token=0),
        blocks=(Block(attention=Attention((Heads(heads, 1, 1),)), ffn=FeedForward(units)),),
        registers=1,
    )
