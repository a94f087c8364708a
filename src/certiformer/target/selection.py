"""The choice among several strengths of ridge regression by validation, as `learner.json` describes it.

The context is split: training rows and validation rows. For every k the learner makes the steps

    w_k <- w_k - rates_k mean_train (w_k . x_j - y_j) x_j - decays_k w_k,       w_k = 0 at first,

so that decays_k / rates_k is the strength, and finds the validation loss L_k = mean_validation (w_k . x_j - y_j)^2. Then

    m_k = sum_l max((L_k - L_l) / gap, 0),   b_k = max(1 - m_k, 0),   s_k = max(1 - b_1 - ... - b_k, 0),   s_0 = 1,

and the prediction for a query is sum_k (s_(k-1) - s_k) w_k . x: that of the smallest loss where it leads by `gap`, and
in any case a convex combination of predictions whose losses are less than `gap` above the smallest.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields

from certiformer.errors import BadInput
from certiformer.target.learner import DTYPES, entries_of, learner_text, require_count, require_number
from certiformer.target.relu_learner import MAX_FEATURES, MAX_ROWS, MAX_STEPS

MAX_STRENGTHS = 100


@dataclass(frozen=True)
class Selection:
    """The strengths, the steps, and the gap.

    **Arguments:**

    - `rows`: how many rows a context may have, training and validation together; it may have fewer.
    - `validation`: how many of the rows, the last ones, are for validation.
    - `rates`, `decays`: the numbers of the steps, one pair for each strength, each a number of the stored type.
    - `gap`: a power of two.
    - `bound`, `label_bound`, `spectrum`: the contexts that are taken: |x| <= bound and |y| <= label_bound in every entry,
      and no eigenvalue of the mean of x x^T over the training rows above `spectrum`. There the steps do not grow.
    """

    learner: str
    features: int
    rows: int
    validation: int
    steps: int
    dtype: str
    rates: tuple[float, ...]
    decays: tuple[float, ...]
    gap: float
    bound: float
    label_bound: float
    spectrum: float

    def __post_init__(self) -> None:
        if self.learner != "selection":
            raise BadInput(f"this learner is called selection, not {self.learner!r}")
        require_count(self.features, "the number of features", MAX_FEATURES)
        require_count(self.rows, "the number of rows", MAX_ROWS)
        require_count(self.steps, "the number of steps", MAX_STEPS)
        if self.rows < 2:
            raise BadInput("a choice by validation needs at least two rows, one to learn from and one to validate with")
        require_count(self.validation, "the number of rows for validation", self.rows - 1)
        if self.dtype not in DTYPES:
            raise BadInput(f"dtype is one of {', '.join(DTYPES)}, not {self.dtype!r}")
        for name in ("gap", "bound", "label_bound", "spectrum"):
            require_number(getattr(self, name), name)
        if math.frexp(self.gap)[0] != 0.5 or not 2.0**-100 <= self.gap <= 2.0**100:
            raise BadInput(f"gap is a power of two between 2^-100 and 2^100, not {self.gap!r}")
        if type(self.rates) is not tuple or type(self.decays) is not tuple or len(self.rates) != len(self.decays):
            raise BadInput("rates and decays are two lists of the same length")
        if len(self.rates) < 2:
            raise BadInput("a choice needs at least two strengths, as in --strength 0.1,1,10")
        require_count(len(self.rates), "the number of strengths", MAX_STRENGTHS)
        for rate, decay in zip(self.rates, self.decays, strict=True):
            require_number(rate, "a rate")
            require_number(decay, "a decay", strict=False)

    @property
    def strengths(self) -> tuple[float, ...]:
        return tuple(decay / rate for rate, decay in zip(self.rates, self.decays, strict=True))

    @property
    def everywhere(self) -> bool:
        """Whether `spectrum` holds on the whole box: the trace of the mean of x x^T is at most features bound^2."""
        return self.spectrum >= self.features * self.bound * self.bound

    @property
    def rule(self) -> str:
        return "in_context_selection"

    @property
    def sentence(self) -> str:
        strengths = ", ".join(f"{strength:.6g}" for strength in self.strengths)
        eigenvalues = "" if self.everywhere else f", no eigenvalue of mean x x^T is above {self.spectrum:g}"
        return (
            f"On every context of up to {self.rows:,} rows with {self.features} features, the last {self.validation} of"
            f" them for validation, {self.steps} passes make {self.steps} gradient steps of ridge regression for each of"
            f" the strengths {strengths} and predict with the one whose validation loss is smallest, exactly, in real"
            f" arithmetic, wherever it leads by {self.gap:g}; elsewhere with a convex combination of those that are less"
            f" than {self.gap:g} above the smallest. Where |x| <= {self.bound:g}, |y| <= {self.label_bound:g}{eigenvalues}"
            f" and the lead is that of the certificate, a run in {self.dtype} makes the same choice and predicts within its"
            " bound."
        )

    def to_text(self) -> str:
        """The canonical content of `learner.json`."""
        return learner_text(asdict(self))

    @staticmethod
    def from_text(text: str | bytes) -> Selection:
        return Selection(**entries_of(text, [field.name for field in fields(Selection)]))
