"""Moments of rounding with logistic noise: the constants of the sigmoid-head theorem, recomputed in balls.

Units: knots at the integers, heads at the half integers with steepness kappa. Let xi be logistic noise, P(xi <= t) =
sigmoid(kappa t), and R the integer nearest to s - xi. Then P(R = n) = phi(n - s) with phi(y) = sigmoid(kappa (y + 1/2)) -
sigmoid(kappa (y - 1/2)), the density of xi + u, u uniform on [-1/2, 1/2]. phi is smooth and decays exponentially with all
its derivatives, so Poisson summation holds for y = R - s: with the characteristic function Phi(w) = A(pi w/kappa) B(w/2),
A(v) = v/sinh v, B(t) = sin(t)/t,

    E y^k = mu_k + osc_k(s),   |osc_k(s)| <= omega_k = 2 sum_{m>=1} |Phi^(k)(2 pi m)|,

    sum_k mu_k z^k/k! = M(z) = (pi z/kappa)/sin(pi z/kappa) * sinh(z/2)/(z/2),

the moment generating function of xi + u: odd mu are zero, mu_2 = V = pi^2/(3 kappa^2) + 1/12. The numbers beta with
sum_i beta_i z^(2i) = 1/M(z) undo the blur: beta_0 = 1, beta_1 = -V/2. For example omega_1 = sum_m (2 pi/kappa)/sinh(2 pi^2
m/kappa). The derivatives are Taylor coefficients of a product of power series.
*Beyond m = TERMS.* A(v) = 2 v sum_{n odd} e^{-n v}, so |A^(j)(v)| <= 2 (v + j) sum n^j e^{-n v} <= 4 (v + 8) e^{-v} for
j <= 8 and v >= 10, and B is a mean of cosines, |B^(j)| <= 1: |Phi^(k)| <= (pi/kappa + 1/2)^k 4 (v + 8) e^{-v}; with
v = 2 pi^2 m/kappa, kappa <= 16, each term is below half of the one before.

*Clipping.* A head sum has finitely many knots: R is clipped to them. The kept knots reach `margin` steps beyond the
range of s, so P(R <= -margin - k) <= e^{-kappa (margin + k - 1/2)}, k >= 1, measured from the end of the range.

Numbers: kappa = 2: omega_1 = 3.3e-4, omega_2 = 1.0e-3, V = 0.906; kappa = 3: 5.8e-3, 1.2e-2, 0.449.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, arb_series

from certiformer.axioms.profile_series import SeriesAlgebra
from certiformer.kernel import Refused
from certiformer.kernel.balls import HALF, ZERO, ball, power

TERMS = 60
ORDER = 8
SHARPNESS = Fraction(1), Fraction(16)


@dataclass(frozen=True)
class Rounding:
    """The sharpness kappa, the even moments[i] = mu_2i, beta[i], and upper bounds omega[k], k = 1..8, omega[0] = 0."""

    sharpness: Fraction
    kappa: arb
    moments: tuple[arb, ...]
    beta: tuple[arb, ...]
    omega: tuple[arb, ...]

    def tail(self, margin: int, degree: int) -> arb:
        """An upper bound of sum over j > margin of j^degree e^{-kappa (j - 1/2)}, degree <= 7."""
        return _tail(self.sharpness, margin, degree)


@lru_cache(maxsize=4096)
def _tail(sharpness: Fraction, margin: int, degree: int) -> arb:
    kappa, last = ball(sharpness), margin + TERMS + 1
    terms = [arb(j) ** degree * (-kappa * (j - HALF)).exp() for j in range(margin + 1, last)]
    # From j = 61 on consecutive terms have a ratio of at most (62/61)^7 e^{-1} < 1/2: twice the next term.
    return (sum(terms, ZERO) + 2 * arb(last) ** degree * (-kappa * (last - HALF)).exp()).upper()


@lru_cache(maxsize=64)
def rounding(sharpness: Fraction) -> Rounding:
    """The constants for kappa = `sharpness`; refuses one outside the range of the proof."""
    if not SHARPNESS[0] <= sharpness <= SHARPNESS[1]:
        raise Refused(f"the sharpness about {float(sharpness):.6g} is outside the range the theorem was proved for")
    kappa, pi = ball(sharpness), arb.pi()
    sums = [ZERO] * (ORDER + 1)
    for m in range(1, TERMS):
        for k, derivative in enumerate(_derivatives(kappa, m)):
            sums[k] = sums[k] + 2 * abs(derivative)
    v = 2 * pi * pi * TERMS / kappa
    rest = [2 * 2 * 4 * (v + ORDER) * (-v).exp() * (pi / kappa + HALF) ** k for k in range(ORDER + 1)]
    # Phi(2 pi m) = 0 exactly: the weights sum to one.
    omega = (ZERO, *((s + r).upper() for s, r in zip(sums[1:], rest[1:], strict=True)))
    series, square = SeriesAlgebra(ORDER // 2), pi * pi / (kappa * kappa)
    sine = [power(-square, i) / arb.fac_ui(2 * i + 1) for i in range(ORDER // 2 + 1)]  # in powers of z^2
    flat = [power(HALF * HALF, i) / arb.fac_ui(2 * i + 1) for i in range(ORDER // 2 + 1)]
    moments = [c * arb.fac_ui(2 * i) for i, c in enumerate(series.div(flat, sine))]
    return Rounding(sharpness, kappa, tuple(moments), tuple(series.div(sine, flat)), omega)


def _derivatives(kappa: arb, m: int) -> list[arb]:
    """Phi^(k)(2 pi m), k = 0..8. The sine at pi m is exactly zero and the cosine (-1)^m, which balls would only enclose."""
    pi, size = arb.pi(), ORDER + 1
    v = arb_series([2 * pi * pi * m / kappa, pi / kappa], size)
    sign = -1 if m % 2 else 1
    odd = [sign * (-1) ** (k // 2) * power(HALF, k) / arb.fac_ui(k) if k % 2 else ZERO for k in range(size)]
    sine = arb_series(odd, size)
    product = 2 * v / (v.exp() - (-v).exp()) * (sine / arb_series([pi * m, HALF], size))
    return [product[k] * arb.fac_ui(k) for k in range(size)]
