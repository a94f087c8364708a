"""Two targets built exactly for every length: nothing in the weights depends on it but how far the biases are written out.

*Exponential memory*, H_t = sum_{s <= t} r^s x(t - s) with 0 < r < 1. The score of token t for token j is (t - j) log r,
a bias that depends on the distance alone. One register stands just before the first token, at distance t + 1, holds the
value 0 and has the score (t + 1) log r - log(1 - r): its weight r^(t+1) / (1 - r) is what the whole past before the
sequence would get,

    sum_{s <= t} r^s + r^(t+1) / (1 - r) = 1 / (1 - r)    for every t,

so the softmax divides by the same number everywhere and the output matrix multiplies by it.

*The graph-like target* of `sequence_batches` is attention with query SHARPNESS (2x - 1), key 2x - 1 and value x.
"""

from __future__ import annotations

import math

import numpy as np

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer, tensor_specs
from certiformer.rates.sequence_batches import SHARPNESS

GROUP = "blocks.0.attention.groups.0"


def exponential_memory(length: int, ratio: float = math.exp(-1)) -> Transformer:
    """The transformer with outputs sum_{s <= t} ratio^s x(t - s).

    >>> exponential_memory(3, 0.5).evaluate([[1.0, 0.0, 2.0]])
    array([[1.  , 0.5 , 2.25]])
    """
    if not 0 < ratio < 1:
        raise BadInput(f"the ratio of an exponential memory lies between 0 and 1, and {ratio!r} does not")
    attention = Attention(
        (Heads(1, 1, 1),), bias=True, scale="unit", mask="causal", score_bias="toeplitz", residual=False
    )
    config = Config(Input("continuous", length, width=1), 2, 1, Readout("all"), blocks=(Block(attention),), registers=1)
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    tensors["embed.weight"][0, 0] = tensors["readout.weight"][0, 0] = 1.0
    tensors["registers"][0, 1] = -math.log1p(-ratio)
    tensors[f"{GROUP}.query_bias"][0, 0] = tensors[f"{GROUP}.key"][0, 1, 0] = tensors[f"{GROUP}.value"][0, 0, 0] = 1.0
    distance = np.arange(-length, length + 1)
    tensors[f"{GROUP}.score_bias"][0] = np.maximum(distance, 0) * math.log(ratio)
    tensors[f"{GROUP}.output"][0, 0, 0] = 1 / (1 - ratio)
    return Transformer(config, tensors)


def graph_model(length: int) -> Transformer:
    """The transformer with the outputs of `graph_values(x, causal=True)`."""
    attention = Attention((Heads(1, 1, 1),), scale="unit", mask="causal", residual=False)
    config = Config(Input("continuous", length, width=1), 2, 1, Readout("all"), blocks=(Block(attention),))
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    tensors["embed.weight"][0] = 1.0, 2.0
    tensors["embed.bias"][1] = -1.0
    tensors[f"{GROUP}.query"][0, 1, 0] = SHARPNESS
    tensors[f"{GROUP}.key"][0, 1, 0] = tensors[f"{GROUP}.value"][0, 0, 0] = 1.0
    tensors[f"{GROUP}.output"][0, 0, 0] = tensors["readout.weight"][0, 0] = 1.0
    return Transformer(config, tensors)
