"""Quantised numbers can be written in about their entropy, and read back: the bits that a compression bound counts.

Statement
---------
Let d numbers take K values (the levels), level k being taken c_k times, and let d and K be known to the reader. There
is a prefix code that writes them in

    16 K + (K - 1) ceil(log2(d + 1)) + ceil(d H) + 1 bits,     d H = sum_k c_k log2(d / c_k),

the levels being rounded to half precision before anything else is done with them. `write` produces this file and
`read` returns the same levels and symbols, bit for bit.

Source
------
Classical (arithmetic coding); the composition of the file is that of the published code of Lotfi et al. 2024
(lotfi2024), which `printed_length` keeps.

Differs from the source in
--------------------------
The source writes K counts with ceil(log2 d) bits each, in which a count of d does not fit when d is a power of two, so
that one file may mean two models; here the last count is left out, as the counts sum to d, and each of the others has
room for d. The source estimates the length of the code and runs a coder for small d only; here the coder computes in
whole numbers of any size and the length is exact.

Proof
-----
Half precision takes 16 bits for each level; a count is at most d. These fields have known lengths and are read first.
Given the counts, symbol s shrinks an interval to its share c_s / d at the place of the symbols before it; after all d
symbols its width is W = prod_k (c_k / d)^(c_k) = 2^(-d H), computed as a fraction of whole numbers. With L = ceil(d
H) + 1 bits, 2 / 2^L <= W, so the first multiple v / 2^L in the interval has [v, v + 1) / 2^L inside, and v < 2^L. The
reader knows L from the counts, finds the first symbol as the share that contains v / 2^L, stretches it to the whole,
and goes on. All lengths are known when they are needed: no file is the beginning of another. QED.

Assumptions
-----------
- known: **trusted** d and K are fixed before the data, or their choice is paid for by `settings_bits`.
- counts: **checked** every symbol is one of the levels, and the file has exactly its length.

Certified
---------
The length: it is counted on the file (above 10,000 numbers `length` may be one bit more than the formula, where balls
do not decide a ceiling; the file has that bit too). That it can be read: `read` is the inverse of `write`.

Not certified
-------------
That no shorter code exists: with prior knowledge of the weights it may.

Example
-------
>>> import numpy as np
>>> symbols = np.array([0, 1, 1, 1, 1, 1, 2, 1])
>>> file = write(symbols, np.array([-1.0, 0.0, 1.0]))
>>> file.bits, length([1, 6, 1])
(66, 66)
>>> [each.tolist() for each in read(file.data, 8, 3)]
[[0, 1, 1, 1, 1, 1, 2, 1], [-1.0, 0.0, 1.0]]

Tests
-----
`tests/theorems/test_code_length.py`
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from flint import arb
from jaxtyping import Float, Int

from certiformer.bounds.numbers import above, ball, require_positive
from certiformer.errors import BadInput

THEOREM = {
    "id": "bounds.code_length",
    "title": "Quantised weights can be written in about their entropy, and read back",
    "kind": "exact",
    "sources": (
        "classical",
        "lotfi2024",
    ),
    "verb": "audit",
    "assumptions": (
        ("known", "The numbers of weights and of levels are fixed before the data, or paid for.", "trusted"),
        ("counts", "Every symbol is one of the levels, and the file has its length.", "checked"),
    ),
    "uses": (),
}

HALF = 16  # bits of a level
EXACT = 10_000  # up to so many numbers d^d is computed to find the length


@dataclass(frozen=True)
class File:
    """What was written: `bits` count, the last byte of `data` is filled up with zeros."""

    data: bytes
    bits: int


def length(counts: Sequence[int]) -> int:
    """The bits of a file whose levels are taken so often."""
    total = sum(counts)
    require_positive(number_of_weights=total, number_of_levels=len(counts))
    return HALF * len(counts) + (len(counts) - 1) * total.bit_length() + _code_bits(counts)


def printed_length(counts: Sequence[int]) -> int:
    """The length that the source counts, for comparison.

    >>> printed_length([1, 6, 1])
    67
    """
    total = sum(counts)
    return HALF * len(counts) + len(counts) * (total - 1).bit_length() + _code_bits(counts)


def settings_bits(tried: int) -> int:
    """What a choice among so many settings costs: ceil(log2 tried).

    >>> [settings_bits(tried) for tried in (1, 2, 9)]
    [0, 1, 4]
    """
    require_positive(number_of_settings=tried)
    return (tried - 1).bit_length()


def write(symbols: Int[np.ndarray, " d"], levels: Float[np.ndarray, " K"]) -> File:
    """The file of these symbols, numbers of levels from 0; levels are rounded to half precision."""
    with np.errstate(over="ignore"):
        half = np.asarray(levels).astype(np.float16)
    if not np.isfinite(half).all():
        raise BadInput("a level that is written is a finite number of half precision, at most 65504")
    total, width = len(symbols), len(half)
    require_positive(number_of_weights=total, number_of_levels=width)
    if symbols.min() < 0 or symbols.max() >= width:
        raise BadInput(f"symbols are numbers of levels, 0 to {width - 1}")
    counts = np.bincount(symbols, minlength=width).tolist()
    below = np.cumsum([0, *counts]).tolist()
    place, share = 0, 1  # the interval is [place, place + share) / total^(symbols so far)
    for symbol in symbols.tolist():
        place, share = place * total + below[symbol] * share, share * counts[symbol]
    size = _code_bits(counts)
    code = -((-place << size) // total**total)  # the first multiple of 2^-size that is not below the interval
    fields = [(int(bits), HALF) for bits in half.view(np.uint16)]
    fields += [(count, total.bit_length()) for count in counts[:-1]] + [(code, size)]
    number, bits = 0, 0
    for value, room in fields:
        number, bits = number << room | value, bits + room
    fill = -bits % 8
    return File((number << fill).to_bytes((bits + fill) // 8, "big"), bits)


def read(data: bytes, dimension: int, width: int) -> tuple[Int[np.ndarray, " d"], Float[np.ndarray, " K"]]:
    """The symbols and levels of a file of so many numbers and levels; anything else is refused."""
    require_positive(number_of_weights=dimension, number_of_levels=width)
    reader = _Reader(data)
    half = np.array([reader.take(HALF) for _ in range(width)], np.uint16).view(np.float16)
    counts = [reader.take(dimension.bit_length()) for _ in range(width - 1)]
    counts.append(dimension - sum(counts))
    if counts[-1] < 0 or not np.isfinite(half).all():
        raise BadInput(f"this is no file of {dimension} weights on {width} levels")
    size = _code_bits(counts)
    code = reader.take(size)
    reader.finish()
    below = np.cumsum([0, *counts]).tolist()
    # The code as a number of units of total^-total, rounded down: shares end at whole units, so it stays in its share.
    rest, unit = (code * dimension**dimension) >> size, dimension**dimension
    symbols = []
    for _ in range(dimension):
        unit //= dimension
        position = rest // unit
        symbol = int(np.searchsorted(below, position, side="right")) - 1
        symbols.append(symbol)
        # Stretch the share to the whole: its width shrinks by the count, which the next unit is multiplied with.
        rest, unit = rest - below[symbol] * unit, unit * counts[symbol]
    found, levels = np.array(symbols), half.astype(np.float64)
    if write(found, levels).data != data:  # one file for one model
        raise BadInput(f"this is no file of {dimension} weights on {width} levels")
    return found, levels


def _code_bits(counts: Sequence[int]) -> int:
    """ceil(d H) + 1. Whole numbers decide where d is small: d H is the log2 of d^d / prod c^c, which is at least 1."""
    total, share = sum(counts), 1
    if total > EXACT:
        entropy = sum((count * (ball(total) / count).log() for count in counts if count), arb(0)) / arb(2).log()
        return math.ceil(above(entropy)) + 1  # one more if a ball cannot tell d H from the whole number below it
    for count in counts:
        share *= count**count  # 0^0 = 1: a level that is not taken
    return (-(-(total**total) // share) - 1).bit_length() + 1


class _Reader:
    """Fields of bits, from the front."""

    def __init__(self, data: bytes) -> None:
        self.number, self.left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, room: int) -> int:
        if room > self.left:
            raise BadInput("this file of weights ends too early")
        self.left -= room
        return (self.number >> self.left) & ((1 << room) - 1)

    def finish(self) -> None:
        if self.left >= 8 or self.take(self.left):
            raise BadInput("this file of weights does not end where it should")
