"""Linear attention is a step of gradient descent on the rows of its context, for every context at once.

Statement
    Let rows (x_j, y_j), j = 1, ..., n, and a query x be given, 1 <= n <= N, d features. The tokens are (x_j / n | x_j
    | y_j), N - n zero tokens, and (0 | x | 0). Layers of linear attention whose weights pass the checks below predict
    exactly what gradient descent with the stored steps eta_1, ..., eta_L predicts, w <- w + eta_k mean_j (y_j - w .
    x_j) x_j from w = 0: in real arithmetic, for all rows, answers and queries. If |x| <= bound, |y| <= label_bound
    and the eigenvalues of mean x x^T are at most `high`, then a run in the stored type differs by at most the stated
    bound. With softmax attention (two heads and a sink, or mirrored tokens and one step) the bound holds for both.

Source
    von Oswald et al. 2023 (oswald2023): tokens (x_j, y_j) and linear attention. One looped layer: gatmiry2024.

Differs from the source in
    Keys have coordinates of their own and carry 1/n: no weight depends on the number of rows, unused rows and the query
    add exactly nothing in every layer without a mask (with tokens (x, y) alone the query's own value would enter from
    the second layer on), and the weights hold the steps themselves. Softmax needs a sink: without it two heads give
    mean (s_j - mean s) v_j, which is gradient descent on centred data only.

Proof
    Let r_j = y_j - w . x_j at a row and r = -w . x at the query. Keys of unused rows and of the query are 0, so a layer
    adds -eta_k sum_j (x_i . x_j / n) r_j = -(eta_k mean_j r_j x_j) . x_i at every token, that is: w changes by a step
    of gradient descent. Features and keys are not changed; induction; the read-out is -r at the query. The rest is said
    for registers, which are rows of weight `strength`, and for whitening too, as `in_context_ridge` has them.

    *Norms.* Token j holds a key m_j x_j, features x_j and r_j; m_j is 1/n for rows, `strength` for the registers e_1,
    ..., e_d, and 0 for unused rows and the query. With |r|^2 = sum m_j r_j^2 the map (K r)_i = sum_j (x_i . m_j x_j) r_j
    is symmetric, with the eigenvalues 0 and those of A = sum m_j x_j x_j^T. Layer k is r <- r - eta_k K_k r, where K_k
    belongs to the features of that layer, polynomials of A times x. So r is a polynomial of K applied to r^(0), |r^(0)|
    <= label_bound, and bounds over eigenvalues bound norms. The query q gets -x_q . sum_j m_j x_j r_j, and |sum m_j x_j
    r_j| <= sqrt(b) |r|, b being the largest eigenvalue.

    *Errors.* Let E, F bound the operator norms of the errors of sqrt(m_j) x_j and of sqrt(m_j) (key_j / m_j), and Q that
    of x_q. The matrix sum x_j key_j^T of a run, and K, are off by at most alpha = sqrt(b) (E + F) + E F. A sum over the
    T keys has T + d + 2 roundings in any order. With tau = trace A = sum m_j |x_j|^2 and Cauchy-Schwarz, layer k adds to
    r an error of norm at most

        eta (alpha + gamma (sqrt tau + sqrt d E) (sqrt tau + sqrt d F)) |r| + u (1 + eta (sqrt b + E) (sqrt b + F)) |r|

    plus tiny terms, and to the query the same with |x_q|, Q in place of the first factors. An error that enters after
    layer i reaches the query as x_q . h(A) sum m_j x_j e_j, at most |x_q| reach(i + 1, L) times its norm. Whitened
    features err by E <- |1 - beta A| E + beta alpha (sqrt b + E) + rounding. F starts at u sqrt(tau): a key is rounded.

    *Spectrum.* Layer k turns an eigenvalue t_k into t_(k+1) = t_k (1 - beta_k t_k)^2 and multiplies what is left to
    learn by 1 - eta_k t_k, largest in size at an end of an interval. The range is cut into cells, and the t_k of each
    are enclosed: f(t) = t (1 - beta t)^2 rises up to 1 / (3 beta), where it is 4 / (27 beta), and falls to 0 at 1 /
    beta. growth(i, k) bounds the product over i <= j < k, reach(i, k) bounds sqrt(t) |h|, h = sum_(i <= j < k) eta_j
    (t_j / t) prod_(i <= l < j) (1 - eta_l t_l), which is (1 - prod_(i <= l < k)) / t as the sum telescopes.

    *Softmax.* With scores eps s, |s| <= S, and v the sum over tokens of r: two heads with scores eps s and -eps s, and
    a sink whose score c gives E = e^c: W (p+ - p-) with W = eta E / (2 eps) (1 + nu) is eta s up to eta |s| ((1 + nu)
    cosh(eps S) - 1) + eta (1 + nu) 2 S cosh(eps S) e^(eps S) T / E, since E p+ = e^(eps s) (1 - Z+ / (E + Z+)); the
    first parts differ by 2 sinh(eps s), |sinh x / x - 1| <= cosh x - 1, and the rest by at most 2 sinh(eps S) Z+ / E +
    e^(eps S) |Z+ - Z-| / E with Z <= T e^(eps S), |Z+ - Z-| <= 2 T sinh(eps S), sinh x <= x cosh x. Without its first
    part this holds for tokens with s = 0. Mirrored tokens (-x_j, -y_j) and one head: sum 2 sinh(eps s_j) r_j / sum 2
    cosh(eps s_j), so with T tokens and W = eta T / (2 eps) (1 + nu) each factor is eta s up to the first part. Shares of
    a run have a relative error omega (scores, exponentials, sum, quotient), which the difference of the heads turns into
    eta (1 + nu) e^(eps S) omega v / eps; v counts unused rows and the query as well: rounding moves them, too. The sink
    looks at itself alone (its query is 2^16 times that of the others), so r stays below the smallest numbers there. QED.

Assumptions
    weights (**checked**): every stored number is the one that the learner has, output weights of softmax up to rounding.
    numbers (**checked**): bounds are found in ball arithmetic, for all eigenvalues up to `high`.
    run (**trusted**): arithmetic is as described in `kernel.rounding`; the context is given in numbers of the type.

Certified
    The statement for all contexts of 1 to N rows; `tolerance` is stated, `margin` is what the bound leaves of it.

Not certified: That gradient descent has converged, or that its prediction is a good one; rounding outside the box.

Example
    >>> from certiformer.axioms.in_context_gradient import run_bound
    >>> from certiformer.kernel.meanings.least_squares import LeastSquares
    >>> numbers = ((0.25,) * 10, (0.0,) * 10, 0.0, 0.0, 3.0, 0.0, 0.0, 1e-12)
    >>> gd = LeastSquares("gd", 3, 20, 1.0, 1.0, "float64", "linear", False, *numbers)
    >>> bool(run_bound(gd) < 1e-12)
    True

Tests: tests/theorems/test_in_context_gradient.py
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from flint import arb, fmpq

from certiformer.kernel import Refused
from certiformer.kernel.balls import INFINITY, ONE, ZERO, ball, decimal, larger, largest, smaller, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.construction import Construction, copy
from certiformer.kernel.files import CONFIG, LEARNER, MODEL
from certiformer.kernel.meanings.learner import larger_reading, most, read_learner, require_tolerance, smaller_reading
from certiformer.kernel.meanings.least_squares import LeastSquares
from certiformer.kernel.rounding import FORMATS, Format, no_overflow
from certiformer.kernel.weights import Tensor, read_model

THEOREM = {
    "id": "axioms.in_context_gradient",
    "title": "Layers of linear attention are steps of gradient descent on the rows of the context.",
    "kind": "exact",
    "sources": ("oswald2023", "gatmiry2024"),
    "verb": "compile",
    "assumptions": (
        ("weights", "every stored number is the one that the learner has", "checked"),
        ("numbers", "the bounds hold for all eigenvalues up to the stated one", "checked"),
        ("run", "a run rounds as kernel.rounding describes, on numbers of the stored type", "trusted"),
    ),
}
NOT_CLAIMED = (
    "That the prediction is a good one: it is that of the algorithm, for whatever rows are given.",
    "Rounding outside the box; in real arithmetic the algorithm is the same there, too.",
)
SELF = 65536.0  # how much harder the sink looks at itself
CELLS = 64
Errors = tuple[arb, arb, arb]  # E, F and Q of the proof
MOST_STEPS = 256  # different ones; the time grows with the square


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    return _learner(files).sentence


def find(files: Files) -> Finding:
    """Why the claim holds, with the proved bound of a run; raises `Refused` or `BadInput`."""
    working_precision()
    learner = _learner(files)
    error = run_bound(learner, require_weights(learner, *read_model(files[CONFIG], files[MODEL])))
    left, bound = require_tolerance(learner.tolerance, error), decimal(error, up=True)
    exactly = "are exactly those of the algorithm" if learner.attention == "linear" else "are those of the algorithm"
    reason = f"the stored weights {exactly}, and a run in {learner.dtype} differs by at most {most(error)}"
    return Finding(reason, {"margin": decimal(left, up=False), "run": bound}, bound)


def _learner(files: Files) -> LeastSquares:
    learner = read_learner(files[LEARNER])
    if not isinstance(learner, LeastSquares) or learner.learner != "gd" or any(learner.whiten):
        raise Refused("the description is not that of gradient descent")
    return learner


def construction(learner: LeastSquares, weights: Sequence[float]) -> Construction:
    """The transformer with these output weights. Its stream is (key m x | features x | left to learn r), for two softmax
    heads also (one, sink); registers are (strength e_i | e_i | 0), then their mirror images or a sink."""
    d, pair = learner.features, learner.attention == "softmax-pair"
    left, one, sink = 2 * d, 2 * d + 1, 2 * d + 2
    mark = {one: 1.0} if pair else {}
    registers = [{i: learner.strength, d + i: 1.0, **mark} for i in range(learner.registers)]
    copies = 2 if learner.attention == "softmax-mirror" else 1
    registers += [{c: -w for c, w in row.items()} for row in registers if copies == 2] + [{one: SELF, sink: 1.0}] * pair
    sizes = (copies * (learner.rows + 1), left + 1, left + (3 if pair else 1))
    kind = "linear" if learner.attention == "linear" else "softmax"
    made = Construction(kind, sizes, [(left, -1.0)], copies * learner.rows, mark, registers)
    looks, shows = ([(one, d, learner.sink)], [(sink, d, 1.0)]) if pair else ([], [])
    for weight, beta in zip(weights, learner.whiten, strict=False):
        made.block()
        asks = [(sign, [*copy(d, d, 0, sign * (learner.small or 1.0)), *looks]) for sign in (1.0, -1.0)[: 1 + pair]]
        key, value = [*copy(0, d), *shows], [(left, 0, 1.0)]
        made.heads(d + pair, 1, [(query, key, value, [(0, left, -sign * weight)]) for sign, query in asks])
        if beta:  # features and keys lose beta times their image under sum_j x_j key_j^T
            made.heads(d, d, [(copy(c, d), copy(0, d), copy(d, d), copy(0, d, c, -beta)) for c in (d, 0)])
    return made.finished(learner.layers if learner.looped else 1, learner.dtype)


def output_weights(learner: LeastSquares) -> list[arb]:
    """W of the proof for every block."""
    factor, count = ONE, arb(2 * (learner.rows + 1 + learner.registers))
    if learner.attention != "linear":
        factor = (arb(learner.sink).exp() if learner.attention == "softmax-pair" else count) / (2 * arb(learner.small))
    return [arb(step) * factor for step in (learner.steps[:1] if learner.looped else learner.steps)]


def require_weights(learner: LeastSquares, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> arb:
    """Refuse anything but the weights of `learner`; returns the relative error of stored output weights, nu (softmax)."""
    wanted = output_weights(learner)
    made = construction(learner, [float(weight.mid()) for weight in wanted])
    if learner.attention == "linear" or config != made.config:
        made.require(config, tensors)
        return ZERO
    stored = [-tensors[f"blocks.{k}.attention.groups.0.output"].data[2 * learner.features] for k in range(len(wanted))]
    construction(learner, stored).require(config, tensors)
    return largest([abs(arb(weight) / exact - 1).upper() for weight, exact in zip(stored, wanted, strict=True)])


class Spectrum(NamedTuple):
    """growth and reach of the proof in rows by i and k - i, bounds of t_k, and of the product of all |1 - eta_k t_k|."""

    rows: list[list[tuple[arb, arb]]]  # a single row where all steps are equal
    lowest: list[arb]
    highest: list[arb]
    left: arb

    def at(self, i: int, k: int) -> tuple[arb, arb]:
        return self.rows[min(i, len(self.rows) - 1)][k - i]


@lru_cache(maxsize=8)
def spectrum(steps: tuple[float, ...], whiten: tuple[float, ...], low: Fraction, high: Fraction) -> Spectrum:
    """The bounds for eigenvalues between `low` and `high`, growth also for 0; `low` may be 0 without whitening."""
    count, whitened = len(steps), any(whiten)
    equal = len({*steps}) == 1 and not whitened
    if (count > MOST_STEPS and not equal) or (whitened and not low > 0):
        raise Refused(f"bounds are for at most {MOST_STEPS} different steps, with whitening for eigenvalues above 0")
    rows = [[(ONE, ZERO)] * (count - i + 1) for i in range(1 if equal else count)]
    lowest, highest, left = [INFINITY] * count, [ZERO] * count, ZERO
    # Cells that are narrow at both ends, where the products vary most; a chain from one end to the other covers all.
    start, end = ball(low).lower(), ball(high).upper()
    turns = [(1 - (arb.pi() * fmpq(i, CELLS)).cos()) / 2 for i in range(1, CELLS)]
    cuts = [start, *((start + (end - start) * turn).mid() for turn in turns), end]
    for cell in ((smaller(p, q), larger(p, q)) for p, q in zip(cuts, cuts[1:], strict=False)):
        bottom, root, factors = cell[0], cell[1].sqrt(), []
        for k, (step, beta) in enumerate(zip(map(arb, steps), map(arb, whiten), strict=True)):
            lowest[k], highest[k] = smaller(lowest[k], cell[0]), larger(highest[k], cell[1])
            factors.append(larger(*(abs(1 - step * t).upper() for t in cell)))
            cell = _whitened(*cell, beta) if beta > 0 else cell
        for i, row in enumerate(rows):
            product, total = ONE, ZERO
            for k in range(i, count):
                total, product = (total + arb(steps[k]) * product).upper(), (product * factors[k]).upper()
                bound = ((1 + product) / bottom).upper() if bottom > 0 else total
                bound = bound if whitened else smaller(bound, total)  # the sum is that of the proof only where t_j = t
                growth, reach = row[k + 1 - i]
                row[k + 1 - i] = larger(growth, product), larger(reach, (bound * root).upper())
            left = left if i else larger(left, product)
    return Spectrum(rows, lowest, highest, left)


def _whitened(p: arb, q: arb, beta: arb) -> tuple[arb, arb]:
    if not beta * q <= 1:
        raise Refused("a step of the whitening is so large that it may lose a direction")
    at_p, at_q = (t * (1 - beta * t) * (1 - beta * t) for t in (p, q))
    top = at_q if 3 * beta * q <= 1 else at_p if 3 * beta * p >= 1 else arb(4) / (27 * beta)
    return larger(smaller(at_p.lower(), at_q.lower()), ZERO), top.upper()


class LearnerRun:
    """How far a run may be from the steps of a learner on its box; `strength` is the one that the weights hold."""

    def __init__(self, learner: LeastSquares, form: Format, spectrum: Spectrum, deviation: arb = ZERO):
        self.learner, self.form, self.spectrum = learner, form, spectrum
        self.relative, self.each = softmax_errors(learner, form, deviation)
        d, strength, bound = learner.features, arb(learner.strength), ball(larger_reading(learner.bound))
        self.tokens, self.root = learner.rows + 1 + learner.registers, arb(d).sqrt()
        self.reach = (self.root * bound).upper()  # of a row and of the query
        trace = (d * (bound * bound + strength)).upper()
        self.tops = [high.sqrt() for high in spectrum.highest]
        self.wholes = [smaller(trace, (d * high).upper()).sqrt().upper() for high in spectrum.highest]
        self.mass = (1 + learner.registers * strength).upper().sqrt()
        self.least = (smaller(ONE / learner.rows, strength) if learner.registers else ONE / learner.rows).lower()  # m_j
        self.keys = (form.unit * trace.sqrt() + self._tiny(ONE, ONE)).upper()  # F at first
        self.gamma = form.gamma(self.tokens + d + 4)

    def bound(self) -> arb:
        """How far the prediction of a run may be from that of the algorithm."""
        learner, unit, at, count = self.learner, self.form.unit, self.spectrum.at, self.learner.layers
        errors, reach, label = (ZERO, self.keys, ZERO), self.reach, ball(larger_reading(learner.label_bound))
        # sum |r_j| <= spread |r|: n rows of weight 1/n, and registers.
        spread = learner.rows + ((learner.registers / arb(learner.strength)).sqrt() if learner.registers else ZERO)
        entered: list[arb] = []
        total, still = ZERO, ZERO  # of the query; of unused rows, which only softmax moves
        for k, (step, beta) in enumerate(zip(map(arb, learner.steps), map(arb, learner.whiten), strict=True)):
            size = (at(0, k)[0] * label + sum((at(i + 1, k)[0] * e for i, e in enumerate(entered)), ZERO)).upper()
            answer = at(0, k)[1] * label + sum((at(i + 1, k)[1] * e for i, e in enumerate(entered)), ZERO)
            answer = (self.reach * answer + total).upper()
            each = self.each * step * (spread * size + answer + learner.rows * still)
            loose = (2 * each + self._tiny(size, step)).upper()
            frames = ((errors[0], self.tops[k], self.wholes[k] + self.root * errors[0], size),
                      (errors[2], reach, reach + errors[2], answer))  # fmt: skip
            row, asked = (self._added(k, step, errors[1], size, *frame) for frame in frames)
            entered.append((row + self.mass * loose).upper())
            total, still = (total + asked + loose).upper(), (still * (1 + unit) + loose - each).upper()
            if beta > 0:
                errors, reach = self.whitened(k, beta, errors, reach)
        last = sum((at(i + 1, count)[1] * error for i, error in enumerate(entered)), ZERO)
        return (total + self.reach * last).upper()

    def _added(self, k: int, step: arb, f: arb, size: arb, error: arb, norm: arb, wide: arb, own: arb) -> arb:
        """The error of a step at tokens with features of this error, norm and Frobenius norm and an r of size `own`."""
        top, whole = self.tops[k], self.wholes[k]
        share = (self.gamma + self.relative) * wide * (whole + self.root * f)
        rounding = 2 * own + 2 * step * ((norm + error) * (top + f) + share) * size
        return step * (error * (top + f) + norm * f + share) * size + self.form.unit * rounding

    def whitened(self, k: int, beta: arb, errors: Errors, reach: arb) -> tuple[Errors, arb]:
        """The errors, and the bound of |x_q|, after layer k has whitened features and keys."""
        top, whole, (e, f, q) = self.tops[k], self.wholes[k], errors
        alpha, product = top * (e + f) + e * f, (whole + self.root * e) * (whole + self.root * f)
        kept = larger(*(abs(1 - beta * t[k]).upper() for t in (self.spectrum.lowest, self.spectrum.highest)))

        def after(error: arb, norm: arb, wide: arb) -> arb:
            rounding = self.gamma * beta * wide * product + 2 * self.form.unit * wide * (1 + beta * product)
            return (kept * error + beta * alpha * (norm + error) + rounding + self._tiny(ONE, beta)).upper()

        rows = [after(error, top, whole + self.root * error) for error in (e, f)]
        return (rows[0], rows[1], after(q, reach, reach + q)), (reach * kept).upper()

    def _tiny(self, size: arb, step: arb) -> arb:
        """What numbers below the smallest normal one may cost: at most one for every operation, times what follows it."""
        biggest = 2 + self.reach + arb(self.learner.strength) + (size + 1) / self.least.sqrt()
        no_overflow(self.form, biggest * biggest * biggest * (1 + step) * 4 * self.tokens)
        numbers = self.form.tiny * 8 * (self.learner.features + 2) * (self.tokens + 2)
        return (numbers * (1 + step) * biggest * biggest * biggest / self.least).upper()


def softmax_errors(learner: LeastSquares, form: Format, deviation: arb) -> tuple[arb, arb]:
    """What softmax attention adds: an error relative to each score, and one for each |r_j| whatever its score."""
    if learner.attention == "linear":
        return ZERO, ZERO
    d, small, c = learner.features, arb(learner.small), arb(learner.sink)
    bound, strength = ball(larger_reading(learner.bound)), arb(learner.strength)
    score = largest([d * bound * bound] + [bound, strength * bound, strength] * bool(learner.registers))  # S
    top = (small * score).upper()
    count, pair = learner.rows + 1 + learner.registers, learner.attention == "softmax-pair"
    tokens = count + 1 if pair else 2 * count
    scores, around = form.gamma(d + 4) * top + 3 * form.unit * (c + top), form.exp * form.unit
    omega = (2 * scores).exp() * (1 + around) / ((1 - around) * (1 - form.gamma(tokens + 2)))
    omega = omega * (1 + form.divide * form.unit) * (1 + form.gamma(tokens + 6)) - 1
    each = (1 + deviation) * top.exp() * omega / small
    if pair:
        each = each + (1 + deviation) * 2 * score * top.cosh() * top.exp() * count / c.exp()
        weight = (1 + deviation) * c.exp() / small  # the sink's own r: the shares of other tokens are at most 2 t there
        each = each + 4 * learner.layers * weight * weight * arb(max(learner.steps)) * form.tiny
    return ((1 + deviation) * top.cosh() - 1).upper(), each.upper()


def eigenvalues(learner: LeastSquares, shift: Fraction) -> tuple[Fraction, Fraction]:
    """The range of the bounds, wider than that of the claim by `shift`; descent alone may meet every one from 0 on."""
    low = smaller_reading(learner.low) - shift if learner.strength else Fraction(0)
    if learner.strength and not low > 0:
        raise Refused("the stored strength is too far from that of the claim")
    return low, larger_reading(learner.high) + shift


def run_bound(learner: LeastSquares, deviation: arb = ZERO, shift: Fraction = Fraction(0)) -> arb:
    """How far a run may be from the steps of `learner`; `shift`: how far stored registers move the eigenvalues."""
    working_precision()
    form, values = FORMATS[learner.dtype], spectrum(learner.steps, learner.whiten, *eigenvalues(learner, shift))
    bound = LearnerRun(learner, form, values, deviation).bound()
    if not bound.is_finite():
        raise Refused("a run has no finite bound: the steps may grow beyond all numbers")
    return bound
