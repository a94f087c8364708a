"""Linear attention is a step of gradient descent on the rows of its context, for every context at once.

Statement
    Let rows (x_j, y_j), j = 1, ..., n, and a query x be given, 1 <= n <= N, d features. The tokens are (x_j / n | x_j
    | y_j), N - n zero tokens, and (0 | x | 0). Layers of linear attention whose weights pass the checks below predict
    exactly what gradient descent with the stored steps eta_1, ..., eta_L predicts, w <- w + eta_k mean_j (y_j - w .
    x_j) x_j from w = 0: in real arithmetic, for all rows, answers and queries. If |x| <= bound, |y| <= label_bound
    and the eigenvalues of mean x x^T are at most `high`, then a run in the stored type differs by at most the stated
    bound. With softmax attention (two heads and a sink, or mirrored tokens and one step) the bound holds for both.

Source
    von Oswald et al. 2023 (oswald2023): tokens (x_j, y_j) and linear attention. Looping one layer: Gatmiry et al. 2024
    (gatmiry2024).

Differs from the source in
    Keys have coordinates of their own and carry 1/n: no weight depends on the number of rows, unused rows and the query
    itself add exactly nothing in every layer without a mask (with tokens (x, y) alone the query's own value would
    enter from the second layer on), and the weights hold the steps themselves, without rounding. Softmax needs a sink:
    without it two heads give mean (s_j - mean s) v_j, which is gradient descent on centred data only.

Proof
    Let r_j = y_j - w . x_j at a row and r = -w . x at the query. Keys of unused rows and of the query are 0, so a layer
    adds -eta_k sum_j (x_i . x_j / n) r_j = -(eta_k mean_j r_j x_j) . x_i at every token, that is: w changes by a step
    of gradient descent. Features and keys are not changed; induction; the read-out is -r at the query. Runs and softmax:
    `axioms.learner_run`. QED.

Assumptions
    weights (**checked**): every stored number is the one that the learner has, output weights of softmax up to rounding.
    numbers (**checked**): bounds are found in ball arithmetic, for all eigenvalues up to `high`.
    run (**trusted**): arithmetic is as described in `kernel.rounding`; the context is given in numbers of the type.

Certified
    The statement for all contexts of 1 to N rows; `tolerance` is stated, `margin` is what the bound leaves of it.

Not certified
    That gradient descent has converged, or that its prediction is a good one; rounding outside the box.

Example
    >>> from certiformer.axioms.in_context_gradient import prove_run
    >>> from certiformer.kernel.meanings.least_squares import LeastSquares
    >>> steps, none = (0.25,) * 10, (0.0,) * 10
    >>> gd = LeastSquares("gd", 3, 20, 1.0, 1.0, "float64", "linear", False, steps, none, 0.0, 0.0, 3.0, 0.0, 0.0, 1e-12)
    >>> bool(prove_run(gd).bound() < 1e-12)
    True

Tests
    tests/theorems/test_in_context_gradient.py
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from certiformer.axioms.learner_run import EXACT, LearnerRun, softmax_attention
from certiformer.axioms.learner_spectrum import spectrum
from certiformer.axioms.learner_weights import require_weights
from certiformer.kernel.balls import ZERO, ball, decimal, working_precision
from certiformer.kernel.computation import Files, Finding
from certiformer.kernel.files import CONFIG, LEARNER, MODEL
from certiformer.kernel.meanings.learner import larger_reading, read_learner, smaller_reading, written
from certiformer.kernel.meanings.least_squares import LeastSquares
from certiformer.kernel.numbers import exact_text
from certiformer.kernel.refusal import Refused
from certiformer.kernel.rounding import FORMATS, NoBound
from certiformer.kernel.weights import read_model

THEOREM = {
    "id": "axioms.in_context_gradient",
    "title": "Layers of linear attention are steps of gradient descent on the rows of the context.",
    "kind": "exact",
    "sources": (
        "oswald2023",
        "gatmiry2024",
    ),
    "verb": "compile",
    "assumptions": (
        ("weights", "every stored number is the one that the learner has", "checked"),
        ("numbers", "the bounds hold for all eigenvalues up to the stated one", "checked"),
        ("run", "a run rounds as kernel.rounding describes, on numbers of the stored type", "trusted"),
    ),
    "uses": (),
}

NOTHING = Fraction(0)
NOT_CLAIMED = (
    "That the prediction is a good one: it is that of the algorithm, for whatever rows are given.",
    "Rounding outside the box; in real arithmetic the algorithm is the same there, too.",
)


def sentence(files: Files) -> str:
    """The claim in one plain sentence."""
    return _learner(files).sentence


def find(files: Files) -> Finding:
    """Why the claim holds, with the proved bound of a run; raises `Refused` or `BadInput`."""
    working_precision()
    learner = _learner(files)
    deviation = require_weights(learner, *read_model(files[CONFIG], files[MODEL]))
    error = run_bound(learner, deviation)
    left = require_tolerance(learner, error)
    bound = decimal(error, up=True)
    exactly = "are exactly those of the algorithm" if learner.attention == "linear" else "are those of the algorithm"
    reason = f"the stored weights {exactly}, and a run in {learner.dtype} differs by at most {most(error)}"
    return Finding(reason, {"margin": decimal(left, up=False), "run": bound}, bound)


def most(bound: arb) -> str:
    """An upper bound as a decimal, rounded up."""
    return exact_text(Fraction(decimal(bound, up=True)))


def run_bound(learner: LeastSquares, deviation: arb = ZERO, shift: Fraction = NOTHING) -> arb:
    """How far a run may be from the steps that `learner` describes; raises `Refused` where there is no bound.

    `shift` is how far the eigenvalues that the stored registers make may be from those of the claim.
    """
    working_precision()
    try:
        bound = prove_run(learner, deviation, shift).bound()
    except NoBound as reason:
        raise Refused(f"a run has no bound: {reason}") from None
    if not bound.is_finite():
        raise Refused("a run has no finite bound: the steps may grow beyond all numbers")
    return bound.upper()


def prove_run(learner: LeastSquares, deviation: arb = ZERO, shift: Fraction = NOTHING) -> LearnerRun:
    """The bound of a run as an object; gradient descent alone may meet every eigenvalue from 0 on."""
    working_precision()
    form = FORMATS[learner.dtype]
    softmax = EXACT if learner.attention == "linear" else softmax_attention(learner, form, deviation)
    low, high = eigenvalues(learner, shift)
    return LearnerRun(learner, form, spectrum(learner.steps, learner.whiten, low, high), softmax)


def eigenvalues(learner: LeastSquares, shift: Fraction) -> tuple[Fraction, Fraction]:
    """The range that the bounds are found for: that of the claim, wider by `shift` on both sides."""
    low = smaller_reading(learner.low) - shift if learner.strength else NOTHING
    if learner.strength and not low > 0:
        raise Refused("the stored strength is too far from that of the claim")
    return low, larger_reading(learner.high) + shift


def require_tolerance(learner: LeastSquares, error: arb) -> arb:
    """What the proved error leaves of the stated tolerance."""
    tolerance = written(learner.tolerance)
    left = (ball(tolerance) - error).lower()
    if not left > 0:
        raise Refused(f"the proved bound is at most {most(error)}, above the tolerance {exact_text(tolerance)}")
    return left


def _learner(files: Files) -> LeastSquares:
    learner = read_learner(files[LEARNER])
    if not isinstance(learner, LeastSquares) or learner.learner != "gd" or any(learner.whiten):
        raise Refused("the description is not that of gradient descent")
    return learner
