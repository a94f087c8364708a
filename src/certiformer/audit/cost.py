"""What a forward pass costs: operations of the scores, which grow with the square of the length, and of the maps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from certiformer.audit.form import Checkpoint, Layer, Weight


@dataclass(frozen=True)
class Cost:
    """Multiplications and additions of scores and mixing (`attention`) and of the maps; how many scores there are."""

    tokens: int
    attention: int
    maps: int
    scores: int

    @property
    def equal(self) -> float:
        """The length at which both cost the same: one grows with its square, the other with it."""
        return self.tokens * self.maps / self.attention if self.attention else math.inf


def cost(checkpoint: Checkpoint, tokens: int) -> Cost:
    """The cost at a length, with all pairs of tokens counted that a window lets through, masked or not."""
    attention = scores = maps = 0
    for layer in checkpoint.layers:
        for each in layer.attention:
            pairs = layer.repeats * each.query.shape[0] * tokens * min(tokens, each.window or tokens)
            scores += pairs
            attention += 2 * pairs * (each.query.shape[1] + each.value.shape[1])
        maps += layer.repeats * 2 * tokens * sum(weight.count for weight in _maps(layer))
    return Cost(tokens, attention, maps, scores)


def _maps(layer: Layer) -> Iterator[Weight]:
    """The matrices that every token is multiplied by, all experts where there are several."""
    for attention in layer.attention:
        yield from (attention.query, attention.key, attention.value, *filter(None, (attention.output,)))
    for hidden in layer.ffn:
        yield from (hidden.up, hidden.down, *filter(None, (hidden.gate,)))
