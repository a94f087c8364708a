"""Gradient descent on the rows of the context: descriptions, tokens and checks. The theorem is `in_context_gradient`.

A row is the token (x / n | x | y), a query (0 | x | 0), an unused row zero: n is the number of rows that are given,
so the weights do not know it. Mirrored tokens stand behind the rows and behind the query.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, inf, isfinite, log2, log10, nextafter
from typing import Any

import numpy as np
from jaxtyping import Float

from certiformer.axioms.in_context_gradient import construction, output_weights, run_bound
from certiformer.compiler.incontext.determined import require_box, require_determined
from certiformer.compiler.incontext.request import Request
from certiformer.compiler.incontext.schedule import chebyshev, in_type
from certiformer.compiler.tensors import dense
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.meanings.learner import larger_reading, require_count, written
from certiformer.kernel.meanings.least_squares import MAX_FEATURES, MAX_LAYERS, LeastSquares
from certiformer.model.config import Config

SINKS = {"float64": 36.0, "float32": 20.0, "bfloat16": 10.0}
UNITS = {"float64": 2.0**-53, "float32": 2.0**-24, "bfloat16": 2.0**-8}
LINEAR = True  # in the query: predictions for unit vectors are the learned weights
SMALLEST = 1e-30  # bounds beyond this have squares that floats cannot tell from nothing or everything
FINEST = 1e-12  # tolerances are not stated smaller than this unless asked


def describe(request: Request) -> LeastSquares:
    """Gradient descent as the flags ask for it: equal steps, or Chebyshev's for the eigenvalues of --spectrum."""
    request.refuse("strength", "error", "margin", "validation")
    layers = 1 if request.layers is None else request.layers
    require_layers(layers)
    low, high = spectrum_of(request, (0.0, largest_eigenvalue(request.features, request.bound, 0.0)))
    schedule = request.schedule or "constant"
    if schedule == "whitening":
        raise BadInput("whitening is not gradient descent; the learner ridge has it")
    if schedule == "chebyshev":
        if request.spectrum is None or request.step is not None:
            raise BadInput("the steps of Chebyshev come from --spectrum LOW HIGH, and need no --step")
        if low == 0:
            raise BadInput("the steps of Chebyshev need a LOW above 0; for LOW 0 leave out --schedule, or use ridge")
        steps = chebyshev(low, high, layers)
    else:
        steps = (step_of(request, 1.0 / high),) * layers
    return settle(record(request, "gd", steps, (0.0,) * layers, 0.0, low, high), request.tolerance, run_bound)


def require_layers(layers: int) -> None:
    """Refuse a number of layers before a step is made for each of them."""
    if layers < 1:
        raise BadInput(f"--layers is a positive number, not {layers}")
    require_count(layers, "the number of layers", MAX_LAYERS)


def largest_eigenvalue(features: int, bound: float, strength: float) -> float:
    """No context of the box has a larger eigenvalue: strength + features bound^2, rounded up."""
    require_count(features, "the number of features", MAX_FEATURES)
    if not SMALLEST <= bound <= 1 / SMALLEST:  # NaN is refused, too
        raise BadInput(f"--bound is a number from {SMALLEST:g} to {1 / SMALLEST:g}, not {bound:g}")
    return trace_of_box(features, bound, strength)


def trace_of_box(features: int, bound: float, strength: float = 0.0) -> float:
    """strength + features bound^2, rounded up; infinite where no float is that large."""
    exact = written(strength) + features * larger_reading(bound) ** 2
    try:
        rounded = float(exact)
    except OverflowError:
        return inf
    return rounded if larger_reading(rounded) >= exact else nextafter(rounded, inf)


def spectrum_of(request: Request, default: tuple[float, float]) -> tuple[float, float]:
    """The range of eigenvalues, checked; a LOW of 0 is the least that any context has, which `default` begins with."""
    low, high = request.eigenvalues() or default
    if not (isfinite(low) and isfinite(high) and 0 <= low < high):
        raise BadInput(f"--spectrum is LOW HIGH with 0 <= LOW < HIGH, not {low:g} {high:g}")
    return low or default[0], high


def step_of(request: Request, default: float) -> float:
    """The step size, checked."""
    step = default if request.step is None else request.step
    if not (isfinite(step) and step > 0):
        raise BadInput(f"--step is a positive number, not {step:g}")
    return step


def record(
    request: Request,
    learner: str,
    steps: tuple[float, ...],
    whiten: tuple[float, ...],
    strength: float,
    low: float,
    high: float,
) -> LeastSquares:
    attention = request.attention or "linear"
    small = 0.0
    if attention != "linear":
        # Errors are about (small S)^2 / 2 from the scores and 100 N unit / small from rounding: a power of two between.
        reach = max(request.features * request.bound**2, 1.0)
        small = 2.0 ** round(log2(100 * UNITS[request.dtype] * request.rows / reach**2) / 3)
    return LeastSquares(
        learner,
        request.features,
        request.rows,
        float(request.bound),
        float(request.label_bound),
        request.dtype,
        attention,
        request.looped,
        in_type(steps, request.dtype),
        in_type(whiten, request.dtype),
        strength,
        low,
        high,
        small,
        SINKS[request.dtype] if attention == "softmax-pair" else 0.0,
        1.0 if request.tolerance is None else float(request.tolerance),
    )


def settle(learner: LeastSquares, stated: float | None, bound_of: Callable[[LeastSquares], Any]) -> LeastSquares:
    """The description with a tolerance that can be proved, where none was stated: 1, 2 or 5 times a power of ten.

    Where nothing better than the size of the answers can be proved, that is the tolerance, and it will not be certified.
    """
    if stated is not None:
        return learner
    try:
        bound = float(bound_of(learner))
    except Refused as reason:
        raise BadInput(f"{reason}; smaller steps, fewer layers or a smaller --bound may help") from None
    if bound <= FINEST * 0.9:
        return replace(learner, tolerance=FINEST)
    if not bound <= learner.label_bound / 1.1:
        # An error as large as the answers says nothing: the checker will say so.
        return replace(learner, tolerance=learner.label_bound)
    power = 10.0 ** ceil(log10(bound) - 1)
    ladder = [digit * power * scale for scale in (0.1, 1.0, 10.0) for digit in (1.0, 2.0, 5.0)]
    # A little room: the stored output weights of softmax are rounded, too.
    return replace(learner, tolerance=float(f"{next(t for t in ladder if t >= 1.1 * bound):.0e}"))


def build(learner: LeastSquares) -> tuple[Config, dict[str, np.ndarray]]:
    """The transformer of a learner: one block for each step, or one block that is applied so many times."""
    weights = [float(weight.mid()) for weight in output_weights(learner)]
    return dense(construction(learner, weights), "take fewer --features or --layers")


def points(
    learner: LeastSquares,
    x: Float[np.ndarray, "rows features"],
    y: Float[np.ndarray, " rows"],
    queries: Float[np.ndarray, "queries features"],
) -> Float[np.ndarray, "queries size"]:
    """The inputs of the model, one for each query."""
    d, n, capacity = learner.features, len(x), learner.rows
    x, y, queries = (
        np.array(in_type(tuple(part.ravel()), learner.dtype)).reshape(part.shape) for part in (x, y, queries)
    )
    rows = np.zeros((capacity, 2 * d + 1))
    rows[:n, :d], rows[:n, d : 2 * d], rows[:n, 2 * d] = x / n, x, y
    asked = np.zeros((len(queries), 1, 2 * d + 1))
    asked[:, 0, d : 2 * d] = queries
    context = np.broadcast_to(rows, (len(queries), *rows.shape))
    parts = [context, -context, asked, -asked] if learner.attention == "softmax-mirror" else [context, asked]
    return np.concatenate(parts, axis=1).reshape(len(queries), -1)


def refuse(learner: LeastSquares, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> None:
    """Refuse what the certificate does not cover, and a constant feature that is no intercept.

    Fewer rows than features are no mistake, as steps are still steps.
    """
    require_determined(x, strength=1.0)
    require_box(learner, x, y, queries)
    if learner.everywhere:
        return
    values = np.linalg.eigvalsh(x.T @ x / len(x) + learner.strength * np.eye(learner.features))
    # Eigenvalues are computed with an error of about d u |A|; a context at the very end of the range is not refused for it.
    slack = 1e-12 * max(float(values[-1]), learner.high)
    if values[-1] > learner.high + slack or (learner.learner == "ridge" and values[0] < learner.low - slack):
        raise BadInput(
            f"the eigenvalues of this context are {values[0]:.4g} to {values[-1]:.4g}, but this learner was compiled for"
            f" {learner.low:.4g} to {learner.high:.4g}; rescale the features or compile with --spectrum"
        )


def facts(learner: LeastSquares, x: np.ndarray, y: np.ndarray, outputs: np.ndarray) -> dict[str, str]:
    """Say what happens with fewer rows than features."""
    if len(x) >= learner.features:
        return {}
    how = (
        "only the part of a query within their span counts"
        if learner.learner == "gd"
        else "the strength decides the rest"
    )
    return {"note": f"{len(x)} row{'s' if len(x) > 1 else ''} for {learner.features} features: {how}"}


def remarks(learner: LeastSquares, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> list[str]:
    """Nothing: what the certificate does not cover is refused."""
    return []


def explicit(learner: LeastSquares, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> Float[np.ndarray, " queries"]:
    """The algorithm itself, without any transformer: the steps of `meanings.least_squares`."""
    matrix = x.T @ x / len(x) + learner.strength * np.eye(learner.features)
    weights, change = np.zeros(learner.features), np.eye(learner.features)
    for step, beta in zip(learner.steps, learner.whiten, strict=True):
        weights = weights + step * change @ change @ (x.T @ y / len(x) - matrix @ weights)
        change = change - beta * (change @ matrix @ change) @ change
    return queries @ weights
