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
from certiformer.kernel.meanings.relu_learner import MAX_FEATURES, MAX_ROWS, MAX_STEPS
from certiformer.kernel.programs import exact_text, range_text

MAX_STRENGTHS = 100
MOST_LISTED = 6  # strengths that a sentence still lists with their numbers


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

    `rates`, `decays` and `gap` are weights, and mean the floats that are stored. `bound`, `label_bound` and `spectrum`
    mean the decimals that stand in the file.
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
        require_choice(self.dtype, "dtype", DTYPES)
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
    def strengths(self) -> tuple[Fraction, ...]:
        """The strengths that the stored numbers make, exactly."""
        return tuple(Fraction(decay) / Fraction(rate) for rate, decay in zip(self.rates, self.decays, strict=True))

    @property
    def everywhere(self) -> bool:
        """Whether `spectrum` holds on the whole box: the trace of the mean of x x^T is at most features bound^2."""
        return larger_reading(self.spectrum) >= self.features * larger_reading(self.bound) ** 2

    @property
    def rule(self) -> str:
        return "in_context_selection"

    def sentence(self, bound: str | None, lead: str | None) -> str:
        """The claim; `bound` and `lead` are what is proved of runs, None where nothing is."""
        gap = exact_text(self.gap)
        claim = (
            f"On every context of up to {self.rows:,} rows with {self.features} features, the last {self.validation} of"
            f" them for validation, {self.steps} passes make {self.steps} gradient steps of ridge regression for each of"
            f" {len(self.rates)} strengths ({self._choices}) and predict with the one whose validation loss is smallest,"
            f" exactly, in real arithmetic, wherever it leads by {gap}; elsewhere with a convex combination of those that"
            f" are less than {gap} above the smallest."
        )
        if bound is None or lead is None:
            return f"{claim} Nothing is bounded for a run in {self.dtype}."
        box = f"|x| <= {exact_text(written(self.bound))}, |y| <= {exact_text(written(self.label_bound))}"
        if not self.everywhere:
            box += f", no eigenvalue of mean x x^T over the training rows is above {exact_text(written(self.spectrum))}"
        return (
            f"{claim} Where {box} and the lead is at least {lead}, a run in {self.dtype} makes the same choice and predicts"
            f" at most {bound} away from that."
        )

    @property
    def _choices(self) -> str:
        """Every strength with its step and decay, or their ranges where there are many."""
        if len(self.rates) > MOST_LISTED:
            rates = range_text([Fraction(rate) for rate in self.rates])
            return f"{range_text([*self.strengths])}, with steps of a size {rates}, listed in learner.json"
        return "; ".join(map(_choice, self.strengths, self.rates, self.decays))

    def to_text(self) -> str:
        """The canonical content of `learner.json`."""
        return learner_text(asdict(self))


def _choice(strength: Fraction, rate: float, decay: float) -> str:
    """A strength and the size of its steps; the decay, too, where the strength is not a short decimal."""
    text = range_text([strength])
    more = f" with a decay of {exact_text(decay)}" if text.startswith("between") else ""
    return f"{text}, by steps of size {exact_text(rate)}{more}"
