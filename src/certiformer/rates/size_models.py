"""The transformers of the studies of size: configurations, random starts, and small models inside the shape of large ones.

For `graph` the model is that of Jiang and Li: a feed-forward layer f^ on every token, then attention with nothing past it,
read off every token. For `sines` it is that of Gumaan: attention, then feed-forward, read off
the first of two tokens with one-hot codes. Deeper models of either kind repeat attention and
feed-forward with residuals, as `blocks` does.

A small model sits in the corner of every tensor of a large one. That is exact, up to the order of the sums, for hidden
units (relu(0) = 0), heads (output 0), key size (scale "unit"), stream width and missing last blocks (a sub-layer that adds
0 to its residual), as long as no normalisation sees the padded coordinates or blocks. `padded` refuses what is not.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from certiformer.errors import BadInput
from certiformer.model.config import Attention, Block, Code, Config, FeedForward, Heads, Input, Norm, Readout
from certiformer.model.layout import tensor_specs
from certiformer.model.transformer import Transformer
from certiformer.rates.size_targets import SizeTarget

Tensors = dict[str, np.ndarray]
STREAM = 8


def size_config(
    target: SizeTarget,
    *,
    units: int,
    heads: int,
    key: int,
    value: int = 2,
    depth: int = 1,
    norm: str = "none",
    width: int = STREAM,
    layout: str = "paper",
) -> Config:
    """The model of a target with `depth` attention layers, every feed-forward layer with `units` hidden units.

    `layout`: `paper` (the module docstring; one attention layer for `graph`), `blocks` (attention, feed-forward and
    residuals for both targets), or `sink` (attention alone, for `sines`: `sink_config`).
    """
    if layout == "sink":
        return sink_config(heads, key)
    place = None if norm == "none" else Norm(norm)
    graph, ffn = target.name == "graph", FeedForward(units)
    alone = graph and layout == "paper"
    if alone and depth != 1:
        raise BadInput("the model of Jiang and Li has one attention layer; deeper ones have the layout blocks")
    attention = Attention((Heads(heads, key, value),), scale="unit", bias=not graph, residual=not alone)
    layers = (Block(attention, None if alone else ffn, place),) * depth
    return Config(
        Input("continuous", tokens=target.tokens, width=1),
        width=width,
        outputs=1,
        readout=Readout("all") if graph else Readout("token", token=0),
        blocks=((Block(ffn=ffn, norm=place), *layers) if graph else layers),
        code=Code() if graph else Code("one-hot", offset=1),
        dtype="float32",
    )


def sink_config(heads: int, key: int) -> Config:
    """Attention alone for `sines`, as in the construction with sigmoid heads: both numbers in one token, and a register
    to which a head can turn away."""
    return Config(
        Input("continuous", tokens=1, width=2),
        width=3,
        outputs=1,
        readout=Readout("token", token=0),
        blocks=(Block(Attention((Heads(heads, key, 1),), scale="unit")),),
        registers=1,
        dtype="float32",
    )


def parameter_count(config: Config) -> int:
    """The number of stored weights, masks excluded."""
    return sum(int(np.prod(spec.shape)) for spec in tensor_specs(config).values() if spec.dtype != "uint8")


def start(config: Config, seed: int, high: float) -> Tensors:
    """Random weights for inputs between 0 and `high`: inputs are centred and scaled to [-1, 1], and hidden units get
    biases of the size of their inputs, so that they bend inside the box and not all at its centre."""
    tensors = {name: np.asarray(t, np.float32) for name, t in Transformer.random(config, seed).tensors.items()}
    generator = np.random.default_rng((seed, 1))
    for name, tensor in tensors.items():
        if name.endswith("ffn.up_bias"):
            tensors[name] = generator.uniform(-1.0, 1.0, tensor.shape).astype(np.float32)
    scaled = tensors["embed.weight"] * np.float32(2.0 / high)
    tensors["embed.bias"] = tensors["embed.bias"] - np.float32(high / 2) * scaled.sum(axis=0)
    return tensors | {"embed.weight": scaled}


def padded(small: Config, tensors: Mapping[str, np.ndarray], large: Config) -> tuple[Tensors, Tensors]:
    """The weights of a small model in the shape of a large one, zero elsewhere, and where they may move (1 or 0)."""
    _refuse_inexact(small, large)
    filled, free = {}, {}
    for name, spec in tensor_specs(large).items():
        filled[name] = np.zeros(spec.shape, spec.dtype)
        free[name] = np.zeros(spec.shape, np.float32)
        if name in tensors:
            corner = tuple(slice(size) for size in np.shape(tensors[name]))
            filled[name][corner], free[name][corner] = tensors[name], 1.0
    return filled, free


def _refuse_inexact(small: Config, large: Config) -> None:
    reasons = []
    shapes, room = tensor_specs(small), tensor_specs(large)
    if any(n not in room or not _fits(spec.shape, room[n].shape) for n, spec in shapes.items()):
        reasons.append("a tensor of the small model does not fit into the large one")
    if (small.input, small.readout, small.code, small.registers, small.loops) != (
        large.input,
        large.readout,
        large.code,
        large.registers,
        large.loops,
    ):
        reasons.append("inputs, codes, registers, loops and read-out are not the same")
    for mine, other in zip(small.blocks, large.blocks, strict=False):
        a, b = mine.attention, other.attention
        if mine.norm != other.norm or (mine.norm is not None and small.width != large.width):
            reasons.append("a normalisation would see padded coordinates or is not in both")
        if (a is None) != (b is None) or (mine.ffn is None) != (other.ffn is None):
            reasons.append("a block has a sub-layer in one model only")
        elif a is not None and b is not None:
            keys = [g.key for g in a.heads] == [g.key for g in b.heads]
            if (a.kind, a.scale, a.residual, a.mask) != (b.kind, b.scale, b.residual, b.mask):
                reasons.append("attention is not of the same kind")
            elif a.scale != "unit" and not keys:
                reasons.append('key sizes differ under a scale that is not "unit"')
    for extra in large.blocks[len(small.blocks) :]:
        parts = [part for part in (extra.attention, extra.ffn) if part is not None]
        if extra.norm is not None and extra.norm.place == "post" or not all(part.residual for part in parts):
            reasons.append("an additional block without residual, or with normalisation after it, is not the identity")
    if reasons:
        raise BadInput(f"this padding would change the model: {'; '.join(dict.fromkeys(reasons))}")


def _fits(shape: tuple[int, ...], room: tuple[int, ...]) -> bool:
    return len(shape) == len(room) and all(a <= b for a, b in zip(shape, room, strict=True))
