"""How far a run of a least-squares learner may be from the algorithm that `learner.json` describes.

`strength` is the one that the weights hold here.

*Rows and norms.* Token j holds a key m_j x_j, its features x_j and what is left to learn r_j. The m_j are 1/n for the
n rows of a context and `strength` for the registers e_1, ..., e_d; they are 0 for unused rows and for the query. With
|r|^2 = sum m_j r_j^2 the map (K r)_i = sum_j (x_i . m_j x_j) r_j is symmetric, and its eigenvalues are 0 and those of
A = sum m_j x_j x_j^T. Layer k is r <- r - eta_k K_k r, where K_k belongs to the features x^(k) of that layer, which
are polynomials of A times x. So r is a polynomial of K applied to r^(0), |r^(0)| <= label_bound, and bounds over the
eigenvalues (`learner_spectrum`) bound norms. The query q gets -x_q . sum_j m_j x_j r_j, and |sum m_j x_j r_j| <=
sqrt(b) |r|, b being the largest eigenvalue.

*Errors.* Let E, F bound the operator norms of the errors of sqrt(m_j) x_j and of sqrt(m_j) (key_j / m_j), and Q the
error of x_q. Then the matrix sum x_j key_j^T of a run is off by at most alpha = sqrt(b) (E + F) + E F, and so is K. A
sum over the keys has T + d + 2 roundings in all, whatever its order. With tau = trace A = sum m_j |x_j|^2 and
Cauchy-Schwarz, layer k adds to r an error of norm at most

    eta (alpha + gamma (sqrt tau + sqrt d E) (sqrt tau + sqrt d F)) |r|
        + u (1 + eta (sqrt b + E) (sqrt b + F)) |r| + tiny terms

and to the query the same with |x_q|, Q in place of the first factors. An error that enters after layer i reaches the
query as x_q . h(A) sum m_j x_j e_j, at most |x_q| reach(i + 1, L) times its norm. Features that are whitened err
by E <- |1 - beta A| E + beta alpha (sqrt b + E) + rounding, and so on. F starts at u sqrt(tau): a key x_j / n is
rounded once.

*Softmax.* With scores eps s, |s| <= S, and v the sum over tokens of r:

* Two heads with scores eps s and -eps s, and a sink whose score c gives E = e^c: W (p+ - p-) with W = eta E / (2 eps)
  (1 + nu) is eta s up to eta |s| ((1 + nu) cosh(eps S) - 1) + eta (1 + nu) 2 S cosh(eps S) e^(eps S) T / E. Proof: E
  p+ = e^(eps s) (1 - Z+ / (E + Z+)); the first parts differ by 2 sinh(eps s), |sinh x / x - 1| <= cosh x - 1, and the
  rest by at most 2 sinh(eps S) Z+ / E + e^(eps S) |Z+ - Z-| / E with Z <= T e^(eps S), |Z+ - Z-| <= 2 T sinh(eps S),
  sinh x <= x cosh x. The same bound without its first part holds for tokens with s = 0.
* Mirrored tokens (-x_j, -y_j) and one head: sum 2 sinh(eps s_j) r_j / sum 2 cosh(eps s_j), so with T tokens and W =
  eta T / (2 eps) (1 + nu) each factor is eta s up to eta |s| ((1 + nu) cosh(eps S) - 1).

Shares of a run have a relative error omega (scores, exponentials, sum, quotient), which the difference of the heads
turns into eta (1 + nu) e^(eps S) omega v / eps. Here v counts unused rows and the query as well: rounding moves them,
too. The sink looks at itself alone (its query is 2^16 times that of the others), so r stays below the smallest
numbers there.

Without the sink two heads give mean (s_j - mean s) v_j, up to (7/6) eps^2 S^3 max |v|: the third derivative of the
mean of v under weights exp(eps s) is E (v - Ev)(s - Es)^3 - 3 cov(v, s) var(s), at most (4 + 3) S^3 max |v|, and the
second one cancels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from flint import arb

from certiformer.axioms.learner_spectrum import Spectrum
from certiformer.kernel.balls import ONE, ZERO, ball, larger, smaller
from certiformer.kernel.meanings.learner import larger_reading
from certiformer.kernel.meanings.least_squares import LeastSquares
from certiformer.kernel.rounding import Format, no_overflow


class Attention(NamedTuple):
    """What the kind of attention adds: an error relative to each score, and one for each |r_j| whatever its score."""

    relative: arb
    each: arb


EXACT = Attention(ZERO, ZERO)


@dataclass(frozen=True)
class Errors:
    """E, F and Q of the module docstring."""

    features: arb
    keys: arb
    query: arb


class LearnerRun:
    """The bound of the module docstring for one learner on its box."""

    def __init__(self, learner: LeastSquares, form: Format, spectrum: Spectrum, softmax: Attention = EXACT):
        self.learner, self.form, self.spectrum, self.softmax = learner, form, spectrum, softmax
        d, strength = learner.features, arb(learner.strength)
        self.tokens = learner.rows + 1 + learner.registers
        bound = ball(larger_reading(learner.bound))
        self.reach = (arb(d).sqrt() * bound).upper()  # of a row and of the query
        self.trace = (d * (bound * bound + strength)).upper()
        self.mass = (1 + learner.registers * strength).upper()
        self.least = (arb(1) / learner.rows).lower()  # of the weights of rows
        if learner.registers:
            self.least = smaller(self.least, strength)
        self.gamma = form.gamma(self.tokens + d + 4)
        # sum |r_j| <= spread |r|: n rows of weight 1/n, and registers.
        registers = (learner.registers / strength).sqrt() if learner.registers else ZERO
        self.spread = (learner.rows + registers).upper()

    def bound(self) -> arb:
        """How far the prediction of a run may be from that of the algorithm."""
        learner, spectrum, count = self.learner, self.spectrum, self.learner.layers
        errors = Errors(ZERO, (self.form.unit * self.trace.sqrt() + self._tiny(ONE, ONE)).upper(), ZERO)
        reach, label = self.reach, ball(larger_reading(learner.label_bound))
        entered: list[arb] = []
        total, still = ZERO, ZERO  # of the query; of unused rows, which only softmax moves
        for k in range(count):
            step, beta = arb(learner.steps[k]), arb(learner.whiten[k])
            grown = sum((spectrum.growth(i + 1, k) * e for i, e in enumerate(entered)), ZERO)
            size = (spectrum.growth(0, k) * label + grown).upper()
            arrived = sum((spectrum.reach(i + 1, k) * e for i, e in enumerate(entered)), ZERO)
            answer = (self.reach * (spectrum.reach(0, k) * label + arrived) + total).upper() if k else ZERO
            scattered = self.spread * size + answer + learner.rows * still
            entered.append(self._row_error(k, step, errors, size, scattered))
            total = (total + self._query_error(k, step, errors, reach, size, answer, scattered)).upper()
            still = (still * (1 + self.form.unit) + self._each(step, scattered) + self._tiny(size, step)).upper()
            if beta > 0:
                errors, reach = self.whitened(k, beta, errors, reach)
        for i, error in enumerate(entered):
            total = total + self.reach * spectrum.reach(i + 1, count) * error
        return total.upper()

    def _row_error(self, k: int, step: arb, errors: Errors, size: arb, scattered: arb) -> arb:
        top = self.spectrum.highest[k].sqrt()
        e, f, whole = errors.features, errors.keys, self._whole(k)
        alpha = top * (e + f) + e * f
        share = (self.gamma + self.softmax.relative) * (whole + self._root * e) * (whole + self._root * f)
        rounding = self.form.unit * (2 + 2 * step * (top + e) * (top + f) + 2 * step * share)
        error = (step * (alpha + share) + rounding) * size
        return (error + self.mass.sqrt() * (2 * self._each(step, scattered) + self._tiny(size, step))).upper()

    def _query_error(
        self, k: int, step: arb, errors: Errors, reach: arb, size: arb, answer: arb, scattered: arb
    ) -> arb:
        top = self.spectrum.highest[k].sqrt()
        f, q = errors.keys, errors.query
        model = q * (top + f) + reach * f
        share = (self.gamma + self.softmax.relative) * (reach + q) * (self._whole(k) + self._root * f)
        rounding = self.form.unit * (2 * answer + 2 * step * ((reach + q) * (top + f) + share) * size)
        return step * (model + share) * size + rounding + 2 * self._each(step, scattered) + self._tiny(size, step)

    def whitened(self, k: int, beta: arb, errors: Errors, reach: arb) -> tuple[Errors, arb]:
        """The errors, and the bound of |x_q|, after layer k has whitened features and keys."""
        low, high = self.spectrum.lowest[k], self.spectrum.highest[k]
        top, whole, root = high.sqrt(), self._whole(k), self._root
        e, f, q = errors.features, errors.keys, errors.query
        alpha = top * (e + f) + e * f
        kept = larger(abs(1 - beta * low).upper(), abs(1 - beta * high).upper())
        product = (whole + root * e) * (whole + root * f)

        def after(error: arb, size: arb, frame: arb) -> arb:
            rounding = self.gamma * beta * frame * product + 2 * self.form.unit * frame * (1 + beta * product)
            return (kept * error + beta * alpha * (size + error) + rounding + self._tiny(ONE, beta)).upper()

        found = Errors(after(e, top, whole + root * e), after(f, top, whole + root * f), after(q, reach, reach + q))
        return found, (reach * kept).upper()

    @property
    def _root(self) -> arb:
        return arb(self.learner.features).sqrt()

    def _whole(self, k: int) -> arb:
        """A bound of sqrt(tau)."""
        return smaller(self.trace, (self.learner.features * self.spectrum.highest[k]).upper()).sqrt().upper()

    def _each(self, step: arb, scattered: arb) -> arb:
        return step * self.softmax.each * scattered

    def _tiny(self, size: arb, step: arb) -> arb:
        """What numbers below the smallest normal one may cost: at most one for every operation, times what follows it."""
        biggest = 2 + self.reach + arb(self.learner.strength) + (size + 1) / self.least.sqrt()
        no_overflow(self.form, biggest * biggest * biggest * (1 + step) * 4 * self.tokens)
        operations = 8 * (self.learner.features + 2) * (self.tokens + 2)
        return (self.form.tiny * operations * (1 + step) * biggest * biggest * biggest / self.least).upper()


def softmax_attention(learner: LeastSquares, form: Format, deviation: arb) -> Attention:
    """The extra errors of softmax attention whose output weight is off by the relative `deviation` (nu)."""
    d, small, c = learner.features, arb(learner.small), arb(learner.sink)
    bound, strength = ball(larger_reading(learner.bound)), arb(learner.strength)
    largest = d * bound * bound
    if learner.registers:
        for other in (bound, strength * bound, strength):
            largest = larger(largest.upper(), other.upper())
    top = (small * largest).upper()  # eps S
    count = learner.rows + 1 + learner.registers
    tokens = 2 * count if learner.attention == "softmax-mirror" else count + 1
    relative = (1 + deviation) * top.cosh() - 1
    each = ZERO
    if learner.attention == "softmax-pair":
        each = (1 + deviation) * 2 * largest * top.cosh() * top.exp() * count / c.exp()
    scores = form.gamma(d + 4) * top + 3 * form.unit * (c + top)
    around = form.exp * form.unit
    omega = (2 * scores).exp() * (1 + around) / ((1 - around) * (1 - form.gamma(tokens + 2)))
    omega = omega * (1 + form.divide * form.unit) * (1 + form.gamma(tokens + 6)) - 1
    each = each + (1 + deviation) * top.exp() * omega / small
    if learner.attention == "softmax-pair":
        # The sink's own r: both heads give the other tokens a share of at most 2 t there, and its own share is 1.
        weight = (1 + deviation) * c.exp() / small
        each = each + 4 * learner.layers * weight * weight * arb(max(learner.steps)) * form.tiny
    return Attention(relative.upper(), each.upper())
