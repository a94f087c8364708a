"""The names, shapes and types of the tensors that a configuration needs: the contents of `model.safetensors`.

d is the residual width, R the number of registers, n the number of data tokens and N = R + n. Tensors that the
configuration does not need are absent.
"""

from __future__ import annotations

from typing import NamedTuple

from certiformer.model.config import Attention, Block, Config


class Spec(NamedTuple):
    """The shape and the stored type of one tensor."""

    shape: tuple[int, ...]
    dtype: str


def tensor_specs(config: Config) -> dict[str, Spec]:
    """Every tensor of a model with this configuration, by name.

    >>> from certiformer.model import Config, Input, Readout
    >>> specs = tensor_specs(Config(Input("continuous", tokens=2, width=3), 4, 1, Readout("mean")))
    >>> [(name, spec.shape) for name, spec in specs.items()]
    [('embed.weight', (3, 4)), ('embed.bias', (4,)), ('readout.weight', (4, 1)), ('readout.bias', (1,))]
    """
    d = config.width
    shapes: dict[str, tuple[int, ...]] = {}
    if config.input.width is not None:
        shapes["embed.weight"] = (config.input.width, d)
        shapes["embed.bias"] = (d,)
    elif config.input.vocabulary is not None:
        shapes["embed.weight"] = (config.input.vocabulary, d)
    if config.registers:
        shapes["registers"] = (config.registers, d)
    if config.code.kind == "table":
        shapes["code.table"] = (config.tokens, d)
    for index, block in enumerate(config.blocks):
        shapes |= _block_shapes(block, f"blocks.{index}", d, config.length)
    shapes["readout.weight"] = (d, config.outputs)
    shapes["readout.bias"] = (config.outputs,)
    return {
        name: Spec(shape, "uint8" if name.endswith(".attention.mask") else config.dtype)
        for name, shape in shapes.items()
    }


def _block_shapes(block: Block, prefix: str, d: int, length: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    if block.attention is not None:
        shapes |= _attention_shapes(block.attention, f"{prefix}.attention", d, length)
    if block.ffn is not None:
        m = block.ffn.width
        shapes |= {f"{prefix}.ffn.up": (d, m), f"{prefix}.ffn.up_bias": (m,)}
        shapes |= {f"{prefix}.ffn.down": (m, d), f"{prefix}.ffn.down_bias": (d,)}
    if block.norm is not None:
        for sublayer in ("attention", "ffn"):
            if getattr(block, sublayer) is not None:
                shapes |= {f"{prefix}.norm.{sublayer}.scale": (d,), f"{prefix}.norm.{sublayer}.shift": (d,)}
    return shapes


def _attention_shapes(attention: Attention, prefix: str, d: int, length: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for index, (count, key, value) in enumerate((g.count, g.key, g.value) for g in attention.heads):
        group = f"{prefix}.groups.{index}"
        shapes |= {f"{group}.query": (count, d, key), f"{group}.key": (count, d, key)}
        shapes |= {f"{group}.value": (count, d, value), f"{group}.output": (count, value, d)}
        if attention.bias:
            shapes |= {f"{group}.query_bias": (count, key), f"{group}.key_bias": (count, key)}
            shapes |= {f"{group}.value_bias": (count, value)}
        if attention.score_bias == "table":
            shapes[f"{group}.score_bias"] = (count, length, length)
        elif attention.score_bias == "toeplitz":
            shapes[f"{group}.score_bias"] = (count, 2 * length - 1)
    if attention.bias:
        shapes[f"{prefix}.output_bias"] = (d,)
    if attention.mask == "table":
        shapes[f"{prefix}.mask"] = (length, length)
    return shapes
