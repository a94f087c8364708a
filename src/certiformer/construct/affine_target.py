"""Which targets are affine, read exactly as they are written.

`affine_outputs` runs the program in the algebra of affine functions, where a product needs a constant factor and every
other function needs constant arguments. Nothing is simplified: `x1*x2 - x2*x1` is refused, as is `0*log(x1)`, which has no
value everywhere. A construction reads its map from here; no proof rests on it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import arb

from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, ConstantAlgebra
from certiformer.kernel.programs import Program, fold


@dataclass(frozen=True)
class Affine:
    """slope . x + constant, in balls."""

    slope: tuple[arb, ...]
    constant: arb

    @property
    def is_constant(self) -> bool:
        return all(s.is_zero() for s in self.slope)

    def plus(self, other: Affine, factor: arb = ONE) -> Affine:
        slope = tuple(a + factor * b for a, b in zip(self.slope, other.slope, strict=True))
        return Affine(slope, self.constant + factor * other.constant)

    def times(self, factor: arb) -> Affine:
        return Affine(tuple(factor * s for s in self.slope), factor * self.constant)


class AffineAlgebra:
    """Runs a target program in affine functions: an algebra for `target.fold`."""

    def __init__(self, inputs: int):
        self.inputs, self.constants = inputs, ConstantAlgebra()

    def known(self, value: arb) -> Affine:
        return Affine((ZERO,) * self.inputs, value)

    def variable(self, axis: int) -> Affine:
        return Affine(tuple(ONE if i == axis else ZERO for i in range(self.inputs)), ZERO)

    def constant(self, text: str) -> Affine:
        return self.known(self.constants.constant(text))

    def neg(self, a: Affine) -> Affine:
        return a.times(-ONE)

    def add(self, a: Affine, b: Affine) -> Affine:
        return a.plus(b)

    def sub(self, a: Affine, b: Affine) -> Affine:
        return a.plus(b, -ONE)

    def mul(self, a: Affine, b: Affine) -> Affine:
        if a.is_constant:
            return b.times(a.constant)
        return a.times(self._constant(b, "a product of two expressions with variables"))

    def div(self, a: Affine, b: Affine) -> Affine:
        divisor = self._constant(b, "a quotient by an expression with variables")
        return a.times(ONE / divisor)

    def pow(self, a: Affine, n: int) -> Affine:
        return a if n == 1 else self.known(self.constants.pow(self._constant(a, "a power of a variable"), n))

    def compare(self, comparison: str, a: Affine, b: Affine) -> bool:
        decided = self.constants.compare(comparison, *(self._constant(s, "a comparison of variables") for s in (a, b)))
        if decided is None:
            raise Refused("a comparison of two constants cannot be decided")
        return decided

    def undefined(self, value: Affine) -> bool:
        return self.constants.undefined(value.constant)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(self.constants, name)
        return lambda *args: self.known(function(*(self._constant(a, f"{name} of a variable") for a in args)))

    def _constant(self, a: Affine, what: str) -> arb:
        if not a.is_constant:
            raise Refused(f"the target is not affine: it has {what}")
        return a.constant


def affine_outputs(program: Program) -> list[Affine]:
    """Every output as an affine function; `Refused` when one is not written as one.

    >>> from certiformer.target import parse_formula
    >>> (f,) = affine_outputs(parse_formula("2*(x1 - x2)/4 + sqrt(9)"))
    >>> [float(s) for s in f.slope], float(f.constant)
    ([0.5, -0.5], 3.0)
    """
    algebra = AffineAlgebra(program.inputs)
    outputs = fold(program, [algebra.variable(i) for i in range(program.inputs)], algebra)
    if any(algebra.undefined(output) for output in outputs):
        raise Refused("the target divides by zero or leaves the domain of a function")
    return outputs
