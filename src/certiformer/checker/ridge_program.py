"""A program that is a sum of ridge functions, enclosed one direction at a time.

The form of g(p . x) on a box follows from the one-dimensional form of g on the range of p . x. With s = p . x = s_0 + rho t
and t = sum_j (p_j r_j / rho) e_j, substitute the linear polynomial t into the form of g in t. Nothing is dropped, because
t^k has degree k. For thirty profiles of degree thirty in two variables this is some forty times cheaper than multiplying
two-dimensional forms, and tighter, since no product is truncated.
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from certiformer.kernel import taylor
from certiformer.kernel.balls import ZERO, Box, ball
from certiformer.kernel.functions import target_forms
from certiformer.kernel.problem import ProgramFunction
from certiformer.kernel.programs import Program
from certiformer.kernel.taylor import Form, Table
from certiformer.target.ridges import RidgeSum, ridge_split


@dataclass(frozen=True)
class RidgeProgram(ProgramFunction):
    """A program whose outputs are sums of ridge functions, with that reading."""

    sums: tuple[RidgeSum, ...]

    def forms(self, box: Box, order: int) -> list[Form]:
        tab = taylor.table(box.dimension, order)
        return [_sum_form(tab, each, box) for each in self.sums]

    def restrict(self, box: Box) -> RidgeProgram:
        return self


def as_ridges(program: Program) -> ProgramFunction:
    """The program as a function, direction by direction if all its outputs are sums of ridge functions."""
    sums = [ridge_split(program, output) for output in range(len(program.outputs))]
    if program.inputs == 1 or any(each is None for each in sums):
        return ProgramFunction(program)
    return RidgeProgram(program, tuple(each for each in sums if each is not None))


def _sum_form(tab: Table, sums: RidgeSum, box: Box) -> Form:
    total = taylor.constant(tab, ZERO)
    for axis, slope in enumerate(sums.linear):
        if slope:
            total = taylor.add(total, taylor.scale(taylor.variable(tab, box, axis), ball(slope)))
    for direction, program in sums.ridges:
        total = taylor.add(total, _ridge_form(tab, direction, program, box))
    return total


def _ridge_form(tab: Table, direction: tuple[int, ...], program: Program, box: Box) -> Form:
    middle = sum((p * c for p, c in zip(direction, box.centre, strict=True)), ZERO)
    steps = [p * r for p, r in zip(direction, box.radius, strict=True)]
    # The centre of the range is exact; what rounding left of it goes into the radius and into the constant of t.
    centre = middle.mid()
    radius = (sum((step.abs_upper() for step in steps), middle.rad())).upper()
    form = target_forms(program, Box((centre,), (radius,)), tab.order)[0]
    if tab.order == 0 or radius.is_zero():
        return Form(tab, dict(form.coef), form.rem, form.low, form.high, form.singular)
    inner = _substituted(tab, [step / radius for step in steps], (middle - centre) / radius)
    result = taylor.constant(tab, form.coef.get(tab.order, ZERO))
    for k in range(tab.order - 1, -1, -1):
        result = taylor.add(taylor.multiply(result, inner), taylor.constant(tab, form.coef.get(k, ZERO)))
    return Form(tab, result.coef, (result.rem + form.rem).upper(), form.low, form.high, form.singular)


def _substituted(tab: Table, slopes: list[arb], constant: arb) -> Form:
    """The linear polynomial t of the module docstring; |t| <= 1."""
    coef = {tab.axis[axis]: slope for axis, slope in enumerate(slopes) if not slope.is_zero()}
    if not constant.is_zero():
        coef[0] = constant
    return Form(tab, coef, ZERO, arb(-1), arb(1))
