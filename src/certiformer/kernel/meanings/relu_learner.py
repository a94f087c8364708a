"""Learners that ReLU attention runs on the rows of a context, as `learner.json` describes them.

On rows (x_j, y_j), j = 1..n, with w = 0 at first, every step is

    w <- shrink(w - rate mean_j g(w . x_j, y_j) x_j - decay w),

| learner | g(s, y) | shrink |
|---|---|---|
| `relu-least-squares` | s - y | nothing |
| `relu-logistic` | p(s) - y, labels 0 and 1 | nothing |
| `relu-lasso` | s - y | w_i to sign(w_i) max(abs(w_i) - threshold, 0) |

where p(s) = sum_m bends_m max(s - knots_m, 0) is piecewise linear and stands for the logistic function. So rate times the
strength is `decay` for a squared penalty and `threshold` for an absolute one. The prediction for a query is w . x after
the last step (for `relu-logistic` p(w . x)).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction

from certiformer.errors import BadInput
from certiformer.kernel.meanings.learner import (
    DTYPES,
    larger_reading,
    learner_text,
    require_choice,
    require_count,
    require_number,
    written,
)
from certiformer.kernel.programs import exact_text, range_text

LEARNERS = ("relu-least-squares", "relu-logistic", "relu-lasso")
MAX_FEATURES, MAX_ROWS, MAX_STEPS, MAX_KNOTS = 1_000, 100_000, 1_000, 10_000


@dataclass(frozen=True)
class ReluLearner:
    """Which steps are made, and the contexts that the bounds of the claim speak of.

    **Arguments:**

    - `rows`: how many rows a context may have; it may have fewer.
    - `steps`: how often the step above is made.
    - `rate`, `decay`, `threshold`, `knots`, `bends`: the numbers of the step, each a number of the stored type.
    - `bound`, `label_bound`: |x| <= bound in every entry, queries too, and |y| <= label_bound.
    - `spectrum`: no eigenvalue of mean_j x_j x_j^T is larger.

    `rate`, `decay`, `threshold`, `knots` and `bends` are weights, and mean the floats that are stored. `bound`,
    `label_bound` and `spectrum` mean the decimals that stand in the file.
    """

    learner: str
    features: int
    rows: int
    steps: int
    dtype: str
    rate: float
    decay: float
    threshold: float
    knots: tuple[float, ...]
    bends: tuple[float, ...]
    bound: float
    label_bound: float
    spectrum: float

    def __post_init__(self) -> None:
        require_choice(self.learner, "the learner", LEARNERS)
        require_count(self.features, "the number of features", MAX_FEATURES)
        require_count(self.rows, "the number of rows", MAX_ROWS)
        require_count(self.steps, "the number of steps", MAX_STEPS)
        require_choice(self.dtype, "dtype", DTYPES)
        for name in ("rate", "bound", "label_bound", "spectrum"):
            require_number(getattr(self, name), name)
        require_number(self.decay, "decay", strict=False)
        require_number(self.threshold, "threshold", strict=self.learner == "relu-lasso")
        if self.threshold and self.learner != "relu-lasso":
            raise BadInput("only relu-lasso has a threshold")
        if self.decay and self.learner == "relu-lasso":
            raise BadInput("relu-lasso has a threshold and no decay")
        self._check_units()

    def _check_units(self) -> None:
        if type(self.knots) is not tuple or type(self.bends) is not tuple or len(self.knots) != len(self.bends):
            raise BadInput("knots and bends are two lists of the same length")
        if bool(self.knots) != (self.learner == "relu-logistic"):
            raise BadInput("relu-logistic has knots, and no other learner has")
        if self.knots:
            require_count(len(self.knots), "the number of knots", MAX_KNOTS)
        for number in (*self.knots, *self.bends):
            require_number(number, "a knot or bend", -1e300)
        if any(b <= a for a, b in zip(self.knots, self.knots[1:], strict=False)):
            raise BadInput("the knots do not grow")
        if self.knots and self.label_bound != 1.0:
            raise BadInput("the labels of relu-logistic are 0 and 1, so their bound is 1")

    @property
    def everywhere(self) -> bool:
        """Whether `spectrum` holds on the whole box: the trace of mean_j x_j x_j^T is at most features bound^2."""
        return larger_reading(self.spectrum) >= self.features * larger_reading(self.bound) ** 2

    @property
    def rule(self) -> str:
        return "in_context_relu"

    @property
    def algorithm(self) -> str:
        """The algorithm in words, with the stored numbers and the strength that they make."""
        lost = Fraction(self.decay) + Fraction(self.threshold)  # only one of them is not 0
        step = f"steps of size {exact_text(self.rate)}"
        strength = f"of strength {range_text([lost / Fraction(self.rate)])}"
        if "between" in strength:  # the quotient of two stored numbers: those are said, too
            strength += f", {'threshold' if self.threshold else 'decay'} {exact_text(lost)}"
        if self.learner == "relu-lasso":
            return f"proximal gradient {step} for the Lasso {strength}"
        loss = "logistic regression" if self.knots else "least squares"
        return f"gradient {step} for {loss}" + (f" with a ridge {strength}" if lost else "")

    def sentence(self, bound: str | None) -> str:
        """The claim; `bound` is the proved distance of a run, None where there is none."""
        target = "labels 0 and 1" if self.knots else "any numbers as answers"
        context = f"On every context of 1 to {self.rows:,} rows with {self.features} features and {target}"
        exactly = "with the logistic function replaced by the stored polygon" if self.knots else "exactly"
        made = f"{self.steps} passes make {self.steps} {self.algorithm}"
        claim = f"{context}, {made}, {exactly}, in real arithmetic"
        if bound is None:
            return f"{claim}; no distance of a run in {self.dtype} is bounded."
        box = f"|x| <= {exact_text(written(self.bound))}"
        box += "" if self.knots else f", |y| <= {exact_text(written(self.label_bound))}"
        if not self.everywhere:
            box += f" and no eigenvalue of mean x x^T is above {exact_text(written(self.spectrum))}"
        what = "what these steps with the logistic function itself predict" if self.knots else "that prediction"
        return f"{claim}; where {box}, a run in {self.dtype} is at most {bound} away from {what}."

    def to_text(self) -> str:
        """The canonical content of `learner.json`."""
        return learner_text(asdict(self))
