"""A fit by polynomial ridges as a target program, written so that `target.ridge_split` reads the ridges off it.

P is affine + sum_i sum_j w_ij T_j(t_i) with t_i = a_i . z / |a_i|_1, which is a rational affine expression of the
variables. The constants are exact rationals: what the float64 coefficients say, without any further rounding.

Chebyshev polynomials are built by doubling, T_{2n} = 2 T_n^2 - 1 and T_{2n+1} = 2 T_n T_{n+1} - t, at depth log2 of the
degree. Horner's scheme in powers of t would have coefficients of size 2^degree, and enclosures of a low order would lose
as many digits.

>>> import numpy as np
>>> from certiformer.construct.ridge_frame import Frame
>>> from certiformer.target import formula
>>> frame = Frame.of(-np.ones(2), np.ones(2))
>>> fit = RidgeFit(frame, np.array([0.0, 0.5, 0.0]), np.array([[1, 1]]), np.array([[0.25]]), 0.0, 1.0)
>>> formula(fitted_program([fit]))
['0.5*x1 + 0.25*(2*(0.5*(x1 + x2))**2 - 1)']
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from certiformer.construct.polynomial_ridges import RidgeFit
from certiformer.target import Builder, Program, fold


def fitted_program(fits: Sequence[RidgeFit], exact: Program | None = None) -> Program:
    """One output per fit; `exact` has a term per output that is added (what of the target is a sum of ridges already)."""
    build = Builder()
    inputs = len(fits[0].frame.middle)
    outputs = []
    added = [] if exact is None else _copied(build, exact)
    for position, fit in enumerate(fits):
        total = _affine(build, fit)
        for direction, coefficients in zip(fit.directions.tolist(), fit.coefficients.tolist(), strict=True):
            total = build.add(total, _profile(build, fit, direction, coefficients))
        outputs.append(total if exact is None else build.add(added[position], total))
    return build.program(inputs, outputs)


def _copied(build: Builder, program: Program) -> list[int]:
    return fold(program, [build.var(i) for i in range(program.inputs)], build)


def _affine(build: Builder, fit: RidgeFit) -> int:
    """affine[0] + sum_j affine[j] (x_j - middle_j) / half_j."""
    slopes = [Fraction(a) / h for a, h in zip(fit.affine[1:].tolist(), fit.frame.half, strict=True)]
    shift = sum((s * m for s, m in zip(slopes, fit.frame.middle, strict=True)), Fraction(0))
    total = _combination(build, slopes)
    return build.add(total, build.rational(Fraction(fit.affine[0].item()) - shift))


def _profile(build: Builder, fit: RidgeFit, direction: list[int], coefficients: list[float]) -> int:
    length = sum(abs(a) for a in direction)
    steps = [Fraction(a) / h for a, h in zip(direction, fit.frame.half, strict=True)]
    shift = sum((s * m for s, m in zip(steps, fit.frame.middle, strict=True)), Fraction(0))
    common = next(abs(s) for s in steps if s)
    inner = _combination(build, [s / common for s in steps])
    inner = build.mul(build.rational(common / length), inner)
    t = build.sub(inner, build.rational(shift / length))
    chebyshev = {0: build.rational(1), 1: t}

    def of(j: int) -> int:
        if j not in chebyshev:
            half = of(j // 2)
            if j % 2:
                chebyshev[j] = build.sub(build.mul(build.rational(2), build.mul(half, of(j // 2 + 1))), t)
            else:
                chebyshev[j] = build.sub(build.mul(build.rational(2), build.pow(half, 2)), build.rational(1))
        return chebyshev[j]

    total = build.rational(0)
    for j, w in enumerate(coefficients, start=2):
        if w:
            total = build.add(total, build.mul(build.rational(Fraction(w)), of(j)))
    return total


def _combination(build: Builder, coefficients: list[Fraction]) -> int:
    total = build.rational(0)
    for axis, coefficient in enumerate(coefficients):
        if coefficient:
            total = build.add(total, build.mul(build.rational(coefficient), build.var(axis)))
    return total
