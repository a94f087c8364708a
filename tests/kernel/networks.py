"""Stored transformers as the checker reads them, and tiny ones built by hand."""

from __future__ import annotations

import numpy as np
from flint import arb

from certiformer.kernel.balls import Box
from certiformer.kernel.layers import Prototypes
from certiformer.kernel.problem import Network
from certiformer.kernel.weights import read_model
from certiformer.model import Attention, Block, Config, Heads, Input, Readout, Transformer, tensor_specs
from certiformer.model.store import tensors_to_bytes
from kernel.oracle import precisely


def network_of(model: Transformer) -> Network:
    """The checker's network, from the very bytes that are stored."""
    return Network(*read_model(model.config.to_bytes(), tensors_to_bytes(model)))


def point_box(point) -> Box:
    return Box(tuple(arb(float(x)) for x in point), (arb(0),) * len(point))


def tiny(weights: dict[str, list], *, registers: int = 0, tokens: int = 1, mask=None, **options) -> Transformer:
    """One head on the stream (x, 1, a, b): data tokens fill x and 1, registers a and b; unnamed tensors are zero."""
    attention = Attention((Heads(1, 1, 1),), scale="unit", mask="none" if mask is None else "table", **options)
    config = Config(
        Input("continuous", tokens, width=1), 4, 1, Readout("token", 0), (Block(attention),), registers=registers
    )
    tensors = {name: np.zeros(spec.shape) for name, spec in tensor_specs(config).items()}
    tensors["embed.weight"], tensors["embed.bias"] = np.array([[1.0, 0, 0, 0]]), np.array([0, 1.0, 0, 0])
    head = "blocks.0.attention.groups.0."
    for name, value in weights.items():
        full = head + name if head + name in tensors else name
        tensors[full] = np.array(value, dtype=float).reshape(tensors[full].shape)
    if mask is not None:
        tensors["blocks.0.attention.mask"] = np.array(mask)
    return Transformer(config, tensors)


def exact(function: Prototypes, point: list[arb]) -> list[arb]:
    """The definition, one exponential at a time, at 300 bits."""
    with precisely():
        result = []
        for o in range(function.outputs):
            total = function.bias[o]
            for x, row in zip(point, function.weight, strict=True):
                total = total + x * row[o]
            for head in function.heads:
                scores = [
                    offset + sum((a * x for a, x in zip(slope, point, strict=True)), arb(0))
                    for slope, offset in zip(head.slopes, head.offsets, strict=True)
                ]
                top = max(scores, key=lambda s: s.mid())
                weights = [(s - top).exp() for s in scores]
                mixed = sum((w * v[o] for w, v in zip(weights, head.values, strict=True)), arb(0))
                total = total + mixed / sum(weights, arb(0))
            result.append(total)
        return result
