"""Norms that change nothing: constant coordinates ("pins") so large that the norm sees only them.

**RMSNorm, exactly.** y = w x / sqrt(mean(x^2) + eps) over D coordinates, D a power of two. P coordinates hold the
constant C, a power of two; P = 1 if D is a power of four, otherwise 2, so that s = sqrt(P C^2 / D) is a power of two.
Suppose the squares of all other coordinates sum to at most S with S <= 2^-b C^2, and eps <= 2^-b s^2; b = 26 for
arithmetic with at most 24 significant bits, b = 56 for 53. Then:

1. The computed sum of squares is P C^2, in any order: a partial sum without a pin is at most S (1 + 2^-10), less than
   half a unit in the last place of C^2 (2^-24 C^2 or 2^-53 C^2), so adding it to a partial sum with a pin changes
   nothing, and the sum of two pins is exact.
2. Division by D, the square root and its reciprocal are exact for powers of four, and eps is rounded away.
3. x / s and w (x / s) with w = s are exact, as s is a power of two, unless x / s is subnormal: numbers below
   2^-126 s in absolute value (none of a compiled program's but the underflow of a softmax) may become 0.

So y = x, bit for bit. Llama and Phi-3 compute their norms in float32, whatever the type of the model; b = 56 is taken
where it fits, so that the same holds in float64. With w = s / C a pin reads as exactly 1, which supplies the biases
that these architectures lack. As real numbers y = x (1 - t) with 0 <= t <= (S + D eps) / (2 P C^2) <= 2^-b. C is at
least 2^(b/2) max(sqrt(S), 2^14) sqrt(D), and P C^2 must stay below 2^126: with D = 256, sqrt(S) up to 2^29 (b = 56) or
2^44 (b = 26) is possible.

**LayerNorm, within a proved bound.** y = w (x - m) / sqrt(v + eps), m the mean and v the variance. The stream is
*paired*: each number is held twice, as x and as -x, so the mean is 0; two pins are C and -C, and the rest is 0. Then v
= (2 |x|^2 + 2 C^2) / D. With w = sqrt(2 C^2 / D + eps), y = x (1 - t), 0 <= t <= |x|^2 / (2 C^2) as real numbers. C is
the smallest power of two that makes this at most u. In a run:

* The mean is not 0, but at most 64 u C in absolute value: in a sum no partial sum exceeds C (1 + u), so D additions err
  by at most D u C, which the division by D undoes; with running means (Welford) the pins' shares C / k err by u C / k
  each, in all 2 u C (1 + log D).
* Reading (y - y') / 2 from the two places of a number cancels the mean, whatever it was; what remains is the rounding of
  x - m and of the factors, at most 4 u (|x_i| + |m|).
* The scale errs by a relative (16 + D/8) u: rounding C - m, its square and their sum costs 8 u, the small squares
  together at most 2 u, root, reciprocal and w 4 u; running variances in 8 or more lanes add at most one rounding for
  each of the D/8 steps in a lane.

Altogether what is read differs from x by at most

    (|x|^2 / (2 C^2) + (16 + D/8) u) |x_i| + 4 u (|x_i| + 64 u C).

That is about 20 u |x_i| for narrow streams. The bound enters `stream_bounds` at every norm. Measured: the LayerNorm of
torch 2.13 on a CPU uses at most 0.19 of it (D = 8 to 1,008, float32 and float64, 400 streams each).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from certiformer.errors import BadInput
from certiformer.export.decoder import Decoder, is_power_of_four
from certiformer.export.stream_bounds import UNIT_ROUNDOFF, Bounds, Gaps, StreamBounds, Vector, stream_bounds

RMS_EPSILON, LAYER_EPSILON = 1e-6, 1e-5
ABSORBED_BITS = (56, 26)  # the number b of the derivation, the better one first


@dataclass(frozen=True)
class RmsPins:
    """What makes an RMSNorm over `size` coordinates the identity."""

    size: int
    count: int
    constant: float
    scale: float  # the weight of every coordinate but the pins
    squares: float  # what the squares of all others were proved not to exceed

    @property
    def one(self) -> float:
        """The weight with which a pin reads as 1."""
        return self.scale / self.constant


def rms_pins(decoder: Decoder, size: int) -> RmsPins:
    """The pins for the decoder's stream within `size` coordinates, a power of two; refused when none are large enough."""
    squares = _largest(stream_bounds(decoder, decoder.dtype))
    count = 1 if is_power_of_four(size) else 2
    for bits in ABSORBED_BITS:
        needed = 2.0 ** (bits // 2) * max(math.sqrt(squares), 2.0**14) * math.sqrt(size)
        if needed < 2.0**61:
            constant = 2.0 ** math.ceil(math.log2(needed))
            return RmsPins(size, count, constant, constant * math.sqrt(count / size), squares)
    raise BadInput(
        "the norms of this architecture cannot be made an identity: numbers up to"
        f" {math.sqrt(squares):.3g} may occur in the stream, and float32 needs room above them"
    )


@dataclass(frozen=True)
class LayerPins:
    """What makes a LayerNorm over `size` coordinates the identity up to a known error: two pins, +C and -C."""

    size: int
    constant: float
    scale: float
    roundoff: float

    def noise(self, bounds: Bounds) -> Vector:
        """How far what is read may be from the stream, by the derivation above."""
        u, reach = self.roundoff, bounds.reach
        share = (reach @ reach) / (2.0 * self.constant**2)
        return (share + (16.0 + self.size / 8.0) * u) * reach + 4.0 * u * (reach + 64.0 * u * self.constant)


def layer_pins(decoder: Decoder, size: int, gaps: Gaps = MappingProxyType({})) -> tuple[LayerPins, StreamBounds]:
    """The pins for the paired stream of the decoder within `size` coordinates, and the bounds of the run with them."""
    u = UNIT_ROUNDOFF[decoder.dtype]
    squares = max(_largest(stream_bounds(decoder, decoder.dtype)), 1.0)
    needed = math.sqrt(squares / (2.0 * u)) if math.isfinite(squares) else math.inf
    if not needed <= 2.0**60:
        raise BadInput(
            f"the norms of this architecture cannot be made an identity: numbers up to {math.sqrt(squares):.3g} may"
            " occur in the stream"
        )
    constant = 2.0 ** math.ceil(math.log2(needed))
    scale = math.sqrt(2.0 * constant**2 / size + LAYER_EPSILON)
    pins = LayerPins(size, constant, scale, u)
    return pins, stream_bounds(decoder, decoder.dtype, pins.noise, gaps)


def _largest(bounds: StreamBounds) -> float:
    """The largest sum of squares before any norm."""
    with np.errstate(over="ignore"):
        squares = [float(np.square(stream.reach).sum()) for stream in bounds.before_norms]
    return math.inf if any(math.isnan(square) for square in squares) else max(squares)
