"""Passes of two blocks with ReLU attention are steps of gradient descent, logistic regression or the Lasso on the context.

Statement
    Let a learner be described as in `meanings.relu_learner`, and let the tokens be those of a context with n <= N rows
    and a query: (x_j | x_j / n | y_j | 0) for a row, (x | 0 | 0 | 1) for the query, zeros for unused rows. If the stored
    weights are those of the construction below, entry by entry, then for *every* context and query, L passes compute in
    real arithmetic exactly w after L steps of the description, and the prediction w . x (for `relu-logistic` p(w . x),
    if all y_j >= 0). If moreover |x_ij| <= bound, |y_j| <= label_bound, no eigenvalue of mean_j x_j x_j^T exceeds
    `spectrum`, and all these are numbers of the stored type, then a run in the stored type predicts within the stated
    bound of that; for `relu-logistic` with labels 0 and 1, within the stated bound of what the same steps with the
    logistic function itself predict.

Source: Bai, Chen, Wang, Xiong, Mei 2023 (bai2023), theorems 4, 7, 10 and 13.

Differs from the source in
    Only the query token learns, and values x_j / n that are zero outside the rows replace the mask by a large constant: so
    no bound on scores is needed for exactness. Attention is not divided by the number of tokens; 1 / n is in the tokens, so
    short contexts are exact. The polygon is flat far out, so its error holds on the whole line. The errors of the
    polygon and of rounding are carried through all steps, with the contraction where there is a penalty.

Proof
    *Step.* At a token that is not the query w = 0 and the mark is 0, so all its queries are 0, all scores 0, all
    weights max(0, 0) = 0, and nothing is added by attention; its hidden units read zeros (shrinking keeps 0). At the query,
    two heads have the scores s_j - y_j and y_j - s_j with s_j = w . x_j; the values are x_j / n at rows and 0 at the query
    and at unused rows. They add -rate (max(s_j - y_j, 0) - max(y_j - s_j, 0)) x_j / n, summed over j: that is -rate mean_j
    (s_j - y_j) x_j. For `relu-logistic` the head of knot k has the scores s_j - k and values b x_j / n, so all of them
    add -rate mean_j p(s_j) x_j; one more has the scores y_j = max(y_j, 0) and adds +rate mean_j y_j x_j. The head of the
    decay has score 1 at the query itself, 0 elsewhere, and adds -decay w. All heads read w before the step. The
    hidden units give w - max(w, 0) + max(-w, 0) + max(w - t, 0) - max(-w - t, 0), which is the shrinking, as the
    first three terms are 0; and they set the score (and the probability) to 0.
    *Prediction.* Two heads with scores +-w . x_j and as value the mark of token j add max(w . x, 0) - max(-w . x, 0) =
    w . x to the empty score. The hidden units of the second block are p. By induction over the passes: QED (exactness).

    *Contraction.* The exact step of the squared loss is w -> (1 - decay - rate A) w + rate mean y_j x_j, A = mean x x^T
    with eigenvalues in [0, spectrum]; shrinking does not increase distances. For the logistic loss A is an average of
    f'(.) x x^T with 0 <= f' <= 1/4. So a step multiplies distances by at most rho = max(|1 - decay|, |1 - decay - rate
    c spectrum|), c = 1 or 1/4, at most 1 if decay + rate c spectrum <= 2, and the rest to 2 is the margin mu. The
    polygon instead of the logistic function moves a step by at most rate eps B, where B = sqrt(d) bound >= |x_j|.

    *Norms.* After l steps |w| <= W_l, the smallest of three bounds. (i) From 0 a step goes to a vector of norm at most
    rate B Y, Y = label_bound (1/2 for logistic): W_(l+1) = rho W_l + rate B Y. (ii) A step decreases the objective F by
    at least (1 / rate - c spectrum / 2 - decay / (2 rate)) |change|^2 = mu / (2 rate) |change|^2, the descent lemma,
    for proximal steps too. F(0) is Y^2 / 2 at most (log 2 for logistic), so |w|^2 <= l sum |change|^2 <= 2 l rate F(0)
    / mu. (iii) The penalty alone is at most F(0): |w|^2 <= 2 F(0) rate / decay, or |w| <= F(0) rate / threshold.

    *Rounding* (in the terms of `kernel.rounding`, v = |w| in the run). Queries, keys and marks are copies. A score is
    a sum of d + 1 products of size at most S = v B + K in all, K the label bound or the outermost knot: error e =
    gamma_(d+1) S. A weighted sum over N rows, of values rounded `divide` + 1 times: in norm at most b B (e + gamma_(N +
    divide + 2) (S + e)), b the sum of |bends| (2 for two heads), since the norms of x_j / n add up to at most B. A
    weight is the sum of at most T such terms with one product each and of itself: gamma_(T+1) times the sizes.
    Shrinking: an argument w - t rounds once, the five terms are below 3 |w| in all, so the error is below gamma_8 (4
    |w| + 2 t). Marks and empty slots are exact: h - max(h, 0) + max(-h, 0) is 0 in any order. A prediction is two
    scores, 2 gamma_(d+1) v B, and one addition; p adds its arguments' and its own roundings, gamma_(M+3) b (|w . x| +
    K), and moves by a quarter of the error of the score. Underflow: every operation loses at most the smallest normal
    number, times the factors that follow; all are counted. E_(l+1) = rho E_l + rounding(W_l + E_l) + rate eps B bounds
    the error of w after every step.

    *Polygon.* p(s) = sum_m b_m max(s - k_m, 0) with knots k_1 < ... < k_M is 0 up to k_1, has slope c_m = b_1 + ... +
    b_m on [k_m, k_(m+1)], and is constant from k_M on if c_M = 0, which is checked exactly. The logistic function f
    rises from 0 to 1, so on the first and the last piece the distance is largest at an end: f(k_1), and |p(k_M) -
    f(k_M)| or |p(k_M) - 1|. Inside a piece with slope c the distance f - p is largest at an end or where f' = f (1 - f)
    = c, that is f = (1 +- sqrt(1 - 4 c)) / 2, the point s = log(f / (1 - f)), if there is one and it is inside. QED.

Assumptions
    form (**checked**): two blocks of ReLU attention and ReLU units, applied once for every step.
    weights (**checked**): every stored number is the one that the construction calls for.
    step (**checked**): decay + rate c spectrum <= 2, and the bends add up to 0.
    run (**trusted**): arithmetic is as described in `kernel.rounding`; the quotients x_j / n are rounded once.

Certified: The statement, for all contexts at once.

Not certified: That the steps have converged; contexts outside the box, of which only the exactness speaks.

Example
    >>> from certiformer.axioms.in_context_relu import construction
    >>> from certiformer.kernel.meanings.relu_learner import ReluLearner
    >>> numbers = dict(rate=0.5, decay=0.0, threshold=0.0, knots=(), bends=(), bound=1.0, label_bound=1.0, spectrum=2.0)
    >>> made = construction(ReluLearner("relu-least-squares", features=2, rows=8, steps=5, dtype="float64", **numbers))
    >>> len(made.config["blocks"]), made.config["width"]
    (2, 10)

Tests: tests/theorems/test_in_context_relu.py
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

from flint import arb

from certiformer.axioms.relu_learner_run import Drift, RunBounds
from certiformer.kernel import Refused
from certiformer.kernel.balls import ONE, ZERO, ball, decimal, larger, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.construction import Construction, Head, copy, eraser
from certiformer.kernel.files import CONFIG, LEARNER, MODEL
from certiformer.kernel.meanings.learner import most, read_learner
from certiformer.kernel.meanings.relu_learner import ReluLearner
from certiformer.kernel.rounding import FORMATS
from certiformer.kernel.weights import read_model

THEOREM = {
    "id": "axioms.in_context_relu",
    "title": "ReLU attention makes the steps of least squares, logistic regression and the Lasso on its context.",
    "kind": "exact",
    "sources": ("bai2023",),
    "verb": "compile",
    "assumptions": (
        ("form", "two blocks of ReLU attention and ReLU units, once for every step", "checked"),
        ("weights", "every stored number is the one that the description calls for", "checked"),
        ("step", "a step does not increase distances, and the bends add up to 0", "checked"),
        ("run", "a run rounds as kernel.rounding describes; x / n is rounded once", "trusted"),
    ),
}

NOT_CLAIMED = (
    "That the steps have converged: the claim is about as many steps as there are passes.",
    "Contexts outside the box, for the run; `run` refuses them.",
)


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    learner = _learner(files)
    try:
        bound = most(_drift(learner).prediction)
    except Refused:
        bound = None
    return learner.sentence(bound)


def find(files: Files) -> Finding:
    """Why the claim holds, and the bounds; raises `Refused` or `BadInput`."""
    working_precision()
    learner = _learner(files)
    made = construction(learner)
    made.require(*read_model(files[CONFIG], files[MODEL]))
    bounds, drift = _bounds(learner), _drift(learner)
    bound, margin = decimal(drift.prediction, up=True), decimal(bounds.room, up=False)
    parameters: dict[str, int | str] = {"steps": learner.steps, "margin": margin}
    parameters |= {"norm": decimal(drift.norm, up=True), "weights": decimal(drift.weights, up=True)}
    against = ""
    if learner.knots:
        parameters["polygon"] = decimal(bounds.polygon, up=True)
        against = f"; the polygon is within {parameters['polygon']} of the logistic function everywhere"
    reason = (
        f"all weights are the {made.count:,} numbers that the steps need, and zeros{against}; decay plus rate times"
        f" curvature is at least {margin} below 2, so errors do not grow, and a run in {learner.dtype} is within {bound}"
    )
    return Finding(reason, parameters, bound)


def _learner(files: Files) -> ReluLearner:
    learner = read_learner(files[LEARNER])
    if not isinstance(learner, ReluLearner):
        raise Refused(f"the theorem in_context_relu does not speak of the learner {learner.learner}")
    return learner


def _bounds(learner: ReluLearner) -> RunBounds:
    polygon = polygon_error(learner.knots, learner.bends) if learner.knots else ZERO
    return RunBounds(learner, FORMATS[learner.dtype], polygon)


@lru_cache(maxsize=8)
def _drift(learner: ReluLearner) -> Drift:
    """How far a run may be from the statement; raises `Refused` where nothing can be said."""
    working_precision()
    bounds = _bounds(learner)
    if not bounds.room >= 0:
        raise Refused("the steps are too long for the stated spectrum, so errors may grow from step to step")
    drift = bounds.drift()
    # A probability is at most 1, another prediction at most the norm of w times that of x.
    largest = ONE if learner.knots else drift.norm * bounds.row
    if not drift.prediction < largest:
        cause = f"rounding to {learner.dtype}, or the polygon,"
        raise Refused(f"{cause} may move a prediction by more than it can be large")
    return drift


def polygon_error(knots: Sequence[float], bends: Sequence[float]) -> arb:
    """An upper bound of the distance between the polygon and the logistic function.

    >>> working_precision()
    >>> round(float(polygon_error([-2.0, 2.0], [0.25, -0.25])), 4)
    0.1192
    """
    places, slopes, value = [Fraction(k) for k in knots], [Fraction(b) for b in bends], Fraction(0)
    if sum(slopes) != 0:
        raise Refused(
            "the bends of the logistic polygon do not add up to 0, so it runs away from the logistic function"
        )
    worst, slope = ZERO, Fraction(0)
    for place, bend, following in zip(places, slopes, places[1:], strict=False):
        slope += bend
        start, end = ball(place), ball(following)
        for s in (start, *_touching(ball(slope), start, end)):
            worst = larger(worst, abs(_logistic(s) - ball(value) - ball(slope) * (s - start)).upper())
        value += slope * (following - place)
    for limit in (ONE, _logistic(ball(places[-1]))):
        worst = larger(worst, abs(ball(value) - limit).upper())
    if not worst.is_finite():
        raise Refused("the logistic polygon has no error bound")
    return worst.upper()


def _logistic(s: arb) -> arb:
    return ONE / (ONE + (-s).exp())


def _touching(slope: arb, start: arb, end: arb) -> list[arb]:
    """The points of a piece where the slope of the logistic function is `slope`; more points than those do no harm."""
    rest = ONE - 4 * slope
    if not slope > 0 or rest < 0:
        return []
    root = rest.nonnegative_part().sqrt()
    points = [(share / (ONE - share)).log() for share in ((ONE + root) / 2, (ONE - root) / 2)]
    return [s for s in points if not (s < start or s > end)]


def construction(learner: ReluLearner) -> Construction:
    """The transformer of the statement: coordinates x, x / n, y, mark, 1, w, score and, for polygons, probability."""
    d, units = learner.features, [*zip(learner.knots, learner.bends, strict=True)]
    share, y, mark, one, w = d, 2 * d, 2 * d + 1, 2 * d + 2, 2 * d + 3
    score, probability = 3 * d + 3, 3 * d + 4
    slots = [score, probability] if units else [score]
    read = [(c, 1.0) for c in (*reversed(slots), *range(w, w + d))]
    sizes = (learner.rows + 1, 2 * d + 2, w + d + len(slots))
    made = Construction("relu", sizes, read, learner.rows, {one: 1.0})

    def gradient(ask: float, offset: float, key: int, bend: float, rate: float) -> Head:
        """Score ask w . x_j + offset times coordinate `key` of token j, value bend x_j / n, output rate."""
        query = [*copy(w, d, 0, ask), (mark, d, offset)]
        return query, [*copy(0, d), (key, d, 1.0)], copy(share, d, 0, bend), copy(0, d, w, rate)

    made.block()
    if units:
        made.heads(d + 1, d, (gradient(1.0, -knot, one, bend, -learner.rate) for knot, bend in units))
        made.heads(1, d, [([(mark, 0, 1.0)], [(y, 0, 1.0)], copy(share, d), copy(0, d, w, learner.rate))])
    else:
        made.heads(d + 1, d, (gradient(sign, -sign, y, 1.0, -sign * learner.rate) for sign in (1.0, -1.0)))
    if learner.decay:
        made.heads(1, d, [([(mark, 0, 1.0)], [(mark, 0, 1.0)], copy(w, d), copy(0, d, w, -learner.decay))])
    hidden = eraser(slots)
    for c in range(w, w + d) if learner.threshold else []:
        hidden += eraser([c]) + [({c: sign}, -learner.threshold, {c: sign}) for sign in (1.0, -1.0)]
    made.units(hidden)
    made.block()
    made.heads(d, 1, ((copy(w, d, 0, s), copy(0, d), [(mark, 0, 1.0)], [(0, score, s)]) for s in (1.0, -1.0)))
    if units:
        made.units(({score: 1.0, mark: -knot}, 0.0, {probability: bend}) for knot, bend in units)
    return made.finished(learner.steps, learner.dtype)
