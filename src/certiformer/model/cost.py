"""What one forward pass costs: operations and bytes of attention and of the feed-forward layers.

Counted is what `forward` computes, matrix product by matrix product: a product of (a, b) with (b, c) is 2abc
operations; exponentials, activations and additions of biases are not counted. For one block with m output rows out of
N tokens (m = N, except in the last block of the last pass, which computes only the rows the read-out sees), width d
and heads of sizes k and v:

    attention   2 [ N d (k + v) + m d k + m N (k + v) + m v d ]   per head
    FFN         4 m d w                                           with w hidden units

Bytes are those of the weights read and of the intermediate arrays written, each once, at the stored precision: the
score matrix (m N per head) is what grows fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Config

_ITEM_BYTES = {"float64": 8, "float32": 4, "bfloat16": 2}


@dataclass(frozen=True)
class Cost:
    """The cost of one forward pass over `length` data tokens; `crossover` is the number of data tokens from which on
    attention takes more operations than the feed-forward layers (None: never)."""

    length: int
    attention_flops: int
    ffn_flops: int
    embedding_flops: int
    attention_bytes: int
    ffn_bytes: int
    crossover: int | None

    @property
    def flops(self) -> int:
        """All matrix products: embedding, attention, feed-forward and read-out."""
        return self.attention_flops + self.ffn_flops + self.embedding_flops


def cost(config: Config, length: int | None = None) -> Cost:
    """The cost of `config` over `length` data tokens (its own number of tokens unless given).

    >>> from certiformer.model import Attention, Block, Config, FeedForward, Heads, Input, Readout
    >>> block = Block(Attention((Heads(12, 64, 64),)), FeedForward(3072))
    >>> cost(Config(Input("ids", 1024, vocabulary=50257), 768, 1, Readout("all"), blocks=12 * (block,))).crossover
    1537
    """
    n = config.tokens if length is None else length
    if type(n) is not int or n < config.shortest:
        raise BadInput(f"a length is an integer of at least {config.shortest}, not {n!r}")
    attention, ffn = _sum(config, n, _attention_flops), _sum(config, n, _ffn_flops)
    return Cost(
        length=n,
        attention_flops=attention,
        ffn_flops=ffn,
        embedding_flops=_ends_flops(config, n),
        attention_bytes=_sum(config, n, _attention_numbers) * _ITEM_BYTES[config.dtype],
        ffn_bytes=_sum(config, n, _ffn_numbers) * _ITEM_BYTES[config.dtype],
        crossover=_crossover(config),
    )


# (block, width, output rows, all rows) -> how much
_Count = Callable[[Block, int, int, int], int]


def _sum(config: Config, n: int, count: _Count) -> int:
    """The count over every applied block; the last one computes only the rows that are read."""
    rows = config.registers + n
    read = 1 if config.readout.kind in ("token", "register") else n
    total = config.loops * sum(count(block, config.width, rows, rows) for block in config.blocks)
    if config.blocks:
        last = config.blocks[-1]
        total += count(last, config.width, read, rows) - count(last, config.width, rows, rows)
    return total


def _attention_flops(block: Block, d: int, m: int, rows: int) -> int:
    return sum(
        2 * h * (rows * d * (k + v) + m * d * k + m * rows * (k + v) + m * v * d) for h, k, v in _sizes(block.attention)
    )


def _ffn_flops(block: Block, d: int, m: int, _: int) -> int:
    return 4 * m * d * block.ffn.width if block.ffn is not None else 0


def _attention_numbers(block: Block, d: int, m: int, rows: int) -> int:
    """Weights of the four maps; queries, keys, values, scores, mixed values; the output."""
    heads = sum(
        h * (2 * d * (k + v) + m * k + rows * (k + v) + m * rows + m * v) for h, k, v in _sizes(block.attention)
    )
    return heads + (m * d if block.attention is not None else 0)


def _ffn_numbers(block: Block, d: int, m: int, _: int) -> int:
    """Weights and biases of the two maps; the hidden units; the output."""
    w = block.ffn.width if block.ffn is not None else 0
    return 2 * d * w + w + d + m * w + m * d if w else 0


def _sizes(attention: Attention | None) -> list[tuple[int, int, int]]:
    return [(g.count, g.key, g.value) for g in attention.heads] if attention is not None else []


def _ends_flops(config: Config, n: int) -> int:
    embedded = 2 * n * (config.input.width or 0) * config.width
    read = n if config.readout.kind == "all" else 1
    return embedded + 2 * read * config.width * config.outputs


def _crossover(config: Config) -> int | None:
    """The number of data tokens from which on attention takes more operations than the feed-forward layers.

    The difference is a L^2 + b L + c with integers a, b, c and a >= 0 (the only square is the score matrix, on the
    side of attention), hence convex: from its larger zero on it is positive. Three values determine it.
    """

    def difference(n: int) -> int:
        return _sum(config, n, _attention_flops) - _sum(config, n, _ffn_flops)

    one, two, three = difference(1), difference(2), difference(3)
    a = (three - 2 * two + one) // 2
    b = two - one - 3 * a
    c = one - a - b
    shortest = config.shortest
    if a == 0 and b <= 0:
        return shortest if b == 0 and c > 0 else None
    if a == 0:
        first = -c // b + 1
    else:
        lowest = -b // (2 * a)
        if min(a * n * n + b * n + c for n in (lowest, lowest + 1)) > 0:
            return shortest
        # Rounding the root down may fall one short of the zero; the loop below repairs it.
        first = (-b + math.isqrt(b * b - 4 * a * c)) // (2 * a)
    first = max(first, shortest)
    while difference(first) <= 0:
        first += 1
    return first
