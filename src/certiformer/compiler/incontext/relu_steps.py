"""The learners with ReLU attention: rates, numbers of steps, descriptions, and the transformer with its tokens.

With the eigenvalues of mean_j x_j x_j^T in [low, high] and strength s the curvature of a squared loss is between a =
low + s and b = high + s, and that of the logistic loss, whose second derivative is between 0 and 1/4, between a = s and
b = high / 4 + s. A step is a contraction by max(abs(1 - rate a), abs(1 - rate b)), smallest for rate = 2 / (a + b).
Where a = 0 there is no contraction to aim at, and the rate is 1 / b.

The transformer has two blocks, applied once for every step. The weights, the theorem and its proof are in
`axioms.in_context_relu`, the algorithms in `meanings.relu_learner`. A row is the token (x_j | x_j / n | y_j | 0), the
query, which comes last, (x | 0 | 0 | 1), an unused row all zero.
"""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from certiformer.axioms.in_context_relu import construction
from certiformer.compiler.incontext.gradient import trace_of_box
from certiformer.compiler.incontext.request import Request
from certiformer.compiler.tensors import dense
from certiformer.errors import BadInput
from certiformer.kernel.meanings.learner import require_count, require_number
from certiformer.kernel.meanings.relu_learner import MAX_FEATURES, MAX_STEPS, ReluLearner
from certiformer.model.config import Config


def relu_network(learner: ReluLearner) -> tuple[Config, dict[str, np.ndarray]]:
    """The transformer that makes the steps of the learner and predicts."""
    return dense(construction(learner), "take fewer --features")


def relu_points(
    learner: ReluLearner,
    x: Float[np.ndarray, "rows features"],
    y: Float[np.ndarray, " rows"],
    queries: Float[np.ndarray, "queries features"],
) -> Float[np.ndarray, "queries numbers"]:
    """The inputs of the transformer, one for each query."""
    n, d = x.shape
    tokens = np.zeros((len(queries), learner.rows + 1, 2 * d + 2))
    tokens[:, :n, :d] = x
    tokens[:, :n, d : 2 * d] = x / n
    tokens[:, :n, 2 * d] = y
    tokens[:, -1, :d] = queries
    tokens[:, -1, -1] = 1.0
    return tokens.reshape(len(queries), -1)


STEPS = 200  # where no contraction says how many are enough
TOLERANCE = 1e-9


def stored(value: float, dtype: str) -> float:
    """The number of the stored type that is nearest to `value`."""
    if dtype == "bfloat16":
        from ml_dtypes import bfloat16

        return float(bfloat16(value))
    return float(np.dtype(dtype).type(value))


def relu_learner(
    request: Request,
    kind: str,
    *,
    strength: float = 0.0,
    penalty: float = 0.0,
    knots: tuple[float, ...] = (),
    bends: tuple[float, ...] = (),
) -> ReluLearner:
    """The description: `strength` of a squared and `penalty` of an absolute penalty."""
    low, high = spectrum_of(request)
    flattest, steepest = (strength, high / 4 + strength) if knots else (low + strength, high + strength)
    rate = rate_of(request, flattest, steepest)
    decay, threshold = stored(rate * strength, request.dtype), stored(rate * penalty, request.dtype)
    steps = steps_of(request, [(rate, flattest, steepest)])
    return ReluLearner(
        kind, request.features, request.rows, steps, request.dtype, rate, decay, threshold, knots, bends,
        float(request.bound), float(request.label_bound), high,
    )  # fmt: skip


def spectrum_of(request: Request) -> tuple[float, float]:
    """The eigenvalues that are asked for; by default those of every context of the box."""
    require_count(request.features, "the number of features", MAX_FEATURES)
    require_number(float(request.bound), "the bound of the features")
    given = request.eigenvalues()
    if given is None:
        return 0.0, trace_of_box(request.features, float(request.bound))
    low, high = given
    if not 0 <= low <= high < math.inf or high == 0:
        raise BadInput(f"--spectrum LOW HIGH has 0 <= LOW <= HIGH and HIGH above 0, not {low:g} and {high:g}")
    return low, high


def rate_of(request: Request, low: float, high: float) -> float:
    """The size of a step, a number of the stored type, for curvatures between `low` and `high`."""
    rate = request.step if request.step is not None else 2.0 / (low + high) if low > 0 else 1.0 / high
    if not (math.isfinite(rate) and rate > 0):
        raise BadInput(f"--step is a positive number, not {rate:g}")
    rate = stored(rate, request.dtype)
    if not rate * high <= 2.0:
        raise BadInput(f"a step of {rate:g} is too long where the curvature reaches {high:g}: at most {2.0 / high:.6g}")
    return rate


def steps_of(request: Request, steps: list[tuple[float, float, float]]) -> int:
    """How many steps: --layers, or enough of them for --tolerance; `steps` are (rate, low, high), all of them wanted."""
    if request.layers is not None:
        return request.layers
    factor = max(max(abs(1 - rate * low), abs(1 - rate * high)) for rate, low, high in steps)
    tolerance = TOLERANCE if request.tolerance is None else request.tolerance
    if not 0 < tolerance < 1:
        raise BadInput(f"--tolerance is between 0 and 1, not {tolerance:g}")
    wanted = math.ceil(math.log(tolerance) / math.log(factor)) if 0 < factor < 1 else 1 if factor == 0 else None
    if request.tolerance is not None and (wanted is None or wanted > MAX_STEPS):
        many = "no number of" if wanted is None else f"{wanted:,}"
        raise BadInput(f"{many} steps are enough for --tolerance {tolerance:g}; at most {MAX_STEPS:,} are made")
    return STEPS if wanted is None else min(max(wanted, 1), MAX_STEPS)
