"""A single attention head that looks at positions only: the gadget behind reversal and pooling.

Query and key weights are 0, so the scores are the stored biases whatever the tokens hold; values and outputs are the
identity, and there is no residual. Row i of the output is therefore sum_j w_ij x_j with fixed weights w_ij.
"""

from __future__ import annotations

import numpy as np

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer

READ_ALL = Readout("all")


def position_head(
    length: int,
    width: int = 1,
    score_bias: np.ndarray | None = None,
    readout: Readout = READ_ALL,
    factor: int = 1,
) -> Transformer:
    """The head for `length` tokens of `width` coordinates.

    **Arguments:**

    - `score_bias`: nothing (all scores 0), an (n, n) table B_ij, or the 2n-1 numbers B[-(n-1)], ..., B[n-1] of a
      Toeplitz table B[i-j].
    - `readout`: which tokens are read; `factor` multiplies what is read.
    """
    for number in (length, width):
        if type(number) is not int or not 0 < number < 2**53:
            raise BadInput(f"length and width are positive integers, not {length!r} and {width!r}")
    kind = "none" if score_bias is None else ("table" if score_bias.ndim == 2 else "toeplitz")
    attention = Attention((Heads(1, 1, width),), scale="unit", score_bias=kind, residual=False)
    config = Config(Input("continuous", length, width=width), width, width, readout, blocks=(Block(attention),))
    identity, head = np.eye(width), "blocks.0.attention.groups.0"
    tensors = {
        "embed.weight": identity,
        "embed.bias": np.zeros(width),
        f"{head}.query": np.zeros((1, width, 1)),
        f"{head}.key": np.zeros((1, width, 1)),
        f"{head}.value": identity[None],
        f"{head}.output": identity[None],
        "readout.weight": factor * identity,
        "readout.bias": np.zeros(width),
    }
    if score_bias is not None:
        tensors[f"{head}.score_bias"] = score_bias[None]
    return Transformer(config, tensors)
