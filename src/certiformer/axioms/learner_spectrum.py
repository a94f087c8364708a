"""How the layers of a least-squares learner act on one eigenvalue: bounds over a whole range of eigenvalues.

Layer k turns an eigenvalue t_k into t_(k+1) = t_k (1 - beta_k t_k)^2 and multiplies what is left to learn by 1 -
eta_k t_k. The range is cut into cells; on each cell the t_k lie in intervals [p_k, q_k]:

* f(t) = t (1 - beta t)^2 rises up to 1 / (3 beta), where it is 4 / (27 beta), and falls from there to 1 / beta. So on
  [p, q] with q <= 1 / beta its least value is f(p) or f(q), and its largest one f(q), f(p) or 4 / (27 beta).
* |1 - eta t| is at most its value at one of the ends.

`Spectrum.growth(i, k)` bounds the product of |1 - eta_j t_j| over i <= j < k, `Spectrum.reach(i, k)` bounds sqrt(t) times
|h|, h = sum_(i <= j < k) eta_j (t_j / t) prod_(i <= l < j) (1 - eta_l t_l), which is (1 - prod_(i <= l < k)) / t as the sum
telescopes; both over the whole range, growth also at t = 0, where it is 1.

*Chebyshev.* Let c = (a + b) / 2, h = (b - a) / 2, 1 / eta_k = c + h cos((2 k - 1) pi / (2 L)) in any order. Then prod
(1 - eta_k t) = T_L((c - t) / h) / T_L(c / h), at most 1 / T_L(c / h) = 2 rho^L / (1 + rho^(2 L)) on [a, b], with rho
= (sqrt b - sqrt a) / (sqrt b + sqrt a). If stored steps are eta_k (1 + d_k), |d_k| <= D, the product becomes the sum
over all sets S of prod_(k not in S) (1 - eta_k t) prod_(k in S) (-d_k eta_k t). The zeros of T_L that are left out
give a divided difference of T_L of order s = |S|, at most max |T_L^(s)| / s! <= L^(2 s), so each term is at most (D
(b / h) L^2)^s / T_L(c / h), and the product at most (1 + D (b / h) L^2)^L / T_L(c / h).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, reduce

from flint import arb, fmpq

from certiformer.kernel.balls import ONE, ZERO, ball, larger, largest, smaller
from certiformer.kernel.refusal import Refused

CELLS = 64
MOST_STEPS = 256  # different ones; the time grows with the square

Number = Fraction | float
Row = list[tuple[arb, arb]]  # growth and reach up to k = 0, 1, ...


@dataclass(frozen=True)
class Spectrum:
    """The bounds of the module docstring; `highest[k]` and `lowest[k]` enclose t_k."""

    rows: list[Row]  # by i; a single row where all steps are equal, and only k - i matters
    lowest: list[arb]
    highest: list[arb]
    left: arb  # the product of all |1 - eta_k t_k|, without t = 0

    def growth(self, i: int, k: int) -> arb:
        return self._at(i, k)[0]

    def reach(self, i: int, k: int) -> arb:
        return self._at(i, k)[1]

    def _at(self, i: int, k: int) -> tuple[arb, arb]:
        if k == i:
            return ONE, ZERO
        return self.rows[i][k - i] if len(self.rows) > 1 else self.rows[0][k - i]


@lru_cache(maxsize=8)
def spectrum(steps: tuple[float, ...], whiten: tuple[float, ...], low: Number, high: Number) -> Spectrum:
    """The bounds for eigenvalues between `low` and `high`; `low` may be 0 without whitening."""
    count, equal = len(steps), len({*steps}) == 1 and not any(whiten)
    if not equal and count > MOST_STEPS:
        raise Refused(f"the bounds are found for at most {MOST_STEPS} different steps")
    if any(whiten) and not low > 0:
        raise Refused("whitening is bounded for eigenvalues above zero")
    cells = [_cell(pair, steps, whiten) for pair in _cut(ball(Fraction(low)).lower(), ball(Fraction(high)).upper())]
    starts = range(1) if equal else range(count)
    rows: list[Row] = [[(ONE, ZERO)] * (count - i + 1) for i in starts]
    left = ZERO
    for ends, factors in cells:
        for i in starts:
            product = _along(rows[i], ends, factors[i:], steps[i:], bool(any(whiten)))
            left = larger(left, product) if i == 0 else left
    lowest = [reduce(smaller, [ends[k][0] for ends, _ in cells]) for k in range(count)]
    highest = [largest([ends[k][1] for ends, _ in cells]) for k in range(count)]
    return Spectrum(rows, lowest, highest, left)


def _along(row: Row, ends: list[tuple[arb, arb]], factors: list[arb], steps: Sequence[float], whitened: bool) -> arb:
    """Take one cell into the bounds of a row; returns the product of all factors."""
    bottom, top = ends[0]
    root, product, total = top.sqrt(), ONE, ZERO
    for k, (factor, step) in enumerate(zip(factors, steps, strict=True), 1):
        total = (total + arb(step) * product).upper()
        product = (product * factor).upper()
        # Both forms of h; the sum needs t_j = t.
        bound = total if not bottom > 0 else ((1 + product) / bottom).upper()
        bound = bound if whitened else smaller(bound, total)
        row[k] = larger(row[k][0], product), larger(row[k][1], (bound * root).upper())
    return product


def _cut(low: arb, high: arb) -> list[tuple[arb, arb]]:
    """Cells that are narrow at both ends, where the products vary most."""
    middle = [(low + (high - low) * (1 - (arb.pi() * fmpq(i, CELLS)).cos()) / 2).mid() for i in range(1, CELLS)]
    ends = [low, *middle, high]
    if not all(p <= q for p, q in zip(ends, ends[1:], strict=False)):
        raise Refused("the range of eigenvalues is too narrow to be cut")
    return list(zip(ends, ends[1:], strict=False))


def _cell(
    pair: tuple[arb, arb], steps: Sequence[float], whiten: Sequence[float]
) -> tuple[list[tuple[arb, arb]], list[arb]]:
    """The intervals of t_k on a cell, and the bounds of |1 - eta_k t_k|."""
    ends, factors = [], []
    for step, beta in zip(steps, whiten, strict=True):
        ends.append(pair)
        factors.append(larger(*(abs(1 - arb(step) * t).upper() for t in pair)))
        if beta:
            pair = _whitened(pair, arb(beta))
    return ends, factors


def _whitened(pair: tuple[arb, arb], beta: arb) -> tuple[arb, arb]:
    p, q = pair
    if not beta * q <= 1:
        raise Refused("a step of the whitening is so large that it may lose a direction")
    at_p, at_q = (t * (1 - beta * t) * (1 - beta * t) for t in pair)
    top = at_q if 3 * beta * q <= 1 else at_p if 3 * beta * p >= 1 else arb(4) / (27 * beta)
    return larger(smaller(at_p.lower(), at_q.lower()), ZERO), top.upper()


def chebyshev_bound(steps: Sequence[float], lowest: Number, highest: Number) -> arb | None:
    """The bound of the module docstring, or None where the steps are not those of Chebyshev."""
    low, high = ball(Fraction(lowest)), ball(Fraction(highest))
    count, middle, half = len(steps), (low + high) / 2, (high - low) / 2
    nodes = [1 / (middle + half * (arb.pi() * fmpq(2 * k + 1, 2 * count)).cos()) for k in range(count)]
    deviations = [abs(arb(s) / t - 1).upper() for s, t in zip(sorted(steps), nodes, strict=True)]
    worst = largest(deviations)
    if not worst < arb("1e-2"):
        return None
    rho = (high.sqrt() - low.sqrt()) / (high.sqrt() + low.sqrt())
    power = (rho.log() * count).exp()
    excess = ((worst * high / half * count * count).log1p() * count).exp()
    return (2 * power / (1 + power * power) * excess).upper()
