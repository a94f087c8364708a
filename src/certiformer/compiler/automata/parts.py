"""What the three forms of an automaton are made of: sign codes of positions, hidden units, one head that copies."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from certiformer.model.config import Attention, Heads

# The score of the wanted row leads by 2 SHARPNESS = 64 at every length: exp(-64) n is below 2^-53 up to a million rows,
# and all scores are small multiples of a power of two, exact in every stored type.
SHARPNESS = 32.0

Tensors = dict[str, Float[np.ndarray, "..."]]


def bits_of(rows: int) -> int:
    """How many signs tell so many rows apart."""
    return max(1, (rows - 1).bit_length())


def signs(numbers: Int[np.ndarray, " rows"], bits: int) -> Float[np.ndarray, "rows bits"]:
    """The binary digits of numbers as +1 and -1.

    >>> signs(np.arange(3), 2).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]
    """
    return 2.0 * ((numbers[:, None] >> np.arange(bits)) & 1) - 1.0


def attention(bits: int, carried: int) -> Attention:
    """One causal softmax head that compares sign codes and brings `carried` numbers."""
    return Attention((Heads(1, bits, carried),), scale="unit", mask="causal")


def head(
    width: int,
    query: dict[tuple[int, int], float],
    key: slice,
    carried: list[tuple[int, int]],
) -> Tensors:
    """The head of block 0: `query` maps (coordinate, sign) to a weight, `carried` lists (from coordinate, to slot)."""
    bits = key.stop - key.start
    queries, keys = np.zeros((1, width, bits)), np.zeros((1, width, bits))
    for place, weight in query.items():
        queries[0][place] = weight
    keys[0, key] = np.eye(bits)
    values, outputs = np.zeros((1, width, len(carried))), np.zeros((1, len(carried), width))
    for entry, (source, slot) in enumerate(carried):
        values[0, source, entry] = outputs[0, entry, slot] = 1.0
    name = "blocks.0.attention.groups.0"
    return {f"{name}.query": queries, f"{name}.key": keys, f"{name}.value": values, f"{name}.output": outputs}


class Units:
    """Hidden units, collected one by one."""

    def __init__(self) -> None:
        self.ins: list[dict[int, float]] = []
        self.biases: list[float] = []
        self.outs: list[dict[int, float]] = []

    def __len__(self) -> int:
        return len(self.ins)

    def add(self, ins: dict[int, float], bias: float, outs: dict[int, float]) -> None:
        self.ins.append(ins)
        self.biases.append(bias)
        self.outs.append(outs)

    def step(self, slot: int, against: list[int], threshold: int, target: int) -> None:
        """Two units that add to `target` exactly 1 where the slot has reached `threshold` within 1/4 and everything in
        `against` is zero, and exactly 0 where it is a whole number (within 1/4) below, or something in `against` is
        larger than the slot."""
        ins = {slot: 1.0, **dict.fromkeys(against, -1.0)}
        self.add(ins, 0.75 - threshold, {target: 2.0})
        self.add(ins, 0.25 - threshold, {target: -2.0})

    def clear(self, coordinate: int, unless: int | None = None) -> None:
        """One unit that takes a number that is not negative away; where `unless` is 1, a number up to 1 stays."""
        self.add({coordinate: 1.0, **({unless: -1.0} if unless is not None else {})}, 0.0, {coordinate: -1.0})

    def tensors(self, block: int, width: int) -> Tensors:
        up, down = np.zeros((width, len(self))), np.zeros((len(self), width))
        for unit, (ins, outs) in enumerate(zip(self.ins, self.outs, strict=True)):
            up[list(ins), unit] = list(ins.values())
            down[unit, list(outs)] = list(outs.values())
        name = f"blocks.{block}.ffn"
        biases = {f"{name}.up_bias": np.array(self.biases), f"{name}.down_bias": np.zeros(width)}
        return {f"{name}.up": up, f"{name}.down": down, **biases}
