"""Derivatives of a target over a box: value, gradient and second derivatives as balls, by our own rules on the program.

Theorems speak of sup |df/dx_i| and sup |d2f/dx_i dx_j|. A `Jet` of order 2 encloses value, gradient and Hessian at every
point of the box. What the enclosure may claim is tracked by `smooth`:

* 2: the program is twice differentiable in a neighbourhood of the closed box;
* 1: it is Lipschitz there and `grad` contains every element of Clarke's generalised gradient (an undecided `abs`, `max`
  or `min` takes the hull of both sides); second derivatives are not available;
* 0: only the value is enclosed (an undecided `where` may jump).

A comparison counts as decided only if it is *strict* on the closed box. So if every box of a partition has smooth = 2,
the function is twice differentiable across the interfaces as well: a kink that hides exactly on an interface touches the
closed boxes on both sides and is undecided in both.
`smooth` belongs to the program as written; no derivative supplied by a user is ever read.
"""

from __future__ import annotations

from itertools import product

from flint import arb, fmpq

from certiformer.kernel import balls
from certiformer.kernel.balls import ONE, ZERO, BallDomain, about, hull
from certiformer.kernel.programs import Program, fold
from certiformer.kernel.taylor import point_series


class Jet:
    """Enclosures of f, f_i and f_ij (pairs i <= j) on a box; `why` names what limits `smooth`."""

    __slots__ = ("grad", "hess", "smooth", "value", "why")

    def __init__(self, value: arb, grad: list[arb], hess: dict[tuple[int, int], arb], smooth: int = 2, why: str = ""):
        self.value, self.grad, self.hess, self.smooth, self.why = value, grad, hess, smooth, why


class JetAlgebra:
    """Runs a program in jets: an algebra for `target.fold`. `order` 1 skips second derivatives."""

    def __init__(self, dimension: int, order: int):
        self.dimension, self.order = dimension, order
        self.pairs = [(i, j) for i in range(dimension) for j in range(i, dimension)] if order == 2 else []

    def variable(self, value: arb, axis: int) -> Jet:
        grad = [ONE if i == axis else ZERO for i in range(self.dimension)]
        return Jet(value, grad, dict.fromkeys(self.pairs, ZERO))

    def constant(self, text: str) -> Jet:
        return self._flat(balls.constant(text))

    def _flat(self, value: arb) -> Jet:
        return Jet(value, [ZERO] * self.dimension, dict.fromkeys(self.pairs, ZERO))

    def neg(self, a: Jet) -> Jet:
        return Jet(-a.value, [-g for g in a.grad], {p: -h for p, h in a.hess.items()}, a.smooth, a.why)

    def add(self, a: Jet, b: Jet) -> Jet:
        grad = [x + y for x, y in zip(a.grad, b.grad, strict=True)]
        hess = {p: a.hess[p] + b.hess[p] for p in self.pairs}
        return Jet(a.value + b.value, grad, hess, *_weaker(a, b))

    def sub(self, a: Jet, b: Jet) -> Jet:
        return self.add(a, self.neg(b))

    def mul(self, a: Jet, b: Jet) -> Jet:
        grad = [x * b.value + a.value * y for x, y in zip(a.grad, b.grad, strict=True)]
        hess = {
            (i, j): a.hess[i, j] * b.value + a.value * b.hess[i, j] + a.grad[i] * b.grad[j] + a.grad[j] * b.grad[i]
            for i, j in self.pairs
        }
        return Jet(a.value * b.value, grad, hess, *_weaker(a, b))

    def div(self, a: Jet, b: Jet) -> Jet:
        if b.value.contains(0):
            return self._undefined("division by a number that may be zero")
        inverse = ONE / b.value
        return self.mul(a, self._outer(b, inverse, -inverse * inverse, 2 * inverse * inverse * inverse))

    def pow(self, a: Jet, n: int) -> Jet:
        value, first = balls.power(a.value, n), n * balls.power(a.value, n - 1) if n else ZERO
        second = n * (n - 1) * balls.power(a.value, n - 2) if n > 1 else ZERO
        return self._outer(a, value, first, second)

    def _outer(self, a: Jet, value: arb, first: arb, second: arb) -> Jet:
        """phi(a) from phi, phi', phi'' on the range of a."""
        grad = [first * g for g in a.grad]
        hess = {(i, j): first * a.hess[i, j] + second * a.grad[i] * a.grad[j] for i, j in self.pairs}
        return Jet(value, grad, hess, a.smooth, a.why)

    def undefined(self, value: Jet) -> bool:
        return not value.value.is_finite()

    def _undefined(self, why: str) -> Jet:
        nan = arb.nan()
        return Jet(nan, [nan] * self.dimension, dict.fromkeys(self.pairs, nan), 0, why)

    def _series(self, a: Jet, name: str, why: str) -> Jet:
        value, first, second = point_series(name, a.value, 2)
        if not (value.is_finite() and first.is_finite() and second.is_finite()):
            return self._undefined(why)
        return self._outer(a, value, first, 2 * second)

    def __getattr__(self, name: str):
        why = f"{name} of a number outside its domain or where its derivative is unbounded"
        return lambda a: self._series(a, name, why)

    def abs(self, a: Jet) -> Jet:
        return self.max(a, self.neg(a))

    def max(self, a: Jet, b: Jet) -> Jet:
        return self._choice(a, b, a.value - b.value, a.value.max(b.value))

    def min(self, a: Jet, b: Jet) -> Jet:
        return self._choice(a, b, b.value - a.value, a.value.min(b.value))

    def _choice(self, a: Jet, b: Jet, gap: arb, value: arb) -> Jet:
        """a where gap > 0, b where gap < 0, both (Clarke hull) where the sign is open."""
        if gap > 0 or gap < 0:
            chosen = a if gap > 0 else b
            return Jet(chosen.value, chosen.grad, chosen.hess, *_weaker(a, b))
        grad = [x.union(y) for x, y in zip(a.grad, b.grad, strict=True)]
        smooth, why = _weaker(a, b)
        return Jet(
            value, grad, dict.fromkeys(self.pairs, arb.nan()), min(smooth, 1), why or "a kink of abs, max or min"
        )

    def compare(self, comparison: str, a: Jet, b: Jet) -> bool | None:
        gap = a.value - b.value
        return bool(gap < 0) if gap > 0 or gap < 0 else None

    def select(self, condition: None, x: Jet, y: Jet) -> Jet:
        return Jet(
            x.value.union(y.value),
            [arb.nan()] * self.dimension,
            dict.fromkeys(self.pairs, arb.nan()),
            0,
            "a branch of where that is not decided on the box",
        )


def _weaker(a: Jet, b: Jet) -> tuple[int, str]:
    weak = a if a.smooth <= b.smooth else b
    return weak.smooth, weak.why


def jets(program: Program, values: list[arb], order: int) -> list[Jet]:
    """The jets of every output at the point, or on the box, whose coordinates are the given balls."""
    algebra = JetAlgebra(len(values), order)
    return fold(program, [algebra.variable(v, i) for i, v in enumerate(values)], algebra)


class DerivativeBounds:
    """Upper bounds of |f_i| and |f_ij| over a whole domain, for every output, from a uniform partition.

    `smooth` is the weakest smoothness found, `why` and `where` say what limits it and on which box.
    """

    def __init__(self, program: Program, domain: BallDomain, parts: tuple[int, ...], order: int):
        d, outputs = domain.dimension, len(program.outputs)
        self.gradient = [[ZERO] * d for _ in range(outputs)]
        self.hessian = [{(i, j): ZERO for i in range(d) for j in range(i, d)} for _ in range(outputs)]
        self.smooth, self.why, self.where = 2, "", ""
        pieces = [_pieces(domain, axis, count) for axis, count in enumerate(parts)]
        for values in product(*pieces):
            for o, jet in enumerate(jets(program, list(values), order)):
                if jet.smooth < self.smooth:
                    self.smooth, self.why = jet.smooth, jet.why
                    self.where = about([(v.lower(), v.upper()) for v in values])
                self.gradient[o] = [
                    balls.larger(old, g.abs_upper()) for old, g in zip(self.gradient[o], jet.grad, strict=True)
                ]
                for pair, h in jet.hess.items():
                    self.hessian[o][pair] = balls.larger(self.hessian[o][pair], h.abs_upper())


def _pieces(domain: BallDomain, axis: int, count: int) -> list[arb]:
    """Closed balls that cover axis `axis` of the domain."""
    low, high = domain.ends[axis]
    ends = [low + (high - low) * arb(fmpq(k, count)) for k in range(count + 1)]
    return [hull(a.lower(), b.upper()) for a, b in zip(ends, ends[1:], strict=False)]
