"""Positions and biases for architectures that have neither: a decoder that counts, and one whose biases are heads.

**Positions.** Llama and Phi-3 add no row for the position to the stream. Two layers in front make it, exactly:

* A head with zero scores reads the mean of the *start flag* (1 at the start token, 0 elsewhere) over positions 0..p: r
  = 1 / (p + 1). Unit t = 1..n computes relu(K (m - r)), where m = (1/t + 1/(t+1)) / 2 lies halfway between r at p = t -
  1 and r at p = t and K >= 4 t (t + 1) is a power of two: 0 for p < t, and at least K / (2 t (t + 1)) >= 2 for p >= t.
* In the next layer h_t = relu(1 - that) is 1 for p < t and 0 for p >= t: *exactly*, in floating-point numbers too, as
  long as the errors of the first layer stay below 1. With steps d_t = row_t - row_(t-1), row_0 = 0, the sum row_n -
  sum_t d_t h_t is the row of position p, and 0 at the start token.

The error: r is within a relative 8 u of 1 / (p + 1) (exp(0) = 1 and the sum of p + 1 ones are exact; a few roundings
for the division and the product), so K r is off by at most 8 u K / t <= 64 (t + 1) u near the threshold, the bias K m
by 8 (t + 1) u, the last rounding by as much: together below 128 (n + 1) u, which must be at most 1. That is n <=
131,071 in float32. The sum of steps is exact in any order when all rows are multiples of 2^-g and
|row_n| + sum |d_t| <= 2^(p - g), p the number of significant bits; other rows are refused.

**Biases.** What attention adds everywhere (an output bias) becomes a head that reads 1 from the start token: query 32,
key 32 times the start flag, so the scores are 1024 there and 0 elsewhere, and exp(-1024) is 0 in every type.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from certiformer.errors import BadInput
from certiformer.export.decoder import Decoder, Layer, empty_layer, mapped, resized

SIGNIFICANT_BITS = {"float64": 53, "float32": 24, "bfloat16": 8}
SHARP = 32.0  # its square is a score gap whose exponential underflows in every type, float64 included (745)


def with_counted_positions(decoder: Decoder) -> Decoder:
    """The same function of the ids, without rows added for the positions; unchanged when these are zero."""
    if not decoder.positions.any():
        return decoder
    _refuse_inexact(decoder)
    flag, mean = decoder.width, decoder.width + 1
    steps = slice(decoder.width + 2, decoder.width + 2 + decoder.length)
    wide = _widened(decoder, 2 + decoder.length)
    wide.start[flag] = 1.0
    numbers = np.arange(1, decoder.length + 1, dtype=np.float64)
    slopes = 2.0 ** np.ceil(np.log2(4.0 * numbers * (numbers + 1.0)))
    count = _attention(empty_layer(wide.width), wide.width, reads=flag, writes=mean)
    count["up"], count["down"] = np.zeros((wide.width, decoder.length)), np.zeros((decoder.length, wide.width))
    count["up"][mean] = -slopes
    count["up_bias"] = slopes * (1.0 / numbers + 1.0 / (numbers + 1.0)) / 2.0
    count["down"][:, steps] = np.eye(decoder.length)
    place = empty_layer(wide.width)
    place["up"], place["up_bias"] = np.zeros((wide.width, decoder.length)), np.ones(decoder.length)
    place["up"][steps] = -np.eye(decoder.length)
    place["down"] = -_steps(wide.positions)
    place["down_bias"] = wide.positions[-1]
    layers = (Layer(**count), Layer(**place), *wide.layers)
    return replace(wide, positions=np.zeros_like(wide.positions), layers=layers)


def with_bias_heads(decoder: Decoder) -> Decoder:
    """The same function without output biases of attention; unchanged when these are zero."""
    if not any(layer.output_bias.any() for layer in decoder.layers):
        return decoder
    flag, wide = decoder.width, _widened(decoder, 1)
    wide.start[flag] = 1.0
    return replace(wide, layers=tuple(_bias_head(layer, flag) for layer in wide.layers))


def _bias_head(layer: Layer, flag: int) -> Layer:
    if not layer.output_bias.any():
        return layer
    one, width = layer.heads, layer.output_bias.shape[0]
    key, value = max(layer.query.shape[2], 1), max(layer.value.shape[2], 1)
    shapes: dict[str, tuple[int, ...]] = {"query": (width, key), "key": (width, key), "value": (width, value)}
    shapes |= {"query_bias": (key,), "key_bias": (key,), "value_bias": (value,), "output": (value, width)}
    parts = {part: resized(getattr(layer, part), (one + 1, *shape)) for part, shape in shapes.items()}
    parts["query_bias"][one, 0] = parts["key"][one, flag, 0] = SHARP
    parts["value_bias"][one, 0] = 1.0
    parts["output"][one, 0] = layer.output_bias
    return replace(layer, **parts, output_bias=np.zeros(width))


def _attention(parts: dict, width: int, reads: int, writes: int) -> dict:
    """One head with zero scores that takes the mean of one coordinate into another."""
    for part, shape in {"query": (width, 1), "key": (width, 1), "value": (width, 1), "output": (1, width)}.items():
        parts[part] = np.zeros((1, *shape))
    for part in ("query_bias", "key_bias", "value_bias"):
        parts[part] = np.zeros((1, 1))
    parts["value"][0, reads, 0] = parts["output"][0, 0, writes] = 1.0
    return parts


def _widened(decoder: Decoder, extra: int) -> Decoder:
    """The decoder in a stream with further coordinates, all zero."""
    width = decoder.width + extra

    def read(matrix: np.ndarray) -> np.ndarray:
        return resized(matrix, (*matrix.shape[:-2], width, matrix.shape[-1]))

    def written(vectors: np.ndarray) -> np.ndarray:
        return resized(vectors, (*vectors.shape[:-1], width))

    return replace(
        decoder,
        embed=written(decoder.embed),
        start=written(decoder.start),
        positions=written(decoder.positions),
        layers=tuple(Layer(**mapped(layer, read, written)) for layer in decoder.layers),
        unembed=read(decoder.unembed),
    )


def _steps(rows: Float[np.ndarray, "length width"]) -> Float[np.ndarray, "length width"]:
    return np.diff(rows, axis=0, prepend=0.0)


def _refuse_inexact(decoder: Decoder) -> None:
    bits, rows = SIGNIFICANT_BITS[decoder.dtype], decoder.positions
    if 128 * (decoder.length + 1) > 2**bits:
        raise BadInput(
            f"this architecture must count {decoder.length} positions, which {decoder.dtype} cannot; use a wider --dtype"
        )
    # The finest grid on which every row lies: 2^-g.
    grid = next((g for g in range(60) if not np.mod(rows * 2.0**g, 1.0).any()), None)
    reach = np.abs(rows[-1]) + np.abs(_steps(rows)).sum(0)
    if grid is None or reach.max() * 2.0**grid > 2.0**bits:
        raise BadInput(
            f"this architecture has no table of positions, and {decoder.dtype} cannot add up the steps of this one exactly"
        )
