"""What every construction of `construct` reaches at a given size: built, measured on a grid, with the bound of its theorem.

`law` is what a theorem says about error against size. Sizes are nonzero weights; what a theorem counts (cells, pieces,
units) is `parts`: without the margins and the frame that every size has. An order p in cells of one axis and parts that
grow with `axes` axes make error ~ parts^(-p/axes):

    one head per knot or one unit per bend, whatever the dimension:  axes = 1,
    grids:                                                            axes = D,
    shifted grids for D >= 2: K ~ 1/epsilon shifts of a grid with 1/epsilon cells an axis, so axes = D + 1,
    Korovkin: the theorem speaks of the degree; how many units the bent waves need depends on the target: no law,
    ridge on a smooth target that is no sum of ridges: a polynomial is fitted first, no law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from certiformer.axioms import voronoi_second_order
from certiformer.axioms.grid import Grid
from certiformer.axioms.jets import DerivativeBounds
from certiformer.axioms.lattice import first_order_moment
from certiformer.construct import voronoi
from certiformer.construct.method import METHODS, Size, Task, method, with_layout
from certiformer.construct.pooled_order_statistics import error_bound, pooled_order_statistics
from certiformer.errors import BadInput
from certiformer.kernel import Refused
from certiformer.kernel.balls import BallDomain, working_precision
from certiformer.model import Transformer
from certiformer.sweep.job import Row
from certiformer.target import Target, parse_domain, parse_formula
from certiformer.target.floating import as_jax

APPROXIMATING = tuple(name for name in METHODS if name != "gather")
POOLED = "pooled order statistics"
EXACT = {
    "exact_gather": "affine targets, exact up to rounding",
    "position_gating": "affine targets that differ by position, exact up to rounding",
    "masked_gather": "brings every number to every token exactly; the error is that of the feed-forward part behind it",
    "equivariant_universal": "the error is that of pooled order statistics plus that of its feed-forward part",
    "memorise": "a finite table, exact up to rounding",
    "memorise_sets": "a finite table of sets, exact up to rounding",
    "sort_alphabet": "a finite map, exact",
    "counting": "a finite map, exact",
    "parity": "a finite map, exact",
    "majority": "a finite map, exact",
    "selector_width": "a finite map, exact",
    "induction_head": "a finite map, exact up to exp(-64)",
    "adaptive_halting": "a finite map, exact",
}
"""Modules of `construct` without a law of error against size, and why."""


@dataclass(frozen=True)
class Law:
    """error ~ parts^(-order/axes); order 0 where no theorem gives an exponent."""

    order: int = 0
    axes: int = 1


def law(plan: Any, dimension: int) -> Law:
    """What the theorem of a plan says about its size."""
    theorem = plan.theorem
    if theorem == "piecewise_linear":
        return Law(2) if plan.through is None else Law()
    if theorem in ("voronoi_first_order", "voronoi_second_order"):
        return Law(1 if theorem == "voronoi_first_order" else 2, dimension)
    if theorem in ("temperatures", "ridge_temperatures"):
        order = min(2 * plan.chosen.heads, plan.chosen.order)
        return Law(order, dimension if theorem == "temperatures" else 1)
    if theorem == "sigmoid_heads":
        return Law(min((cut.order for cut in plan.knots if cut.pieces), default=0))
    if theorem == "squares_rbf":
        return Law(plan.layer.order, dimension)
    if theorem == "shifted_grids":
        return Law(1, 1 if dimension == 1 else dimension + 1)
    return Law()


def counted(plan: Any, size: Size) -> int:
    """What the theorem counts: cells of grids, pieces of lines, else units or heads."""
    grid = getattr(plan, "grid", None) or getattr(
        getattr(plan, "chosen", None) or getattr(plan, "layer", None), "grid", None
    )
    if grid is not None:
        return math.prod(grid.cells)
    if plan.theorem == "sigmoid_heads":
        return sum(cut.pieces for cut in plan.knots)
    if plan.theorem == "piecewise_linear":
        return sum(path.pieces for output in plan.outputs for path in output.paths)
    return max(size.units, size.heads)


def build_target(formula: str, dimension: int) -> Target:
    """A formula on [0, 1]^dimension."""
    return Target(formula, parse_formula(formula), parse_domain(f"[0, 1]^{dimension}"))


def derivatives(target: Target) -> tuple[list[float], float]:
    """Proved bounds of |df/dx_i|, and of all second derivatives; 0 stands for a bound that is not known."""
    working_precision()
    domain = BallDomain(target.domain)
    parts = (max(1, int(voronoi.PARTS ** (1 / domain.dimension) + 1e-9)),) * domain.dimension
    found = DerivativeBounds(target.program, domain, parts, order=2)
    slopes = [float(g) if found.smooth >= 1 else 0.0 for g in found.gradient[0]]
    return slopes, max(float(h) for h in found.hessian[0].values()) if found.smooth >= 2 else 0.0


def grid_points(dimension: int, count: int) -> Float[np.ndarray, "points dimension"]:
    """About `count` points of a uniform grid on [0, 1]^dimension, ends included.

    The number of intervals is odd: on a grid that halves the cells of a construction, errors may happen to vanish.
    """
    line = np.linspace(0.0, 1.0, (max(1, round(count ** (1 / dimension)) - 1) | 1) + 1)
    return np.stack(np.meshgrid(*[line] * dimension, indexing="ij"), -1).reshape(-1, dimension)


def built(target: Target, name: str, tolerance: float, largest: int, points: np.ndarray) -> Row:
    """One construction, built for a tolerance and measured; a refusal is a row that says why."""
    dimension = target.domain.dimension
    task = Task.of(target, Fraction(str(tolerance)))
    try:
        task = replace(task, shape=with_layout(name, task.shape))
        plan = method(name).plan(task)
        size = plan.size()
        if size.dense > largest:
            raise Refused(f"{size.dense:,} weights are more than the {largest:,} that this study builds")
        construction = plan.realise()
    except (Refused, BadInput) as refusal:
        return _row(name, tolerance, refused=str(refusal))
    proof = construction.proof
    bound = plan.bound if proof is None else float(Fraction(proof.bound))
    found = law(plan, dimension)
    row = _row(name, tolerance, plan.theorem, found, bound, proof is not None)
    return row | _measured(construction.model, target, points) | {"parts": counted(plan, size)}


def pooled(latent: int, points: np.ndarray) -> Row:
    """The larger of two numbers from `latent` pooled ramps; the bound is attained."""
    model = pooled_order_statistics(2, latent, [[1, 0]])
    bound = float(error_bound(2, latent, [1, 0]))
    row = _row(POOLED, bound, "pooled_order_statistics", Law(1), bound, True)
    return row | _measured(model, build_target("max(x1, x2)", 2), points) | {"parts": latent}


def partition(case: str, cells: int, points: np.ndarray) -> Row:
    """The softmax partition of unity on a grid of given cells: what the theorems bound, without choosing a size by them.

    `first`: sharpness 4, values at centres; by Jensen |error| <= L sqrt(D V) / N for |f(x) - f(y)| <= L |x - y|_2, with
    V = (1 + 5.2 e^-4)/4 of the first-order theorem. `tangent`: sharpness 1 and 8 ghost cells a side with tangents as
    values (second-order theorem). `ghosts`: the same with the true function beyond the box, for which nothing is claimed.
    """
    kind, _, name = case.partition(" ")
    target = build_target(*PARTITIONED[name])
    working_precision()
    domain, d = BallDomain(target.domain), target.domain.dimension
    if kind == "first":
        grid = Grid((cells,) * d, 0, voronoi.FIRST_ORDER_SHARPNESS)
        theorem, bound = "", d**0.5 * float(first_order_moment(grid.sharpness)) / cells  # L = 1 in these cases
    else:
        grid = Grid((cells,) * d, 8, Fraction(1))
        theorem = "voronoi_second_order" if kind == "tangent" else ""
        bounds = DerivativeBounds(target.program, domain, (voronoi.PARTS,), order=2)
        bound = float(max(voronoi_second_order.apriori(grid, domain, bounds))) if theorem else 0.0
    order = Law(1 if kind == "first" else 2, d)
    model = voronoi.realise(voronoi.Plan(target, theorem, grid, bound, ())).model
    row = _row(f"partition of unity, {KINDS[kind]}", 1.0 / cells, theorem, order, bound, bound > 0)
    return row | _measured(model, target, points) | {"parts": cells**d}


PARTITIONED = {
    "kink": ("abs(x1 - 3/10)", 1),
    "cone": ("sqrt((x1 - 3/10)**2 + (x2 - 2/5)**2)", 2),
    "sine": ("sin(2*pi*x1)", 1),
}
KINDS = {"first": "sharpness 4", "tangent": "sharpness 1, tangents beyond the box", "ghosts": "sharpness 1, 8 ghosts"}


def _measured(model: Transformer, target: Target, points: np.ndarray) -> dict[str, Any]:
    """Size and errors on the points."""
    with jax.enable_x64(True):
        wanted = np.asarray(as_jax(target.program)(jnp.asarray(points)))
    error = np.abs(model.evaluate(points) - wanted)
    size = Size.of(model)
    return {
        "nonzero": size.nonzero,
        "dense": size.dense,
        "error_max": float(error.max()),
        "error_mse": float((error**2).mean()),
        "error_l1": float(error.mean()),
    }


def _row(
    name: str,
    tolerance: float,
    theorem: str = "",
    found: Law | None = None,
    bound: float = 0.0,
    proved: bool = False,
    refused: str = "",
) -> Row:
    found = found or Law()
    sizes = {"nonzero": 0, "dense": 0, "parts": 0, "error_max": 0.0, "error_mse": 0.0, "error_l1": 0.0}
    named = {
        "method": name,
        "theorem": theorem,
        "order": found.order,
        "axes": found.axes,
        "tolerance": float(tolerance),
    }
    return {**named, "bound": float(bound), "proved": int(proved), "refused": refused, **sizes}
