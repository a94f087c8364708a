"""Members whose attention has different ranks, in one shape: surplus columns of queries and keys are zero and stay zero.

The scores of a head with key size K are q . k; with all but the first m columns of both zero they have rank m whatever
the others are, so members of every rank share one compiled training. The scale of the scores must not depend on K
(`scale="unit"`), or the padding would change the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from certiformer.errors import BadInput
from certiformer.model.config import Config
from certiformer.model.transformer import Transformer
from certiformer.train import stack

LIMITED = ("query", "key", "query_bias", "key_bias")  # the roles whose last axis is the key size


def rank_limited_starts(config: Config, ranks: Sequence[int], seeds: Sequence[int]) -> tuple[Any, Any]:
    """Random starting weights of one member per (rank, seed) in turn, and where each may move (1 or 0)."""
    heads = [group for block in config.blocks if block.attention for group in block.attention.heads]
    if any(block.attention and block.attention.scale != "unit" for block in config.blocks):
        raise BadInput('members of several ranks need attention with scale "unit"')
    if any(rank > group.key for rank in ranks for group in heads):
        raise BadInput(f"the key size {min(group.key for group in heads)} is below the largest rank {max(ranks)}")
    starts, free = [], []
    for rank, seed in zip(ranks, seeds, strict=True):
        tensors = {name: np.asarray(t, np.float32) for name, t in Transformer.random(config, seed).tensors.items()}
        open_ = {name: _open(name, tensor.shape, rank) for name, tensor in tensors.items()}
        starts.append({name: jnp.asarray(tensor * open_[name]) for name, tensor in tensors.items()})
        free.append({name: jnp.asarray(flags) for name, flags in open_.items()})
    return stack(starts), stack(free)


def _open(name: str, shape: tuple[int, ...], rank: int) -> np.ndarray:
    flags = np.ones(shape, np.float32)
    if name.rpartition(".")[2] in LIMITED:
        flags[..., rank:] = 0.0
    return flags
