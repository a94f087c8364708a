"""How far every token's numbers have come after each layer of masked attention: the plan of a gather in several hops.

Token s is *held* by the tokens that already carry its numbers. In the next layer a token that attends to a holder of s, and
does not hold s, receives it. With self edges nothing is lost, so the plan ends when everybody who must hold does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import ArrayLike, Bool

from certiformer.errors import BadInput
from certiformer.expressivity.sparse_attention import mask_stack, sparsity

Table = Bool[np.ndarray, "tokens tokens"]


@dataclass(frozen=True)
class Hop:
    """One layer: its mask, who holds whom before it (`held[i, s]`), and who receives whom in it."""

    mask: Table
    held: Table
    received: Table


def hops(masks: ArrayLike | Sequence[ArrayLike], sources: Sequence[int], readers: Sequence[int]) -> list[Hop]:
    """The layers that bring the numbers of all `sources` to all `readers`, at least one; the masks are used in turn.

    `BadInput` when a token does not attend to itself, or when a reader can never hear a source; it names them.

    >>> window = abs(np.subtract.outer(np.arange(4), np.arange(4))) <= 1
    >>> [int(hop.received.sum()) for hop in hops(window, sources=range(4), readers=[0])]
    [6, 4, 2]
    """
    stack = mask_stack(masks)
    found = sparsity(stack)
    if not found.self_edges.holds:
        raise BadInput(f"a gather in hops needs that every token attends to itself: {found.self_edges.reason}")
    n = stack.shape[1]
    wanted = np.isin(np.arange(n), list(sources))
    held, plan, idle = np.eye(n, dtype=bool), [], 0
    while not plan or not held[np.ix_(list(readers), list(sources))].all():
        mask = stack[len(plan) % len(stack)]
        # Products of 0/1 matrices count holders; the counts are at most n and exact.
        received = (mask.astype(np.float64) @ held > 0) & ~held & wanted
        idle = 0 if received.any() else idle + 1
        if idle > len(stack):
            i, s = next((i, s) for i in readers for s in sources if not held[i, s])
            raise BadInput(f"no gather under these masks: token {i} never hears token {s}")
        plan.append(Hop(mask, held, received))
        held = held | received
    return plan
