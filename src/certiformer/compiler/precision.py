"""What the stored type demands: how sharp attention must be, and when rounding must be snapped away.

In a run, exp(-x) is exactly 0 once it is below half the smallest subnormal number: x > 1075 log 2 = 745.2 in float64,
and x > 150 log 2 = 104.0 in float32; in bfloat16, x > 134 log 2 = 92.9, and engines that keep the exponentials in
float32 need the 104.0 of that. The next powers of two are 1024 and 128: multiplying by them is exact. In real
arithmetic the n unselected positions then weigh at most n e^-128 < n 3e-56 together.
"""

from __future__ import annotations

from dataclasses import dataclass

from certiformer.errors import BadInput


@dataclass(frozen=True)
class Precision:
    """`sharpness` is the factor of scores whose gap is 1; `unit` bounds the relative error of one rounding."""

    sharpness: int
    unit: float

    def squares_hold(self, length: int, largest: int, through_tables: bool = False) -> bool:
        """Whether squares of inexact codes up to `largest` may decide which one position is read.

        A code made of counts is a sum of about `length` terms, so its square is off by some length * unit * largest^2, and
        the score by twice that against a gap of 1. How much larger the constant must be was not derived but tried: 1024
        leaves room for sums of counts; tables of counts have slopes that enlarge the error once more, for which 16 times
        the room is left. Nothing rests on these two numbers: the choice is between two correct circuits, squares and
        binary digits, and the checker refuses squares where the stored type does not carry them.
        """
        return (16_384 if through_tables else 1_024) * length * largest**2 * self.unit < 1


_PRECISIONS = {
    "float64": Precision(1024, 2.0**-53),
    "float32": Precision(128, 2.0**-24),
    "bfloat16": Precision(128, 2.0**-9),
}


def precision_of(dtype: str) -> Precision:
    """What a stored type demands.

    >>> precision_of("float32").sharpness, precision_of("float32").squares_hold(20, 20)
    (128, True)
    """
    if dtype not in _PRECISIONS:
        raise BadInput(f"the dtype is one of {', '.join(_PRECISIONS)}, not {dtype!r}")
    return _PRECISIONS[dtype]
