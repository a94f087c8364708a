"""Ridge regression on the rows of the context; the theorem is `in_context_ridge`, tokens are those of `gradient`.

By default every context of the box is covered: the eigenvalues of mean x x^T + strength lie between `strength` and
`strength + features bound^2`. The number of layers is the smallest one that leaves less than 1e-10 of the weights to
learn.
"""

from __future__ import annotations

from certiformer.axioms.in_context_ridge import ridge_bounds
from certiformer.compiler.incontext.gradient import build as build
from certiformer.compiler.incontext.gradient import explicit as explicit
from certiformer.compiler.incontext.gradient import facts as facts
from certiformer.compiler.incontext.gradient import (
    largest_eigenvalue,
    record,
    require_layers,
    settle,
    spectrum_of,
    step_of,
)
from certiformer.compiler.incontext.gradient import points as points
from certiformer.compiler.incontext.gradient import refuse as refuse
from certiformer.compiler.incontext.gradient import remarks as remarks
from certiformer.compiler.incontext.request import Request
from certiformer.compiler.incontext.schedule import chebyshev, constant, in_type, left_after, whitening
from certiformer.errors import BadInput
from certiformer.kernel.meanings.least_squares import LeastSquares

LINEAR = True  # in the query: predictions for unit vectors are the learned weights
LEFT, MOST_LAYERS = 1e-10, 64


def describe(request: Request) -> LeastSquares:
    """Ridge regression as the flags ask for it."""
    request.refuse("error", "margin", "validation")
    strengths = request.strengths()
    if len(strengths) != 1:
        raise BadInput("ridge has one --strength; the learner select takes several")
    strength = strengths[0]
    low, high = spectrum_of(request, (strength, largest_eigenvalue(request.features, request.bound, strength)))
    if high <= strength:
        raise BadInput(
            f"no context has its eigenvalues in {low:g} to {high:g}: they are at least the strength {strength:g}"
        )
    schedule = request.schedule or ("constant" if _plain(request) else "whitening")
    layers = request.layers if request.layers is not None else _layers(low, high, schedule)
    require_layers(layers)
    if request.step is not None and schedule != "constant":
        raise BadInput(f"the steps of the schedule {schedule} come from the spectrum; --step is for constant")
    whiten = (0.0,) * layers
    if schedule == "whitening":
        steps, whiten = whitening(low, high, layers)
    elif schedule == "chebyshev":
        steps = chebyshev(low, high, layers)
    else:
        steps = (step_of(request, constant(low, high, 1)[0]),) * layers
    learner = record(request, "ridge", steps, whiten, strength, low, high)
    held = in_type(strengths, request.dtype)[0]
    return settle(learner, request.tolerance, lambda found: sum(ridge_bounds(found, held=held)[1:]))


def _plain(request: Request) -> bool:
    """Whether the flags leave no room for whitening."""
    return request.looped or request.step is not None or request.attention not in (None, "linear")


def _layers(low: float, high: float, schedule: str) -> int:
    for layers in range(1, MOST_LAYERS):
        if left_after(low, high, schedule, layers) <= LEFT:
            return layers
    return MOST_LAYERS
