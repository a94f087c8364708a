"""What rounding may do to a choice by validation: the derivation is in `rules.in_context_selection`."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from certiformer.axioms.relu_learner_run import RunBounds
from certiformer.kernel.balls import ZERO, ball, larger
from certiformer.kernel.meanings.learner import larger_reading
from certiformer.kernel.meanings.relu_learner import ReluLearner
from certiformer.kernel.meanings.selection import Selection
from certiformer.kernel.rounding import Format, no_overflow


@dataclass(frozen=True)
class Choice:
    """The room of the longest step, the largest error of a prediction and of a loss, and the lead that decides in a run."""

    room: arb
    prediction: arb
    loss: arb
    lead: arb


def choice_bounds(learner: Selection, form: Format) -> Choice:
    """The bounds over all strengths; raises `NoBound` where a run has none."""
    rooms, prediction, loss = [], ZERO, ZERO
    for rate, decay in zip(learner.rates, learner.decays, strict=True):
        own = RunBounds(_single(learner, rate, decay), form, ZERO)
        rooms.append(own.room)
        if not own.room >= 0:
            break
        drift = own.drift()
        prediction = larger(prediction, drift.prediction)
        loss = larger(loss, _loss_error(learner, form, own.row, (drift.norm + drift.weights).upper(), drift.weights))
    lead = ((arb(learner.gap) * (1 + 4 * form.unit) + 2 * loss + 8 * form.tiny) * (1 + 4 * form.unit)).upper()
    return Choice(min(rooms), prediction, loss, lead)


def _single(learner: Selection, rate: float, decay: float) -> ReluLearner:
    """One of the strengths as a learner of its own."""
    return ReluLearner(
        "relu-least-squares", learner.features, learner.rows, learner.steps, learner.dtype, rate, decay, 0.0, (), (),
        learner.bound, learner.label_bound, learner.spectrum,
    )  # fmt: skip


def _loss_error(learner: Selection, form: Format, row: arb, norm: arb, error: arb) -> arb:
    """|loss of the run - loss| for weights of this norm at most in the run, themselves wrong by `error`."""
    d, count = learner.features, learner.rows
    size = norm * row + ball(larger_reading(learner.label_bound))  # S
    faint = form.tiny * (1 + norm + row + size)
    score = form.gamma(d + 1) * size + 4 * (d + 2) * faint
    value = 6 * form.gamma(d + form.divide + 4) * size + 32 * (d + 2) * count * faint  # times 1 / m
    reach = (size + score) * (size + value)
    mixed = score * size + (size + score) * value + form.gamma(count) * reach + 8 * (count + 1) * (1 + size) * faint
    no_overflow(form, 8 * reach * (1 + 1 / arb(learner.gap)))
    return (2 * size * error * row + 2 * mixed + form.gamma(3) * 2 * reach + 8 * faint).upper()
