"""Ridge regression for several strengths at once, validation, and the best of them, inside one transformer.

Statement
    Let a choice be described as in `meanings.selection`, and let the tokens be those of a context with n training rows, m
    validation rows, n + m <= N, and a query: (x_j | x_j / n | 0 | y_j | 0 | 0) for a training row, (x_j | 0 | x_j / m |
    y_j | y_j / m | 0) for a validation row, (x | 0 | 0 | 0 | 0 | 1) for the query, zeros for unused rows. If the stored
    weights are those of the construction below, entry by entry, then for *every* context and query, L passes compute in
    real arithmetic exactly the L steps, the validation losses and the prediction of the description. So, whenever the
    smallest validation loss leads by at least `gap`, the prediction is that of its strength, exactly; otherwise it is a
    convex combination of predictions whose losses are less than `gap` above the smallest. If moreover |x_ij| <= bound,
    |y_j| <= label_bound, no eigenvalue of the mean of x x^T over the training rows exceeds `spectrum`, all these are
    numbers of the stored type, and the smallest loss leads by at least the stated `lead`, then a run in the stored
    type chooses the same strength, with the share 1, and predicts within the stated bound.

Source: Bai, Chen, Wang, Xiong, Mei 2023 (bai2023), proposition 15 and theorem 16.

Differs from the source in
    As in `in_context_relu` only the query token learns, and values that are zero where nothing counts replace masks. Losses
    are squares, computed exactly as products of scores and values. The shares are built without the minimum, by three
    layers of hidden units, and add up to exactly 1 on every context.

Proof
    *Steps.* For every k the heads of block 0 are those of `in_context_relu` with w_k, and they add to w_k only. At tokens
    other than the query all queries that read w or the mark are 0, so nothing is added there. The hidden units of block 0
    set everything after the weights to 0.
    *Fits.* Block 1 has four heads for every k. With queries +-x_i / m, keys w_k of token j (0 except at the query token)
    and the mark of j as value, two of them add max(w_k . x_i / m, 0) - max(-w_k . x_i / m, 0) = w_k . x_i / m to the fit of
    every validation row i; at all other tokens their queries are 0. With queries +-w_k and keys x_j the other two add
    w_k . x to the prediction of the query, as in `in_context_relu`, and at other tokens nothing, since there w_k = 0.
    *Losses.* In block 2 the scores at the query are +-(w_k . x_j - y_j) = +-r_j and the values (fit of j) - y_j / m:
    that is r_j / m at validation rows and 0 elsewhere. So max(r_j, 0) r_j / m - max(-r_j, 0) r_j / m = r_j^2 / m is
    added, and the sum is the loss L_k. At other tokens the scores are 0, so losses, and all that follows, are 0 there.
    *Shares.* The hidden units of block 2 are max((L_k - L_l) / gap, 0) for l != k, added up to m_k. Those of block 3 give
    b_k = max(1 - m_k, 0), those of block 4 s_k = max(1 - b_1 - ... - b_k, 0) for k < K, s_0 = 1, and the share of k is
    s_(k-1) - s_k, with s_K = 0. A k with the smallest loss has m_k = 0 and b_k = 1. So s_K would be 0 in any case,
    s decreases from 1 to 0, and the shares are nonnegative and add up to 1. A share is positive only if b_k > 0 (else
    s_k = s_(k-1)), that is m_k < 1, so L_k - min L < gap. If all other losses are at least `gap` above the smallest,
    then all other bids are 0 and the share of the best is 1.
    *Answer.* In block 5 the head of k has the score max(share_k, 0) = share_k at the query, with itself, 0 with others,
    and the prediction of k as value. By induction over the passes, each of which begins by erasing: QED.

    *Runs.* Each w_k is that of `in_context_relu`, with its error E and norm v in a run; let B and S = v B + label_bound
    be as there, |r| <= S, and g = gamma_(d + divide + 4). A score errs by e = gamma_(d+1) S. The fit of a validation
    row is two heads of d products each with x_j / m, which is rounded; with y_j / m and one subtraction the value errs
    by at most 6 g S / m. The sum over at most N rows errs by e S + (S + e) 6 g S + gamma_N (S + e) (S + 6 g S); there
    are two such sums and two additions. From w_k to its run the exact loss moves by at most 2 S E B. In all the loss
    errs by D. Let the real lead be at least (gap + 2 D) (1 + 4 u)^2: then in the run the loss of every other k exceeds
    that of the best by gap (1 + u) at least, so its m_k is at least 1, as sums of nonnegative numbers never round below
    a term, and its bid is 0; the best has m = 0 and bids 1. Bids and shares are 0 and 1, exact, and the answer is the
    prediction of the best as the run has it. QED.

    The margin is how far the longest step is from 2, where it would stop being a contraction on contexts of the
    stated spectrum: max_k (decay_k + rate_k spectrum) <= 2.

Assumptions
    form (**checked**): six blocks of ReLU attention and ReLU units, applied once for every step.
    weights (**checked**): every stored number is the one that the construction calls for.
    step (**checked**): no step is longer than 2 in terms of the stated spectrum.
    run (**trusted**): arithmetic is as described in `kernel.rounding`; x_j / n, x_j / m, y_j / m are rounded once.

Certified: The statement, for all contexts at once.

Not certified
    Runs where the lead is smaller; that the steps have converged; that validation finds the best strength for new data.

Example
    >>> from certiformer.axioms.in_context_selection import construction
    >>> from certiformer.kernel.meanings.selection import Selection
    >>> numbers = dict(rates=(0.5, 0.25), decays=(0.125, 0.25), gap=0.5, bound=1.0, label_bound=1.0, spectrum=2.0)
    >>> made = construction(Selection("selection", features=2, rows=8, validation=2, steps=5, dtype="float64", **numbers))
    >>> len(made.config["blocks"]), made.config["width"]
    (6, 26)

Tests: tests/theorems/test_in_context_selection.py
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from flint import arb

from certiformer.axioms.relu_learner_run import RunBounds
from certiformer.kernel import Refused
from certiformer.kernel.balls import ZERO, ball, decimal, larger, smaller, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.construction import Construction, Entries, Head, copy, eraser
from certiformer.kernel.files import CONFIG, LEARNER, MODEL
from certiformer.kernel.meanings.learner import larger_reading, most, read_learner
from certiformer.kernel.meanings.relu_learner import ReluLearner
from certiformer.kernel.meanings.selection import Selection
from certiformer.kernel.rounding import FORMATS, Format, NoBound, no_overflow
from certiformer.kernel.weights import read_model

THEOREM = {
    "id": "axioms.in_context_selection",
    "title": "ReLU attention learns with several ridge strengths and predicts with the one that validates best.",
    "kind": "exact",
    "sources": ("bai2023",),
    "verb": "compile",
    "assumptions": (
        ("form", "six blocks of ReLU attention and ReLU units, once for every step", "checked"),
        ("weights", "every stored number is the one that the description calls for", "checked"),
        ("step", "no step is longer than 2 in terms of the stated spectrum", "checked"),
        ("run", "a run rounds as kernel.rounding describes; quotients of the data are rounded once", "trusted"),
    ),
}

NOT_CLAIMED = (
    "Which strength a run chooses where the lead in validation loss is smaller than stated.",
    "That the steps have converged, or that the strength that validates best is best for new data.",
)


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    learner = _learner(files)
    try:
        bounds = _bounds(learner)
    except Refused:
        return learner.sentence(None, None)
    bound, lead = (most(value) for value in (bounds.prediction, bounds.lead))
    return learner.sentence(bound, lead)


def find(files: Files) -> Finding:
    """Why the claim holds, with the gap and the margin; raises `Refused` or `BadInput`."""
    working_precision()
    learner = _learner(files)
    made = construction(learner)
    made.require(*read_model(files[CONFIG], files[MODEL]))
    bounds = _bounds(learner)
    margin, bound = decimal(bounds.room, up=False), decimal(bounds.prediction, up=True)
    gap, lead = decimal(arb(learner.gap), up=True), decimal(bounds.lead, up=True)
    reason = (
        f"all weights are the {made.count:,} numbers that learning, validation and choice need, and zeros; a lead of {gap}"
        f" in validation loss decides, in a run in {learner.dtype} one of {lead}, which then is within {bound}; decay plus"
        f" rate times curvature is at least {margin} below 2, so errors do not grow"
    )
    parameters: dict[str, int | str] = {"steps": learner.steps, "strengths": len(learner.rates)}
    return Finding(reason, {**parameters, "margin": margin, "gap": gap, "lead": lead}, bound)


def _learner(files: Files) -> Selection:
    learner = read_learner(files[LEARNER])
    if not isinstance(learner, Selection):
        raise Refused(f"the theorem in_context_selection does not speak of the learner {learner.learner}")
    return learner


class Choice(NamedTuple):
    """The room of the longest step, the largest error of a prediction, and the lead that decides in a run."""

    room: arb
    prediction: arb
    lead: arb


@lru_cache(maxsize=8)
def _bounds(learner: Selection) -> Choice:
    """What runs may do; raises `Refused` where nothing can be said."""
    working_precision()
    form, room, prediction, loss = FORMATS[learner.dtype], arb(2), ZERO, ZERO
    try:
        for rate, decay in zip(learner.rates, learner.decays, strict=True):
            box = (learner.bound, learner.label_bound, learner.spectrum)
            numbers = (rate, decay, 0.0, (), (), *box)
            sizes = (learner.features, learner.rows, learner.steps, learner.dtype)
            own = RunBounds(ReluLearner("relu-least-squares", *sizes, *numbers), form, ZERO)
            if not own.room >= 0:
                raise Refused(
                    "the steps are too long for the stated spectrum, so the weights may grow from step to step"
                )
            norm, weights, error = own.drift()
            room, prediction = smaller(room, own.room), larger(prediction, error)
            loss = larger(loss, _loss_error(learner, form, own.row, (norm + weights).upper(), weights))
    except NoBound as reason:
        raise Refused(f"a run in {learner.dtype} has no error bound: {reason}") from None
    lead = ((arb(learner.gap) * (1 + 4 * form.unit) + 2 * loss + 8 * form.tiny) * (1 + 4 * form.unit)).upper()
    if not (lead.is_finite() and prediction.is_finite()):
        raise Refused(f"a run in {learner.dtype} has no error bound: it grows beyond all numbers")
    return Choice(room, prediction, lead)


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


def construction(learner: Selection) -> Construction:
    """The transformer of the statement: coordinates x, x / n, x / m, y, y / m, mark, w_1 .. w_K, then K each of fit,
    prediction, loss, excess, bid and share, and the answer."""
    d, count, signs = learner.features, len(learner.rates), (1.0, -1.0)
    y, y_part, mark, first = 3 * d, 3 * d + 1, 3 * d + 2, 3 * d + 3
    slots = first + count * d
    fit, prediction, loss, excess, bid, share = (range(slots + i * count, slots + (i + 1) * count) for i in range(6))
    answer = slots + 6 * count
    here: Entries = [(mark, 0, 1.0)]
    read = [(c, 1.0) for c in (answer, *share, *loss)]
    made = Construction("relu", (learner.rows + 1, first, answer + 1), read, learner.rows)
    weights = [*enumerate(range(first, slots, d))]  # k and the first coordinate of w_k

    def residual(w: int, sign: float) -> tuple[Entries, Entries]:
        """Query and key of the score sign (w . x_j - y_j)."""
        return [*copy(w, d, 0, sign), (mark, d, -sign)], [*copy(0, d), (y, d, 1.0)]

    def step(k: int, w: int, sign: float) -> Head:
        return *residual(w, sign), copy(d, d), copy(0, d, w, -sign * learner.rates[k])

    made.block()
    made.heads(d + 1, d, (step(k, w, sign) for k, w in weights for sign in signs))
    made.heads(1, d, ((here, here, copy(w, d), copy(0, d, w, -learner.decays[k])) for k, w in weights))
    made.units(eraser(range(slots, answer + 1)))
    made.block()
    fits = [(copy(2 * d, d, 0, s), copy(w, d), here, [(0, fit[k], s)]) for k, w in weights for s in signs]
    answers = [(copy(w, d, 0, s), copy(0, d), here, [(0, prediction[k], s)]) for k, w in weights for s in signs]
    made.heads(d, 1, (head for both in zip(fits, answers, strict=True) for head in both))
    made.block()
    values = [[(fit[k], 0, 1.0), (y_part, 0, -1.0)] for k, _ in weights]
    made.heads(d + 1, 1, ((*residual(w, s), values[k], [(0, loss[k], s)]) for k, w in weights for s in signs))
    rise, pairs = 1.0 / learner.gap, ((k, other) for k in range(count) for other in range(count) if other != k)
    made.units(({loss[k]: rise, loss[other]: -rise}, 0.0, {excess[k]: 1.0}) for k, other in pairs)
    made.block()
    made.units(({mark: 1.0, excess[k]: -1.0}, 0.0, {bid[k]: 1.0}) for k in range(count))
    made.block()
    left = [{mark: 1.0, **{bid[i]: -1.0 for i in range(k)}} for k in range(count)]
    made.units((left[k], 0.0, {share[k]: 1.0, **({share[k - 1]: -1.0} if k else {})}) for k in range(count))
    made.block()
    made.heads(
        1, 1, (([(share[k], 0, 1.0)], here, [(prediction[k], 0, 1.0)], [(0, answer, 1.0)]) for k in range(count))
    )
    return made.finished(learner.steps, learner.dtype)
