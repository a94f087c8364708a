"""Size against tolerance: this run, its candidates, what two theorems would need, and what no family can go below.

All curves count weights that are not zero. The two a-priori curves are the Voronoi theorems on a grid whose cells are
shared out by slope (A1) or curvature (A2, sharpness 1, margin 3); the lower bound is `expressivity.bits_lower_bound` with
64 bits a weight. It speaks of *all* functions with the target's Lipschitz constant, not of the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from certiformer.artifact import Artifact
from certiformer.axioms import voronoi_first_order as first_order
from certiformer.axioms import voronoi_second_order as second_order
from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import DerivativeBounds
from certiformer.expressivity.bits_lower_bound import bits
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.target import Target

PARTS = 400  # sub-boxes on which derivatives are enclosed for the picture
SAMPLES = 33  # of a curve
DECADES = 1.0  # on both sides of the tolerance
BITS = 64
MOST = 1e12  # weights that are still drawn
A1 = (Fraction(4), 0)  # sharpness and margin
A2 = (Fraction(1), 3)

Curve = list[tuple[float, float]]


def size_picture(run: Artifact) -> dict[str, Any] | None:
    """The picture, or None when there is no transformer or its tolerance is beyond float64."""
    epsilon = float(Fraction(run.certificate.epsilon))
    if run.model is None or not isinstance(run.subject.target, Target) or not 1e-30 < epsilon < 1e30:
        return None
    dots = _dots(run, epsilon)
    places = [dot["x"] for dot in dots]
    low, high = (min([epsilon / 10**DECADES, *places]), max([epsilon * 10**DECADES, *places]))
    tolerances = [low * (high / low) ** (k / (SAMPLES - 1)) for k in range(SAMPLES)]
    curves, note = _curves(run.subject.target, tolerances)
    heights = [dot["y"] for dot in dots]
    top = max(heights) * 300
    # Room below the lowest dot for its name.
    bottom = max(1.0, min([*heights, *(y for curve in curves for _, y in curve["points"])]) / 6)
    curves += _bracket(run, low, heights[0])
    for curve in curves:
        curve["points"] = [(x, y) for x, y in curve["points"] if bottom <= y <= top]
    return {
        "kind": "sizes",
        "title": "Size against tolerance",
        "caption": note,
        "name": "tolerance ε →, weights that are not zero ↑",
        "x": [low, high],
        "y": [bottom, top],
        "curves": [curve for curve in curves if len(curve["points"]) > 1],
        "dots": dots,
    }


def _dots(run: Artifact, epsilon: float) -> list[dict[str, Any]]:
    upper = run.certificate.upper
    weights = 0 if run.model is None else run.model.nonzero_count()
    place = float(Fraction(upper)) if upper is not None and Fraction(upper) > 0 else epsilon
    height = float(max(weights, 1))
    dots = [{"label": "this run", "style": "ours", "x": max(place, epsilon * 1e-6), "y": height}]
    if run.certificate.apriori is not None and Fraction(run.certificate.apriori) > 0:
        apriori = min(max(float(Fraction(run.certificate.apriori)), epsilon * 1e-6), epsilon * 1e6)
        dots.append({"label": "", "style": "apriori", "x": apriori, "y": height})
    for candidate in run.candidates or []:
        size, bound = candidate.get("nonzero"), candidate.get("bound")
        if not size or size == weights:
            continue  # without a size, or this run itself
        at = float(bound) if bound and math.isfinite(bound) else epsilon
        at = min(max(at, epsilon * 1e-6), epsilon * 1e6)
        dots.append({"label": str(candidate.get("method", "")), "style": "candidate", "x": at, "y": float(size)})
    return dots


def _bracket(run: Artifact, left: float, height: float) -> list[dict[str, Any]]:
    """The proved bracket of the largest error, at the height of this run; it may start left of the picture."""
    lower, upper = run.certificate.lower, run.certificate.upper
    if upper is None or not Fraction(upper) > 0:
        return []
    ends = [max(float(Fraction(lower or 0)), left), float(Fraction(upper))]
    return [{"label": "proved bracket", "style": "ours", "points": [(max(end, left), height) for end in ends]}]


def _curves(target: Target, tolerances: list[float]) -> tuple[list[dict[str, Any]], str]:
    working_precision()
    domain = BallDomain(target.domain)
    dimension = domain.dimension
    parts = (max(1, int(PARTS ** (1 / dimension) + 1e-9)),) * dimension
    derivatives = DerivativeBounds(target.program, domain, parts, order=2)
    if derivatives.smooth < 1:
        return [], "The target is not known to be Lipschitz, so neither a-priori sizes nor the lower bound apply."
    lengths = [float((high - low).mid()) for low, high in domain.ends]
    slopes = [max(float(g[i]) for g in derivatives.gradient) * lengths[i] for i in range(dimension)]
    constant = max(
        sum(float(g) * n for g, n in zip(gradient, lengths, strict=True)) for gradient in derivatives.gradient
    )
    if not math.isfinite(constant) or constant <= 0:
        return [], "The target is constant or too steep for a-priori sizes and the lower bound."
    points = _grid_curve(domain, derivatives, slopes, 1.0, tolerances)
    found: list[dict[str, Any]] = [{"label": "A1, a priori", "style": "first", "points": points}]
    if derivatives.smooth == 2:
        bend = [
            max(
                sum(float(h) * lengths[a] * lengths[b] for (a, b), h in hessian.items() if i in (a, b))
                for hessian in derivatives.hessian
            )
            for i in range(dimension)
        ]
        points = _grid_curve(domain, derivatives, bend, 0.5, tolerances)
        found.append({"label": "A2, a priori", "style": "second", "points": points})
    limit = [(eps, float(_words(constant, eps, dimension))) for eps in tolerances]
    limit = [(eps, count) for eps, count in limit if count > 0]
    found.append({"label": "bits, lower bound", "style": "limit", "points": limit})
    names = " and ".join(curve["label"].partition(",")[0] for curve in found[:-1])
    note = (
        f"The ring is the bound known before searching. {names}: what the Voronoi theorems need for this target. Shaded:"
        " too few weights (64 bits each, at fixed places) for a family that serves every function with Lipschitz constant"
        f" {constant:.3g} (max norm, box scaled to the unit cube). It says nothing about this one function, which may need"
        " far fewer."
    )
    return found, note


def _words(constant: float, epsilon: float, dimension: int) -> int:
    """Weights of 64 bits, rounded up."""
    return -(-bits(Fraction(constant), Fraction(epsilon), dimension) // BITS)


def _grid_curve(
    domain: BallDomain, derivatives: DerivativeBounds, shape: list[float], power: float, tolerances: list[float]
) -> Curve:
    """Weights of the smallest grid with cells proportional to shape^power that the theorem accepts, by tolerance."""
    rule, (sharpness, margin) = (first_order, A1) if power == 1.0 else (second_order, A2)
    top = max(shape)
    if not (math.isfinite(top) and top > 0):
        return []
    shares = [max((s / top) ** power, 1e-6) for s in shape]

    def grid(scale: float) -> Grid:
        return Grid(tuple(max(1, math.ceil(scale * s - 1e-9)) for s in shares), margin, sharpness)

    def bound(scale: float) -> float:
        return float(max(rule.apriori(grid(scale), domain, derivatives)))

    inputs, outputs = domain.dimension, len(derivatives.gradient)
    points = []
    for epsilon in tolerances:
        try:
            scale = _smallest(bound, epsilon)
        except Refused:
            continue
        if scale is not None:
            points.append((epsilon, float(grid(scale).size * (inputs + 1 + outputs) + 4 * inputs + 4 + 3 * outputs)))
    return points


def _smallest(bound: Callable[[float], float], epsilon: float) -> float | None:
    low, high = 0.5, 1.0
    while not bound(high) <= epsilon:
        low, high = high, 2 * high
        if high > MOST:
            return None
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if bound(middle) <= epsilon else (middle, high)
    return high
