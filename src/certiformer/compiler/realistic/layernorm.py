"""The same program in a model with LayerNorm before every sub-layer (pre-norm).

The stream x of n coordinates is held as (x, -x, C, -C, 0, ..., 0) with D coordinates in all: its mean is 0, and its
variance is (2 |x|^2 + 2 C^2) / D. With the scale w = sqrt(2 C^2 / D + eps) on the pairs and 0 on the rest, LayerNorm
makes of it

    (x, -x, 0) (1 + 2 |x|^2 / (2 C^2 + D eps))^(-1/2) = (x, -x, 0) (1 - t),    0 <= t <= |x|^2 / (2 C^2).

Every sub-layer reads half the difference of a pair, so it reads x (1 - t) and writes what it wrote. The read-out
comes after no norm and reads the stream itself. For x of constant length (one-hot or Boolean pairs) t is a constant
and the scale could undo it; the codes here are numbers, so t is made small instead. A run adds rounding;
`export.norm_identity` bounds both by

    (|x|^2 / (2 C^2) + (16 + D/8) u) |x_i| + 4 u (|x_i| + 64 u C),

u the unit roundoff, and takes for C the smallest power of two with |x|^2 / (2 C^2) <= u. `export.stream_bounds`
bounds |x|^2 and carries that error through all layers, for all inputs at once. When the outputs then move by at most
half of the decoding margin, the norms are proved harmless (the other half is left to the error of the compiled
program itself); otherwise running all inputs decides. At length 5, vocabulary 3:

    program   dtype     |x|^2    C      D    reading errs by    moves the outputs by, in halves of the margin
    hist      float32     122   2^15   16    23 u |x_i|         0.39          proved
    shift     float32     383   2^16   16    23 u |x_i|         0.60          proved
    reverse   float32   3,003   2^18   16    23 u |x_i|         20            not proved
    reverse   float64   3,003   2^32   16    23 u |x_i|         3e-5          proved
    sort      float64  23,335   2^34   32    25 u |x_i|         2e-3          proved
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from certiformer.compiler.driver import Compiled
from certiformer.compiler.realistic.basis import Basis
from certiformer.compiler.realistic.stream import Tensors, in_basis
from certiformer.model.config import Config, Norm


@dataclass(frozen=True)
class Pins:
    """The constant C, the scale w and eps; `share` is the proved error of the outputs as a share of what decoding allows.

    `share` is infinite when nothing is proved.
    """

    constant: float
    scale: float
    epsilon: float
    share: float


def paired_width(width: int) -> int:
    """The number of coordinates: a power of two with room for the pairs and two pins.

    >>> [paired_width(width) for width in (1, 3, 7, 8)]
    [4, 8, 16, 32]
    """
    return 1 << (2 * width + 1).bit_length()


def pins_for(compiled: Compiled, width: int, longer: float | None = None) -> Pins:
    """The pins for the stream of a compiled program.

    `width` is the number of coordinates to be paired. If they are not the program's own but another code, `longer` is
    how many times as long its vectors may be; then nothing is proved of the outputs.
    """
    from certiformer.export.decoder import decoder_of
    from certiformer.export.labels import program_labels
    from certiformer.export.norm_identity import LAYER_EPSILON, layer_pins
    from certiformer.export.stock_folder import error_share
    from certiformer.model.transformer import Transformer

    decoder, size = (
        decoder_of(Transformer(compiled.config, compiled.tensors), "layer norm", causal=False),
        paired_width(width),
    )
    pins, bounds = layer_pins(decoder, size)
    if longer is None:
        return Pins(
            pins.constant,
            pins.scale,
            LAYER_EPSILON,
            error_share(decoder, bounds, program_labels(compiled.graph, compiled.circuit)),
        )
    constant = pins.constant * 2.0 ** math.ceil(math.log2(max(longer, 1.0)))
    return Pins(constant, math.sqrt(2.0 * constant**2 / size + LAYER_EPSILON), LAYER_EPSILON, math.inf)


def with_layer_norm(config: Config, tensors: Mapping[str, np.ndarray], pins: Pins) -> tuple[Config, Tensors, Basis]:
    """The model with norms, in float64."""
    width, size = config.width, paired_width(config.width)
    directions, matrix = np.zeros((width, size)), np.zeros((size, width))
    for sign, first in ((1.0, 0), (-1.0, width)):
        directions[:, first : first + width] = sign * np.eye(width)
        matrix[first : first + width] = sign * np.eye(width) / 2.0
    basis = Basis.of(directions, matrix)
    config, result = in_basis(config, tensors, basis)
    for name in ("embed.weight", "registers"):
        result[name][:, 2 * width : 2 * width + 2] = [pins.constant, -pins.constant]
    scales = np.where(np.arange(size) < 2 * width, pins.scale, 0.0)
    for index, block in enumerate(config.blocks):
        for part, present in (("attention", block.attention), ("ffn", block.ffn)):
            if present is not None:
                result[f"blocks.{index}.norm.{part}.scale"] = scales
                result[f"blocks.{index}.norm.{part}.shift"] = np.zeros(size)
    norm = Norm(kind="layer", place="pre", epsilon=pins.epsilon)
    return replace(config, blocks=tuple(replace(block, norm=norm) for block in config.blocks)), result, basis
