"""Boxes: the domains on which a claim speaks.

A domain keeps the *source text* of every end (`"0"`, `"2*pi"`), because a certificate must not depend on how one
arithmetic rounds it. A sub-box is the exact set of points between the real numbers a + (b - a) k / 2^m and
a + (b - a)(k + 1) / 2^m on every axis; each arithmetic encloses those ends outward by itself.
Standard library only.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from certiformer.errors import BadInput
from certiformer.kernel.claim import Ends
from certiformer.kernel.programs import NAMED_CONSTANTS, Program, fold, rational

LARGEST_END = 1e300  # float64 search needs room for sums and squares of differences beyond the ends


@dataclass(frozen=True)
class Domain:
    """A box, as the source text of its ends, one pair an axis."""

    bounds: tuple[tuple[str, str], ...]

    @property
    def dimension(self) -> int:
        return len(self.bounds)

    def __str__(self) -> str:
        return " x ".join(f"[{low}, {high}]" for low, high in self.bounds)

    @property
    def exactly(self) -> str:
        """The box as every sentence says it: the numbers that the ends stand for, not their source text.

        >>> Domain((("0.10", "(2)*pi"), ("0", "1/8e10"))).exactly
        '[0.1, 2*pi] x [0, 1.25e-11]'
        """
        return str(self.closed)

    @property
    def closed(self) -> Ends:
        """The box as the kernel knows it, without the text of its ends."""
        return Ends(tuple(self.ends()))

    def ends(self) -> list[tuple[Program, Program]]:
        """The constant programs of both ends of every axis, for any algebra to enclose."""
        from certiformer.target.parse import parse_constant

        return [(parse_constant(low), parse_constant(high)) for low, high in self.bounds]

    def require_order(self) -> None:
        """Refuse a box that is empty, reversed, a single point on some axis, or not finite.

        Rational ends are compared exactly. Others (`2*pi`) are compared in float64 with a margin that covers the
        rounding of ordinary ends; this is the early error for the user, the checker compares again in ball arithmetic.
        """
        if not self.bounds:
            raise BadInput("the box has no axis")
        for axis, ((low, high), (low_program, high_program)) in enumerate(zip(self.bounds, self.ends(), strict=True)):
            below, above = _float_value(low_program, low), _float_value(high_program, high)
            texts = [p.nodes[-1][1] if len(p.nodes) == 1 else None for p in (low_program, high_program)]
            if all(t is not None and t not in NAMED_CONSTANTS for t in texts):
                ordered = rational(str(texts[0])) < rational(str(texts[1]))
            else:
                ordered = above - below > 1e-12 * max(abs(below), abs(above))
            if not ordered:
                state = "reversed" if below > above else "empty"
                raise BadInput(f"axis {axis + 1} of the box is {state}: [{low}, {high}] needs its smaller end first")


@dataclass(frozen=True)
class Target:
    """What is approximated: a program, the box on which the claim speaks, and the text the user wrote."""

    source: str
    program: Program
    domain: Domain

    def __post_init__(self) -> None:
        if self.domain.dimension != self.program.inputs:
            axes, variables = self.domain.dimension, self.program.inputs
            raise BadInput(f"the box has {axes} axes but the target has {variables} variables")

    @property
    def outputs(self) -> int:
        """How many numbers the target gives."""
        return len(self.program.outputs)


def _float_value(program: Program, text: str) -> float:
    try:
        (value,) = fold(program, [0.0], _Floats())
    except OverflowError:
        value = math.inf
    if math.isnan(value):
        raise BadInput(f"the end {text!r} of the box is not a real number")
    if not abs(value) <= LARGEST_END:
        raise BadInput(f"the end {text!r} of the box is beyond {LARGEST_END!r}")
    return value


_IN_PYTHON: dict[str, Any] = {
    **{name: getattr(math, name) for name in ("sqrt", "exp", "log", "sin", "cos", "tan", "tanh", "atan", "erf")},
    **{name: getattr(operator, name) for name in ("neg", "add", "sub", "mul")},
    **{"div": operator.truediv, "abs": abs, "min": min, "max": max, "pow": pow},
}


class _Floats:
    """The operations of the IR in Python's own float64, for the early comparison of the ends of a box; NaN is no value."""

    def __getattr__(self, name: str) -> Callable[..., float]:
        return partial(_value_or_nan, _IN_PYTHON[name])

    def constant(self, text: str) -> float:
        return {"pi": math.pi, "e": math.e}[text] if text in NAMED_CONSTANTS else float(rational(text))

    undefined = staticmethod(math.isnan)

    def compare(self, comparison: str, a: float, b: float) -> bool:
        return a < b if comparison == "lt" else a <= b


def _value_or_nan(function: Callable[..., float], *arguments: float) -> float:
    try:
        return function(*arguments)
    except (ValueError, ZeroDivisionError):
        return math.nan
