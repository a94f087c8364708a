"""Bounds for everything in the residual stream of a decoder, over all inputs at once, and for the rounding of a run.

For each coordinate we keep an interval that contains its real-number value at every position of every input, the start
token included; an interval for the numbers of a run in floating point; and a bound on the difference of the two. They
go through

* attention: whatever the weights, a head's output is a mean of values, so it stays in their interval. If every score is
  off by at most D, the weight of any set of keys moves by at most tanh(D/2) (its logit moves by at most 2D, and the
  logistic function is steepest at 0), so the mean moves by at most tanh(D/2) times the length of the interval; and as
  every weight moves by a factor between e^(-2D) and e^(2D), so does a mean of numbers that are not negative, which
  counts for more where the mean is small (1 / (1 + w) for a count w);
* attention of which it is known that, for every query, one score is above all others by a gap G: with scores off by at
  most D the others' weights are at most e^(-G) and e^(2D - G), so the mean moves by at most 2 n e^(2D - G) times the
  length;
* ReLU units: units that read multiples of the same linear form s together are one piecewise linear function of s. Its
  largest and smallest value and its steepest slope on the interval of s are those at and between finitely many kinks
  (`ridge_bounds`).

Rounding is that of a sum of k terms in any order, at most k u / (1 - k u) times the sum of the absolute values. The
intervals themselves are computed in float64 and enlarged by 2^-36 times that sum, which is more than their own rounding
for up to 2^16 terms; the errors are enlarged by a relative 2^-20.

What a norm adds to what a sub-layer *reads* (never to the stream itself) is a function of the bounds, given by the
caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from jaxtyping import Float

from certiformer.export.decoder import Decoder, Layer
from certiformer.export.ridge_bounds import ridge_forms, ridge_range

Vector = Float[np.ndarray, " _"]
Ends = Float[np.ndarray, "2 _"]  # of the real numbers, and of those in a run

UNIT_ROUNDOFF = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8}
SMALLEST = {"float64": 2.0**-1022, "float32": 2.0**-126, "bfloat16": 2.0**-126}  # what is below may become 0
ROOM, SLACK = 2.0**-36, 1.0 + 2.0**-20
SOFTMAX_ULPS = 16.0  # of exp and the quotient of a softmax, in units of the roundoff


@dataclass(frozen=True)
class Bounds:
    """For each coordinate: the ends of the intervals, and how far a run may be from the real number x.

    The error is at most `error`, and at most `floor` + `relative` |x|.
    """

    low: Ends
    high: Ends
    error: Vector
    floor: Vector
    relative: Vector

    @property
    def reach(self) -> Vector:
        """The largest absolute value."""
        return np.maximum(np.abs(self.low), np.abs(self.high)).max(0)


Noise = Callable[[Bounds], Vector]
"""How far what a sub-layer reads may be from the stream."""
Gaps = Mapping[tuple[int, int], float]
"""For heads (layer, head) that read one position: how far its score is above all others, for every query."""


def no_noise(bounds: Bounds) -> Vector:
    return np.zeros_like(bounds.error)


@dataclass(frozen=True)
class StreamBounds:
    """The stream before each norm (attention and units of every layer, then the last one), and the logits."""

    before_norms: tuple[Bounds, ...]
    logits: Bounds
    read: Vector
    """How far what the logits read, coordinate by coordinate, may be from the real numbers."""
    rounding: Vector
    """Of each logit."""


def stream_bounds(
    decoder: Decoder, dtype: str, noise: Noise = no_noise, gaps: Gaps = MappingProxyType({})
) -> StreamBounds:
    """Bounds for a run of the decoder in `dtype`; numbers too large to bound become infinite or not a number."""
    u, before = UNIT_ROUNDOFF[dtype], []
    with np.errstate(all="ignore"):
        bounds = _embedding(decoder, u)
        for index, layer in enumerate(decoder.layers):
            before.append(bounds)
            if layer.heads:
                above = [gaps.get((index, head)) for head in range(layer.heads)]
                bounds = _attention(layer, bounds, noise(bounds), above, decoder.length + 1, dtype)
            bounds = _shifted(bounds, layer.output_bias, u)
            before.append(bounds)
            if layer.units:
                bounds = _units(layer, bounds, noise(bounds), u)
            bounds = _shifted(bounds, layer.down_bias, u)
        before.append(bounds)
        extra = noise(bounds)
        logits = _linear(bounds, extra, decoder.unembed, decoder.unembed_bias, u)
        rounding = _rounding(bounds.reach + extra, decoder.unembed, np.abs(decoder.unembed_bias), u)
        return StreamBounds(tuple(before), logits, (bounds.error + extra) * SLACK, rounding * SLACK)


def _embedding(decoder: Decoder, u: float) -> Bounds:
    rows, places = decoder.embed, decoder.positions
    low = np.minimum(rows.min(0) + places.min(0), decoder.start)
    high = np.maximum(rows.max(0) + places.max(0), decoder.start)
    summed = (rows != 0).any(0) & (places != 0).any(0)
    reach = np.where(summed, np.maximum(np.abs(low), np.abs(high)), 0.0)
    return _bounds(np.stack([low, low]), np.stack([high, high]), u * reach, u * reach, reach)


def _attention(
    layer: Layer, bounds: Bounds, noise: Vector, gaps: Sequence[float | None], length: int, dtype: str
) -> Bounds:
    u = UNIT_ROUNDOFF[dtype]
    low, high, error = bounds.low, bounds.high, bounds.error
    magnitude = np.zeros_like(error)  # of all terms that are added to a coordinate
    floor, relative = np.zeros_like(error), np.zeros_like(error)
    for head in range(layer.heads):
        mean = _mean(layer, head, bounds, noise, gaps[head], length, dtype)
        matrix = layer.output[head]
        out = _linear(mean, np.zeros_like(mean.error), matrix, 0.0, u)
        low, high, error = low + out.low, high + out.high, error + out.error
        magnitude += mean.reach @ np.abs(matrix)
        floor += mean.floor @ np.abs(matrix)
        relative = np.maximum(relative, np.where(matrix != 0, mean.relative[:, None], 0.0).max(0))
    added = np.where(magnitude > 0, _gamma(layer.heads + 1, u) * (magnitude + bounds.reach), 0.0)
    result = _bounds(low, high, error + added, added, magnitude)
    # What a single mean brings keeps its relative error: |mean| <= |sum| + |what was there|, and the roundings of the sum
    # are relative too.
    single = np.count_nonzero(layer.output, axis=(0, 1)) == 1
    relative = (relative + _gamma(layer.heads + 6, u)) * SLACK
    floor = (floor + bounds.error + relative * bounds.reach) * SLACK + ROOM * magnitude
    return replace(
        result, floor=np.where(single, floor, result.floor), relative=np.where(single, relative, result.relative)
    )


def _mean(layer: Layer, head: int, bounds: Bounds, noise: Vector, gap: float | None, length: int, dtype: str) -> Bounds:
    """What a head reads: a mean of its values."""
    u = UNIT_ROUNDOFF[dtype]
    query, key, value = (
        _linear(bounds, noise, getattr(layer, part)[head], getattr(layer, f"{part}_bias")[head], u)
        for part in ("query", "key", "value")
    )
    terms = query.reach * key.reach
    wrong = float((query.error * key.reach + query.reach * key.error).sum())
    wrong += (_gamma(int(np.count_nonzero(terms)), u) + 2.0 * u) * float(terms.sum()) + SOFTMAX_ULPS * u
    rounding = (_gamma(2 * length + 2, u) + length * SMALLEST[dtype]) * value.reach
    width = value.high[0] - value.low[0]
    # tanh(wrong / 2) is at most 1: whatever the scores, the mean stays among the values.
    moved = math.tanh(wrong / 2.0)
    if gap is not None and 2.0 * wrong < gap:
        moved = min(moved, 2.0 * length * math.exp(2.0 * wrong - gap))
    error = value.error + moved * (width + 2.0 * value.error) + rounding
    factor = math.expm1(min(2.0 * wrong, 700.0))
    # For numbers that are not negative, up to the room that their bounds were given.
    floor = value.error + rounding + factor * np.maximum(-value.low[0], 0.0) * 2.0
    mean = _bounds(value.low, value.high, error, rounding, np.zeros_like(error))
    return replace(mean, floor=floor, relative=np.full_like(error, factor))


def _units(layer: Layer, bounds: Bounds, noise: Vector, u: float) -> Bounds:
    """The stream after the units; those that read the same form are one function."""
    size = np.abs(layer.down)
    active = _linear(bounds, noise, layer.up, layer.up_bias, u)
    magnitude = np.maximum(active.high[1], 0.0) @ size
    rounding = _rounding(bounds.reach + noise, layer.up, np.abs(layer.up_bias), u) @ size
    rounding += _gamma(np.count_nonzero(layer.down, axis=0) + 1, u) * magnitude
    rounding = np.where((layer.down != 0).any(0), rounding + u * bounds.reach, 0.0)
    low, high, error = bounds.low.copy(), bounds.high.copy(), bounds.error.copy()
    joined = np.zeros(len(error), bool)  # coordinates whose residual connection a function has taken along
    for form, scales, members in ridge_forms(layer.up):
        writes = np.flatnonzero((layer.down[members] != 0).any(0))
        span = _linear(bounds, np.zeros_like(noise), form[:, None], 0.0, 0.0)
        own = np.flatnonzero(form)
        along = np.zeros(len(writes))
        if len(own) == 1:
            span = replace(span, floor=bounds.floor[own], relative=bounds.relative[own])
            if own[0] in writes and not joined[own[0]]:
                along[writes == own[0]] = 1.0
                joined[own[0]] = True
                low[:, own], high[:, own], error[own] = 0.0, 0.0, 0.0
        wobble = float(np.abs(form) @ noise)
        ends = [(float(span.low[row, 0]), float(span.high[row, 0])) for row in (0, 1)]
        off = (float(span.error[0]), float(span.floor[0]), float(span.relative[0]))
        part = ridge_range(
            ends, off, wobble, scales, layer.up_bias[members], layer.down[np.ix_(members, writes)], along
        )
        low[:, writes] += part.low
        high[:, writes] += part.high
        error[writes] += part.error
    terms = (bounds.reach @ np.abs(layer.up) + np.abs(layer.up_bias)) @ size
    return _bounds(low, high, error + rounding, rounding, magnitude + terms)


def _linear(bounds: Bounds, noise: Vector, matrix: np.ndarray, bias: Vector | float, u: float) -> Bounds:
    """A linear map of the stream; with u = 0 without its rounding."""
    up, down, size = np.maximum(matrix, 0.0), np.minimum(matrix, 0.0), np.abs(matrix)
    low = bounds.low @ up + bounds.high @ down + bias
    high = bounds.high @ up + bounds.low @ down + bias
    added = noise @ size + _rounding(bounds.reach + noise, matrix, np.abs(bias), u)
    # One term, multiplied by a power of two, is exact: no room is needed.
    exact = (np.count_nonzero(matrix, axis=0) <= 1) & (np.frexp(size.sum(0))[0] % 0.5 == 0) & (bias == 0)
    magnitude = np.where(exact, 0.0, bounds.reach @ size + np.abs(bias))
    return _bounds(low, high, bounds.error @ size + added, added, magnitude)


def _shifted(bounds: Bounds, bias: Vector, u: float) -> Bounds:
    if not bias.any():
        return bounds
    magnitude = np.where(bias != 0, bounds.reach + np.abs(bias), 0.0)
    shifted = _bounds(bounds.low + bias, bounds.high + bias, bounds.error + u * magnitude, u * magnitude, magnitude)
    return replace(
        shifted,
        floor=np.where(bias != 0, shifted.floor, bounds.floor),
        relative=np.where(bias != 0, shifted.relative, bounds.relative),
    )


def _rounding(reach: Vector, matrix: np.ndarray, bias: Vector | float, u: float) -> Vector:
    # Twice: a paired code reads every coordinate from two places, half from each.
    terms = 2 * np.count_nonzero(matrix, axis=0) + 2
    return _gamma(terms, u) * (reach @ np.abs(matrix) + bias)


def _gamma(terms: Vector | int, u: float) -> Vector:
    share = np.asarray(terms) * u
    return np.where(share < 0.5, share / (1.0 - np.minimum(share, 0.5)), np.inf)


def _bounds(low: Ends, high: Ends, error: Vector, added: Vector, magnitude: Vector) -> Bounds:
    """Bounds with room for the rounding of their own computation.

    **Arguments:**

    - `added`: the part of the error that was not in the interval of the run yet.
    - `magnitude`: the sum of all absolute values in the computation.
    """
    room = ROOM * magnitude
    outer = np.stack([room, room + added * SLACK])
    low, high = low - outer, high + outer
    # Whatever else is known, both numbers lie in their intervals.
    error = np.minimum(error * SLACK, np.maximum(high[1] - low[0], high[0] - low[1]))
    return Bounds(low, high, error, error, np.zeros_like(error))
