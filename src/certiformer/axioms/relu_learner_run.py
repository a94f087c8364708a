"""How far a run of a learner with ReLU attention may be from its statement; `axioms.in_context_relu` derives it."""

from __future__ import annotations

from typing import NamedTuple

from flint import arb

from certiformer.kernel.balls import HALF, INFINITY, ONE, ZERO, ball, larger, smaller
from certiformer.kernel.meanings.learner import larger_reading
from certiformer.kernel.meanings.relu_learner import ReluLearner
from certiformer.kernel.rounding import Format, no_overflow


class Drift(NamedTuple):
    """Bounds of the norm of the weights, of their error, and of the error of the prediction, after the last step."""

    norm: arb
    weights: arb
    prediction: arb


class RunBounds:
    """The bounds of one learner in one format; `polygon` is the error of its polygon."""

    def __init__(self, learner: ReluLearner, form: Format, polygon: arb) -> None:
        self.learner, self.form, self.polygon, logistic = learner, form, polygon, bool(learner.knots)
        self.rate, self.decay, self.threshold = arb(learner.rate), arb(learner.decay), arb(learner.threshold)
        self.root = arb(learner.features).sqrt()
        self.row = self.root * ball(larger_reading(learner.bound))  # B
        self.labels = ball(larger_reading(learner.label_bound))
        self.bends = sum((abs(arb(b)) for b in learner.bends), ZERO) if logistic else arb(2)
        # K: the labels or the outermost knot.
        self.offset = larger(*(abs(arb(learner.knots[i])) for i in (0, -1))) if logistic else self.labels
        # Terms that a weight is the sum of: itself, the heads of the gradient, the labels, the decay.
        self.terms = 1 + (len(learner.knots) + 1 if logistic else 2) + bool(learner.decay)
        steep = self.rate * ball(larger_reading(learner.spectrum)) * (arb("0.25") if logistic else ONE)
        self.factor = larger(abs(1 - self.decay).upper(), abs(1 - self.decay - steep).upper())  # rho
        self.room = (2 - self.decay - steep).lower()  # mu; where it is negative nothing bounds rho by 1

    def step(self, norm: arb) -> arb:
        """What rounding adds to a step from weights of a run with this norm at most."""
        form, n, d = self.form, self.learner.rows, self.learner.features
        score = norm * self.row + self.offset  # S
        faint = form.tiny * (1 + norm + self.row + self.offset + score)
        score_error = form.gamma(d + 1) * score + 4 * (d + 2) * faint
        reach = score + score_error
        mixed = self.bends * self.row * (score_error + form.gamma(n + form.divide + 2) * reach)
        mixed = mixed + 8 * (n + 2) * self.root * (1 + self.bends) * faint
        if self.learner.knots:  # the labels: a head whose score is exact and at most 1
            mixed = mixed + form.gamma(n + form.divide + 1) * self.row + 8 * (n + 2) * self.root * faint
        whole = self.bends * self.row * reach + (self.row if self.learner.knots else ZERO) + mixed
        size = norm * (1 + self.decay) + self.rate * whole
        error = self.rate * mixed + form.gamma(self.terms + 1) * size
        error = error + 8 * self.terms * self.root * (1 + self.rate + self.decay + size) * faint
        if self.learner.threshold:
            shrunk = 4 * (size + error) + 2 * self.root * self.threshold
            error = error + form.gamma(8) * shrunk + 32 * self.root * form.tiny
        no_overflow(form, 8 * (reach + whole + size) * (1 + self.bends + self.rate))
        return error.upper()

    def answer(self, norm: arb, error: arb) -> arb:
        """The error of a prediction by weights of this norm at most, themselves wrong by `error`."""
        form, d, count = self.form, self.learner.features, len(self.learner.knots)
        faint = form.tiny * (1 + norm + self.row)
        score_error = form.gamma(d + 1) * norm * self.row + 4 * (d + 2) * faint
        total = error * self.row + 2 * score_error + form.gamma(3) * (norm * self.row + 2 * score_error) + 8 * faint
        if not count:
            return total.upper()
        size = norm * self.row + total + self.offset
        rounding = form.gamma(count + 3) * self.bends * size + 8 * count * form.tiny * (1 + size)
        return (total / 4 + self.polygon + rounding).upper()

    def drift(self) -> Drift:
        """All steps with the smallest of the three bounds of the norm of the exact weights, then the prediction."""
        logistic, norm, error = bool(self.learner.knots), ZERO, ZERO
        label, penalty = HALF if logistic else self.labels, INFINITY
        start = arb(2).log() if logistic else label * label / 2  # the objective at w = 0
        if self.learner.threshold:
            penalty = start * self.rate / self.threshold
        elif self.learner.decay:
            penalty = (2 * start * self.rate / self.decay).sqrt()
        for step in range(1, self.learner.steps + 1):
            added = self.step((norm + error).upper()) + self.rate * self.row * self.polygon
            error = (self.factor * error + added).upper()
            norm = smaller((self.factor * norm + self.rate * self.row * label).upper(), penalty.upper())
            if self.room > 0:
                norm = smaller(norm, (2 * step * start * self.rate / self.room).sqrt().upper())
        return Drift(norm, error, self.answer((norm + error).upper(), error))
