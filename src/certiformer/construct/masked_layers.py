"""The tensors of a gather in hops: places in the stream, layers of attention, and what reads the slots.

The stream of every token is x | one-hot code | slots, d coordinates for each token | outputs. `construct.masked_gather`
has the statement and the proof.

*The plan*: how far every token's numbers have come after each layer of masked attention. Token s is *held* by the
tokens that already carry its numbers. In the next layer a token that attends to a holder of s, and does not hold s,
receives it. With self edges nothing is lost, so the plan ends when everybody who must hold does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import ArrayLike, Bool, Float

from certiformer.construct.position_gating import Feed
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


Vector = Float[np.ndarray, " inputs"]
Tensors = dict[str, np.ndarray]


@dataclass(frozen=True)
class Layout:
    """Coordinates of the stream for `tokens` tokens of `width` numbers and `outputs` answers a row."""

    tokens: int
    width: int
    outputs: int

    @property
    def code(self) -> int:
        return self.width

    @property
    def slots(self) -> int:
        return self.width + self.tokens

    @property
    def out(self) -> int:
        return self.slots + self.tokens * self.width

    @property
    def total(self) -> int:
        return self.out + self.outputs

    def slot(self, source: int) -> slice:
        return slice(self.slots + source * self.width, self.slots + (source + 1) * self.width)


def first_slots(layout: Layout, low: Vector, high: Vector) -> tuple[Vector, Tensors]:
    """The block that writes x - lift > 0 to every token's own slot, with units that are off at all other tokens.

    Lifts and gates are small multiples of one power of two, so that their sums are exact in float64: the numbers in the
    slots are x - lift with the stored lift, not nearly so.
    """
    n, d = layout.tokens, layout.width
    size = max(float(np.abs(low).max()), float(np.abs(high).max()), float((high - low).max()), 2.0**-900)
    step = 2.0 ** (math.frexp(size)[1] - 20)
    lift = (np.floor(low / step) - 1) * step
    top = high.reshape(n, d).max(axis=0)
    gate = (np.ceil(np.tile(top, n) / step) + 1) * step - lift
    up, down = np.zeros((layout.total, n * d)), np.zeros((n * d, layout.total))
    for i in range(n * d):
        up[i % d, i], up[layout.code + i // d, i], down[i, layout.slots + i] = 1.0, gate[i], 1.0
    names = ("up", "up_bias", "down", "down_bias")
    parts = (up, -(lift + gate), down, np.zeros(layout.total))
    return lift, {f"blocks.0.ffn.{name}": part for name, part in zip(names, parts, strict=True)}


def softmax_hop(layout: Layout, hop: Hop) -> Tensors:
    """Two heads for every source that somebody receives: 3/4 and 1/4 on its holders in rows that do, equal elsewhere."""
    sources = np.flatnonzero(hop.received.any(axis=0)).tolist() or [0]
    tables, outputs = [], []
    for s in sources:
        holders = hop.mask & hop.held[:, s]
        allowed, holding = hop.mask.sum(axis=1), holders.sum(axis=1)
        for factor, sign in ((3.0, 2.0), (1.0 / 3.0, -2.0)):
            table = np.zeros(hop.mask.shape)
            for i in np.flatnonzero(hop.received[:, s]):
                table[i, holders[i]] = math.log(factor * (allowed[i] - holding[i]) / holding[i])
            tables.append(table)
            outputs.append((s, sign))
    return _heads(layout, tables, [layout.slot(s) for s, _ in outputs], outputs)


def linear_hop(layout: Layout, hop: Hop, first: bool) -> Tensors:
    """One head for every source that somebody receives: the weight 1 on one holder where it is received, 0 elsewhere.

    In the first layer the numbers are read off the stream itself and every token writes its own slot, too.
    """
    sources = range(layout.tokens) if first else np.flatnonzero(hop.received.any(axis=0)).tolist() or [0]
    received = hop.received | hop.held if first else hop.received
    tables = []
    for s in sources:
        table = np.zeros(hop.mask.shape)
        for i in np.flatnonzero(received[:, s]):
            table[i, np.flatnonzero(hop.mask[i] & hop.held[:, s])[0]] = 1.0
        tables.append(table)
    read = [slice(0, layout.width) if first else layout.slot(s) for s in sources]
    return _heads(layout, tables, read, [(s, 1.0) for s in sources])


def _heads(layout: Layout, tables: list, read: list[slice], outputs: list[tuple[int, float]]) -> Tensors:
    """Heads with the score tables[h][i, j] from row i to token j, by way of the codes."""
    count, n, d = len(tables), layout.tokens, layout.width
    query, key = np.zeros((count, layout.total, n)), np.zeros((count, layout.total, n))
    value, output = np.zeros((count, layout.total, d)), np.zeros((count, d, layout.total))
    codes = slice(layout.code, layout.code + n)
    for h, (source, factor) in enumerate(outputs):
        query[h, codes], key[h, codes] = tables[h], np.eye(n)
        value[h, read[h]], output[h, :, layout.slot(source)] = np.eye(d), factor * np.eye(d)
    return {"query": query, "key": key, "value": value, "output": output}


def last_part(layout: Layout, feed: Feed, lift: Vector) -> tuple[Tensors, Tensors]:
    """The feed-forward part that computes from the slots, which hold x - lift, and the read-out."""
    units, n, d = len(feed.bias), layout.tokens, layout.width
    slots, codes = slice(layout.slots, layout.out), slice(layout.code, layout.code + n)
    up, down = np.zeros((layout.total, units)), np.zeros((units, layout.total))
    up[slots], up[codes], down[:, layout.out :] = feed.up.T, feed.gate.T, feed.down
    ffn = {"up": up, "up_bias": feed.bias + feed.up @ lift, "down": down, "down_bias": np.zeros(layout.total)}
    weight = np.zeros((layout.total, layout.outputs))
    weight[slots], weight[codes] = feed.read, feed.position
    weight[:d] += feed.own
    if units:
        weight[layout.out :] = np.eye(layout.outputs)
    return ffn, {"readout.weight": weight, "readout.bias": feed.constant + lift @ feed.read}
