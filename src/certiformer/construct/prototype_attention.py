"""Weights of a one-block transformer whose data token attends to a list of prototypes.

The residual stream is laid out as  x | flag | c | score offset | value | out.  The data token carries x and flag = 1;
register j carries its centre c_j (relative to the middle m of the domain), the offset -sum_i s_i c_ji^2 / 2 and its value.
Query (s_i (x_i - m_i), 1), key (c_j, offset_j): the score is sum_i s_i ((x_i - m_i) c_ji - c_ji^2/2), that is
-sum_i s_i (x_i - m_i - c_ji)^2 / 2 up to a term common to all registers. The head copies `value` into `out`, the read-out
reads `out`. The data token's own key is -LAMBDA: with LAMBDA as below its weight is below e^-64 = 1.6e-28 on the domain.
There is no feed-forward part; `ffn` is absent rather than zero.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer

SELF_WEIGHT_NATS = 64.0


def prototype_transformer(
    centres: Float[np.ndarray, "registers inputs"],
    values: Float[np.ndarray, "registers outputs"],
    middle: Float[np.ndarray, " inputs"],
    half_width: Float[np.ndarray, " inputs"],
    steepness: Float[np.ndarray, " inputs"],
) -> Transformer:
    """The transformer whose output is the softmax average of `values` around x.

    Arguments: `centres` relative to `middle`; `half_width` of the domain; `steepness` s_i, so that weights are
    proportional to exp(-sum_i s_i (x_i - middle_i - centre_i)^2 / 2).

    >>> model = prototype_transformer(np.array([[-0.5], [0.5]]), np.array([[0.0], [1.0]]),
    ...                               np.zeros(1), np.ones(1), np.array([4.0]))
    >>> model.evaluate([[0.0], [1.0]]).round(6).tolist()
    [[0.5], [0.982014]]
    """
    (count, inputs), outputs = centres.shape, values.shape[1]
    x, flag = slice(0, inputs), inputs
    c, offset = slice(inputs + 1, 2 * inputs + 1), 2 * inputs + 1
    value, out = (
        slice(2 * inputs + 2, 2 * inputs + 2 + outputs),
        slice(2 * inputs + 2 + outputs, 2 * inputs + 2 + 2 * outputs),
    )
    width, keys = 2 * inputs + 2 + 2 * outputs, inputs + 1

    registers = np.zeros((count, width))
    registers[:, c], registers[:, value] = centres, values
    registers[:, offset] = -0.5 * (centres**2 @ steepness)
    embed = np.zeros((inputs, width))
    embed[:, x] = np.eye(inputs)
    bias = np.zeros(width)
    bias[flag] = 1.0

    query, key = np.zeros((width, keys)), np.zeros((width, keys))
    query[x, :inputs] = np.diag(steepness)
    query[flag, :inputs] = -steepness * middle
    query[flag, inputs] = 1.0
    key[c, :inputs] = np.eye(inputs)
    key[offset, inputs] = 1.0
    key[flag, inputs] = -_self_offset(centres, half_width, steepness)
    copy_value, write_out = np.zeros((width, outputs)), np.zeros((outputs, width))
    copy_value[value], write_out[:, out] = np.eye(outputs), np.eye(outputs)
    read = np.zeros((width, outputs))
    read[out] = np.eye(outputs)

    head = "blocks.0.attention.groups.0"
    tensors = {
        "embed.weight": embed,
        "embed.bias": bias,
        "registers": registers,
        # The score factor 1/sqrt(key width) of an ordinary head is undone in the query.
        f"{head}.query": query[None] * np.sqrt(keys),
        f"{head}.key": key[None],
        f"{head}.value": copy_value[None],
        f"{head}.output": write_out[None],
        "readout.weight": read,
        "readout.bias": np.zeros(outputs),
    }
    return Transformer(configuration(count, inputs, outputs), tensors)


def configuration(registers: int, inputs: int, outputs: int) -> Config:
    """The configuration of a prototype transformer of the given size."""
    return Config(
        Input("continuous", tokens=1, width=inputs),
        width=2 * inputs + 2 + 2 * outputs,
        outputs=outputs,
        readout=Readout("token", token=0),
        blocks=(Block(attention=Attention((Heads(1, inputs + 1, outputs),))),),
        registers=registers,
    )


def _self_offset(centres: np.ndarray, half_width: np.ndarray, steepness: np.ndarray) -> float:
    """LAMBDA: the register nearest the middle scores at least -(LAMBDA - 64) everywhere on the domain."""
    nearest = np.abs(centres[np.argmin(centres**2 @ steepness)])
    return float(np.ceil(np.sum(steepness * (half_width * nearest + nearest**2 / 2)) + SELF_WEIGHT_NATS))
