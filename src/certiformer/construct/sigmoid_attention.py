"""Weights of a one-block transformer whose heads are sigmoids: one data token and one sink.

At the data token, a head that scores a . x + b on itself and 0 on the sink gives itself the weight sigmoid(a . x + b); with
value 1 on itself and 0 on the sink that is its output, and the output projection multiplies it by any coefficient. So

    T(x) = constant + linear . x + sum_h coefficients_h sigmoid(weights_h . x + bias_h)

is one attention layer without feed-forward part: attention that bends. The residual stream is laid out as
x | flag and out 0 | out 1 | ...; the sink is a register of zeros. The data token's flag is 1 before attention, every head
reads it there (query, offset of the key, value), and the first output is written on top of it: the read-out takes the 1
off again. A head costs d + 3 weights for d variables that it reads, and one for every output.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer


def sigmoid_transformer(
    linear: Float[np.ndarray, "inputs outputs"],
    constant: Float[np.ndarray, " outputs"],
    weights: Float[np.ndarray, "heads inputs"],
    bias: Float[np.ndarray, " heads"],
    coefficients: Float[np.ndarray, "heads outputs"],
) -> Transformer:
    """The transformer with that output; without heads it has one whose coefficients are zero.

    >>> model = sigmoid_transformer(np.array([[2.0]]), np.array([1.0]), np.array([[3.0]]), np.array([0.0]),
    ...                             np.array([[4.0]]))
    >>> model.evaluate([[0.0], [1.0]]).round(6).tolist()
    [[3.0], [6.810297]]
    """
    inputs, outputs = linear.shape
    heads, flag = max(1, len(bias)), inputs
    config = configuration(heads, inputs, outputs)
    query, key, value = (np.zeros((heads, config.width, 1)) for _ in range(3))
    write = np.zeros((heads, 1, config.width))
    if len(bias):
        query[:, flag, 0] = value[:, flag, 0] = 1.0
        key[:, :inputs, 0], key[:, flag, 0] = weights, bias
        write[:, 0, flag:] = coefficients
    embed, read = np.zeros((inputs, config.width)), np.zeros((config.width, outputs))
    embed[:, :inputs], read[:inputs], read[flag:] = np.eye(inputs), linear, np.eye(outputs)
    shift = np.zeros(config.width)
    shift[flag] = 1.0
    head = "blocks.0.attention.groups.0"
    tensors = {
        "embed.weight": embed,
        "embed.bias": shift,
        "registers": np.zeros((1, config.width)),
        f"{head}.query": query,
        f"{head}.key": key,
        f"{head}.value": value,
        f"{head}.output": write,
        "readout.weight": read,
        "readout.bias": constant - shift[flag:],
    }
    return Transformer(config, tensors)


def configuration(heads: int, inputs: int, outputs: int) -> Config:
    """The configuration of a sigmoid transformer of the given size."""
    return Config(
        Input("continuous", tokens=1, width=inputs),
        width=inputs + outputs,
        outputs=outputs,
        readout=Readout("token", token=0),
        blocks=(Block(attention=Attention((Heads(heads, 1, 1),))),),
        registers=1,
    )
