"""Transformers of the paper's form for the sine targets: f^ (feed-forward), one softmax head without scale or residual.

    H^_t(x) = W sum_s softmax_s[ (W_Q h_t) . (W_K h_s) ] W_V h_s,      h = f^(x),

with a linear F^, since the target has F = identity, as an ordinary `certiformer.model`: a block with a feed-forward
network only, then a block with attention only. With `layers` = 2 there is one more attention block, with a residual,
before the last one.

Features. f^ is one ReLU layer that starts as the hat functions of equally spaced knots 0, h, ..., 1:

    hat_j(x) = ( relu(x - (j-1) h) - 2 relu(x - j h) + relu(x - (j+1) h) ) / h,         j = 0, ..., 1/h

so the columns of W_Q and W_K hold the values at the knots of piecewise linear functions, and W_V those of f(x) = x,
which is one of them. With h a power of two all of these weights are exact.

The constructed model has phi_k(knot) sqrt(sigma_k) in W_Q and W_K. What interpolation costs, with phi_k = sqrt 2
sin(2 pi k .) and |phi_k - its interpolant| <= e_k = sqrt 2 (2 pi k h)^2 / 8 (and rounding):

    |change of a score| <= D = sum_{k <= m} sigma_k 2 sqrt 2 e_k,
    |H^_t - truncated H_t| <= tanh(2 D / 4)                        (`certificate.py`)

For m = 8, alpha = 1 and 512 intervals D = 0.0027 and the outputs move by at most 0.0014; measured on 500 inputs:
2.0e-4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout, Transformer, tensor_specs
from certiformer.rates.targets import SineTarget, sines

INTERVALS = 64
HEAD = "attention.groups.0"


def sine_config(
    target: SineTarget, key: int, intervals: int = INTERVALS, layers: int = 1, dtype: str = "float64"
) -> Config:
    """The configuration above with keys of size `key`; the width is the number of knots."""
    if intervals < 2 or intervals & (intervals - 1):
        raise BadInput(f"the number of intervals between knots is a power of two from 2 on, not {intervals}")
    if layers not in (1, 2) or key < 1:
        raise BadInput("a model of this form has one or two attention layers and keys of size 1 or more")
    head = Attention((Heads(1, key, 1),), scale="unit", mask="table" if target.masked else "none", residual=False)
    attention = (Block(replace(head, residual=True)), Block(head))[2 - layers :]
    return Config(
        Input("continuous", target.length, width=1),
        width=intervals + 1,
        outputs=1,
        readout=Readout("all"),
        blocks=(Block(ffn=FeedForward(intervals + 1, residual=False)), *attention),
        dtype=dtype,
    )


def hat_tensors(config: Config) -> dict[str, np.ndarray]:
    """All tensors: features and values as above, queries, keys and the outputs of a layer before the last all zero."""
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    knots = config.width
    intervals = knots - 1
    tensors["embed.weight"][0, 0] = 1
    tensors["blocks.0.ffn.up"][0] = 1
    tensors["blocks.0.ffn.up_bias"][:] = (1 - np.arange(knots)) / intervals  # the kinks are -h, 0, h, ..., 1 - h
    down = tensors["blocks.0.ffn.down"]
    for shift, weight in ((0, 1), (1, -2), (2, 1)):
        for knot in range(knots - shift):
            down[knot + shift, knot] = weight * intervals
    last = len(config.blocks) - 1
    for block in range(1, last + 1):
        tensors[f"blocks.{block}.{HEAD}.value"][0, :, 0] = np.arange(knots) / intervals
        if f"blocks.{block}.attention.mask" in tensors:
            tensors[f"blocks.{block}.attention.mask"][:] = 1 - np.eye(config.length)
    tensors[f"blocks.{last}.{HEAD}.output"][0, 0, 0] = 1
    tensors["readout.weight"][0, 0] = 1
    return tensors


def constructed_model(target: SineTarget, kept: int, intervals: int = 512, layers: int = 1) -> Transformer:
    """The target with the first `kept` terms of its kernel, interpolated; the first of two layers does nothing.

    >>> model = constructed_model(SineTarget(1.0, rank=2, length=3), 2, intervals=64)
    >>> x = np.array([[0.1, 0.4, 0.8]])
    >>> np.abs(model.evaluate(x) - SineTarget(1.0, rank=2, length=3).outputs(x)).max() < feature_cost(model, (1.0, 0.5))
    np.True_
    """
    config = sine_config(target, kept, intervals, layers)
    tensors = hat_tensors(config)
    count = min(kept, target.terms)
    at_knots = sines(np.arange(intervals + 1) / intervals, 1, count) * np.sqrt(target.values[:count])
    last = len(config.blocks) - 1
    for role in ("query", "key"):
        tensors[f"blocks.{last}.{HEAD}.{role}"][0, :, :count] = at_knots
    return Transformer(config, tensors)


def feature_cost(model: Transformer, values: tuple[float, ...] | Float[np.ndarray, " kept"]) -> float:
    """An upper bound on |H^_t - H_t of the kernel with these singular values| for inputs in [0, 1]: tanh(D / 2) above.

    Stored weights are rounded: 2^-50 of the largest score a term can have, 2 sigma_k, is added for each.
    """
    step = 1 / (model.config.width - 1)
    sizes = np.asarray(values, np.float64)
    k = np.arange(1, len(sizes) + 1)
    moved = sizes * (2 * np.sqrt(2) * np.sqrt(2) * (2 * np.pi * k * step) ** 2 / 8 + 2 * 2.0**-50)
    return float(np.tanh(moved.sum() / 2)) * (1 + 2.0**-48)
