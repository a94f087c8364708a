"""Scores of users: the rank of a wanted item among all items, and the best items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from certiformer.model import Transformer
from certiformer.recommend.network import Shape, states, without_readout
from certiformer.recommend.packing import pack

AT_ONCE = 512  # users whose scores lie in memory together
ROWS = 128
Scorer = Callable[[Sequence[np.ndarray]], Iterator[Float[np.ndarray, "users items"]]]


def shape_of(model: Transformer) -> Shape:
    """The shape of a stored recommender."""
    config = model.config
    heads = config.blocks[0].attention
    count = heads.heads[0].count if heads is not None else 1
    return Shape(config.outputs, config.tokens, config.width, len(config.blocks), count)


def scorer(model: Transformer) -> Scorer:
    """Scores of all items for histories, in float32, chunk by chunk of users."""
    shape, tensors = shape_of(model), {n: jnp.asarray(t) for n, t in without_readout(model).items()}
    table = np.asarray(model.tensors["embed.weight"])

    def score(histories: Sequence[np.ndarray]) -> Iterator[Float[np.ndarray, "users items"]]:
        for first in range(0, len(histories), AT_ONCE):
            yield _last_states(shape, tensors, histories[first : first + AT_ONCE]) @ table.T

    return score


def _last_states(shape: Shape, tensors: dict[str, Array], histories: Sequence[np.ndarray]) -> np.ndarray:
    packed = pack(histories, shape.length)
    count = len(packed.ids)
    filled = -(-count // ROWS) * ROWS
    outputs = []
    for first in range(0, filled, ROWS):
        part = [np.resize(array[first : first + ROWS], (ROWS, shape.length)) for array in packed[:3]]
        outputs.append(np.asarray(_run(shape, tensors, *part)))
    return np.concatenate(outputs)[packed.last[:, 0], packed.last[:, 1]]


@partial(jax.jit, static_argnames="shape")
def _run(shape: Shape, tensors: dict[str, Array], ids: Array, position: Array, owner: Array) -> Array:
    return states(shape)(tensors, ids, position, owner)


def without_seen(scores: Float[np.ndarray, "users items"], seen: Sequence[np.ndarray]) -> np.ndarray:
    """The scores with -inf at the items that each user has seen."""
    left = np.array(scores)
    owners = np.repeat(np.arange(len(seen)), [len(items) for items in seen])
    left[owners, np.concatenate([*seen, np.zeros(0, int)]).astype(int)] = -np.inf
    return left


def ranks(
    scores: Float[np.ndarray, "users items"], wanted: Int[np.ndarray, " users"], seen: Sequence[np.ndarray] | None
) -> Float[np.ndarray, " users"]:
    """The rank of each wanted item; items in `seen` are on no list, so a wanted one among them has the rank infinity.

    Of items with the same score half stand before it, so that a model of equal scores is no oracle.

    >>> ranks(np.zeros((1, 5)), np.array([3]), None), ranks(np.arange(4.0)[None], np.array([1]), [np.array([3])])
    (array([3.]), array([2.]))
    """
    rows = np.arange(len(wanted))
    own = scores[rows, wanted][:, None]
    left = scores if seen is None else without_seen(scores, seen)
    place = 1 + (left > own).sum(axis=1) + ((left == own).sum(axis=1) - 1) / 2
    return np.where(left[rows, wanted] == own[:, 0], place, np.inf)


def best(scores: Float[np.ndarray, " items"], k: int) -> Int[np.ndarray, " k"]:
    """The k items with the highest scores, the smaller number first among equals."""
    chosen = np.argsort(-scores, kind="stable")[:k]
    return chosen[np.isfinite(scores[chosen])]
