"""The part of our transformer that stock architectures have too, as plain arrays in float64.

A *decoder* reads a start token (our one register) and then ids, adds a row for each position, and applies blocks of softmax
attention and ReLU units to a residual stream without any norm. Every stock export starts from it, and every change
on the way to another architecture (counting positions, biases as heads) is a decoder again. Whatever does not fit is
refused with all reasons in one sentence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.model import Attention, Block, Config, Transformer
from certiformer.model.codes import code_rows

Vector = Float[np.ndarray, " _"]
Matrix = Float[np.ndarray, "_ _"]
Heads = Float[np.ndarray, "_ _ _"]


@dataclass(frozen=True)
class Layer:
    """Attention, then ReLU units, both added to the stream; either may have size 0. All heads have one size."""

    causal: bool
    query: Heads  # heads, width, key
    query_bias: Matrix
    key: Heads
    key_bias: Matrix
    value: Heads  # heads, width, value
    value_bias: Matrix
    output: Heads  # heads, value, width
    output_bias: Vector
    up: Matrix  # width, units
    up_bias: Vector
    down: Matrix
    down_bias: Vector

    @property
    def heads(self) -> int:
        return self.query.shape[0]

    @property
    def units(self) -> int:
        return self.up.shape[1]


@dataclass(frozen=True)
class Decoder:
    """A start token and ids to logits at every position; scores are not scaled."""

    dtype: str
    embed: Matrix  # one row for each id
    start: Vector
    positions: Matrix  # one row for each position after the start token
    layers: tuple[Layer, ...]
    unembed: Matrix  # width, outputs
    unembed_bias: Vector

    @property
    def width(self) -> int:
        return self.embed.shape[1]

    @property
    def length(self) -> int:
        """The largest number of ids, without the start token."""
        return self.positions.shape[0]

    @property
    def key(self) -> int:
        return max((layer.query.shape[2] for layer in self.layers if layer.heads), default=1)

    @property
    def value(self) -> int:
        return max((layer.value.shape[2] for layer in self.layers if layer.heads), default=1)

    @property
    def heads(self) -> int:
        return max((layer.heads for layer in self.layers), default=0)

    @property
    def units(self) -> int:
        return max((layer.units for layer in self.layers), default=0)


def decoder_of(model: Transformer, architecture: str, causal: bool) -> Decoder:
    """The model as a decoder.

    **Arguments:**

    - `architecture`: its name in messages.
    - `causal`: whether the architecture has causal attention only.

    **Raises:** `BadInput` with every reason why the model does not fit.
    """
    reasons = [*_shape_reasons(model.config), *_block_reasons(model.config, causal)]
    if reasons:
        raise BadInput(f"this transformer is not of the form of {architecture}: {'; '.join(reasons)}")
    config = model.config
    tensors = {name: np.asarray(tensor).astype(np.float64) for name, tensor in model.tensors.items()}
    code = tensors["code.table"] if config.code.kind == "table" else code_rows(config)
    layers = [_layer(block, tensors, f"blocks.{index}", config.width) for index, block in enumerate(config.blocks)]
    return Decoder(
        config.dtype,
        tensors["embed.weight"],
        tensors["registers"][0],
        np.zeros((config.tokens, config.width)) if code is None else code,
        tuple(layers) * config.loops,
        tensors["readout.weight"],
        tensors["readout.bias"],
    )


def _shape_reasons(config: Config) -> list[str]:
    wanted = [
        (config.input.kind == "ids", f"the input is {config.input.kind} and not ids"),
        (config.registers == 1, f"there are {config.registers} registers and not one, the start token"),
        (config.readout.kind == "all", f"the read-out is {config.readout.kind} and not all"),
    ]
    return [reason for fits, reason in wanted if not fits]


def _block_reasons(config: Config, causal: bool) -> list[str]:
    reasons = []
    for index, block in enumerate(config.blocks):
        attention, ffn = block.attention, block.ffn
        wanted = [(block.norm is None, "has a norm")]
        if attention is not None:
            wanted += [
                (attention.kind == "softmax", f"has {attention.kind} attention and not softmax"),
                (attention.residual, "has attention without a residual connection"),
                (attention.score_bias == "none", "has a score bias"),
                (attention.mask != "table", "has a mask of its own"),
                (not causal or attention.mask == "causal", "looks ahead, and this architecture is causal"),
                (_exact_scales(attention), "divides scores by a square root that is not a power of two"),
            ]
        if ffn is not None:
            wanted += [(ffn.kind == "relu", f"has {ffn.kind} units and not relu")]
            wanted += [(ffn.residual, "has units without a residual connection")]
        reasons += [f"block {index} {reason}" for fits, reason in wanted if not fits]
    return reasons


def _exact_scales(attention: Attention) -> bool:
    return attention.scale == "unit" or all(is_power_of_four(group.key) for group in attention.heads)


def is_power_of_four(number: int) -> bool:
    """Whether its square root is a power of two, so that dividing by it rounds nothing.

    >>> [n for n in range(1, 70) if is_power_of_four(n)]
    [1, 4, 16, 64]
    """
    return number & (number - 1) == 0 and number.bit_length() % 2 == 1


def _layer(block: Block, tensors: dict[str, Any], name: str, width: int) -> Layer:
    parts = empty_layer(width)
    if block.attention is not None:
        parts |= _heads(block.attention, tensors, f"{name}.attention", width)
        parts["causal"] = block.attention.mask == "causal"
    if block.ffn is not None:
        parts |= {part: tensors[f"{name}.ffn.{part}"] for part in ("up", "up_bias", "down", "down_bias")}
    return Layer(**parts)


def empty_layer(width: int) -> dict[str, Any]:
    """The parts of a layer that does nothing."""
    none = {"query": (0, width, 1), "key": (0, width, 1), "value": (0, width, 1), "output": (0, 1, width)}
    none |= {"query_bias": (0, 1), "key_bias": (0, 1), "value_bias": (0, 1), "output_bias": (width,)}
    none |= {"up": (width, 0), "up_bias": (0,), "down": (0, width), "down_bias": (width,)}
    return {"causal": True, **{part: np.zeros(shape) for part, shape in none.items()}}


def _heads(attention: Attention, tensors: dict[str, Any], name: str, width: int) -> dict[str, Any]:
    """All heads of a sub-layer with the sizes of the largest group; zeros fill up the others."""
    key, value = (max(getattr(group, size) for group in attention.heads) for size in ("key", "value"))
    shapes: dict[str, tuple[int, ...]] = {"query": (width, key), "key": (width, key), "value": (width, value)}
    shapes |= {"query_bias": (key,), "key_bias": (key,), "value_bias": (value,), "output": (value, width)}
    parts: dict[str, list[np.ndarray]] = {part: [] for part in shapes}
    for index, group in enumerate(attention.heads):
        scale = group.key**-0.5 if attention.scale == "inverse-sqrt" else 1.0
        for part, shape in shapes.items():
            # Without biases the tensor is absent, and the bias is zero.
            own = tensors.get(f"{name}.groups.{index}.{part}", np.zeros((group.count, *(1 for _ in shape))))
            filled = resized(own, (group.count, *shape))
            parts[part].append(filled * scale if part.startswith("query") else filled)
    joined = {part: np.concatenate(arrays) for part, arrays in parts.items()}
    return {**joined, "output_bias": tensors.get(f"{name}.output_bias", np.zeros(width))}


def resized(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The array at the front of a larger one of zeros.

    >>> resized(np.ones((1, 2)), (2, 3)).tolist()
    [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    """
    larger = np.zeros(shape)
    larger[tuple(slice(size) for size in array.shape)] = array
    return larger


def mapped(layer: Layer, read: Callable[[np.ndarray], np.ndarray], written: Callable[[np.ndarray], np.ndarray]) -> dict:
    """The parts of the layer in another stream.

    **Arguments:**

    - `read`: rows of a matrix that reads the old stream to rows for the new one (second last axis).
    - `written`: vectors added to the old stream to vectors for the new one (last axis).
    """
    parts = dict(vars(layer))
    parts |= {part: read(parts[part]) for part in ("query", "key", "value", "up")}
    parts |= {part: written(parts[part]) for part in ("output", "output_bias", "down", "down_bias")}
    return parts
