"""Exact values to hold the checker's enclosures against: 300-bit balls at exact points, by a reading of its own.

`violation` is the one soundness test of this folder. It has no tolerance: a value is outside a form only if the balls
certainly do not meet, and at 300 bits against the checker's 96 nothing hides in the rounding of the oracle.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import flint
from flint import arb

from certiformer.kernel.balls import Box
from certiformer.kernel.taylor import Form
from certiformer.target import Program
from target.oracle import Balls
from target.reading import read

BITS = 300


@contextmanager
def precisely() -> Iterator[None]:
    """High precision for the oracle, the precision from before afterwards."""
    before, flint.ctx.prec = flint.ctx.prec, BITS
    try:
        yield
    finally:
        flint.ctx.prec = before


class PointBalls(Balls):
    """`target.oracle.Balls` with powers that allow zero; an undecided comparison stays NaN."""

    def sqrt(self, a):
        """A ball around zero may be an exact zero, as in sqrt(tan(pi)**4): then the value lies above 0 if there is one."""
        return arb(0).union(a.upper().sqrt()) if a.contains(0) and not a.is_zero() else a.sqrt()

    def pow(self, a, n):
        result = arb(1)
        for _ in range(n):
            result = result * a
        return result


def values(program: Program, point: list[arb]) -> list[arb]:
    """Every output at one exact point; NaN where it is singular (or where a comparison is not decided at 300 bits)."""
    with precisely():
        return read(program, point, PointBalls())


def point_of(box: Box, e: list[float]) -> list[arb]:
    """The exact point c + r e."""
    with precisely():
        return [c + r * arb(t) for c, r, t in zip(box.centre, box.radius, e, strict=True)]


def polynomial(form: Form, e: list[float]) -> arb:
    with precisely():
        total = arb(0)
        for i, c in form.coef.items():
            term = c
            for t, power in zip(e, form.table.monomials[i], strict=True):
                for _ in range(power):
                    term = term * arb(t)
            total = total + term
        return total


def violation(form: Form, e: list[float], value: arb) -> str:
    """Why `value` at the place `e` of the box contradicts the form; empty if it does not."""
    with precisely():
        if not value.is_finite():
            return "" if form.singular else f"the value is singular but the form is not: {value}"
        if form.singular:
            return ""
        distance = abs(value - polynomial(form, e))
        if distance > form.rem:
            return f"at e={e} the value is {distance} from the polynomial, the remainder {form.rem}"
        if value < form.low or value > form.high:
            return f"at e={e} the value {value} is outside [{form.low}, {form.high}]"
    return ""


def places(rng: random.Random, dimension: int, count: int) -> list[list[float]]:
    """Centre, corners, and random places of the normalised box, all exact doubles."""
    corners = [list(map(float, c)) for c in product((-1, 1), repeat=dimension)]
    inner = [[rng.uniform(-1, 1) for _ in range(dimension)] for _ in range(count)]
    return [[0.0] * dimension, *corners, *inner]


def random_box(rng: random.Random, dimension: int, centre: float = 2.0, width: float | None = None) -> Box:
    """A box whose axes have widths from 1e-12 to 1e3, unless `width` says otherwise."""
    centres = [arb(rng.uniform(-centre, centre)) for _ in range(dimension)]
    radii = [arb(width if width is not None else 10 ** rng.uniform(-12, 3)) for _ in range(dimension)]
    return Box(tuple(centres), tuple(radii))
