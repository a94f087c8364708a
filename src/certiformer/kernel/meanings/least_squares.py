"""Gradient descent and ridge regression on the rows of a context, as `learner.json` describes them.

On rows (x_j, y_j), j = 1..n, with w = 0 at first, step k is

    w <- w + eta_k B_k (mean_j (y_j - w . x_j) x_j - strength w),

where B_k = 1 unless `whiten` says otherwise: B_k = M_k^2, M_(k+1) = (1 - beta_k A_k) M_k, A_k = M_k A M_k, and A is the
matrix mean_j x_j x_j^T + strength. The prediction for a query is w . x after the last step.
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
    smaller_reading,
    written,
)
from certiformer.kernel.programs import exact_text, range_text

ATTENTIONS = ("linear", "softmax-pair", "softmax-mirror")
MAX_FEATURES, MAX_ROWS, MAX_LAYERS = 1_000, 10_000, 1_000
MOST_SIZES = 4  # different step sizes that a sentence still lists


@dataclass(frozen=True)
class LeastSquares:
    """Which steps are made, for which contexts, and how exactly.

    **Arguments:**

    - `learner`: `gd` (no strength) or `ridge`.
    - `rows`: how many rows a context may have; it may have fewer.
    - `bound`, `label_bound`: the box of the claim, |x| <= bound in every entry, queries too, and |y| <= label_bound.
    - `steps`, `whiten`: eta_k and beta_k of every layer; `looped` layers share one block, so all are equal.
    - `strength`: that of the ridge regression of the claim. The weights hold the nearest number of their type; what the
      difference does to a prediction is part of the proof.
    - `low`, `high`: the claim is for contexts where the eigenvalues of A lie between them.
    - `small`, `sink`: the scale of the scores and the score of the sink, where attention is softmax; else zero.
    - `tolerance`: how far a run may be from the statement above.

    Steps are weights, and mean the floats that are stored. `bound`, `label_bound`, `strength`, `low`, `high` and
    `tolerance` mean the decimals that stand in the file.
    """

    learner: str
    features: int
    rows: int
    bound: float
    label_bound: float
    dtype: str
    attention: str
    looped: bool
    steps: tuple[float, ...]
    whiten: tuple[float, ...]
    strength: float
    low: float
    high: float
    small: float
    sink: float
    tolerance: float

    def __post_init__(self) -> None:
        if self.learner not in ("gd", "ridge"):
            raise BadInput(f"least squares are learned by gd or ridge, not {self.learner!r}")
        require_count(self.features, "the number of features", MAX_FEATURES)
        require_count(self.rows, "the number of rows", MAX_ROWS)
        require_number(self.bound, "the bound of the features")
        require_number(self.label_bound, "the bound of the answers")
        require_number(self.tolerance, "the tolerance")
        require_choice(self.dtype, "dtype", DTYPES)
        require_choice(self.attention, "attention", ATTENTIONS)
        if type(self.looped) is not bool:
            raise BadInput(f"looped is true or false, not {self.looped!r}")
        self._check_steps()
        self._check_strength()
        softmax = self.attention != "linear"
        for value, used, name in (
            (self.small, softmax, "the scale of the scores"), (self.sink, self.attention == "softmax-pair", "the sink")
        ):  # fmt: skip
            require_number(value, name, strict=used)
            if not used and value:
                raise BadInput(f"{name} of {self.attention} attention is 0, not {value!r}")

    def _check_steps(self) -> None:
        if type(self.steps) is not tuple or type(self.whiten) is not tuple or len(self.whiten) != len(self.steps):
            raise BadInput("steps and whiten are two lists of the same length")
        require_count(len(self.steps), "the number of layers", MAX_LAYERS)
        for step, beta in zip(self.steps, self.whiten, strict=True):
            require_number(step, "a step")
            require_number(beta, "a step of the whitening", strict=False)
        if self.looped and len({*self.steps}) + len({*self.whiten}) > 2:
            raise BadInput("a looped block makes the same step every time; with different steps the layers are stacked")
        if any(self.whiten) and self.attention != "linear":
            raise BadInput("whitening needs linear attention")
        if self.attention == "softmax-mirror" and len(self.steps) != 1:
            raise BadInput("mirrored tokens are for one step: rounding makes later ones unstable (softmax-pair is not)")

    def _check_strength(self) -> None:
        require_number(self.strength, "the strength", strict=self.learner == "ridge")
        if self.learner == "gd" and self.strength:
            raise BadInput("gd has no strength; ridge has")
        require_number(self.low, "the smallest eigenvalue", strict=self.learner == "ridge")
        require_number(self.high, "the largest eigenvalue", self.low)

    @property
    def layers(self) -> int:
        return len(self.steps)

    @property
    def registers(self) -> int:
        """One for each feature carries the strength; a sink and mirrored ones come on top."""
        return self.features if self.strength else 0

    @property
    def everywhere(self) -> bool:
        """Whether all contexts of the box have their eigenvalues between `low` and `high`.

        The trace of the mean of x x^T is at most features bound^2, and so is its largest eigenvalue.
        """
        strength = written(self.strength)
        largest = strength + self.features * larger_reading(self.bound) ** 2
        return smaller_reading(self.low) <= strength and larger_reading(self.high) >= largest

    @property
    def rule(self) -> str:
        return "in_context_gradient" if self.learner == "gd" else "in_context_ridge"

    @property
    def sentence(self) -> str:
        strength, low, high, tolerance = (_text(x) for x in (self.strength, self.low, self.high, self.tolerance))
        box = f"|x| <= {_text(self.bound)} and |y| <= {_text(self.label_bound)}"
        context = f"On every context of 1 to {self.rows:,} rows with {_counted(self.features, 'feature')}, {box}"
        if not self.everywhere:
            matrix = "mean x x^T" if not self.strength else f"mean x x^T + {strength}"
            between = f"at most {high}" if self.learner == "gd" else f"between {low} and {high}"
            context += f", where {matrix} has its eigenvalues {between}"
        passes = f"{_counted(self.layers, 'pass')} of one block" if self.looped else _counted(self.layers, "layer")
        passes += f" {(predict := 'predict' if self.layers > 1 else 'predicts')}"
        if self.learner == "gd":
            exactly = "exactly, in real arithmetic, and" if self.attention == "linear" else "in real arithmetic and"
            steps = f"{_counted(self.layers, 'step')} of gradient descent {self._sizes} {predict}"
            return f"{context}, {passes} what {steps}, {exactly} in a run in {self.dtype} to {tolerance}."
        return (
            f"{context}, {passes} what ridge regression of strength {strength} predicts, in real arithmetic"
            f" and in a run in {self.dtype} to {tolerance}."
        )

    @property
    def _sizes(self) -> str:
        """The sizes of the steps: all of them in order, or the range of those that `learner.json` lists."""
        exact = [Fraction(step) for step in self.steps]
        if len(set(exact)) == 1:
            return f"of size {exact_text(exact[0])}"
        if len(exact) <= MOST_SIZES:
            return f"of the sizes {', '.join(map(exact_text, exact))} in this order"
        return f"of the sizes that learner.json lists, all of them {range_text(exact)},"

    def to_text(self) -> str:
        """The canonical content of `learner.json`."""
        return learner_text(asdict(self))


def _text(value: float) -> str:
    """A number of the description that no weight holds."""
    return exact_text(written(value))


def _counted(count: int, noun: str) -> str:
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('s') else 's'}"
