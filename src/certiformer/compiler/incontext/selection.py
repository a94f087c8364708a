"""Ridge regression with the strength chosen by validation, inside one transformer (Bai et al. 2023, theorem 16).

See `selection_network` for the weights.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from certiformer.compiler.incontext.determined import require_box, require_determined, require_spectrum
from certiformer.compiler.incontext.relu_least_squares import remarks
from certiformer.compiler.incontext.relu_steps import rate_of, spectrum_of, steps_of, stored
from certiformer.compiler.incontext.request import Request
from certiformer.compiler.incontext.selection_network import selection_network as build
from certiformer.compiler.incontext.selection_network import selection_points as points
from certiformer.errors import BadInput
from certiformer.kernel.meanings.selection import Selection

__all__ = ["build", "describe", "facts", "points", "refuse", "remarks"]
STRENGTHS, GAP = "0.01,0.1,1,10", 1e-6


def describe(request: Request) -> Selection:
    """The description that the flags ask for; --margin is rounded down to a power of two.

    >>> describe(Request(learner="select", features=2, rows=8, strength="0.5,2", layers=9)).strengths
    (Fraction(1, 2), Fraction(2, 1))
    """
    request.refuse("schedule", "attention", "looped", "error")
    strengths = request.strengths(STRENGTHS)
    if len(set(strengths)) < len(strengths):
        raise BadInput("--strength names the same number twice")
    low, high = spectrum_of(request)
    rates = [rate_of(request, low + s, high + s) for s in strengths]
    decays = [stored(rate * s, request.dtype) for rate, s in zip(rates, strengths, strict=True)]
    steps = steps_of(request, [(rate, low + s, high + s) for rate, s in zip(rates, strengths, strict=True)])
    gap = GAP if request.margin is None else request.margin
    if not 2.0**-100 <= gap <= 2.0**100:
        raise BadInput(f"--margin is between 1e-30 and 1e30, not {gap:g}")
    validation = request.rows // 4 if request.validation is None else request.validation
    return Selection(
        "selection", request.features, request.rows, validation, steps, request.dtype, tuple(rates), tuple(decays),
        2.0 ** math.floor(math.log2(gap)), float(request.bound), float(request.label_bound), high,
    )  # fmt: skip


def refuse(learner: Selection, x: np.ndarray, y: np.ndarray, queries: np.ndarray) -> None:
    """One sentence where the context cannot be learned from."""
    if len(x) <= learner.validation:
        raise BadInput(
            f"the context has {len(x)} rows, but the last {learner.validation} are for validation and none is left to learn"
            " from"
        )
    require_box(learner, x, y, queries)
    training = x[: -learner.validation]
    require_determined(x, min(learner.decays))
    require_spectrum(learner.spectrum, learner.everywhere, training)


def facts(learner: Selection, x: np.ndarray, y: np.ndarray, outputs: np.ndarray) -> dict[str, Any]:
    """The losses on the validation rows, the share of each strength in the answer, and the strength that was chosen."""
    count, strengths = len(learner.rates), [float(strength) for strength in learner.strengths]
    shares, losses = outputs[0, 1 : 1 + count], outputs[0, 1 + count :]
    best = int(np.argmin(losses))
    first, second = np.sort(losses)[:2]
    return {
        "strengths": strengths,
        "losses": [float(loss) for loss in losses],
        "shares": [float(share) for share in shares],
        "lead": float(second - first),
        "chosen": strengths[best] if shares[best] == 1.0 else None,
    }
