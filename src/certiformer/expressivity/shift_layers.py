"""The layers of the proof of Yun et al.: quantise, shift selected tokens, map ids to values. Weights only, no theory.

A `Stack` collects blocks and their tensors for one stream width. Every layer reads and writes the first coordinates of
the stream; what lies behind them is scratch space for the two halves of a layer with two hidden levels. Levels come in
pairs because 1 - relu(1 - relu(z)) is *exactly* 0 or 1 as soon as z leaves (0, 1), in floating point too, while
relu(z) - relu(z - 1) is a difference of two rounded numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from certiformer.model import Attention, Block, FeedForward, Heads

Vector = Float[np.ndarray, " width"]


class Stack:
    """Blocks under construction, all of one stream width."""

    def __init__(self, width: int):
        self.width = width
        self.blocks: list[Block] = []
        self.tensors: dict[str, np.ndarray] = {}

    def feed_forward(self, up: np.ndarray, up_bias: np.ndarray, down: np.ndarray, down_bias: np.ndarray) -> None:
        """A layer that replaces the stream; arrays that are too narrow for it are filled up with zeros."""
        name = f"blocks.{len(self.blocks)}.ffn"
        self.blocks.append(Block(ffn=FeedForward(len(up_bias), residual=False)))
        self.tensors |= {
            f"{name}.up": _filled(up, (self.width, len(up_bias))),
            f"{name}.up_bias": np.asarray(up_bias, float),
            f"{name}.down": _filled(down, (len(up_bias), self.width)),
            f"{name}.down_bias": _filled(down_bias, (self.width,)),
        }

    def hard_heads(self, key: Vector, thresholds: Sequence[float], factors: Sequence[float]) -> None:
        """Heads with the scores (key.x_j)(key.x_i - threshold) that add factor * key.x_j to coordinate 0 of token i."""
        name, count = f"blocks.{len(self.blocks)}.attention", len(thresholds)
        self.blocks.append(Block(Attention((Heads(count, 1, 1),), kind="hard", bias=True, scale="unit")))
        column = np.repeat(_filled(key, (self.width,))[None, :, None], count, axis=0)
        output = np.zeros((count, 1, self.width))
        output[:, 0, 0] = factors
        heads = f"{name}.groups.0"
        self.tensors |= {f"{heads}.{role}": column for role in ("query", "key", "value")}
        self.tensors |= {
            f"{heads}.output": output,
            f"{heads}.query_bias": -np.asarray(thresholds, float)[:, None],
            f"{heads}.key_bias": np.zeros((count, 1)),
            f"{heads}.value_bias": np.zeros((count, 1)),
            f"{name}.output_bias": np.zeros(self.width),
        }


def quantise(stack: Stack, steps: Sequence[int], ramp: float) -> None:
    """Coordinate i becomes the number of k = 1, ..., steps[i] that it has reached.

    It has reached k from k - ramp/2 on and has not up to k - ramp; in between it is anything from 0 to 1.
    """
    row = np.repeat(np.arange(len(steps)), steps)
    k = np.concatenate([np.arange(1, count + 1) for count in steps])
    units = len(k)
    up = np.zeros((len(steps), units))
    up[row, np.arange(units)] = 2 / ramp
    stack.feed_forward(up, 2 - 2 * k / ramp, np.eye(units), np.zeros(units))
    down = np.zeros((units, len(steps)))
    down[np.arange(units), row] = -1.0
    stack.feed_forward(-np.eye(units), np.ones(units), down, np.array(steps, float))


def look_up(stack: Stack, key: Vector, ids: Sequence[int], values: Float[np.ndarray, "ids outputs"]) -> None:
    """The stream becomes values[r] where key.x is ids[r]; 0 where it is 1/2 or more away from all of them."""
    count, places = len(ids), np.array(ids, float)
    ends = np.concatenate([np.outer(key, np.full(count, 4.0)), np.outer(key, np.full(count, -4.0))], axis=1)
    either = np.concatenate([np.eye(count), np.eye(count)])
    # How far key.x is from the id beyond 1/4, in quarters: 0 at the id, at least 1 from a distance of 1/2 on.
    stack.feed_forward(ends, np.concatenate([-4 * places - 1, 4 * places - 1]), either, np.zeros(count))
    stack.feed_forward(-np.eye(count), np.ones(count), values, np.zeros(values.shape[1]))


def _filled(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    full = np.zeros(shape)
    full[tuple(slice(0, size) for size in np.shape(array))] = array
    return full
