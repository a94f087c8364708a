"""The tables of one attention sub-layer that speak of positions only: who may attend to whom, and the score biases.

All tables are over the whole sequence, registers first.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike

from certiformer.errors import BadInput
from certiformer.model import Attention, Config

Tensors = Mapping[str, ArrayLike] | None


def mask_table(config: Config, block: int, tensors: Tensors = None) -> Bool[np.ndarray, "length length"] | None:
    """Whether row i may attend to column j in a block; None when the mask is stored and the tensors are not given.

    >>> from certiformer.model import Attention, Block, Config, Heads, Input, Readout
    >>> layer = Block(Attention((Heads(1, 1, 1),), mask="causal"))
    >>> mask_table(Config(Input("continuous", 2, width=1), 1, 1, Readout("all"), (layer,)), 0).tolist()
    [[True, False], [True, True]]
    """
    kind, length = _attention(config, block).mask, config.length
    if kind == "none":
        return np.ones((length, length), dtype=bool)
    if kind == "causal":
        return np.tri(length, dtype=bool)
    return None if tensors is None else np.asarray(tensors[f"blocks.{block}.attention.mask"]) != 0


def score_bias_tables(
    config: Config, block: int, tensors: Tensors = None
) -> list[Float[np.ndarray, "length length"]] | None:
    """The (N, N) table of score biases of every head of a block, zeros where there is none; None as for `mask_table`."""
    attention, length = _attention(config, block), config.length
    count = sum(group.count for group in attention.heads)
    if attention.score_bias == "none":
        return [np.zeros((length, length))] * count
    if tensors is None:
        return None
    tables: list[np.ndarray] = []
    for index in range(len(attention.heads)):
        stored = np.asarray(tensors[f"blocks.{block}.attention.groups.{index}.score_bias"])
        if attention.score_bias == "toeplitz":
            # Entry i - j + (N - 1) is B[i-j].
            stored = stored[:, np.arange(length)[:, None] - np.arange(length)[None, :] + length - 1]
        tables += list(stored)
    return tables


def _attention(config: Config, block: int) -> Attention:
    attention = config.blocks[block].attention
    if attention is None:
        raise BadInput(f"block {block} has no attention")
    return attention
